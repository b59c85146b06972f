"""The model doctor's comparison with the reference: the first layers on a back end and in float32, side by side.

Only the vocabulary's rows that the text needs, and as many others of the head, are taken: a whole embedding is often
most of a small model, and its rows are all alike in kind.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from pathlib import Path

import numpy as np

from inglenook.engine.backend import WeightSource
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.memory import memory_state
from inglenook.engine.model_doctor.report import Finding, Light
from inglenook.engine.model_doctor.sequence import Sequence
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.engine.weights.names import tensor_shapes
from inglenook.kernels.weight_tensor import WeightTensor

_LENGTHS = (17, 1, 15, 16, 31, 32, 33, 64, 65)  # around the edges of blocks and tiles
_ERROR_RED, _ERROR_AMBER = 0.3, 0.12  # of the logits' own spread
_VOCABULARY = 512


class FirstLayers:
    """The first layers of a source as a source, with some rows of its vocabulary."""

    def __init__(self, source: WeightSource, spec: ModelSpec, rows: np.ndarray) -> None:
        self._source = source
        self._rows = rows
        self.names = tuple(tensor_shapes(spec))

    @property
    def size_bytes(self) -> int:
        """Bytes of these layers."""
        return sum(self.tensor(name).size_bytes for name in self.names)

    def tensor(self, name: str) -> WeightTensor:
        """A tensor of the source."""
        tensor = self._source.tensor(name)
        return tensor.select_rows(self._rows) if name in ("embedding", "head") else tensor

    def close(self) -> None:
        """The source belongs to another."""


def compare_with_reference(
    source: WeightSource, spec: ModelSpec, backend: str, ids: list[int], deadline: float
) -> Finding:
    """Run the first layers of a model on a back end and on the reference; `ids` are a text's tokens."""
    if backend == "reference":
        return Finding("reference", "green", "This is the reference itself.")
    ids = ids[: max(_LENGTHS)]
    rows, ids = _some_vocabulary(ids, spec.vocab_size)
    small = dataclasses.replace(_first_layers(spec), vocab_size=len(rows))
    layers = FirstLayers(source, small, rows)
    if 2 * 4 * small.num_parameters > memory_state().free_bytes // 2:
        return Finding("reference", "amber", "There is not enough free memory to compare with the reference.")
    worst, lengths = 0.0, list[int]()
    with tempfile.TemporaryDirectory() as folder:
        chosen = choose_backend(backend, small, layers, packed_folder=Path(folder))
        reference = TORCH_BACKENDS["reference"]()
        models = [b.load(small, layers, lambda done, total: None) for b in (chosen, reference)]
        try:
            for length in _LENGTHS:
                if length > len(ids) or (lengths and time.perf_counter() > deadline):
                    break
                got, want = (
                    Sequence(m, small, len(chosen.kv_groups(small)), length).step(
                        ids[:length], wants_all=False
                    )
                    for m in models
                )
                error = float((got - want).square().mean().sqrt() / want.std())
                lengths.append(length)
                worst = max(worst, error if math.isfinite(error) else math.inf)
        finally:
            for model in models:
                model.close()
    light: Light = "red" if worst > _ERROR_RED else "amber" if worst > _ERROR_AMBER else "green"
    words = f"within {worst:.2%} of" if math.isfinite(worst) else "not numbers as those of"
    return Finding(
        "reference",
        light,
        f"The first {small.num_layers} layers on {backend} are {words} the float32 reference "
        f"at lengths of {', '.join(map(str, lengths))}.",
    )


def _some_vocabulary(ids: list[int], size: int) -> tuple[np.ndarray, list[int]]:
    """Rows of the vocabulary, those of `ids` among them, and `ids` as places among these rows."""
    spread = np.linspace(0, size - 1, min(size, _VOCABULARY)).astype(np.int64)
    rows = np.unique(np.concatenate([spread, np.array(ids, np.int64)]))
    rows = rows[: len(rows) // 16 * 16 or None]  # whole tiles; the ids cut off, if any, are replaced
    places = np.searchsorted(rows, ids).clip(max=len(rows) - 1)
    return rows, [int(place) for place in places]


def _first_layers(spec: ModelSpec) -> ModelSpec:
    """As few layers from the first on as hold one of every kind, two at least."""
    kinds = [(w, i in spec.unrotated_layers) for i, w in enumerate(spec.sliding_windows)]
    count = min(spec.num_layers, max(2, *(kinds.index(kind) + 1 for kind in kinds)))
    return dataclasses.replace(
        spec,
        num_layers=count,
        sliding_windows=spec.sliding_windows[:count],
        unrotated_layers=tuple(i for i in spec.unrotated_layers if i < count),
    )
