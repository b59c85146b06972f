"""The native CPU back end: whole steps in the kernels of `kernels/cpu`, on weights packed at their own width.

One arithmetic at every number of rows, so a row's logits do not depend on chunking, batch mates or the number of
threads, nor on the instruction set: activations as two parts of 8 bits in groups of 32, exact integer products,
groups added in float32 in ascending order (`kernels/cpu/matmul.h`). Packed weights are kept in a cache folder, so the second load of a
model only copies and checks them. F32 matrices are refused by name: those models run
on "torch-cpu".
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from inglenook.engine.backend import Progress, StepCancelledError, WeightSource
from inglenook.engine.errors import InternalEngineError, ModelFileError, UnsupportedModelError
from inglenook.engine.key_range import KeyRange, key_range
from inglenook.engine.kv_cache import KVDtype, KVGroup, KVTensors, allocate_kv, kv_groups
from inglenook.engine.models.rope import rope_frequencies
from inglenook.engine.models.spec import ModelSpec
from inglenook.kernels import native_interface as c
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.native import NativeEngine, NativeLibrary, load_native
from inglenook.kernels.native_weights import PackedWeights
from inglenook.kernels.weight_tensor import WeightTensor

if TYPE_CHECKING:
    from inglenook.engine.batch import Batch

NAME = "native-cpu"
# parameters of the layers times tokens that one thread gets through in a step of 50 ms, by instruction set
_STEP_WORK = {"amx": 4.5e9, "avx512vnni": 2.8e9, "avxvnni": 1.7e9, "avx2": 1e9, "scalar": 5e7}
# the same where the layers are floats
_FLOAT_STEP_WORK = {"amx": 2e9, "avx512vnni": 1.7e9, "avxvnni": 6e8, "avx2": 6e8, "scalar": 2e7}


def packed_folder() -> Path:
    """Where packed models are kept: $XDG_CACHE_HOME/inglenook/packed."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "inglenook" / "packed"


def refusal(spec: ModelSpec, source: WeightSource) -> str | None:
    """Say why this back end does not run a model, or None where it does."""
    unknown = [name for name, is_used in _unknown_features(spec).items() if is_used]
    if unknown:
        return f"it has {', '.join(unknown)}"
    if spec.head_size % 16 or spec.hidden_size % 32 or spec.intermediate_size % 32:
        return (
            f"head size {spec.head_size}, hidden size {spec.hidden_size} and intermediate size "
            f"{spec.intermediate_size} must be multiples of 16, 32 and 32"
        )
    if spec.q_size % 32:
        return f"{spec.num_heads} heads of {spec.head_size} elements are not a multiple of 32"
    if spec.num_heads % spec.num_kv_heads:
        return f"{spec.num_heads} heads do not share {spec.num_kv_heads} KV heads evenly"
    for name in _matrix_names(spec):
        form = source.tensor(name).format.name
        if form not in c.FORMAT_IDS:
            return f"{name} is {form}, and the native kernels run {', '.join(c.FORMAT_IDS)}"
    return None


def has_floats(source: WeightSource) -> bool:
    """Whether the layers' matrices are floats, for which the kernels are slower with many rows."""
    name = source.tensor("layers.0.gate").format.name
    return name in ("F16", "BF16") or name.startswith("QFLOAT8")


def _unknown_features(spec: ModelSpec) -> dict[str, bool]:
    """What the kernels do not do, in words for a refusal."""
    return {
        f"the activation {spec.activation}": spec.activation not in c.ACTIVATION_IDS,
        "a mixture of experts": spec.experts is not None,
    }


class NativeBackend:
    """The native kernels of one instruction set.

    hands_on: models return the hidden states of their last layer, float32 [R, hidden_size], and need no head: another
    device has the layers that follow.
    is_kept: packed weights are kept in `folder`; else every load packs.
    has_floats: the model that will be loaded has fp16, bf16 or float8 matrices, so that its steps must be smaller.

    Raises:
        NativeUnavailableError: no kernels were built, or none that this processor runs.
    """

    name = NAME
    device = "cpu"
    rows_are_exact = True

    def __init__(
        self,
        *,
        isa: str | None = None,
        num_threads: int | None = None,
        kv_dtype: KVDtype = "float16",
        folder: Path | None = None,
        hands_on: bool = False,
        is_kept: bool = True,
        has_floats: bool = False,
    ) -> None:
        self._library = load_native(isa)
        self._hands_on = hands_on
        self._step_work = (_FLOAT_STEP_WORK if has_floats else _STEP_WORK)[self._library.isa]
        self._num_threads = num_threads
        self._kv_dtype: KVDtype = kv_dtype
        self._folder = (folder or packed_folder()) if is_kept else None
        self.reason = f"its {self._library.isa} kernels are built and this processor runs them"

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return self._library.isa

    @property
    def num_threads(self) -> int:
        """Threads of a model loaded now: as given, else as many as PyTorch was told to use."""
        return self._num_threads or torch.get_num_threads()

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups of a model here."""
        return kv_groups(spec, self._kv_dtype, by_block=True)

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """The source's own width, and a little for alignment."""
        return source_bytes + source_bytes // 64

    def step_tokens(self, spec: ModelSpec) -> int:
        """A multiple of 8 from 16 to 512 that falls with the size of the layers and rises with the threads."""
        layers = spec.num_parameters - spec.vocab_size * spec.hidden_size * (1 if spec.tied_head else 2)
        tokens = int(self._step_work * self.num_threads / layers) // 8 * 8
        return min(max(tokens, 16), 512)

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> NativeModel:
        """Read or pack the weights and check a row of each; see `Backend`."""
        why = refusal(spec, source)
        if why is not None:
            raise UnsupportedModelError(f"The native CPU back end does not run this model: {why}.")
        total = source.size_bytes
        progress(0, total)
        name = _content_name(self._library, source)
        weights = PackedWeights.open(
            self._library,
            self._folder,
            name,
            {n: _reader(source, n) for n in source.names},
            lambda done: progress(done, total),
        )
        try:
            _check_rows(self._library, spec, source, weights)
            ranges: dict[int, KeyRange] = {}
            for i in range(spec.num_layers if self._kv_dtype == "int8" else 0):
                found = key_range(spec, source, i)
                if found is not None:
                    ranges[i] = found
            model = NativeModel(
                spec,
                weights,
                self._library,
                self.num_threads,
                self.kv_groups(spec),
                ranges,
                hands_on=self._hands_on,
            )
        except BaseException:
            weights.close()
            raise
        progress(total, total)
        return model


class NativeModel:
    """A model in the native kernels: packed weights, KV tensors, an engine with its threads."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: PackedWeights,
        library: NativeLibrary,
        num_threads: int,
        groups: tuple[KVGroup, ...],
        key_ranges: dict[int, KeyRange],
        *,
        hands_on: bool = False,
    ) -> None:
        self.spec = spec
        self._width = spec.hidden_size if hands_on else spec.vocab_size
        self.kv: tuple[KVTensors, ...] = ()
        self.weight_bytes = weights.size_bytes
        self.num_threads = num_threads
        self._groups = groups
        self._weights = weights
        self._key_ranges = key_ranges  # the engine reads them
        ropes = (spec.rope, spec.local_rope or spec.rope)
        self._frequencies = [
            np.ascontiguousarray(rope_frequencies(rope, spec.context_length)) for rope in ropes
        ]
        self._layers = (c.Layer * spec.num_layers)(
            *(_layer(spec, weights, groups, key_ranges.get(i), i) for i in range(spec.num_layers))
        )
        embedding = weights.matrix("embedding")
        model = c.Model(
            vocab_size=spec.vocab_size,
            hidden_size=spec.hidden_size,
            num_layers=spec.num_layers,
            num_heads=spec.num_heads,
            num_kv_heads=spec.num_kv_heads,
            head_size=spec.head_size,
            intermediate_size=spec.intermediate_size,
            num_kv_groups=len(groups),
            qk_norm=c.QK_NORM_IDS[spec.qk_norm],
            activation=c.ACTIVATION_IDS[spec.activation],
            norm_eps=spec.norm_eps,
            attention_scale=spec.attention_scale,
            attention_softcap=spec.attention_softcap,
            embedding_scale=spec.embedding_scale,
            residual_scale=spec.residual_scale,
            logit_scale=spec.logit_scale,
            logit_softcap=spec.logit_softcap,
            ropes=(c.Rope * 2)(
                *(
                    c.Rope(frequencies.ctypes.data, rope.size, rope.attention_factor)
                    for rope, frequencies in zip(ropes, self._frequencies, strict=True)
                )
            ),
            output_norm=weights.vector("output_norm"),
            embedding=embedding,
            head=c.Matrix() if hands_on else embedding if spec.tied_head else weights.matrix("head"),
            layers=self._layers,
        )
        self._engine: NativeEngine | None = NativeEngine(library, model, num_threads)
        self._cancel = ctypes.c_int32(0)

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors, in place of any earlier ones."""
        self.kv = ()
        self.kv = tuple(allocate_kv(g, n) for g, n in zip(self._groups, num_blocks, strict=True))

    def cancel(self) -> None:
        """Make the step in flight, or the next one, raise StepCancelledError at its next layer. From any thread."""
        self._cancel.value = 1

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run one step; see `BackendModel`.

        Raises:
            StepCancelledError: `cancel` was called; what the step's slots hold is undefined.
        """
        assert self._engine is not None, "the model is closed"
        self._engine.wake()
        logits = torch.empty((len(batch.logits_rows), self._width), dtype=torch.float32)
        arrays = c.Batch(
            *(t.data_ptr() for t in (batch.token_ids, batch.positions, batch.query_starts)),
            batch.context_lengths.data_ptr(),
            batch.logits_rows.data_ptr(),
            len(batch.token_ids),
            len(batch.context_lengths),
            len(batch.logits_rows),
        )
        groups = [_kv_struct(kv, batch, i) for i, kv in enumerate(self.kv)]
        result = self._engine.step(arrays, groups, logits.data_ptr(), self._cancel)
        if result == c.STEP_CANCELLED:
            self._cancel.value = 0
            raise StepCancelledError("the step was cancelled")
        if result == c.STEP_NO_MEMORY:
            raise MemoryError(f"no memory for the work space of a step of {len(batch.token_ids)} tokens")
        if result != c.STEP_DONE:
            raise InternalEngineError("a step names a token, block or slot that does not exist.")
        return logits

    def read_bandwidth_gb_s(self, size_bytes: int = 1 << 29) -> float:
        """The best speed at which this model's threads read a buffer of `size_bytes`, in GB/s: decoding's limit."""
        assert self._engine is not None, "the model is closed"
        buffer = np.ones(size_bytes, dtype=np.uint8)
        return size_bytes / min(self._engine.read_seconds(buffer) for _ in range(5)) / 1e9

    def close(self) -> None:
        """End the threads, drop weights and KV tensors."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        self._weights.close()
        self.kv = ()


def _matrix_names(spec: ModelSpec) -> list[str]:
    names = [f"layers.{i}.{m}" for i in range(spec.num_layers) for m in c.LAYER_MATRICES]
    return ["embedding", *names, *([] if spec.tied_head else ["head"])]


def _reader(source: WeightSource, name: str) -> Callable[[], WeightTensor]:
    return lambda: source.tensor(name)


def _layer(
    spec: ModelSpec,
    weights: PackedWeights,
    groups: tuple[KVGroup, ...],
    keys: KeyRange | None,
    index: int,
) -> c.Layer:
    prefix = f"layers.{index}."
    group = next(g for g in groups if index in g.layers)
    return c.Layer(
        **{n: weights.vector(prefix + n) for n in c.LAYER_VECTORS},
        **{n: weights.matrix(prefix + n) for n in c.LAYER_MATRICES},
        kv_group=groups.index(group),
        kv_index=group.layers.index(index),
        rope=-1 if index in spec.unrotated_layers else int(bool(group.window)),
        key_offset=None if keys is None else keys.offset.ctypes.data,
        key_unit=None if keys is None else keys.unit.ctypes.data,
    )


def _kv_struct(kv: KVTensors, batch: Batch, index: int) -> c.KvGroup:
    tables = batch.groups[index]
    return c.KvGroup(
        kv.k.data_ptr(),
        kv.v.data_ptr(),
        None if kv.k_scale is None else kv.k_scale.data_ptr(),
        None if kv.v_scale is None else kv.v_scale.data_ptr(),
        tables.block_tables.data_ptr(),
        tables.slots.data_ptr(),
        kv.num_blocks,
        len(kv.group.layers),
        tables.block_tables.shape[1],
        kv.group.window,
        c.KV_DTYPE_IDS[kv.group.dtype],
    )


def _content_name(library: NativeLibrary, source: WeightSource) -> str:
    """A name that changes with any byte of any tensor."""

    def describe(name: str) -> str:
        tensor = source.tensor(name)
        return f"{name} {tensor.format.name} {tensor.shape} {library.checksum(np.ascontiguousarray(tensor.data))}\n"

    with ThreadPoolExecutor(2) as workers:
        return hashlib.sha256("".join(workers.map(describe, source.names)).encode()).hexdigest()[:40]


def _check_rows(
    library: NativeLibrary, spec: ModelSpec, source: WeightSource, weights: PackedWeights
) -> None:
    """Compare the middle row of every packed matrix with the reference."""
    for name in _matrix_names(spec):
        tensor = source.tensor(name)
        row = tensor.shape[0] // 2
        want = dequantize(tensor.select_rows(slice(row, row + 1))).numpy()[0]
        if not np.array_equal(library.dequantize_row(weights.matrix(name), row), want, equal_nan=True):
            raise ModelFileError(f"row {row} of {name} changed when it was packed for the native kernels.")
