"""What the doctor found is kept as long as the model's files are the same; an unfinished examination is not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch
from tiny_gguf import write_tiny_gguf

from inglenook.engine.errors import ModelNotFoundError
from inglenook.engine.model_doctor.examination import examine_model
from inglenook.engine.model_doctor.process import ExaminationEndedError, first_look, known_report
from inglenook.engine.model_doctor.records import DoctorRecords
from inglenook.engine.model_doctor.report import NO_TIME, DoctorReport, Finding

GREEN = DoctorReport("m", (Finding("file", "green", "Fine."),), 1.5)


@pytest.fixture
def records(tmp_path: Path) -> DoctorRecords:
    return DoctorRecords(tmp_path / "records")


@pytest.mark.parametrize("change", ["size", "time", "another file"])
def test_a_report_is_kept_until_the_files_change(tmp_path: Path, records: DoctorRecords, change: str) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    records.keep(model, GREEN)
    assert known_report(model, records) == GREEN

    if change == "size":
        (model / "config.json").write_text("{ }")
    elif change == "time":
        os.utime(model / "config.json", ns=(1, 1))
    else:
        (model / "tokenizer.json").write_text("{}")

    assert known_report(model, records) is None


def test_a_damaged_report_is_none(tmp_path: Path, records: DoctorRecords) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"x")
    records.keep(model, GREEN)
    (file,) = records.folder.glob("*.report.json")
    file.write_text("{")

    assert known_report(model, records) is None
    assert file.stat().st_mode & 0o077 == 0


def test_a_back_end_asked_for_that_is_not_here_is_not_held_against_the_file(
    tmp_path: Path, records: DoctorRecords
) -> None:
    if torch.cuda.is_available():
        pytest.skip("a card is here, so that its back end runs the model")
    model = write_tiny_gguf(tmp_path / "tiny.gguf")

    report = examine_model(model, backend="cuda", num_threads=1, records=records)

    assert report.light == "red"
    assert known_report(model, records) is None


def test_a_report_for_which_time_ran_out_is_not_complete() -> None:
    late = DoctorReport("m", (*GREEN.findings, Finding("order", "amber", f"{NO_TIME}: x.")), 20.0)

    assert GREEN.is_complete
    assert not late.is_complete


def test_a_budget_that_is_over_leaves_amber_findings_and_keeps_nothing(
    tmp_path: Path, records: DoctorRecords
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")

    started = time.process_time()
    report = examine_model(path, backend="torch-cpu", num_threads=1, records=records, budget_s=0.0)

    assert [f.light for f in report.findings if f.sentence.startswith(NO_TIME)] == ["amber"]
    assert known_report(path, records) is None
    assert time.process_time() - started < 10


def test_what_is_not_there_is_an_error(tmp_path: Path, records: DoctorRecords) -> None:
    with pytest.raises(ModelNotFoundError):
        first_look(tmp_path / "none.gguf", records=records)


@pytest.mark.slow
def test_the_first_look_examines_once_in_a_process_of_its_own(tmp_path: Path, records: DoctorRecords) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    heard: list[Finding] = []

    first = first_look(path, backend="reference", records=records, on_finding=heard.append)
    started = time.perf_counter()
    second = first_look(path, records=records)

    assert tuple(heard) == first.findings
    assert second == first
    assert time.perf_counter() - started < 1
    assert (first.light, first.of("text")[0].light) == ("red", "red")  # random weights


@pytest.mark.slow
def test_a_cancelled_look_ends_its_process_and_keeps_nothing(tmp_path: Path, records: DoctorRecords) -> None:
    import threading

    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(ExaminationEndedError, match="was cancelled"):
        first_look(path, records=records, cancelled=cancelled)
    assert known_report(path, records) is None
