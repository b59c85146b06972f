"""What a report of the doctor reads like on a card."""

from __future__ import annotations

from inglenook.app.models.model_verdict import verdict_of
from inglenook.engine.model_doctor.report import DoctorReport, Finding

FINE = Finding("file", "green", "All 9 tensors are there.")
SLOW = Finding("speed", "amber", "It is slow here.")
BROKEN = Finding("numbers", "red", "Layer 3 gives values that are no numbers.")


def test_a_green_report_is_sound() -> None:
    verdict = verdict_of(DoctorReport("m", (FINE,), 1.0))

    assert (verdict.light, verdict.words) == ("green", "Sound")
    assert verdict.findings == ("Good · file: All 9 tensors are there.",)


def test_remarks_are_counted_in_words_that_fit_one_and_many() -> None:
    one = verdict_of(DoctorReport("m", (FINE, SLOW), 1.0))
    two = verdict_of(DoctorReport("m", (SLOW, FINE, SLOW), 1.0))

    assert (one.words, two.words) == ("Check: 1 remark", "Check: 2 remarks")


def test_a_red_report_says_its_first_fault_and_lists_the_worst_first() -> None:
    verdict = verdict_of(DoctorReport("m", (FINE, SLOW, BROKEN), 1.0))

    assert verdict.words == "Unsound: Layer 3 gives values that are no numbers."
    assert [line.split(" · ")[0] for line in verdict.findings] == ["Fault", "Remark", "Good"]
