"""Random weights in every packed format, and the native arithmetic in NumPy, for the tests of the native kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from inglenook.engine.batch import Batch, GroupTables
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.names import tensor_shapes
from inglenook.kernels import native_interface as c
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.native import ISAS, NativeEngine, NativeLibrary, NativeUnavailableError, load_native
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

PACKED_FORMATS = tuple(c.FORMAT_IDS)


def usable_isas() -> list[str]:
    """The instruction sets whose kernels run here."""
    usable = []
    for isa in ISAS:
        try:
            load_native(isa)
        except NativeUnavailableError:
            continue
        usable.append(isa)
    return usable


def random_tensor(name: str, rows: int, columns: int, seed: int) -> WeightTensor:
    """Blocks of random bytes whose fp16 scales are small finite numbers of both signs; floats are ordinary ones."""
    form = FORMATS[name]
    generator = np.random.default_rng(seed)
    if name in ("F16", "BF16"):
        values = generator.normal(0, 0.1, (rows, columns)).astype("<f4")
        words = values.astype("<f2") if name == "F16" else (values.view("<u4") >> 16).astype("<u2")
        return WeightTensor(form, (rows, columns), words.view(np.uint8))
    blocks = generator.integers(0, 256, (rows, columns // form.block_size, form.block_bytes), dtype=np.uint8)
    if name.startswith("QFLOAT8"):
        blocks[(blocks & 0x7F) == 0x7F] = 0x80
    for place in scale_places(name):
        # float8 codes reach 448
        size = 0.001 if name.startswith("QFLOAT8") else 0.01
        scales = generator.normal(0, size, blocks.shape[:2]).astype("<f2")
        blocks[:, :, place : place + 2] = scales[..., None].view(np.uint8)
    return WeightTensor(form, (rows, columns), blocks.reshape(rows, -1))


def scale_places(name: str) -> tuple[int, ...]:
    """Where the blocks of a format have fp16 numbers."""
    if name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K", "QINT4_G64", "QINT4_G128"):
        return (0, 2)
    return (208,) if name == "Q6_K" else (0,)


class PackedMatrix:
    """A tensor packed in memory, as the kernels take it."""

    def __init__(self, library: NativeLibrary, tensor: WeightTensor) -> None:
        rows, columns = tensor.shape
        form = c.FORMAT_IDS[tensor.format.name]
        self.data = np.zeros(library.packed_bytes(form, rows, columns) + 64, dtype=np.uint8)
        start = -self.data.ctypes.data % 64
        self.data = self.data[start : start + library.packed_bytes(form, rows, columns)]
        source = np.ascontiguousarray(tensor.data)
        tiles = -(-rows // 16)
        library.pack(
            form, source.ctypes.data, source.shape[1], rows, columns, self.data.ctypes.data, 0, tiles
        )
        self.struct = c.Matrix(self.data.ctypes.data, rows, columns, form)


def bare_engine(library: NativeLibrary, num_threads: int = 1) -> NativeEngine:
    """An engine without a model, for single products."""
    return NativeEngine(library, c.Model(), num_threads)


Whole = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def quantized_parts(x: Floats) -> tuple[Whole, Whole, Floats]:
    """Groups of 32: high and low whole numbers [R, G, 32] and fp32 scales [R, G], by the formula of the contract."""
    groups = x.reshape(x.shape[0], -1, 32)
    peak = np.abs(groups).max(axis=-1)
    safe = np.where(peak > 1e-30, peak, np.float32(1))
    inverse = np.where(peak > 1e-30, np.float32(127) / safe, np.float32(0)).astype(np.float32)
    scales = np.where(peak > 1e-30, peak / np.float32(127), np.float32(0)).astype(np.float32)
    scaled = groups * inverse[..., None]
    high = np.rint(scaled)
    low = np.rint((scaled - high) * np.float32(254))
    return high.astype(np.int64), low.astype(np.int64), scales


def quantized(x: Floats) -> tuple[npt.NDArray[np.float64], Floats]:
    """The numbers [R, G, 32] that stand for the activations, before their scales [R, G]."""
    high, low, scales = quantized_parts(x)
    return high + low / 254.0, scales


def exact_product(tensor: WeightTensor, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The product of the dequantised weights and the quantised activations in float64."""
    q, scales = quantized(x)
    values = (q * scales[..., None].astype(np.float64)).reshape(x.shape)
    return values @ dequantize(tensor).numpy().astype(np.float64).T


def product(
    engine: NativeEngine, tensor: WeightTensor, x: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Pack and multiply."""
    packed = PackedMatrix(engine.library, tensor)
    return engine.matmul(packed.struct, x)


class RandomSource:
    """A `WeightSource` of random weights, each kind of matrix in a format of its own."""

    def __init__(self, spec: ModelSpec, formats: Sequence[str], seed: int = 0) -> None:
        self._tensors: dict[str, WeightTensor] = {}
        for i, (name, shape) in enumerate(tensor_shapes(spec).items()):
            if len(shape) == 1:
                generator = np.random.default_rng(seed + i)
                values = generator.normal(0 if name.endswith("bias") else 1, 0.2, shape).astype(np.float32)
                self._tensors[name] = WeightTensor(
                    FORMATS["F32"], shape, values.view(np.uint8).reshape(1, -1)
                )
            else:
                form = formats[i % len(formats)]
                if shape[1] % FORMATS[form].block_size:
                    form = "Q8_0"  # which runs at every width that the kernels do
                self._tensors[name] = random_tensor(form, *shape, seed=seed + i)

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names."""
        return tuple(self._tensors)

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(t.size_bytes for t in self._tensors.values())

    def tensor(self, name: str) -> WeightTensor:
        """A tensor by name."""
        return self._tensors[name]

    def replace(self, name: str, tensor: WeightTensor) -> None:
        """Put another tensor in place of one."""
        self._tensors[name] = tensor

    def close(self) -> None:
        """Nothing to unmap."""


def tiny_spec(**changes: Any) -> ModelSpec:
    """Three layers, grouped queries, a vocabulary that is no multiple of 16."""
    values: dict[str, Any] = {
        "architecture": "qwen2",
        "vocab_size": 75,
        "hidden_size": 256,
        "num_layers": 3,
        "num_heads": 6,
        "num_kv_heads": 2,
        "head_size": 48,
        "intermediate_size": 288,
        "context_length": 512,
        "norm_eps": 1e-6,
        "rope": RopeSpec(theta=10000.0, size=48),
        "qkv_bias": True,
    }
    return ModelSpec(**{**values, **changes})


def make_batch(
    chunks: Sequence[tuple[Sequence[int], int, Sequence[int]]], num_groups: int = 1, logits: str = "all"
) -> Batch:
    """A batch of (token ids, first position, block table) chunks; `logits` of "all" rows or each chunk's "last"."""
    tokens = [token for ids, _, _ in chunks for token in ids]
    positions = [start + i for ids, start, _ in chunks for i in range(len(ids))]
    slots = [t[(s + i) // 16] * 16 + (s + i) % 16 for ids, s, t in chunks for i in range(len(ids))]
    starts = np.cumsum([0, *(len(ids) for ids, _, _ in chunks)]).tolist()
    width = max((len(t) for _, _, t in chunks), default=0)
    tables = [[*t, *[-1] * (width - len(t))] for _, _, t in chunks]
    rows = list(range(len(tokens))) if logits == "all" else [end - 1 for end in starts[1:]]
    group = GroupTables(torch.tensor(tables, dtype=torch.int32), torch.tensor(slots, dtype=torch.int64))
    return Batch(
        torch.tensor(tokens, dtype=torch.int64),
        torch.tensor(positions, dtype=torch.int64),
        torch.tensor(starts, dtype=torch.int32),
        torch.tensor([s + len(ids) for ids, s, _ in chunks], dtype=torch.int32),
        torch.tensor(rows, dtype=torch.int64),
        (group,) * num_groups,
    )
