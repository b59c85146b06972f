"""The figures of a reply in words: one line below it, and all that it was written with, for its details. Pure."""

from __future__ import annotations

from inglenook.app.settings_presets import FIELDS, PRESETS
from inglenook.storage.records import Message

_STYLES = {**{name: name.capitalize() for name in PRESETS}, "own": "Own values"}
_ENDS = {
    "stop": "The model ended it",
    "length": "The longest reply or the window was reached",
    "cancelled": "Stopped by you",
    "error": "Failed",
}


def figures_line(reply: Message) -> str:
    """Return the line below a reply; "" where no engine has told its figures.

    "0.25 s to the first word · 42 tokens a second · 512 of 600 tokens from the cache".
    """
    parts = []
    if reply.ttft_s is not None:
        parts.append(f"{_seconds(reply.ttft_s)} to the first word")
    if reply.tpot_s:
        parts.append(f"{_speed(reply.tpot_s)} tokens a second")
    if reply.prompt_tokens and reply.cached_tokens:
        parts.append(f"{reply.cached_tokens:,} of {reply.prompt_tokens:,} tokens from the cache")
    return " · ".join(parts)


def details(reply: Message) -> list[tuple[str, str]]:
    """Return all that is known of how a reply was written, as names and values in the order of a page."""
    kept = reply.sampling
    preset = kept.get("preset", "")
    rows: list[tuple[str, object]] = [
        ("Model", reply.model),
        ("Persona", kept.get("persona", "")),
        ("Instructions", kept.get("system", "")),
        ("Style of answers", _STYLES.get(preset, "") if isinstance(preset, str) else ""),
    ]
    rows += [(_words(field), _number(kept.get(field))) for field in FIELDS if field in kept]
    limit = kept.get("max_tokens")
    rows += [
        ("Longest reply", _tokens(limit) if isinstance(limit, int) else "no limit" if kept else ""),
        ("Seed", "" if reply.seed is None else str(reply.seed)),
        ("Window", _tokens(kept.get("context_length"))),
        ("Back end", kept.get("backend", "")),
        ("Read", _read(reply)),
        ("Written", _tokens(len(reply.token_ids))),
        ("First word", "" if reply.ttft_s is None else f"after {_seconds(reply.ttft_s)}"),
        ("Speed", f"{_speed(reply.tpot_s)} tokens a second" if reply.tpot_s else ""),
        ("End", _ENDS.get(reply.finish_reason or "", "")),
    ]
    return [(name, value) for name, value in rows if isinstance(value, str) and value]


def _read(reply: Message) -> str:
    if reply.prompt_tokens is None:
        return ""
    cached = f", {reply.cached_tokens:,} of them from the cache" if reply.cached_tokens else ""
    return f"{_tokens(reply.prompt_tokens)}{cached}"


def _tokens(count: object) -> str:
    if not isinstance(count, int) or count <= 0:
        return ""
    return "1 token" if count == 1 else f"{count:,} tokens"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _speed(tpot_s: float) -> str:
    speed = 1 / tpot_s
    return f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else ""


def _words(field: str) -> str:
    return field.replace("_", " ").capitalize()
