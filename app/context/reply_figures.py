"""The figures of a reply in words: one line below it, and all that it was written with, for its details.

No widgets; the words are in the user's language.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from inglenook.app.settings_presets import FIELDS
from inglenook.app.translations import figures
from inglenook.app.translations.figures import numbered
from inglenook.storage.records import Message


def figures_line(reply: Message) -> str:
    """Return the line below a reply; "" where no engine has told its figures.

    "0.25 s to the first word · 42 tokens a second · 512 of 600 tokens from the cache".
    """
    translate = QCoreApplication.translate
    parts = []
    if reply.ttft_s is not None:
        parts.append(translate("figures", "{0} s to the first word").format(_seconds(reply.ttft_s)))
    if reply.tpot_s:
        parts.append(translate("figures", "{0} tokens a second").format(_speed(reply.tpot_s)))
    if reply.prompt_tokens and reply.cached_tokens:
        words = translate("figures", "{0} of {1} tokens from the cache")
        parts.append(words.format(figures.count(reply.cached_tokens), figures.count(reply.prompt_tokens)))
    return " · ".join(parts)


def details(reply: Message) -> list[tuple[str, str]]:
    """Return all that is known of how a reply was written, as names and values in the order of a page."""
    translate = QCoreApplication.translate
    kept = reply.sampling
    rows: list[tuple[str, object]] = [
        (translate("figures", "Model"), reply.model),
        (translate("figures", "Persona"), kept.get("persona", "")),
        (translate("figures", "Instructions"), kept.get("system", "")),
        (translate("figures", "Style of answers"), _style(kept.get("preset"))),
    ]
    names = {
        "temperature": translate("figures", "Temperature"),
        "top_k": translate("figures", "Top k"),
        "top_p": translate("figures", "Top p"),
        "min_p": translate("figures", "Min p"),
        "repetition_penalty": translate("figures", "Repetition penalty"),
    }
    rows += [(names[field], _number(kept.get(field))) for field in FIELDS if field in kept]
    limit, no_limit = kept.get("max_tokens"), translate("figures", "no limit") if kept else ""
    rows += [
        (translate("figures", "Longest reply"), _tokens(limit) if isinstance(limit, int) else no_limit),
        (translate("figures", "Seed"), "" if reply.seed is None else str(reply.seed)),
        (translate("figures", "Window"), _tokens(kept.get("context_length"))),
        (translate("figures", "Back end"), kept.get("backend", "")),
        (translate("figures", "Read"), _read(reply)),
        (translate("figures", "Written"), _tokens(len(reply.token_ids))),
        (translate("figures", "First word"), _first(reply.ttft_s)),
        (translate("figures", "Speed"), _pace(reply.tpot_s)),
        (translate("figures", "End"), _end(reply.finish_reason)),
    ]
    return [(name, value) for name, value in rows if isinstance(value, str) and value]


def _style(preset: object) -> str:
    translate = QCoreApplication.translate
    words = {
        "precise": translate("figures", "Precise"),
        "balanced": translate("figures", "Balanced"),
        "creative": translate("figures", "Creative"),
        "own": translate("figures", "Own values"),
    }
    return words.get(preset, "") if isinstance(preset, str) else ""


def _end(reason: str | None) -> str:
    translate = QCoreApplication.translate
    words = {
        "stop": translate("figures", "The model ended it"),
        "length": translate("figures", "The longest reply or the window was reached"),
        "repetition": translate("figures", "It repeated itself without end"),
        "cancelled": translate("figures", "Stopped by you"),
        "error": translate("figures", "Failed"),
    }
    return words.get(reason or "", "")


def _read(reply: Message) -> str:
    if reply.prompt_tokens is None:
        return ""
    if not reply.cached_tokens:
        return _tokens(reply.prompt_tokens)
    words = QCoreApplication.translate("figures", "{0}, {1} of them from the cache")
    return words.format(_tokens(reply.prompt_tokens), figures.count(reply.cached_tokens))


def _tokens(count: object) -> str:
    if not isinstance(count, int) or count <= 0:
        return ""
    if count == 1:
        return QCoreApplication.translate("figures", "1 token")
    return numbered("{0} tokens", count)


def _first(ttft_s: float | None) -> str:
    if ttft_s is None:
        return ""
    return QCoreApplication.translate("figures", "after {0} s").format(_seconds(ttft_s))


def _pace(tpot_s: float | None) -> str:
    return (
        QCoreApplication.translate("figures", "{0} tokens a second").format(_speed(tpot_s)) if tpot_s else ""
    )


def _seconds(seconds: float) -> str:
    return figures.decimal(seconds, 2 if seconds < 10 else 0)


def _speed(tpot_s: float) -> str:
    speed = 1 / tpot_s
    return figures.decimal(speed, 1 if speed < 10 else 0)


def _number(value: object) -> str:
    return figures.significant(value, 6) if isinstance(value, int | float) else ""
