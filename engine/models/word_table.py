"""`WordTable`: the rows of an encoder's table of words, looked up by token id.

A quantised file's table stays in its blocks and only the rows of a text are made numbers: the 250,000 rows of a
multilingual encoder would be 384 MB in float32, and are 60 MB in 4 bits.
"""

from __future__ import annotations

import torch
from torch.nn.functional import embedding

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import WeightTensor

_PLAIN = ("F32", "F16", "BF16")


class WordTable:
    """The table [V, H] of a file, copied out of it."""

    def __init__(self, tensor: WeightTensor) -> None:
        self._rows: torch.Tensor | None = None
        if tensor.format.name in _PLAIN:
            self._rows = dequantize(tensor, torch.float32)
        else:
            self._packed = WeightTensor(tensor.format, tensor.shape, tensor.data.copy())

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps in memory."""
        return self._packed.size_bytes if self._rows is None else self._rows.nbytes

    def lookup(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of token ids: int64 [B, L] to float32 [B, L, H]."""
        if self._rows is not None:
            return embedding(ids, self._rows)
        used, places = torch.unique(ids, return_inverse=True)
        return embedding(places, dequantize(self._packed.select_rows(used.numpy()), torch.float32))


def table_bytes(tensor: WeightTensor) -> int:
    """Bytes that the table of a file will keep."""
    return 4 * tensor.data.shape[0] * tensor.shape[-1] if tensor.format.name in _PLAIN else tensor.size_bytes
