"""Packed weights: the matrices of a model in the layout of kernels/cpu/packed_format.h, and its vectors in float32.

`PackedWeights.open` reads them from a file in a cache folder, and packs them first when there is no sound file of
that name. The file is `START` (magic, layout version, where the index is, its checksum), the tensors at multiples of 4096
bytes, and the index: JSON with each tensor's place and checksum. It is written beside its final name and renamed, and
every tensor's checksum is compared whenever it is read, so a damaged or half-written file is packed anew.

Whoever packs gives a name that changes with the source's content; the layout is the same for all instruction sets.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inglenook.kernels.native import NativeLibrary
from inglenook.kernels.native_interface import FORMAT_IDS, Matrix
from inglenook.kernels.weight_tensor import WeightTensor

logger = logging.getLogger(__name__)

LAYOUT_VERSION = 1
_START = struct.Struct("<8sIIQQQ")
_MAGIC = b"INGLPACK"
_PAGE = 4096
_HUGE_PAGE = 2 << 20
_PIECE_BYTES = 4 << 20
_MAX_FOLDER_BYTES = 32 << 30
_PART_AGE_S = 86400

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """Where one tensor lies: a matrix in a packed format, or a float32 vector (`format` "F32", `rows` 1)."""

    name: str
    format: str
    rows: int
    columns: int
    offset: int
    size: int
    checksum: int


class PackedWeights:
    """A model's packed tensors in memory. `close` makes all addresses invalid."""

    def __init__(self, tensors: Mapping[str, PackedTensor], memory: _Memory) -> None:
        self._tensors = dict(tensors)
        self._memory: _Memory | None = memory

    @classmethod
    def open(
        cls,
        library: NativeLibrary,
        folder: Path | None,
        name: str,
        tensors: Mapping[str, Callable[[], WeightTensor]],
        progress: Callable[[int], None],
    ) -> PackedWeights:
        """Read the packed file `name` of `folder`, packing it first from `tensors` where it is missing or damaged.

        Args:
            library: does the packing.
            folder: of packed files; made when missing. Where it cannot be written, or is None, each load packs anew.
            name: changes whenever a tensor does.
            tensors: one callable for each canonical name, called only to pack.
            progress: called with the bytes of the source packed so far; may raise to stop.

        Raises:
            ValueError: a tensor's format has no packed form.
        """
        path = None if folder is None else folder / f"{name}.{LAYOUT_VERSION}.packed"
        found = None if path is None else _read_file(library, path)
        if path is not None and found is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
            return cls(*found)
        packed, memory = _pack(library, tensors, progress)
        if path is not None:
            _write_file(library, path, packed, memory)
        return cls(packed, memory)

    @property
    def size_bytes(self) -> int:
        """Bytes of all packed tensors."""
        return sum(t.size for t in self._tensors.values())

    def matrix(self, name: str) -> Matrix:
        """A matrix for the native kernels."""
        tensor = self._tensors[name]
        return Matrix(self._address(tensor), tensor.rows, tensor.columns, FORMAT_IDS[tensor.format])

    def vector(self, name: str) -> int | None:
        """The address of a float32 vector, None when there is none of that name."""
        tensor = self._tensors.get(name)
        return None if tensor is None else self._address(tensor)

    def close(self) -> None:
        """Free the memory. Closing twice is fine."""
        self._memory = None

    def _address(self, tensor: PackedTensor) -> int:
        assert self._memory is not None, "the weights are closed"
        return int(self._memory.data.ctypes.data) + tensor.offset


class _Memory:
    """Bytes in huge pages where the system has them: decoding touches every page of the weights at each token.

    On the build machine (4 KB pages of a mapped file against huge pages, one thread) that is 12 against 19 GB/s.
    """

    def __init__(self, size: int) -> None:
        # Python's own default is shared memory, which gets no huge pages.
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
        memory = mmap.mmap(-1, size + 2 * _HUGE_PAGE, **private)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
        data = np.frombuffer(memory, dtype=np.uint8)
        start = -data.ctypes.data % _HUGE_PAGE
        # kernels prefetch a little past the end, so some of the slack stays behind it
        self.data: Bytes = data[start : start + size]


def _read_file(library: NativeLibrary, path: Path) -> tuple[dict[str, PackedTensor], _Memory] | None:
    """Copy a packed file into memory; None when it is missing or anything about it is wrong."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("A packed model file could not be read (%s); it is packed anew.", error)
        return None
    data = np.frombuffer(mapped, dtype=np.uint8)
    tensors = _read_index(library, data)
    memory = None if tensors is None else _copy_sound(library, data, tensors)
    if tensors is None or memory is None:
        logger.warning("A packed model file of %d bytes is damaged; it is packed anew.", data.nbytes)
        return None
    return tensors, memory


def _copy_sound(library: NativeLibrary, data: Bytes, tensors: Mapping[str, PackedTensor]) -> _Memory | None:
    """Copy all tensors, comparing each with its checksum; None when one differs."""
    memory = _Memory(max(t.offset + t.size for t in tensors.values()))

    def copy(tensor: PackedTensor) -> bool:
        place = slice(tensor.offset, tensor.offset + tensor.size)
        memory.data[place] = data[place]
        return library.checksum(memory.data[place]) == tensor.checksum

    with ThreadPoolExecutor(_num_workers()) as workers:
        return memory if all(workers.map(copy, tensors.values())) else None


def _read_index(library: NativeLibrary, data: Bytes) -> dict[str, PackedTensor] | None:
    if data.nbytes < _PAGE:
        return None
    magic, version, _, offset, size, checksum = _START.unpack(bytes(data[: _START.size]))
    if magic != _MAGIC or version != LAYOUT_VERSION or offset + size != data.nbytes:
        return None
    index = data[offset:]
    if library.checksum(np.ascontiguousarray(index)) != checksum:
        return None
    tensors = {entry["name"]: PackedTensor(**entry) for entry in json.loads(bytes(index))}
    return tensors if all(t.offset + t.size <= offset for t in tensors.values()) else None


def _num_workers() -> int:
    return min(4, os.cpu_count() or 1)


def _pack(
    library: NativeLibrary,
    tensors: Mapping[str, Callable[[], WeightTensor]],
    progress: Callable[[int], None],
) -> tuple[dict[str, PackedTensor], _Memory]:
    """Pack every tensor into memory; returns their places with checksums."""
    places, size = _plan(library, tensors)
    memory = _Memory(size)
    packed, done = {}, 0
    with ThreadPoolExecutor(_num_workers()) as workers:
        for name, place in places.items():
            tensor = tensors[name]()
            out = memory.data[place.offset : place.offset + place.size]
            if len(tensor.shape) == 1:
                out[:] = _as_float32(tensor).view(np.uint8)
            else:
                pieces = [workers.submit(_pack_piece, library, tensor, out, p) for p in _pieces(tensor)]
                for piece in pieces:
                    piece.result()
            packed[name] = replace(place, checksum=library.checksum(out))
            done += tensor.size_bytes
            progress(done)
    return packed, memory


def _plan(
    library: NativeLibrary, tensors: Mapping[str, Callable[[], WeightTensor]]
) -> tuple[dict[str, PackedTensor], int]:
    """Places without checksums, and the size of all."""
    places, offset = {}, _PAGE
    for name, read in tensors.items():
        tensor = read()
        if len(tensor.shape) == 1:
            form, rows, columns, size = "F32", 1, tensor.shape[0], 4 * tensor.shape[0]
        elif tensor.format.name in FORMAT_IDS:
            form, (rows, columns) = tensor.format.name, tensor.shape
            size = library.packed_bytes(FORMAT_IDS[form], rows, columns)
        else:
            raise ValueError(f"{name}: {tensor.format.name} matrices have no packed form")
        places[name] = PackedTensor(name, form, rows, columns, offset, size, 0)
        offset += -(-size // _PAGE) * _PAGE
    return places, offset


def _pieces(tensor: WeightTensor) -> list[tuple[int, int]]:
    """Runs of tiles of 16 rows, each of about _PIECE_BYTES."""
    tiles = -(-tensor.shape[0] // 16)
    step = max(1, _PIECE_BYTES // (16 * tensor.data.shape[1]))
    return [(first, min(first + step, tiles)) for first in range(0, tiles, step)]


def _pack_piece(library: NativeLibrary, tensor: WeightTensor, out: Bytes, piece: tuple[int, int]) -> None:
    rows, columns = tensor.shape
    library.pack(
        FORMAT_IDS[tensor.format.name],
        tensor.data.ctypes.data,
        tensor.data.shape[1],
        rows,
        columns,
        out.ctypes.data,
        *piece,
    )


def _as_float32(tensor: WeightTensor) -> npt.NDArray[np.float32]:
    from inglenook.kernels.dequantize import dequantize

    return np.ascontiguousarray(dequantize(tensor).numpy().reshape(-1))


def _write_file(
    library: NativeLibrary, path: Path, tensors: Mapping[str, PackedTensor], memory: _Memory
) -> None:
    """Keep packed tensors as a file; where that fails the program goes on without."""
    index = json.dumps([asdict(t) for t in tensors.values()]).encode()
    checksum = library.checksum(np.frombuffer(index, dtype=np.uint8))
    size = memory.data.nbytes
    temporary: str | None = None
    try:
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        for folder in reversed(missing):  # `parents=True` would leave those above open to others
            folder.mkdir(mode=0o700, exist_ok=True)
        _trim(path.parent, size)
        descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
        with open(descriptor, "wb") as file:
            file.write(_START.pack(_MAGIC, LAYOUT_VERSION, 0, size, len(index), checksum))
            file.seek(_PAGE)
            file.write(memory.data[_PAGE:].data)
            file.write(index)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        logger.warning("The packed model cannot be kept on disk (%s); it is packed at every load.", error)
    finally:
        _remove(temporary)


def _remove(path: str | None) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _trim(folder: Path, coming: int) -> None:
    """Remove left-overs of a crash and the files used longest ago, until the coming one fits the folder's limit."""
    files = []
    for path in folder.glob("*.packed"):
        with contextlib.suppress(OSError):
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    left = sum(size for _, size, _ in files) + coming
    for path in folder.glob("*.packed*.part"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _PART_AGE_S:
                path.unlink()
    for _, size, path in sorted(files):
        if left <= _MAX_FOLDER_BYTES:
            return
        _remove(str(path))
        left -= size
