"""Random weights of every format, the way trained ones look: codes at random, scales that make them small."""

from __future__ import annotations

import numpy as np

from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

# format -> (byte, typical size) of each fp16 number in a block; minima undo the mean of unsigned codes
_HALVES: dict[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 1 / 5),),
    "Q4_1": ((0, 1 / 5), (2, -7.5 / 5)),
    "Q5_0": ((0, 1 / 9),),
    "Q5_1": ((0, 1 / 9), (2, -15.5 / 9)),
    "Q8_0": ((0, 1 / 74),),
    "Q4_K": ((0, 1 / 160), (2, 7.5 / 160)),
    "Q5_K": ((0, 1 / 300), (2, 15.5 / 300)),
    "Q6_K": ((208, 1 / 1200),),
    "QINT4_G64": ((0, 1 / 5), (2, -7.5 / 5)),
    "QINT4_G128": ((0, 1 / 5), (2, -7.5 / 5)),
    "QINT8_G64": ((0, 1 / 74),),
    "QINT8_G128": ((0, 1 / 74),),
    "QFLOAT8_G32": ((0, 1 / 100),),
    "QFLOAT8_G64": ((0, 1 / 100),),
    "QFLOAT8_G128": ((0, 1 / 100),),
}


def random_weight(name: str, *, rows: int, columns: int, seed: int = 0, std: float = 1.0) -> WeightTensor:
    """A matrix [rows, columns] of about standard deviation `std`; the same for the same seed."""
    form = FORMATS[name]
    rng = np.random.default_rng(seed)
    if name not in _HALVES:
        values = (rng.standard_normal((rows, columns), dtype=np.float32) * std).astype(np.float32)
        if name == "BF16":
            data = np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
        else:
            data = values.astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
        return WeightTensor(form, (rows, columns), data)
    shape = (rows, columns // form.block_size, form.block_bytes)
    blocks = np.frombuffer(rng.bytes(int(np.prod(shape))), dtype=np.uint8).reshape(shape).copy()
    if name.startswith("QFLOAT8"):
        blocks[(blocks & 0x7F) == 0x7F] = 0
    scale = rng.uniform(0.6, 1.4, shape[:2]).astype(np.float32) * std
    for at, size in _HALVES[name]:
        blocks[..., at : at + 2] = (scale * size).astype(np.float16)[..., None].view(np.uint8)
    return WeightTensor(form, (rows, columns), blocks.reshape(rows, -1))
