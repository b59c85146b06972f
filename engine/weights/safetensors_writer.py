"""`write_folder`: the tensors of a model folder as one safetensors file, or as several with an index.

Sizes are known before any data is: the headers are written first, and data goes to its place as it is made, so no more
than one piece of a tensor is in memory. Matrices in our own formats are stored as bytes, U8 [rows, bytes of a row], and a
file's `__metadata__` names the format of each (`FORMATS` of kernels/weight_tensor.py has the bytes):

    "__metadata__": {"inglenook.layout": "1", "model.layers.0.mlp.up_proj.weight": "QINT4_G128", ...}

`safetensors.py` reads both; programs that do not know the formats see bytes and fail by the shape.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inglenook.engine.private_files import open_file
from inglenook.engine.weights.safetensors import GROUP_FORMATS, LAYOUT_KEY, LAYOUT_VERSION
from inglenook.engine.weights.safetensors_folder import INDEX_NAME, SINGLE_NAME
from inglenook.kernels.weight_tensor import FORMATS

MAX_SHARD_BYTES = 4 << 30
MAX_SHARD_TENSORS = 4_000

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class OutputTensor:
    """A tensor to be written: its logical shape, in one of the formats of `FORMATS`."""

    name: str
    format: str
    shape: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """The product of all axes but the last; 1 for a vector."""
        return int(np.prod(self.shape[:-1], dtype=np.int64))

    @property
    def size_bytes(self) -> int:
        """Bytes of the data."""
        return self.num_rows * FORMATS[self.format].row_bytes(self.shape[-1])


def write_folder(
    folder: Path, tensors: Sequence[OutputTensor], pieces: Callable[[OutputTensor], Iterable[Bytes]]
) -> None:
    """Write all tensors into `folder`, in their order.

    Args:
        folder: is there, and holds no safetensors yet.
        tensors: with names that differ.
        pieces: gives the bytes of one tensor, in order; may raise to stop.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    shards = list(_shards(tensors))
    names = [SINGLE_NAME]
    if len(shards) > 1:
        names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        _write_file(folder / name, shard, pieces)
    if len(shards) > 1:
        index = {
            "metadata": {"total_size": sum(t.size_bytes for t in tensors)},
            "weight_map": {t.name: name for name, shard in zip(names, shards, strict=True) for t in shard},
        }
        with open_file(folder / INDEX_NAME, "xb") as file:
            file.write(json.dumps(index, indent=1).encode())


def _shards(tensors: Sequence[OutputTensor]) -> Iterator[list[OutputTensor]]:
    shard: list[OutputTensor] = []
    size = 0
    for tensor in tensors:
        if shard and (size + tensor.size_bytes > MAX_SHARD_BYTES or len(shard) == MAX_SHARD_TENSORS):
            yield shard
            shard, size = [], 0
        shard.append(tensor)
        size += tensor.size_bytes
    yield shard


def _write_file(
    path: Path, tensors: Sequence[OutputTensor], pieces: Callable[[OutputTensor], Iterable[Bytes]]
) -> None:
    notes = {t.name: t.format for t in tensors if t.format in GROUP_FORMATS}
    header: dict[str, object] = {"__metadata__": {LAYOUT_KEY: LAYOUT_VERSION, **notes}} if notes else {}
    offset = 0
    for tensor in tensors:
        row_bytes = FORMATS[tensor.format].row_bytes(tensor.shape[-1])
        is_ours = tensor.name in notes
        header[tensor.name] = {
            "dtype": "U8" if is_ours else tensor.format,
            "shape": [tensor.num_rows, row_bytes] if is_ours else list(tensor.shape),
            "data_offsets": [offset, offset + tensor.size_bytes],
        }
        offset += tensor.size_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open_file(path, "xb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            start = file.tell()
            for piece in pieces(tensor):
                file.write(np.ascontiguousarray(piece).data)
            assert file.tell() - start == tensor.size_bytes, f"{tensor.name} is not complete"
        file.flush()
        os.fsync(file.fileno())
