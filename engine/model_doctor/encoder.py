"""The model doctor's look at a sentence encoder: it loads, its vectors are numbers, and like texts lie close."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from inglenook.engine.loaded_encoder import EmbeddingJob, load_encoder
from inglenook.engine.model_doctor.report import Finding
from inglenook.engine.request import LoadOptions

_TEXTS = (
    "The lighthouse keeper lit the lamp at dusk.",
    "At nightfall the keeper of the lighthouse turned on its light.",
    "Interest rates rose by half a per cent in March.",
)


def encoder_findings(path: Path) -> list[Finding]:
    """Findings on the encoder at `path`.

    Raises:
        EngineError: it cannot be loaded.
    """
    model = load_encoder(path, "doctor", LoadOptions(), lambda event: None)
    sequences, _ = model.tokenize(_TEXTS)
    job = EmbeddingJob(model, sequences, [])
    started = time.perf_counter()
    while not job.is_finished:
        job.step()
    seconds = time.perf_counter() - started
    findings = [
        Finding("file", "green", f"All tensors of the encoder are there ({model.facts.architecture}).")
    ]
    if not np.isfinite(job.vectors).all():
        return [*findings, Finding("vectors", "red", "The vectors hold numbers that are infinite or none.")]
    near, far = float(job.vectors[0] @ job.vectors[1]), float(job.vectors[0] @ job.vectors[2])
    words = f"Two texts of one meaning have a likeness of {near:.2f}, two others of {far:.2f}"
    if near <= far + 0.02:
        return [*findings, Finding("vectors", "red", f"{words}: the vectors do not follow the meaning.")]
    speed = sum(map(len, sequences)) / seconds
    return [
        *findings,
        Finding("vectors", "green", f"{words}."),
        Finding("speed", "green", f"{speed:,.0f} tokens/s."),
    ]
