"""What the model doctor's report means on a card: one light, a few words, and the findings. Pure; knows no Qt.

Nothing of the engine is imported, since the window's first paint does not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from inglenook.engine.model_doctor.report import DoctorReport, Finding

Light = Literal["none", "green", "amber", "red"]

_WORDS = {"green": "Good", "amber": "Remark", "red": "Fault"}
_WORST_FIRST = ("red", "amber", "green")


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """What is known of a model's soundness. `light` "none": it was not examined.

    `findings` are whole sentences, the worst first. While `is_running`, they are those that came so far. `problem` is
    the sentence why the last examination did not end.
    """

    light: Light = "none"
    words: str = ""
    findings: tuple[str, ...] = ()
    is_running: bool = False
    problem: str = ""


def verdict_of(report: DoctorReport) -> ModelVerdict:
    """Return a report's verdict: "Sound", "Check: 2 remarks", or "Unsound: " and the first sentence that is red."""
    by_light = {light: [f for f in report.findings if f.light == light] for light in _WORST_FIRST}
    num_remarks = len(by_light["amber"])
    words = "Sound"
    if report.light == "red":
        words = f"Unsound: {by_light['red'][0].sentence}"
    elif report.light == "amber":
        words = "Check: 1 remark" if num_remarks == 1 else f"Check: {num_remarks} remarks"
    lines = tuple(finding_line(finding) for light in _WORST_FIRST for finding in by_light[light])
    return ModelVerdict(report.light, words, lines)


def finding_line(finding: Finding) -> str:
    """Write one finding as a line, its light in a word, so that nothing is said by colour alone."""
    return f"{_WORDS[finding.light]} · {finding.name}: {finding.sentence}"
