"""`GGUFFile`: a GGUF file of version 2 or 3, mapped: its metadata, and its tensors as views of the map.

Opening reads the header only (`gguf_header.py`), which is checked in full before anything is handed out. Knows
nothing of architectures: `models/registry.py` gives the metadata its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

from inglenook.engine.errors import ModelFileError
from inglenook.engine.weights.gguf_header import GGUFHeader, TensorInfo
from inglenook.engine.weights.mapped_file import MappedFile
from inglenook.engine.weights.metadata import Metadata
from inglenook.kernels.weight_tensor import WeightTensor

_ARCHITECTURE = b"general.architecture"
_KEYS_START = 24  # after magic, version and the two counts


class GGUFFile:
    """A GGUF file: `metadata` with typed getters, `tensors` by name, and `tensor(name)` as a view of the map.

    Raises:
        ModelNotFoundError: there is no such file.
        UnsupportedModelError: an element type, version or byte order that is not supported; the message names it.
        ModelFileError: the file is damaged, incomplete or no GGUF file.
    """

    def __init__(self, path: Path) -> None:
        self._file = MappedFile(path)
        self.name = self._file.name
        self.size_bytes = self._file.size
        try:
            header = GGUFHeader(self._file)
        except BaseException:
            self._file.close()
            raise
        self.metadata: Metadata = header.metadata
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(header.tensors)
        self.header_bytes = header.size_bytes

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of that name, not copied.

        Raises:
            ModelFileError: there is none of that name.
        """
        info = self.tensors.get(name)
        if info is None:
            raise ModelFileError(f"{self.name} has no tensor {name}.")
        data = self._file.bytes_at(info.start, info.size_bytes)
        return WeightTensor(info.format, info.shape, data.reshape(-1, info.format.row_bytes(info.shape[-1])))

    def bytes_at(self, start: int, size: int) -> bytes:
        """Raw bytes of the file, fewer at its end."""
        return self._file.map[start : start + size]

    def close(self) -> None:
        """Unmap the file; tensors handed out must no longer be used. Closing twice is fine."""
        self._file.close()

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_architecture(path: Path) -> str:
    """The architecture that a GGUF file names; "" for a file that is none. Reads a page where the key stands first.

    Raises:
        ModelNotFoundError, ModelFileError: as `GGUFFile` does.
    """
    with open(path, "rb") as file:
        head = file.read(4096)
    if head[:4] != b"GGUF":
        return ""
    key = len(_ARCHITECTURE).to_bytes(8, "little") + _ARCHITECTURE + (8).to_bytes(4, "little")
    start = _KEYS_START + len(key)
    if head[_KEYS_START:start] == key:
        size = int.from_bytes(head[start : start + 8], "little")
        return head[start + 8 : start + 8 + min(size, 100)].decode(errors="replace")
    with GGUFFile(path) as gguf:
        return gguf.metadata.text(_ARCHITECTURE.decode(), default="")
