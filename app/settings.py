"""The settings: declared once as data, from which dialogs, help and checks derive, and their values of now.

Values are kept in the database's settings table. One that is missing, of another type or out of range reads as its
default, and the stored one stays; a key that this program does not know is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from inglenook.app.errors import AppError
from inglenook.engine.request import LoadOptions, SamplingParams


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting. The type is the default's; `minimum` and `maximum` bound numbers, `choices` names all values.

    `label` is "" for what the program remembers without showing it.
    """

    key: str
    default: Any
    label: str = ""
    hint: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def fault(self, value: object) -> str:
        """Say what is wrong with a value; "" for a good one."""
        name = self.label or self.key
        if type(value) is not type(self.default) and not (type(self.default) is float and type(value) is int):
            return f"{name} must be of the type {type(self.default).__name__}, got {type(value).__name__}."
        if self.choices and value not in self.choices:
            return f"{name} must be one of {', '.join(self.choices)}, got {value!r}."
        if isinstance(value, int | float) and not isinstance(value, bool):
            low, high = self.minimum, self.maximum
            if (
                not math.isfinite(value)
                or (low is not None and value < low)
                or (high is not None and value > high)
            ):
                return f"{name} must be from {low:g} to {high:g}, got {value:g}."
        return ""


SETTINGS: tuple[SettingSpec, ...] = (
    SettingSpec("appearance.scheme", "system", "Colours", choices=("system", "light", "dark")),
    SettingSpec("appearance.scale", 1.0, "Text size", "1 is the system's", 0.7, 3.0),
    SettingSpec(
        "chat.system", "", "Instructions", "What the model is told before every conversation; may stay empty"
    ),
    SettingSpec(
        "chat.temperature",
        0.7,
        "Temperature",
        "0 always takes the likeliest word; higher varies more",
        0.0,
        2.0,
    ),
    SettingSpec("chat.top_k", 0, "Top k", "Choose among the k likeliest words; 0 is all", 0, 1000),
    SettingSpec("chat.top_p", 1.0, "Top p", "Choose among the likeliest words that add up to p", 0.01, 1.0),
    SettingSpec(
        "chat.min_p",
        0.0,
        "Min p",
        "Leave out what is less than p times as likely as the likeliest",
        0.0,
        0.99,
    ),
    SettingSpec(
        "chat.max_tokens",
        0,
        "Longest reply",
        "In tokens; 0 is up to the end of the model's context",
        0,
        1_000_000,
    ),
    SettingSpec("model.name", "", "Model"),
    SettingSpec("model.context_length", 0, "Context", "In tokens; 0 is the model's own", 0, 10_000_000),
    SettingSpec("model.num_threads", 0, "Threads", "0 leaves it to the program", 0, 1024),
    SettingSpec(
        "model.idle_minutes", 15, "Unload after", "In minutes without a question; 0 never does", 0, 10_080
    ),
    SettingSpec("model.backend", "auto", "Back end"),
    SettingSpec("documents.ticked_when_added", True, "Ask about a document as soon as it is added"),
    SettingSpec("window.state", {}),
    SettingSpec("window.conversation", 0, minimum=0, maximum=2**62),
)

Save = Callable[[Mapping[str, object]], object]


class AppSettings(QObject):
    """The values of now. GUI thread only; `save` is given what changed.

    Signals:
        changed(str, object): key and new value.
    """

    changed = Signal(str, object)

    def __init__(self, save: Save = lambda _values: None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._save = save
        self._specs = {spec.key: spec for spec in SETTINGS}
        self._values: dict[str, Any] = {}
        self._kept: set[str] = set()

    def load(self, stored: Mapping[str, object]) -> str:
        """Take what was stored; return one sentence about values that cannot be used, or ""."""
        faults = []
        for key, spec in self._specs.items():
            if key in stored:
                fault = spec.fault(stored[key])
                if fault:
                    faults.append(fault)
                else:
                    self._kept.add(key)
                    self._take(key, stored[key])
        if not faults:
            return ""
        return f"{len(faults)} of the settings could not be used, and their defaults are: {faults[0]}"

    def value(self, key: str) -> Any:
        """Return a value, of its default's type. Raises: KeyError for a key that is not declared."""
        spec = self._specs[key]
        return self._values.get(key, spec.default)

    def is_kept(self, key: str) -> bool:
        """Return whether a value was stored, now or at an earlier time, be it the default."""
        return key in self._kept

    def set(self, key: str, value: object) -> None:
        """Change and save a value.

        Raises:
            AppError: it is of another type, or out of range; the sentence says which.
        """
        spec = self._specs[key]
        fault = spec.fault(value)
        if fault:
            raise AppError(fault)
        if self.value(key) != value:
            self._kept.add(key)
            self._take(key, value)
            self._save({key: value})

    def sampling(self) -> SamplingParams:
        """Return how replies are sampled."""
        return SamplingParams(
            max_tokens=self.value("chat.max_tokens") or None,
            temperature=self.value("chat.temperature"),
            top_k=self.value("chat.top_k"),
            top_p=self.value("chat.top_p"),
            min_p=self.value("chat.min_p"),
        )

    def load_options(self) -> LoadOptions:
        """Return how the chat model is loaded."""
        return LoadOptions(
            backend=self.value("model.backend"),
            context_length=self.value("model.context_length") or None,
            num_threads=self.value("model.num_threads") or None,
        )

    def idle_s(self) -> float | None:
        """Return after how many seconds without a question all models are unloaded; None: never."""
        return 60.0 * self.value("model.idle_minutes") or None

    def _take(self, key: str, value: object) -> None:
        if self.value(key) != value:
            self._values[key] = float(value) if type(self._specs[key].default) is float else value  # type: ignore[arg-type]  # checked by `fault`
            self.changed.emit(key, self._values[key])
