"""What the model doctor says: findings with a light and a sentence, and a report of them. Plain values, torch-free."""

from __future__ import annotations

from typing import Literal

import msgspec

Light = Literal["green", "amber", "red"]
NO_TIME = "Not tried, for want of time"
_ORDER: dict[Light, int] = {"green": 0, "amber": 1, "red": 2}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at: its name, its light, and one sentence."""

    name: str
    light: Light
    sentence: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a model ran here and what it took: tokens a second, bytes, and seconds to load."""

    backend: str
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    weight_bytes: int
    kv_bytes_per_token: int
    load_s: float
    bits_per_byte: float


class DoctorReport(msgspec.Struct, frozen=True):
    """All findings on one model; its light is the worst of theirs."""

    name: str
    findings: tuple[Finding, ...]
    seconds: float
    measured: Measured | None = None

    @property
    def light(self) -> Light:
        """The worst light of all findings."""
        return max((f.light for f in self.findings), key=_ORDER.__getitem__, default="green")

    @property
    def is_complete(self) -> bool:
        """Whether there was time for everything; an incomplete report is worth making again."""
        return not any(finding.sentence.startswith(NO_TIME) for finding in self.findings)

    def of(self, name: str) -> tuple[Finding, ...]:
        """The findings of that name."""
        return tuple(f for f in self.findings if f.name == name)
