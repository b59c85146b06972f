"""`GGUFHeader`: the bounded reader of a GGUF header, version 2 and 3.

Every count, length, offset and shape is compared with what the file can hold before it is used, so a damaged or
hostile file costs an error that names the key and the two numbers, never memory or time. What the format allows but
no model needs (nested arrays, big-endian files, strings that are not UTF-8) is refused by name.

Layout: magic, version u32, tensor count u64, key count u64, the keys (name, value type u32, value), the tensor table
(name, number of axes u32, axes u64 with the contiguous one first, type u32, offset u64), padding to
`general.alignment`, then the tensors at their offsets from there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.weights.mapped_file import MappedFile, size_words, wrong_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.kernels.weight_tensor import FORMATS, WeightFormat

MAX_KEYS = 10_000
MAX_TENSORS = 20_000
MAX_HEADER_BYTES = 32 << 20
MAX_STRINGS = 1_200_000  # of all arrays together; the largest vocabularies with merges have about 800,000
MAX_KEY_BYTES = 255
MAX_NAME_BYTES = 64
MAX_AXES = 4
MAX_ALIGNMENT = 65_536

# code of a tensor type -> its name, also of those we refuse
TENSOR_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}  # fmt: skip

_BOOL, _STRING, _ARRAY = 7, 8, 9
# code of a number's type -> NumPy's
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("u1"), 1: np.dtype("i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), 4: np.dtype("<u4"),
    5: np.dtype("<i4"), 6: np.dtype("<f4"), 10: np.dtype("<u8"), 11: np.dtype("<i8"), 12: np.dtype("<f8"),
}  # fmt: skip
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `start` is from the beginning of the file; `shape` is row-major."""

    name: str
    format: WeightFormat
    shape: tuple[int, ...]
    start: int
    size_bytes: int


class GGUFHeader:
    """The header of a mapped file, read in full when made: `metadata`, `tensors` and its length `size_bytes`.

    Raises:
        UnsupportedModelError, ModelFileError: as `GGUFFile` does.
    """

    def __init__(self, file: MappedFile) -> None:
        self._file = file
        self._name = file.name
        self._map = file.map
        self._limit = min(file.size, MAX_HEADER_BYTES)
        self._position = 0
        self._num_strings = 0
        num_tensors, num_keys = self._read_start()
        self.metadata = self._read_metadata(num_keys)
        self.tensors = self._read_tensors(num_tensors)
        self.size_bytes = self._position

    def _read_start(self) -> tuple[int, int]:
        if self._map[:4] != b"GGUF":
            raise wrong_file(self._file, "a GGUF file")
        self._position = 4
        version = self._u32("the version")
        if version in (2 << 24, 3 << 24):
            raise UnsupportedModelError(f"{self._name} is a big-endian GGUF file, which is not supported.")
        if version not in (2, 3):
            raise UnsupportedModelError(
                f"{self._name} is GGUF version {version}; versions 2 and 3 are supported."
            )
        return self._count("the number of tensors", MAX_TENSORS), self._count("the number of keys", MAX_KEYS)

    def _read_metadata(self, num_keys: int) -> Metadata:
        # the least a key takes is its length, one byte, its type and a one-byte value
        self._need(num_keys * 14, f"{num_keys:,} keys")
        values: dict[str, Any] = {}
        for _ in range(num_keys):
            key = self._string("a key's name", MAX_KEY_BYTES)
            if not key or not key.isprintable():
                raise self._error(f"a key is called {key[:100]!r}")
            if key in values:
                raise self._error(f"the key {key} stands there twice")
            values[key] = self._value(key)
        return Metadata(values, self._name)

    def _read_tensors(self, num_tensors: int) -> dict[str, TensorInfo]:
        alignment = self.metadata.integer("general.alignment", 8, MAX_ALIGNMENT, default=32)
        if alignment & (alignment - 1):
            raise self.metadata.error("general.alignment", f"is {alignment:,}; it must be a power of two")
        # the least an entry takes is its name's length, one byte, one axis, its type and its offset
        self._need(num_tensors * 33, f"a table of {num_tensors:,} tensors")
        entries: dict[str, TensorInfo] = {}
        for _ in range(num_tensors):
            info = self._tensor_info(alignment)
            if info.name in entries:
                raise self._error(f"the tensor {info.name} stands there twice")
            entries[info.name] = info
        data_start = -(-self._position // alignment) * alignment
        tensors = {name: replace(info, start=data_start + info.start) for name, info in entries.items()}
        self._check_layout(tensors)
        return tensors

    def _tensor_info(self, alignment: int) -> TensorInfo:
        """One line of the tensor table, its offset still counted from the start of the data."""
        name = self._string("a tensor's name", MAX_NAME_BYTES)
        if not name or not name.isprintable():
            raise self._error(f"a tensor is called {name!r}")
        axes = self._u32(f"the axes of {name}")
        if not 1 <= axes <= MAX_AXES:
            raise self._error(f"the tensor {name} has {axes:,} axes; 1 to {MAX_AXES} are allowed")
        shape = tuple(self._u64(f"the shape of {name}") for _ in range(axes))[::-1]
        if 0 in shape:
            raise self._error(f"the tensor {name} has the shape {shape}; no axis may be 0")
        code = self._u32(f"the type of {name}")
        form = FORMATS.get(TENSOR_TYPES.get(code, ""))
        if form is None:
            raise UnsupportedModelError(
                f"{self._name}: the tensor {name} has the type {TENSOR_TYPES.get(code, f'number {code}')}, "
                f"which is not supported. Supported are {', '.join(n for n in FORMATS if n in TENSOR_TYPES.values())}."
            )
        if shape[-1] % form.block_size:
            raise self._error(
                f"the tensor {name} has rows of {shape[-1]:,} elements; {form.name} needs a multiple of {form.block_size}"
            )
        size = form.row_bytes(shape[-1])
        for axis in shape[:-1]:
            size *= axis
        offset = self._u64(f"the offset of {name}")
        if offset % alignment:
            raise self._error(f"the tensor {name} is at {offset:,}; it must be at a multiple of {alignment}")
        return TensorInfo(name, form, shape, offset, size)

    def _check_layout(self, tensors: dict[str, TensorInfo]) -> None:
        """Refuse tensors that overlap or end beyond the file."""
        before: TensorInfo | None = None
        for info in sorted(tensors.values(), key=lambda info: info.start):
            if before is not None and info.start < before.start + before.size_bytes:
                raise self._error(
                    f"the tensors {before.name} and {info.name} overlap: one ends at "
                    f"{before.start + before.size_bytes:,}, the other starts at {info.start:,}"
                )
            before = info
        end = before.start + before.size_bytes if before else self._position
        size = self._file.size
        if end > size:
            raise ModelFileError(
                f"{self._name} is incomplete: it needs {size_words(end)} ({end:,} bytes), "
                f"has {size_words(size)} ({size:,} bytes). Fetch it again."
            )

    def _value(self, key: str) -> Any:
        code = self._u32(f"the type of {key}")
        if code == _STRING:
            return self._string(key, MAX_HEADER_BYTES)
        if code == _ARRAY:
            return self._array(key)
        if code == _BOOL:
            return bool(self._bools(key, 1)[0])
        return self._numbers(key, code, 1)[0].item()

    def _array(self, key: str) -> Any:
        code = self._u32(f"the element type of {key}")
        count = self._u64(f"the length of {key}")
        if code == _STRING:
            return self._strings_of(key, count)
        if code == _BOOL:
            return self._bools(key, count).astype(np.bool_)
        if code == _ARRAY:
            raise UnsupportedModelError(f"{self._name}: {key} is an array of arrays, which is not supported.")
        return self._numbers(key, code, count)

    def _numbers(self, key: str, code: int, count: int) -> npt.NDArray[Any]:
        dtype = _NUMBERS.get(code)
        if dtype is None:
            raise self._error(f"{key} has the value type {code:,}, which is unknown")
        self._need(count * dtype.itemsize, f"{key} with {count:,} numbers")
        values = np.frombuffer(self._map, dtype, count, self._position).copy()
        self._position += values.nbytes
        return values

    def _bools(self, key: str, count: int) -> npt.NDArray[Any]:
        values = self._numbers(key, 0, count)
        if values.size and values.max() > 1:
            raise self._error(f"{key} is true or false and must be 0 or 1, got {values.max()}")
        return values

    def _strings_of(self, key: str, count: int) -> list[str]:
        self._need(count * 8, f"{key} with {count:,} texts")
        self._num_strings += count
        if self._num_strings > MAX_STRINGS:
            raise self._error(f"{key} has {count:,} texts; a file may have {MAX_STRINGS:,} in all")
        # vocabularies have some 300,000 of these: no call for each, beyond the slice itself
        data, unpack, position, end = self._map, _U64.unpack_from, self._position, self._limit
        items: list[str] = []
        append = items.append
        try:
            for _ in range(count):
                start = position + 8
                if start > end:
                    raise self._short(8, end - position, f"{key}, text {len(items):,} of {count:,}")
                (size,) = unpack(data, position)
                position = start + size
                if position > end:
                    raise self._short(size, end - start, f"{key}, text {len(items):,} of {count:,}")
                append(data[start:position].decode())
        except UnicodeDecodeError as error:
            raise self._error(f"{key} has a text that is not UTF-8, number {len(items):,}") from error
        self._position = position
        return items

    def _string(self, what: str, limit: int) -> str:
        size = self._u64(f"the length of {what}")
        if size > limit:
            raise self._error(f"{what} has {size:,} bytes; at most {limit:,} are allowed")
        self._need(size, what)
        start, self._position = self._position, self._position + size
        try:
            return self._map[start : self._position].decode()
        except UnicodeDecodeError as error:
            raise self._error(f"{what} is not UTF-8") from error

    def _count(self, what: str, limit: int) -> int:
        count = self._u64(what)
        if count > limit:
            raise self._error(f"{what} is {count:,}; at most {limit:,} are allowed")
        return count

    def _u32(self, what: str) -> int:
        self._need(4, what)
        (value,) = _U32.unpack_from(self._map, self._position)
        self._position += 4
        return int(value)

    def _u64(self, what: str) -> int:
        self._need(8, what)
        (value,) = _U64.unpack_from(self._map, self._position)
        self._position += 8
        return int(value)

    def _need(self, size: int, what: str) -> None:
        left = self._limit - self._position
        if size > left:
            raise self._short(size, left, what)

    def _short(self, size: int, left: int, what: str) -> ModelFileError:
        if self._file.size > MAX_HEADER_BYTES:
            return self._error(f"{what} needs {size:,} bytes, and a header has {left:,} left")
        return ModelFileError(
            f"{self._name} is incomplete or damaged: {what} needs {size:,} bytes, {left:,} are left. "
            "Fetch it again."
        )

    def _error(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self._name} is damaged: {problem}.")
