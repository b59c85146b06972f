"""A weight as it lies in a file: element format, logical shape, raw bytes; and the table of formats.

Row-major; the last axis is the contiguous one and, for block formats, a whole number of blocks. Bytes may be a
read-only view of a memory-mapped file, so nothing is copied until a back end packs or dequantises it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """An element format: `block_size` elements of a row take `block_bytes` bytes."""

    name: str
    block_size: int
    block_bytes: int

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row of `columns` elements, which must be a whole number of blocks."""
        if columns % self.block_size:
            raise ValueError(
                f"{self.name} needs rows of a multiple of {self.block_size} elements, got {columns}"
            )
        return columns // self.block_size * self.block_bytes


FORMATS: dict[str, WeightFormat] = {
    f.name: f
    for f in (
        WeightFormat("F32", 1, 4),
        WeightFormat("F16", 1, 2),
        WeightFormat("BF16", 1, 2),
        WeightFormat(
            "Q4_0", 32, 18
        ),  # d fp16, 16 bytes of nibbles (low = 0..15, high = 16..31); w = d * (q - 8)
        WeightFormat("Q4_1", 32, 20),  # d, m fp16, 16 bytes of nibbles; w = d * q + m
        WeightFormat("Q5_0", 32, 22),  # d fp16, 32 high bits, 16 bytes of nibbles; w = d * (q - 16)
        WeightFormat("Q5_1", 32, 24),  # d, m fp16, 32 high bits, 16 bytes of nibbles; w = d * q + m
        WeightFormat("Q8_0", 32, 34),  # d fp16, 32 int8; w = d * q
        WeightFormat("Q4_K", 256, 144),  # d, dmin fp16, 12 bytes of 6-bit scales and mins, 128 of nibbles
        WeightFormat("Q5_K", 256, 176),  # as Q4_K with 32 bytes of high bits
        WeightFormat("Q6_K", 256, 210),  # 128 low nibbles, 64 high pairs, 16 int8 scales, d fp16
        # Our own, of models that were quantised here (engine/weights/quantize.py); in groups of 32, Q4_1 and Q8_0 are the
        # same thing.
        WeightFormat(
            "QINT4_G64", 64, 36
        ),  # d, m fp16, 32 bytes of nibbles for each 64 elements; w = d * q + m
        WeightFormat("QINT4_G128", 128, 68),
        WeightFormat("QINT8_G64", 64, 66),  # d fp16, int8; w = d * q
        WeightFormat("QINT8_G128", 128, 130),
        WeightFormat("QFLOAT8_G32", 32, 34),  # d fp16, float8 e4m3; w = d * q
        WeightFormat("QFLOAT8_G64", 64, 66),
        WeightFormat("QFLOAT8_G128", 128, 130),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class WeightTensor:
    """A weight in the format of its file.

    shape: logical, row-major (a matrix is [N outputs, K inputs]).
    data: uint8 [rows, row_bytes], C-contiguous, possibly read-only; rows is the product of all axes but the last.
    """

    format: WeightFormat
    shape: tuple[int, ...]
    data: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        rows = int(np.prod(self.shape[:-1], dtype=np.int64)) if len(self.shape) > 1 else 1
        want = (rows, self.format.row_bytes(self.shape[-1]))
        if self.data.dtype != np.uint8 or self.data.shape != want:
            raise ValueError(
                f"{self.format.name} {self.shape} needs uint8 data of shape {want}, "
                f"got {self.data.dtype} {self.data.shape}"
            )

    @property
    def size_bytes(self) -> int:
        """Bytes of the raw data."""
        return int(self.data.size)

    def select_rows(self, rows: npt.NDArray[np.int64] | slice) -> WeightTensor:
        """Return a tensor of the chosen rows of a matrix, in that order (copies unless `rows` is a slice)."""
        data = np.ascontiguousarray(self.data[rows])
        return WeightTensor(self.format, (data.shape[0], *self.shape[1:]), data)
