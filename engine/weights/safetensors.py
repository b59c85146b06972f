"""Bounded readers of safetensors: `SafetensorsFile`, one file, and `SafetensorsFolder`, one file or many shards.

A file is a u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, and the tensors, which must follow
each other without a gap from the header's end to the file's. The header is checked against the file's size before it
is read, and each tensor's offsets against its shape. A folder's index may name only plain files inside the folder.
F32, F16 and BF16 can be read; other element types are refused by name when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.weights.json_file import parse_json_object, read_json_file
from inglenook.engine.weights.mapped_file import MappedFile, size_words, wrong_file
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

MAX_HEADER_BYTES = 4 << 20
MAX_INDEX_BYTES = 4 << 20
MAX_TENSORS = 20_000
MAX_SHARDS = 1_000
MAX_NAME_LENGTH = 255
MAX_AXES = 8

SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"

# element type -> bytes; those we cannot run are known so that a file's layout can be checked
_ELEMENT_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
_SHARD_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}\.safetensors")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `start` is from the beginning of the file."""

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

    @property
    def header_bytes(self) -> int:
        """Bytes before the first tensor."""
        return self._data_start

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
        header.pop("__metadata__", None)
        if len(header) > MAX_TENSORS:
            raise self._error(f"it has {len(header):,} tensors; at most {MAX_TENSORS:,} are allowed")
        self._data_start = 8 + length
        tensors = {name: self._tensor_info(name, entry) for name, entry in header.items()}
        self._check_layout(tensors)
        return tensors

    def _tensor_info(self, name: str, entry: object) -> TensorInfo:
        check_tensor_name(name, self.name)
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise self._error(f"the tensor {name} must have dtype, shape and data_offsets and nothing else")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _ELEMENT_BYTES:
            raise UnsupportedModelError(
                f"{self.name}: the tensor {name} has the element type {str(dtype)[:40]!r}, which is unknown."
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
        return TensorInfo(name, dtype, tuple(shape), self._data_start + start, size)

    def _check_layout(self, tensors: dict[str, TensorInfo]) -> None:
        """Refuse overlaps, gaps, and an end that is not the file's."""
        position = self._data_start
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


class SafetensorsFolder:
    """All tensors of a model folder, from model.safetensors or from the shards that its index names.

    Raises:
        ModelFileError: neither is there, the index names files outside the folder, or index and shards disagree.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.files: list[SafetensorsFile] = []
        self._home: dict[str, SafetensorsFile] = {}
        try:
            if (folder / INDEX_NAME).exists():
                self._open_shards(folder)
            elif (folder / SINGLE_NAME).exists():
                file = self._open(folder, SINGLE_NAME)
                self._home = dict.fromkeys(file.tensors, file)
            else:
                raise _no_weights(folder)
        except BaseException:
            self.close()
            raise

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        """All tensors by name."""
        return {name: file.tensors[name] for name, file in self._home.items()}

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of that name, not copied; raises as `SafetensorsFile.tensor` does."""
        file = self._home.get(name)
        if file is None:
            raise ModelFileError(f"{self.name} has no tensor {name}.")
        return file.tensor(name)

    def close(self) -> None:
        """Unmap all files. Closing twice is fine."""
        for file in self.files:
            file.close()

    def _open_shards(self, folder: Path) -> None:
        index = read_json_file(inside(folder, INDEX_NAME), MAX_INDEX_BYTES)
        weight_map = index.get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ModelFileError(f"{INDEX_NAME} has no weight_map.")
        if len(weight_map) > MAX_TENSORS:
            raise ModelFileError(
                f"{INDEX_NAME} has {len(weight_map):,} tensors; at most {MAX_TENSORS:,} are allowed."
            )
        for name, shard in weight_map.items():
            check_tensor_name(name, INDEX_NAME)
            if not isinstance(shard, str) or not _SHARD_NAME.fullmatch(shard):
                raise ModelFileError(
                    f"{INDEX_NAME}: the tensor {name} is said to be in {str(shard)[:100]!r}; "
                    "only the plain name of a .safetensors file in the same folder is allowed."
                )
        shards = sorted(set(weight_map.values()))
        if len(shards) > MAX_SHARDS:
            raise ModelFileError(
                f"{INDEX_NAME} names {len(shards):,} files; at most {MAX_SHARDS:,} are allowed."
            )
        for shard in shards:
            file = self._open(folder, shard)
            for name in file.tensors:
                if weight_map.get(name) != shard:
                    raise ModelFileError(
                        f"{shard} holds the tensor {name}, which {INDEX_NAME} does not place there."
                    )
                self._home[name] = file
        missing = weight_map.keys() - self._home.keys()
        if missing:
            raise ModelFileError(
                f"{weight_map[min(missing)]} lacks the tensor {min(missing)}, which {INDEX_NAME} names."
            )

    def _open(self, folder: Path, name: str) -> SafetensorsFile:
        file = SafetensorsFile(inside(folder, name))
        self.files.append(file)
        return file


def inside(folder: Path, name: str) -> Path:
    """The path of a file in a folder, refused if a link takes it elsewhere.

    Raises:
        ModelFileError: it is a link out of the folder.
    """
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ModelFileError(
            f"{name} is a link to a place outside the model's folder. Copy the folder with its links followed."
        )
    return path


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


def _no_weights(folder: Path) -> ModelFileError:
    risky = sorted(
        p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".joblib")
    )
    if risky:
        return UnsupportedModelError(
            f"The folder {folder.name} has its weights in {risky[0]}, which is unsupported: this format can run code "
            "when it is opened. Use a safetensors or GGUF version of this model."
        )
    return ModelFileError(f"The folder {folder.name} has neither {SINGLE_NAME} nor {INDEX_NAME}.")
