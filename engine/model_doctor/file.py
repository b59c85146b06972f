"""The model doctor's look at a file: tensors of zeros or with numbers that are none, and a lost rotary scaling.

Numbers are looked through whole, as far as the time allows; whether a tensor is all zeros is told from some rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from inglenook.engine.model_doctor.numbers import can_look_through, has_broken_numbers
from inglenook.engine.model_doctor.report import Finding
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.weights.loader import ModelFile
from inglenook.kernels.weight_tensor import WeightTensor

_SAMPLED_ROWS = 16


def file_findings(file: ModelFile, deadline: float) -> list[Finding]:
    """Findings on the tensors and the rotary settings of an open model; `deadline` is a `time.perf_counter()`."""
    return [_tensors(file, deadline), _rope(file)]


def _tensors(file: ModelFile, deadline: float) -> Finding:
    zero, broken, sampled = [], [], 0
    for name in file.names:
        tensor = file.tensor(name)
        if time.perf_counter() > deadline or not can_look_through(tensor):
            sampled += 1
        elif has_broken_numbers(tensor):
            broken.append(name)
            continue
        if name.endswith("_bias"):
            continue  # a bias may well be zero
        values = _sample(tensor)
        if not np.isfinite(values).all():
            broken.append(name)
        elif not values.any():
            zero.append(name)
    if broken:
        return Finding("tensors", "red", f"{_names(broken)} of the file: numbers that are infinite or none.")
    if zero:
        return Finding("tensors", "red", f"{_names(zero)} of the file: nothing but zeros.")
    words = f"All {len(file.names):,} tensors are there, and none is empty or broken"
    if sampled:
        return Finding("tensors", "green", f"{words}; of {sampled:,}, only some rows were looked at.")
    return Finding("tensors", "green", f"{words}.")


def _names(names: list[str]) -> str:
    rest = len(names) - 3
    return f"{', '.join(names[:3])}{f' and {rest:,} more tensors' if rest > 0 else ''}"


def _sample(tensor: WeightTensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    from inglenook.kernels.dequantize import dequantize

    if len(tensor.shape) > 1:
        rows = np.unique(np.linspace(0, tensor.shape[0] - 1, _SAMPLED_ROWS).astype(np.int64))
        tensor = tensor.select_rows(rows)
    return dequantize(tensor).numpy()


def _rope(file: ModelFile) -> Finding:
    lost = next(_lost_scalings(file), None)
    if lost is not None:
        return Finding("rope", "red", lost)
    rope = file.spec.rope
    scaling = rope.scaling if rope.scaling != "none" else "factors" if rope.frequency_factors else "none"
    return Finding(
        "rope", "green", f"Rotary scaling: {scaling}; context {file.spec.context_length:,} tokens."
    )


def _lost_scalings(file: ModelFile) -> Iterator[str]:
    """Signs that a file had a rotary scaling which it has no more: it would answer short prompts and lose long ones."""
    spec, metadata = file.spec, file.metadata
    if spec.rope.scaling != "none" or spec.rope.frequency_factors:
        return
    context = spec.context_length
    for key in (
        f"{spec.architecture}.rope.scaling.original_context_length",
        "original_max_position_embeddings",
    ):
        original = metadata.get(key)
        if isinstance(original, int) and 0 < original < context:
            yield (
                f"The model was trained for {original:,} tokens and claims {context:,}, "
                "but its file has no rotary scaling: long prompts would fail."
            )
    if _is_like_llama_3(spec):
        yield (
            f"Llama 3.1 and later with a context of {context:,} tokens need a rotary scaling "
            "(the tensor rope_freqs.weight or rope_scaling), which this file lacks."
        )
    if spec.architecture == "gemma3" and context >= 131_072:
        yield f"Gemma 3 with a context of {context:,} tokens needs a linear rotary scaling of 8, which this file lacks."
    if spec.architecture == "phi3" and context > 32_768:
        yield f"Phi 3 with a context of {context:,} tokens needs longrope factors, which this file lacks."


def _is_like_llama_3(spec: ModelSpec) -> bool:
    return (
        spec.architecture == "llama"
        and spec.rope.theta == 500_000
        and spec.context_length == 131_072
        and spec.vocab_size >= 128_000
    )
