"""Numbers that are infinite or none in a tensor as it lies in its file, found without dequantising it.

In block formats of whole numbers only the scales and minima can be such; they are half floats at fixed places of each block. So a whole
file is looked through at about the speed of reading it, where a run shows only what its tokens happen to touch, and a
back end that quantises anew may turn such a number into an ordinary one.
"""

from __future__ import annotations

import numpy as np

from inglenook.kernels.weight_tensor import WeightTensor

# format -> where its blocks have half floats (see the table of formats)
_SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2),
    "Q6_K": (208,), "QINT4_G64": (0, 2), "QINT4_G128": (0, 2), "QINT8_G64": (0,), "QINT8_G128": (0,),
    "QFLOAT8_G32": (0,), "QFLOAT8_G64": (0,), "QFLOAT8_G128": (0,),
}  # fmt: skip
# element format -> type of its bits, and those of the exponent, which are all set in an infinity and in a NaN
_ELEMENTS = {"F32": ("<u4", 0x7F800000), "F16": ("<u2", 0x7C00), "BF16": ("<u2", 0x7F80)}
_CHUNK_BYTES = 32 << 20


def can_look_through(tensor: WeightTensor) -> bool:
    """Whether the tensor's format is one that is known here."""
    return tensor.format.name in _ELEMENTS or tensor.format.name in _SCALES


def has_broken_numbers(tensor: WeightTensor) -> bool:
    """Whether any element of a tensor is infinite or no number; the format must be a known one."""
    data = tensor.data
    step = max(1, _CHUNK_BYTES // max(1, data.shape[1]))
    return any(_has_broken(tensor, data[start : start + step]) for start in range(0, data.shape[0], step))


def _has_broken(tensor: WeightTensor, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bool:
    name = tensor.format.name
    if name in _ELEMENTS:
        kind, exponent = _ELEMENTS[name]
        bits = rows.view(kind)
        return bool(((bits & exponent) == exponent).any())
    blocks = rows.reshape(-1, tensor.format.block_bytes)
    for start in _SCALES[name]:
        bits = np.ascontiguousarray(blocks[:, start : start + 2]).view("<u2")
        if ((bits & 0x7C00) == 0x7C00).any():
            return True
    # of a float8 (e4m3), only all ones are no number
    return name.startswith("QFLOAT8") and bool(((blocks[:, 2:] & 0x7F) == 0x7F).any())
