"""Every setting, declared once as data: page, defaults, ranges, help and checks derive from this table. Pure.

A setting without a label is remembered and not shown. Those of one model, which stand in for the ones of all, are
declared in the same way in `MODEL_SETTINGS`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from inglenook.app.settings_presets import DEFAULT_PRESET, OWN, PRESETS


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting. The type is the default's; `minimum` and `maximum` bound numbers, `choices` names all values.

    `label`, `hint` and `words` (of the choices, in their order) are for people; `zero` says what 0 means, `unit` what
    is counted, `step` what an arrow key adds. `group` is its part of the page, `is_expert` keeps it out of sight at
    first, `shown_with` (key, value) shows it only while another setting has that value, `is_long` gives a text
    several lines, `needs_load` says that it counts from the next time a model is loaded.
    """

    key: str
    default: Any
    label: str = ""
    hint: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    group: str = ""
    unit: str = ""
    zero: str = ""
    step: float = 1
    is_expert: bool = False
    is_long: bool = False
    needs_load: bool = False
    shown_with: tuple[str, str] | None = None

    def fault(self, value: object) -> str:
        """Say what is wrong with a value; "" for a good one."""
        name = self.label or self.key
        if type(value) is not type(self.default) and not (type(self.default) is float and type(value) is int):
            return f"{name} must be of the type {type(self.default).__name__}, got {type(value).__name__}."
        if self.choices and value not in self.choices:
            return f"{name} must be one of {', '.join(filter(None, self.choices))}, got {value!r}."
        if isinstance(value, int | float) and not isinstance(value, bool):
            low, high = self.minimum, self.maximum
            if (
                not math.isfinite(value)
                or (low is not None and value < low)
                or (high is not None and value > high)
            ):
                return f"{name} must be from {_number(low)} to {_number(high)}, got {_number(value)}."
        if isinstance(value, str) and self.maximum is not None and len(value) > self.maximum:
            return f"{name} can have {_number(self.maximum)} characters at most, got {len(value):,}."
        return ""

    def parsed(self, text: str) -> tuple[Any, str]:
        """Read what a person typed; return the value and "", or None and the sentence what is wrong with it."""
        if isinstance(self.default, str):
            fault = self.fault(text)
            return (None, fault) if fault else (text, "")
        plain = text.strip().replace(" ", "").replace("\u202f", "").replace("\u00a0", "")
        if self.zero and plain.casefold() in ("", self.zero.replace(" ", "").casefold()):
            return type(self.default)(0), ""
        what = "a number" if isinstance(self.default, float) else "a whole number"
        try:
            if isinstance(self.default, float):
                value: float = float(plain.replace(",", "."))
            else:
                value = int(re.sub(r"(?<=\d)[,.'’](?=\d{3}(?!\d))", "", plain))
        except ValueError:
            got = f"“{text.strip()[:40]}”" if text.strip() else "nothing"
            return None, f"{self.label or self.key} must be {what}, got {got}."
        fault = self.fault(value)
        return (None, fault) if fault else (value, "")

    def written(self, value: Any) -> str:
        """Write a number or text as a person would type it; 0 as the word for it, where there is one."""
        if self.zero and value == 0 and not isinstance(value, str):
            return self.zero
        return f"{value:g}" if isinstance(value, float) else str(value)

    def choice_words(self, value: str) -> str:
        """The words for a choice."""
        return self.words[self.choices.index(value)] if self.words else value


APPEARANCE, ANSWERS, CHATS, MODEL, DOCUMENTS = "Appearance", "Answers", "Chats", "Models", "Documents"
GROUPS = (APPEARANCE, ANSWERS, CHATS, MODEL, DOCUMENTS)
_OWN_STYLE = ("chat.preset", OWN)
_KV_TYPES = ("", "float16", "int8", "bfloat16", "float32")
_KV_WORDS = (
    "Automatic",
    "16 bits (float16)",
    "8 bits (half the memory)",
    "16 bits (bfloat16)",
    "32 bits (float32)",
)

SETTINGS: tuple[SettingSpec, ...] = (
    SettingSpec("appearance.scheme", "system", "Colours", choices=("system", "light", "dark"),
                words=("As the system", "Light", "Dark"), group=APPEARANCE),
    SettingSpec("appearance.language", "system", "Language", "Takes effect when Inglenook is started again.",
                choices=("system", "en", "de", "ar"), words=("As the system", "English", "Deutsch", "العربية"),
                group=APPEARANCE),
    SettingSpec("appearance.contrast", "system", "Contrast", "High contrast sets text and borders in black and white.",
                choices=("system", "usual", "high"), words=("As the system", "Usual", "High"), group=APPEARANCE),
    SettingSpec("appearance.motion", True, "Animation", "Turned off, the signs of work in progress stand still.",
                group=APPEARANCE),
    SettingSpec("appearance.scale", 1.0, "Text size", "1 is the system's size; Ctrl and + or − change it too.", 0.7, 3.0,
                group=APPEARANCE, step=0.1),
    SettingSpec("chat.preset", DEFAULT_PRESET, "Style of answers",
                "Precise keeps to what is likeliest, creative varies more. A persona can have a style of its own.",
                choices=(*PRESETS, OWN), words=("Precise", "Balanced", "Creative", "My own values"), group=ANSWERS),
    SettingSpec("chat.temperature", 0.7, "Temperature", "0 always takes the likeliest word; higher varies more.",
                0.0, 2.0, group=ANSWERS, step=0.1, shown_with=_OWN_STYLE),
    SettingSpec("chat.top_k", 0, "Top k", "Choose among the k likeliest words.", 0, 1000, zero="all", group=ANSWERS,
                step=10, shown_with=_OWN_STYLE),
    SettingSpec("chat.top_p", 0.95, "Top p", "Choose among the likeliest words that add up to p; 1 is all.",
                0.01, 1.0, group=ANSWERS, step=0.05, shown_with=_OWN_STYLE),
    SettingSpec("chat.min_p", 0.05, "Min p", "Leave out what is less than p times as likely as the likeliest.",
                0.0, 0.99, group=ANSWERS, step=0.01, shown_with=_OWN_STYLE),
    SettingSpec("chat.repetition_penalty", 1.0, "Repetition penalty",
                "Above 1, words that were used already become less likely; 1 is off.", 0.5, 2.0, group=ANSWERS, step=0.05,
                shown_with=_OWN_STYLE),
    SettingSpec("chat.system", "", "Instructions",
                "What the model is told before every conversation. A persona's instructions take their place.",
                maximum=100_000, group=ANSWERS, is_long=True),
    SettingSpec("chat.max_tokens", 0, "Longest reply", "A token is about three quarters of a word.",
                0, 1_000_000, unit="tokens", zero="no limit", group=ANSWERS, step=128, is_expert=True),
    SettingSpec("chat.stop_repetition", True, "Stop a reply that repeats itself",
                "When it has said the same thing without end, far beyond what anybody asks for.",
                group=ANSWERS, is_expert=True),
    SettingSpec("chat.seed", 0, "Seed", "The same seed, question and settings give the same answer.",
                0, 2**53, zero="new each time", group=ANSWERS, is_expert=True),
    SettingSpec("chat.figures", True, "Show speed under answers",
                "Time to the first word, tokens a second, and what was read from the cache.", group=CHATS),
    SettingSpec("chat.titles", True, "Name new chats automatically",
                "By the model, from the first question and answer. A title that you gave is never changed.", group=CHATS),
    SettingSpec("chat.overflow", "drop", "When a chat is longer than the model's window",
                "What is left out is always said. Nothing is ever cut inside a message.",
                choices=("drop", "ask"), words=("Leave out the oldest questions", "Stop and ask me"), group=CHATS),
    SettingSpec("chat.persona", 0, minimum=0, maximum=2**62),
    SettingSpec("model.idle_minutes", 15, "Unload a model after",
                "Its memory is free from then on; the next question loads it again.",
                0, 10_080, unit="minutes without a question", zero="never", group=MODEL, step=5),
    SettingSpec("model.context_length", 0, "Context window", "How much of a chat the model sees at once.",
                0, 10_000_000, unit="tokens", zero="automatic", group=MODEL, step=1024, is_expert=True, needs_load=True),
    SettingSpec("model.kv_type", "", "Keys and values", "How the model's memory of a chat is kept.",
                choices=_KV_TYPES, words=_KV_WORDS, group=MODEL, is_expert=True, needs_load=True),
    SettingSpec("model.num_threads", 0, "Threads", "Processor threads for reading and writing.",
                0, 256, zero="automatic", group=MODEL, is_expert=True, needs_load=True),
    SettingSpec("model.backend", "auto", "Back end", "What the model is computed with.",
                choices=("auto", "native-cpu", "torch-cpu", "cuda", "reference"),
                words=("Automatic", "Our kernels for the processor", "PyTorch on the processor", "NVIDIA card",
                       "Reference (slow, exact)"),
                group=MODEL, is_expert=True, needs_load=True),
    SettingSpec("documents.ticked_when_added", True, "Ask about a document as soon as it is added",
                "A new chat then asks all documents that are in the list.", group=DOCUMENTS),
    SettingSpec("documents.embedder", ""),
    SettingSpec("documents.next_embedder", ""),
    SettingSpec("model.name", ""),
    SettingSpec("model.options", {}),
    SettingSpec("window.state", {}),
    SettingSpec("window.shortcuts", {}),
    SettingSpec("window.has_shortcuts", True),
    SettingSpec("window.closed_folders", {}),
    SettingSpec("window.conversation", 0, minimum=0, maximum=2**62),
    SettingSpec("settings.is_expert", False),
)  # fmt: skip
"""All settings, in the order of the page."""

OWN_STYLE_KEYS = tuple(spec.key for spec in SETTINGS if spec.shown_with == _OWN_STYLE)
"""The keys of the values of the style "own"."""

_BY_KEY = {spec.key: spec for spec in SETTINGS}
MODEL_SETTINGS: tuple[SettingSpec, ...] = (
    *(
        replace(_BY_KEY[f"model.{name}"], key=name, is_expert=False)
        for name in ("context_length", "kv_type", "num_threads", "backend")
    ),
    SettingSpec(
        "chat_template",
        "",
        "Chat template",
        "How messages become one text, as Jinja; empty is the model's own.",
        maximum=65_536,
        is_long=True,
        needs_load=True,
    ),
)
"""What can be set for one model alone; kept in `model.options` by the model's name."""


def _number(value: float | None) -> str:
    return (
        "" if value is None else f"{value:,}" if isinstance(value, int) and value >= 10_000 else f"{value:g}"
    )
