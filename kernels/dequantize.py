"""Dequantisation of every weight format in plain PyTorch: the reference that kernels and back ends are held to.

All formats are read alike: the raw bytes are a list of blocks, and a small function turns uint8 [n, block_bytes]
into float32 [n, block_size]. The work goes block chunk by block chunk straight into the result, so a large matrix
dequantised to bfloat16 never exists in float32.

Byte layouts (little-endian; d, m, dmin are fp16; "nibbles" are bytes whose low halves come first, then the high ones):

    F32, F16, BF16   the element itself
    Q8_0    d, 32 int8 q                                  w = d * q
    Q4_0    d, 16 bytes of nibbles q                      w = d * (q - 8)
    Q4_1    d, m, 16 bytes of nibbles q                   w = d * q + m
    Q5_0    d, 32 bits h, 16 bytes of nibbles q           w = d * (q + 16 h - 16)
    Q5_1    d, m, 32 bits h, 16 bytes of nibbles q        w = d * q' + m             with q' = q + 16 h
    Q4_K    d, dmin, 12 bytes, 4 x 32 bytes of nibbles    w = (d * s_g) * q - (dmin * m_g)       8 groups g of 32
    Q5_K    d, dmin, 12 bytes, 32 bytes h, as Q4_K        the same with q + 16 (bit g of h[i])
    Q6_K    2 x 64 bytes of nibbles, 2 x 32 bytes of bit pairs h, 16 int8 s, d     w = (d * s_g) * (q + 16 h - 32)
                                                                                                 16 groups g of 16
    QINT4_G64, _G128        d, m, 32 bytes of nibbles for each 64 elements       w = d * q + m
    QINT8_G64, _G128        d, 64 or 128 int8 q                                  w = d * q
    QFLOAT8_G32, _64, _128  d, 32, 64 or 128 float8 q (e4m3: no infinity, 0x7f and 0xff are NaN)     w = d * q

The 12 bytes of Q4_K and Q5_K hold eight 6-bit scales s and minima m: bytes 0-3 have s_0..3 in their low six bits,
bytes 4-7 m_0..3; bytes 8-11 have the low halves of s_4..7 and, in their high halves, of m_4..7, whose two upper bits
are the spare top bits of bytes 0-3 and 4-7.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from inglenook.kernels.weight_tensor import WeightTensor

_CHUNK_ELEMENTS = 1 << 18


def dequantize(
    tensor: WeightTensor, dtype: torch.dtype = torch.float32, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the weights as `dtype`, by the formulas of the module's docstring, rounded once from float32.

    Args:
        tensor: a weight in any of the formats.
        dtype: dtype of the result; ignored when `out` is given.
        out: a contiguous CPU tensor of the weight's shape to write into, of any float dtype.

    Raises:
        ValueError: `out` has another shape or is not contiguous.
    """
    if out is None:
        out = torch.empty(tensor.shape, dtype=dtype)
    elif tuple(out.shape) != tensor.shape or not out.is_contiguous():
        raise ValueError(
            f"out must be contiguous and of shape {tensor.shape}, got {tuple(out.shape)}"
            f"{'' if out.is_contiguous() else ', not contiguous'}"
        )
    form = tensor.format
    read = _READERS[form.name]
    blocks = tensor.data.reshape(-1, form.block_bytes)
    target = out.view(-1, form.block_size)
    step = _CHUNK_ELEMENTS // form.block_size
    for start in range(0, len(blocks), step):
        # copied, because torch wants writable and aligned memory and the file is mapped read-only
        chunk = torch.from_numpy(blocks[start : start + step].copy())
        target[start : start + step] = read(chunk)
    return out


def _f32(b: torch.Tensor) -> torch.Tensor:
    return b.view(torch.float32)


def _f16(b: torch.Tensor) -> torch.Tensor:
    return b.view(torch.float16).float()


def _bf16(b: torch.Tensor) -> torch.Tensor:
    return b.view(torch.bfloat16).float()


def _qint8(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * b[:, 2:].view(torch.int8).float()


def _q4_0(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * (_nibbles(b[:, 2:]).float() - 8)


def _q4_1(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * _nibbles(b[:, 4:]).float() + _half(b, 2)


def _q5_0(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * ((_nibbles(b[:, 6:]) | _bits(b[:, 2:6]) << 4).float() - 16)


def _q5_1(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * (_nibbles(b[:, 8:]) | _bits(b[:, 4:8]) << 4).float() + _half(b, 2)


def _q4_k(b: torch.Tensor) -> torch.Tensor:
    scales, minima = _k_scales(b)
    q = _nibbles(b[:, 16:].view(-1, 4, 32)).view(-1, 8, 32)
    return (scales * q.float() - minima).view(-1, 256)


def _q5_k(b: torch.Tensor) -> torch.Tensor:
    scales, minima = _k_scales(b)
    high = (b[:, None, 16:48] >> _shifts(8, 1)) & 1
    q = _nibbles(b[:, 48:].view(-1, 4, 32)).view(-1, 8, 32) | high << 4
    return (scales * q.float() - minima).view(-1, 256)


def _q6_k(b: torch.Tensor) -> torch.Tensor:
    scales = _half(b, 208) * b[:, 192:208].view(torch.int8).float()
    low = _nibbles(b[:, :128].view(-1, 2, 64)).view(-1, 8, 32)
    high = ((b[:, 128:192].view(-1, 2, 1, 32) >> _shifts(4, 2)) & 3).view(-1, 8, 32)
    q = (low | high << 4).float() - 32
    return (scales[..., None] * q.view(-1, 16, 16)).view(-1, 256)


def _qint4(b: torch.Tensor) -> torch.Tensor:
    q = _nibbles(b[:, 4:].view(len(b), -1, 32)).view(len(b), -1)
    return _half(b, 0) * q.float() + _half(b, 2)


def _qfloat8(b: torch.Tensor) -> torch.Tensor:
    return _half(b, 0) * b[:, 2:].contiguous().view(torch.float8_e4m3fn).float()


def _half(b: torch.Tensor, at: int) -> torch.Tensor:
    """The fp16 numbers at byte `at` of each block: float32 [n, 1]."""
    return b[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(b: torch.Tensor) -> torch.Tensor:
    """All low halves of the last axis, then all high ones."""
    return torch.cat((b & 15, b >> 4), dim=-1)


def _bits(b: torch.Tensor) -> torch.Tensor:
    """The bits of the last axis, lowest first: uint8 [n, 4] to [n, 32]."""
    return ((b[:, :, None] >> torch.arange(8, dtype=torch.uint8)) & 1).view(len(b), -1)


def _shifts(count: int, width: int) -> torch.Tensor:
    """0, width, 2 width, ... as a column that broadcasts over the last axis."""
    return torch.arange(0, count * width, width, dtype=torch.uint8)[:, None]


def _k_scales(b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """d * s_g and dmin * m_g of Q4_K and Q5_K blocks, each float32 [n, 8, 1]."""
    first, second, mixed = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    s = torch.cat((first & 63, (mixed & 15) | ((first >> 2) & 48)), dim=-1)
    m = torch.cat((second & 63, (mixed >> 4) | ((second >> 2) & 48)), dim=-1)
    return (_half(b, 0) * s.float())[..., None], (_half(b, 2) * m.float())[..., None]


_READERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q8_0": _qint8,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "QINT4_G64": _qint4,
    "QINT4_G128": _qint4,
    "QINT8_G64": _qint8,
    "QINT8_G128": _qint8,
    "QFLOAT8_G32": _qfloat8,
    "QFLOAT8_G64": _qfloat8,
    "QFLOAT8_G128": _qfloat8,
}
