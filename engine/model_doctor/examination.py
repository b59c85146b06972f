"""`examine_model`: is this model file sound, and does it run here as it should? Findings in green, amber and red.

The file is opened and its tensors are sampled (`file.py`), its tokenizer and template are tried (`prompts.py`,
`templates.py`), and it is run: against the float32 reference, over a known text, and on its own (`runs.py`). What was
found is kept, so that a file that has changed since shows (`records.py`). Takes at most 20 s; everything stays on this
computer. `process.py` does it once for each model, in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from inglenook.engine.cpu import default_num_threads
from inglenook.engine.encoder_file import is_encoder
from inglenook.engine.errors import EngineError, ModelNotFoundError
from inglenook.engine.model_doctor.file import file_findings
from inglenook.engine.model_doctor.prompts import prompt_findings
from inglenook.engine.model_doctor.records import DoctorRecords, ModelRecord, records_folder
from inglenook.engine.model_doctor.report import DoctorReport, Finding, Measured
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import ModelFile, open_model

if TYPE_CHECKING:
    from inglenook.engine.model_doctor.runs import RunFacts

# bits a byte may rise by since the file was first examined: rounding, threads and back ends stay below it
_WORSE = 0.05
BUDGET_S = 20.0


def examine_model(
    path: Path,
    *,
    backend: str = "auto",
    num_threads: int | None = None,
    records: DoctorRecords | None = None,
    budget_s: float = BUDGET_S,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> DoctorReport:
    """Examine the model file or folder at `path`; `on_finding` hears of each finding as it comes.

    `records` says where results are kept; by default in the user's cache folder. What there is no time for within
    `budget_s` is amber and says so.

    Raises:
        ModelNotFoundError: there is nothing at `path`. Whatever else is wrong becomes a finding.
    """
    if not path.exists():
        raise ModelNotFoundError(f"There is no file or folder {path}.")
    started = time.perf_counter()
    records = DoctorRecords(records_folder()) if records is None else records
    findings: list[Finding] = []

    def add(*found: Finding) -> None:
        for finding in found:
            findings.append(finding)
            on_finding(finding)

    measured = None
    try:
        if is_encoder(path):
            from inglenook.engine.model_doctor.encoder import encoder_findings

            add(*encoder_findings(path))
        else:
            with open_model(path) as file:
                threads = num_threads or default_num_threads()
                measured = _examine(file, add, backend, threads, records, started, budget_s)
    except EngineError as error:
        add(Finding("file", "red", str(error)))
    report = DoctorReport(path.name, tuple(findings), time.perf_counter() - started, measured)
    # What a back end says that was asked for by name, and that may not be here, is no finding on the file.
    if report.is_complete and backend == "auto":
        records.keep(path, report)
    return report


def _examine(
    file: ModelFile,
    add: Callable[..., None],
    backend: str,
    num_threads: int,
    records: DoctorRecords,
    started: float,
    budget_s: float,
) -> Measured | None:
    """Examine an open chat model."""
    add(*file_findings(file, started + budget_s / 5))
    try:
        tokenizer = Tokenizer.from_model_file(file)
    except EngineError as error:
        add(Finding("tokenizer", "red", str(error)))
        return None
    with tokenizer:
        add(*prompt_findings(tokenizer, file.spec))
        from inglenook.engine.model_doctor.runs import run_findings

        # the last second is for what cannot be stopped half-way
        found, facts = run_findings(file, tokenizer, backend, num_threads, started + budget_s - 1)
        add(*found)
        if facts is None:
            return None
        add(_compare(file, facts, records))
        return facts.measured


def _compare(file: ModelFile, facts: RunFacts, records: DoctorRecords) -> Finding:
    """Compare with what was kept when this path was first examined, and keep the first result."""
    now = ModelRecord(
        fingerprint=file.fingerprint,
        settings=repr(file.spec),
        bits_per_byte=facts.bits_per_byte,
        num_tokens=facts.num_tokens,
        backend=facts.measured.backend,
    )
    before = records.read(file.path)
    if before is None:
        records.write(file.path, now)
        return Finding(
            "record", "green", "Examined for the first time; the results are kept to compare with."
        )
    if before.settings != now.settings:
        return Finding(
            "record",
            "red",
            "The model's settings (sizes, rotary scaling, windows) are not those of the first examination: "
            "the file was changed or replaced.",
        )
    is_comparable = (before.backend, before.num_tokens) == (now.backend, now.num_tokens)
    if is_comparable and now.bits_per_byte > before.bits_per_byte + _WORSE:
        return Finding(
            "record",
            "red",
            f"A known text now costs {now.bits_per_byte:.2f} bits a byte; it was {before.bits_per_byte:.2f} "
            "when the model was first examined.",
        )
    if before.fingerprint != now.fingerprint:
        return Finding("record", "amber", "The file's content is not that of the first examination.")
    return Finding("record", "green", "The same file and the same results as when it was first examined.")
