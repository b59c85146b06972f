"""Are the rows of queries and keys in the order that the decoder takes them in?

A file whose rotary pairs lie otherwise than its format says still answers, but worse: SmolLM2-135M needs 1.49 bits a
byte instead of 0.96. So the known text is read with both other orders too. If one of them is clearly better than the
order in use, the file is swapped. The orders are tried by reordering queries and keys before they are rotated, on one
load of the PyTorch back end; models too large for that, or for the time, are not tried, and that is said.
"""

from __future__ import annotations

import math
import time

import torch

from inglenook.engine.errors import NotEnoughMemoryError
from inglenook.engine.memory import check_fit, estimate_need, memory_state
from inglenook.engine.model_doctor.deadline import OutOfTimeError, until
from inglenook.engine.model_doctor.report import NO_TIME, Finding
from inglenook.engine.model_doctor.sequence import Sequence
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.torch_backend import TorchBackend, TorchOperations
from inglenook.engine.weights.loader import ModelFile, rows_in_halves
from inglenook.kernels.rotary_embedding import rotary_embedding

_MAX_PARAMETERS = 2_000_000_000
_NUM_TOKENS = 97
_CLEARLY_BETTER = 0.03  # bits a byte


class _Reordering(TorchOperations):
    """Operations that reorder each head of queries and keys before rotating it."""

    def __init__(self) -> None:
        super().__init__(fused=True)
        self.order: torch.Tensor | None = None

    def rotary_embedding(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Rotate heads."""
        return rotary_embedding(x if self.order is None else x[..., self.order], cos, sin)


def rotary_order(
    file: ModelFile, spec: ModelSpec, tokenizer: Tokenizer, ids: list[int], deadline: float
) -> Finding:
    """Read a text with each order of rows; `ids` are its tokens, `deadline` is a `time.perf_counter()`."""
    operations = _Reordering()
    backend = TorchBackend("torch-cpu", "", "bfloat16", operations)
    need = estimate_need(backend.estimate_weight_bytes(spec, file.size_bytes), 0)
    if spec.num_parameters > _MAX_PARAMETERS:
        return Finding(
            "order",
            "amber",
            f"Not tried, for the model's size: with {spec.num_parameters:,} parameters, where {_MAX_PARAMETERS:,} are "
            "the most, other orders of the rows of queries and keys would take too long.",
        )
    try:
        check_fit(file.name, need, memory_state().free_bytes)
    except NotEnoughMemoryError:
        return Finding(
            "order", "amber", "Not tried, for want of memory: other orders of the rows of queries and keys."
        )
    ids = ids[:_NUM_TOKENS]
    num_bytes = max(1, sum(len(tokenizer.token_bytes(i)) for i in ids[1:]))
    halves = torch.from_numpy(rows_in_halves(1, spec.head_size, spec.rope.size))
    late = Finding("order", "amber", f"{NO_TIME}: other orders of the rows of queries and keys.")
    try:
        model = backend.load(spec, file, until(deadline))
    except OutOfTimeError:
        return late
    bits = []
    try:
        for order in (None, halves, torch.argsort(halves)):
            if time.perf_counter() > deadline:
                return late
            operations.order = order
            sequence = Sequence(model, spec, len(backend.kv_groups(spec)), len(ids))
            logits = sequence.step(ids[:-1], wants_all=True)
            nats = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum")
            bits.append(float(nats) / math.log(2) / num_bytes)
    finally:
        model.close()
    own, *others = bits
    if min(others) < own - _CLEARLY_BETTER:
        return Finding(
            "order",
            "red",
            f"A text costs {own:.2f} bits a byte, but {min(others):.2f} with the rows of queries and keys in another "
            "order: the file was converted wrongly.",
        )
    return Finding("order", "green", "No other order of the rows of queries and keys reads a text better.")
