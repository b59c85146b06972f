"""Packed weights: the matrices of a model in the layout of kernels/cpu/packed_format.h, and its vectors in float32.

`PackedWeights.open` maps them from a file in a cache folder, and packs them first when there is no sound file of that
name. The file is `START` (magic, layout version, where the index is, its checksum), the tensors at multiples of 4096
bytes, and the index: JSON with each tensor's place and checksum. It is written beside its final name and renamed, and
every tensor's checksum is compared whenever it is opened, so a damaged or half-written file is packed anew.

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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
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
_PIECE_BYTES = 4 << 20
_MAX_FOLDER_BYTES = 32 << 30

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
    """A model's packed tensors, mapped from a file or in memory. `close` makes all addresses invalid."""

    def __init__(self, tensors: Mapping[str, PackedTensor], data: Bytes, mapped: mmap.mmap) -> None:
        self._tensors = dict(tensors)
        self._data: Bytes | None = data
        self._map = mapped

    @classmethod
    def open(
        cls,
        library: NativeLibrary,
        folder: Path,
        name: str,
        tensors: Mapping[str, Callable[[], WeightTensor]],
        progress: Callable[[int], None],
    ) -> PackedWeights:
        """Map the packed file `name` of `folder`, packing it first from `tensors` where it is missing or damaged.

        Args:
            library: does the packing.
            folder: of packed files; made when missing. Where it cannot be written, the weights stay in memory.
            name: changes whenever a tensor does.
            tensors: one callable for each canonical name, called once and only to pack.
            progress: called with the bytes of the source packed so far; may raise to stop.

        Raises:
            ValueError: a tensor's format has no packed form.
        """
        path = folder / f"{name}.{LAYOUT_VERSION}.packed"
        found = _map_file(library, path)
        if found is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
            return cls(*found)
        return cls(*_pack(library, path, tensors, progress))

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
        """Unmap. Closing twice is fine."""
        self._data = None
        # a view that someone still holds keeps the map until it is dropped
        with contextlib.suppress(BufferError):
            self._map.close()

    def _address(self, tensor: PackedTensor) -> int:
        assert self._data is not None, "the weights are closed"
        return int(self._data.ctypes.data) + tensor.offset


def _map_file(library: NativeLibrary, path: Path) -> tuple[dict[str, PackedTensor], Bytes, mmap.mmap] | None:
    """Map a packed file; None when it is missing or anything about it is wrong."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | _populate(), prot=mmap.PROT_READ)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("A packed model file could not be read (%s); it is packed anew.", error)
        return None
    data = np.frombuffer(mapped, dtype=np.uint8)
    tensors = _read_index(library, data)
    if tensors is None or not _all_sound(library, data, tensors):
        logger.warning("A packed model file of %d bytes is damaged; it is packed anew.", data.nbytes)
        return None
    return tensors, data, mapped


def _populate() -> int:
    return getattr(mmap, "MAP_POPULATE", 0)


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


def _all_sound(library: NativeLibrary, data: Bytes, tensors: Mapping[str, PackedTensor]) -> bool:
    def is_sound(tensor: PackedTensor) -> bool:
        return library.checksum(data[tensor.offset : tensor.offset + tensor.size]) == tensor.checksum

    with ThreadPoolExecutor(_num_workers()) as workers:
        return all(workers.map(is_sound, tensors.values()))


def _num_workers() -> int:
    return min(4, os.cpu_count() or 1)


def _pack(
    library: NativeLibrary,
    path: Path,
    tensors: Mapping[str, Callable[[], WeightTensor]],
    progress: Callable[[int], None],
) -> tuple[dict[str, PackedTensor], Bytes, mmap.mmap]:
    places, size = _plan(library, tensors)
    temporary: str | None = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _trim(path.parent, size)
        descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
        try:
            os.posix_fallocate(descriptor, 0, size)
            mapped = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
    except OSError as error:
        logger.warning("The packed model cannot be kept on disk (%s); it is packed at every load.", error)
        _remove(temporary)
        temporary = None
        mapped = mmap.mmap(-1, size)
    try:
        data = np.frombuffer(mapped, dtype=np.uint8)
        packed = _fill(library, data, tensors, places, progress)
        if temporary is not None:
            _finish(library, Path(temporary), path, packed, mapped, size)
    finally:
        _remove(temporary)
    return packed, data, mapped


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


def _fill(
    library: NativeLibrary,
    data: Bytes,
    tensors: Mapping[str, Callable[[], WeightTensor]],
    places: Mapping[str, PackedTensor],
    progress: Callable[[int], None],
) -> dict[str, PackedTensor]:
    """Pack every tensor into its place; returns the places with checksums."""
    packed, done = {}, 0
    with ThreadPoolExecutor(_num_workers()) as workers:
        for name, place in places.items():
            tensor = tensors[name]()
            out = data[place.offset : place.offset + place.size]
            if len(tensor.shape) == 1:
                out[:] = _as_float32(tensor).view(np.uint8)
            else:
                list(
                    workers.map(
                        lambda piece, t=tensor, o=out: _pack_piece(library, t, o, piece), _pieces(tensor)
                    )
                )
            packed[name] = PackedTensor(**{**asdict(place), "checksum": library.checksum(out)})
            done += tensor.size_bytes
            progress(done)
    return packed


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


def _finish(
    library: NativeLibrary,
    temporary: Path,
    path: Path,
    tensors: Mapping[str, PackedTensor],
    mapped: mmap.mmap,
    size: int,
) -> None:
    """Append the index, then write the start, which makes the file valid, then give it its name."""
    index = json.dumps([asdict(t) for t in tensors.values()]).encode()
    checksum = library.checksum(np.frombuffer(index, dtype=np.uint8))
    try:
        mapped.flush()
        with temporary.open("r+b") as file:
            file.seek(size)
            file.write(index)
            file.seek(0)
            file.write(_START.pack(_MAGIC, LAYOUT_VERSION, 0, size, len(index), checksum))
        os.replace(temporary, path)
    except OSError as error:
        logger.warning("The packed model cannot be kept on disk (%s); it is packed at every load.", error)


def _remove(path: str | None) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _trim(folder: Path, coming: int) -> None:
    """Remove the packed files used longest ago until the folder and the coming one stay within the limit."""
    files = []
    for path in folder.glob("*.packed"):
        with contextlib.suppress(OSError):
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    left = sum(size for _, size, _ in files) + coming
    for _, size, path in sorted(files):
        if left <= _MAX_FOLDER_BYTES:
            return
        _remove(str(path))
        left -= size
