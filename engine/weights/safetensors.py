"""`SafetensorsFile`: a bounded reader of one safetensors file, mapped.

A file is a u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, and the tensors, which must follow
each other without a gap from the header's end to the file's. The header is checked against the file's size before it
is read, and each tensor's offsets against its shape. F32, F16 and BF16 can be read, and the formats of models that
were quantised here, which `safetensors_writer.py` describes; other element types are refused by name when asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.weights.json_file import parse_json_object
from inglenook.engine.weights.mapped_file import MappedFile, size_words, wrong_file
from inglenook.engine.weights.metadata import describe
from inglenook.kernels.weight_tensor import FORMATS, WeightFormat, WeightTensor

MAX_HEADER_BYTES = 2 << 20
MAX_TENSORS = 20_000
MAX_NAME_LENGTH = 255
MAX_AXES = 8

# formats that lie in a file as bytes and are named in its __metadata__
GROUP_FORMATS = (
    "Q4_1", "QINT4_G64", "QINT4_G128", "Q8_0", "QINT8_G64", "QINT8_G128", "QFLOAT8_G32", "QFLOAT8_G64",
    "QFLOAT8_G128",
)  # fmt: skip
LAYOUT_KEY = "inglenook.layout"
LAYOUT_VERSION = "1"

# element type -> bytes; those we cannot run are known so that a file's layout can be checked
_ELEMENT_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `start` is from the beginning of the file, `dtype` an element type or a group format."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size_bytes: int


class SafetensorsFile:
    """One safetensors file: `tensors` by name, and `tensor(name)` as a view of the map.

    Raises:
        ModelNotFoundError: there is no such file.
        ModelFileError: it is damaged, incomplete or no safetensors file.
    """

    def __init__(self, path: Path) -> None:
        self._file = MappedFile(path)
        self.name = self._file.name
        self.size_bytes = self._file.size
        try:
            self.tensors: Mapping[str, TensorInfo] = MappingProxyType(self._read_header())
        except BaseException:
            self._file.close()
            raise

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of that name, not copied.

        Raises:
            UnsupportedModelError: its element type is none of F32, F16 and BF16.
            ModelFileError: there is none of that name.
        """
        info = self.tensors.get(name)
        if info is None:
            raise ModelFileError(f"{self.name} has no tensor {name}.")
        form = FORMATS.get(info.dtype)
        if form is None:
            raise UnsupportedModelError(
                f"{self.name}: the tensor {name} has the type {info.dtype}, which is not supported. "
                "Supported are F32, F16 and BF16."
            )
        if not info.shape or 0 in info.shape:
            raise self._error(f"the tensor {name} has the shape {info.shape}; no axis may be missing or 0")
        data = self._file.bytes_at(info.start, info.size_bytes)
        return WeightTensor(form, info.shape, data.reshape(-1, form.row_bytes(info.shape[-1])))

    def bytes_at(self, start: int, size: int) -> bytes:
        """Raw bytes of the file, fewer at its end."""
        return self._file.map[start : start + size]

    def close(self) -> None:
        """Unmap the file; tensors handed out must no longer be used. Closing twice is fine."""
        self._file.close()

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_header(self) -> dict[str, TensorInfo]:
        head = self._file.map[:9]
        length = int.from_bytes(head[:8], "little")
        if head[8:] != b"{":
            raise wrong_file(self._file, "a safetensors file")
        if length > self.size_bytes - 8:
            raise ModelFileError(
                f"{self.name} is incomplete or damaged: its header needs {length:,} bytes, "
                f"{self.size_bytes - 8:,} are left. Fetch it again."
            )
        if length > MAX_HEADER_BYTES:
            raise self._error(f"its header has {length:,} bytes; at most {MAX_HEADER_BYTES:,} are allowed")
        header = parse_json_object(self._file.map[8 : 8 + length], f"the header of {self.name}")
        notes = header.pop("__metadata__", {})
        if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
            raise self._error("its __metadata__ must be texts by name")
        if len(header) > MAX_TENSORS:
            raise self._error(f"it has {len(header):,} tensors; at most {MAX_TENSORS:,} are allowed")
        self.header_bytes = 8 + length
        formats = self._group_formats(notes, header)
        tensors = {name: self._tensor_info(name, entry, formats.get(name)) for name, entry in header.items()}
        self._check_layout(tensors)
        return tensors

    def _group_formats(self, notes: dict[str, str], header: Collection[str]) -> dict[str, WeightFormat]:
        """The formats that the file's notes give its tensors, if it was quantised here."""
        version = notes.get(LAYOUT_KEY)
        if version is None:
            return {}
        if version != LAYOUT_VERSION:
            raise UnsupportedModelError(
                f"{self.name} was quantised with layout {describe(version)}; this program reads {LAYOUT_VERSION}. "
                "Use a newer inglenook, or quantise the model anew."
            )
        formats = {}
        for name in notes.keys() & header:
            if notes[name] not in GROUP_FORMATS:
                raise UnsupportedModelError(
                    f"{self.name}: the tensor {name[:100]!r} has the format {describe(notes[name])}, which is unknown."
                )
            formats[name] = FORMATS[notes[name]]
        return formats

    def _tensor_info(self, name: str, entry: object, form: WeightFormat | None) -> TensorInfo:
        check_tensor_name(name, self.name)
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise self._error(f"the tensor {name} must have dtype, shape and data_offsets and nothing else")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _ELEMENT_BYTES:
            raise UnsupportedModelError(
                f"{self.name}: the tensor {name} has the element type {describe(dtype)}, which is unknown."
            )
        if not _are_sizes(shape) or len(shape) > MAX_AXES:
            raise self._error(f"the shape of {name} must be at most {MAX_AXES} whole numbers")
        if not _are_sizes(offsets) or len(offsets) != 2:
            raise self._error(f"the data_offsets of {name} must be two whole numbers")
        size = _ELEMENT_BYTES[dtype]
        for axis in shape:
            size *= axis
        start, end = offsets
        if end - start != size:
            raise self._error(
                f"the tensor {name} lies from {start:,} to {end:,}, but {dtype} {shape} needs {size:,} bytes"
            )
        if form is None:
            return TensorInfo(name, dtype, tuple(shape), self.header_bytes + start, size)
        if dtype != "U8" or len(shape) != 2 or shape[1] % form.block_bytes or 0 in shape:
            raise self._error(
                f"the tensor {name} is {dtype} {shape}, but {form.name} needs U8 rows of a multiple of "
                f"{form.block_bytes} bytes"
            )
        columns = shape[1] // form.block_bytes * form.block_size
        return TensorInfo(name, form.name, (shape[0], columns), self.header_bytes + start, size)

    def _check_layout(self, tensors: dict[str, TensorInfo]) -> None:
        """Refuse overlaps, gaps, and an end that is not the file's."""
        position = self.header_bytes
        for info in sorted(tensors.values(), key=lambda info: (info.start, info.size_bytes)):
            if info.start != position:
                kind = "overlaps the one before" if info.start < position else "leaves a gap"
                raise self._error(
                    f"the tensor {info.name} {kind}: it starts at {info.start:,}, not at {position:,}"
                )
            position += info.size_bytes
        if position > self.size_bytes:
            raise ModelFileError(
                f"{self.name} is incomplete: it needs {size_words(position)} ({position:,} bytes), "
                f"has {size_words(self.size_bytes)} ({self.size_bytes:,} bytes). Fetch it again."
            )
        if position < self.size_bytes:
            raise self._error(f"its tensors end at {position:,}, but it has {self.size_bytes:,} bytes")

    def _error(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self.name} is damaged: {problem}.")


def check_tensor_name(name: str, source: str) -> None:
    """Refuse tensor names that are empty, too long, or could be mistaken for a path.

    Raises:
        ModelFileError: the name is none we accept.
    """
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or "/" in name or "\\" in name:
        raise ModelFileError(
            f"{source}: the tensor name {name[:100]!r} is not allowed: at most {MAX_NAME_LENGTH} printable "
            "characters, no slashes."
        )


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
