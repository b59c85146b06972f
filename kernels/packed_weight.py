"""Matrices as the GPU kernels read them: every format at its own width, in planes that load in wide, aligned words.

Rows are outputs. A *unit* is 64 columns: column j and column 32 + j (j < 32) of a unit share byte j, the first in its
low half. So one load gives two runs of 32 columns, each of one scale, and nothing has to be interleaved.

    low      uint8 [N, 32 U]     4-, 5-, 6-bit codes: their low four bits, as above
             int8 [N, 64 U]      8-bit codes; uint8 where they are float8 (e4m3)
             float [N, K]        unquantised
    high     uint8 [N, 32 ceil(U / 4)]   5-bit: bit g of byte j is the fifth bit of column 32 g + j of 256 columns
             uint8 [N, 32 ceil(U / 2)]   6-bit: bits 2g and 2g + 1 of byte j are those of column 32 g + j of 128
    scales   [N, 64 U / group]   float16, or 8-bit integers that `supers` multiply
    mins     likewise, absent from symmetric formats
    supers, super_mins   float16 [N, ceil(U / 4)], one for 256 columns; absent from flat formats

    w = S (q - zero) + M,    S = scales (supers),  M = mins (super_mins),  all in float32

Columns are padded to whole units with zero scales. Against the files, Q4_K and Q5_K grow by an eighth of a bit a
weight (their 6-bit scales take whole bytes); all others keep their size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import WeightTensor

UNIT = 64
SUPER = 256


@dataclass(frozen=True, slots=True)
class PackedFormat:
    """How codes become weights: `bits` of a code, `group` columns a scale, the code that means 0.

    is_float: codes are float8 (e4m3).
    """

    name: str
    bits: int
    group: int
    zero: int
    has_mins: bool
    has_supers: bool
    is_float: bool = False


PACKED_FORMATS: dict[str, PackedFormat] = {
    f.name: f
    for f in (
        PackedFormat("Q4_0", 4, 32, 8, has_mins=False, has_supers=False),
        PackedFormat("Q4_1", 4, 32, 0, has_mins=True, has_supers=False),
        PackedFormat("Q5_0", 5, 32, 16, has_mins=False, has_supers=False),
        PackedFormat("Q5_1", 5, 32, 0, has_mins=True, has_supers=False),
        PackedFormat("Q8_0", 8, 32, 0, has_mins=False, has_supers=False),
        PackedFormat("Q4_K", 4, 32, 0, has_mins=True, has_supers=True),
        PackedFormat("Q5_K", 5, 32, 0, has_mins=True, has_supers=True),
        PackedFormat("Q6_K", 6, 16, 32, has_mins=False, has_supers=True),
        *(PackedFormat(f"QINT4_G{g}", 4, g, 0, has_mins=True, has_supers=False) for g in (64, 128)),
        *(PackedFormat(f"QINT8_G{g}", 8, g, 0, has_mins=False, has_supers=False) for g in (64, 128)),
        *(
            PackedFormat(f"QFLOAT8_G{g}", 8, g, 0, has_mins=False, has_supers=False, is_float=True)
            for g in (32, 64, 128)
        ),
        PackedFormat("PLAIN", 16, 0, 0, has_mins=False, has_supers=False),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeight:
    """A matrix [rows, columns] in the planes of the module's docstring, all on one device and contiguous."""

    format: PackedFormat
    rows: int
    columns: int
    low: torch.Tensor
    high: torch.Tensor | None = None
    scales: torch.Tensor | None = None
    mins: torch.Tensor | None = None
    supers: torch.Tensor | None = None
    super_mins: torch.Tensor | None = None

    @property
    def planes(self) -> tuple[torch.Tensor | None, ...]:
        """The tensors in the order in which kernels take them."""
        return self.low, self.high, self.scales, self.mins, self.supers, self.super_mins

    @property
    def size_bytes(self) -> int:
        """Bytes of all planes."""
        return sum(p.nbytes for p in self.planes if p is not None)

    @property
    def device(self) -> torch.device:
        """Where the planes are."""
        return self.low.device

    def select_rows(self, rows: slice) -> PackedWeight:
        """Return some of the rows as a view."""
        parts = [None if p is None else p[rows] for p in self.planes]
        assert parts[0] is not None
        return PackedWeight(self.format, parts[0].shape[0], self.columns, parts[0], *parts[1:])


def pack_weight(tensor: WeightTensor, device: torch.device, dtype: torch.dtype) -> PackedWeight:
    """Pack a matrix; the work is done on `device`, to which the file's own bytes are copied.

    F32, F16 and BF16 become `dtype`, plain.
    """
    rows, columns = tensor.shape
    form = PACKED_FORMATS.get(tensor.format.name)
    if form is None:
        plain = dequantize(tensor, dtype).to(device)
        return PackedWeight(PACKED_FORMATS["PLAIN"], rows, columns, plain)
    raw = torch.from_numpy(tensor.data.copy()).to(device)
    blocks = raw.view(rows, -1, tensor.format.block_bytes)
    codes, scales = _CODES[form.name](blocks)
    units = -(-columns // UNIT)
    codes = _padded(codes.reshape(rows, -1), units * UNIT)
    columns_of = units * UNIT // form.group
    numbers = [_padded(s.reshape(rows, -1), columns_of) for s in scales[: 1 + form.has_mins]]
    supers = [s.reshape(rows, -1).contiguous() for s in scales[1 + form.has_mins :]]
    low = codes
    if form.bits < 8:
        halves = codes.view(rows, units, 2, 32) & 15
        low = (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(rows, -1).contiguous()
    return PackedWeight(
        form,
        rows,
        columns,
        low,
        _high_plane(codes, form.bits),
        numbers[0],
        numbers[1] if form.has_mins else None,
        supers[0] if form.has_supers else None,
        supers[1] if form.has_supers and form.has_mins else None,
    )


def stack_rows(weights: list[PackedWeight]) -> tuple[PackedWeight, ...]:
    """Join matrices of equal width, one below the other, wherever neighbours have one format."""
    runs: list[list[PackedWeight]] = []
    for weight in weights:
        if runs and runs[-1][0].format is weight.format:
            runs[-1].append(weight)
        else:
            runs.append([weight])
    return tuple(_stacked(run) for run in runs)


def unpack_weight(weight: PackedWeight) -> torch.Tensor:
    """Return the matrix as float32 [rows, columns]: the reference of every kernel that reads planes."""
    form, rows = weight.format, weight.rows
    if form.bits == 16:
        return weight.low.float()
    assert weight.scales is not None
    if form.bits == 8:
        codes = (weight.low.view(torch.float8_e4m3fn) if form.is_float else weight.low).float()
    else:
        low = weight.low.view(rows, -1, 32)
        q = torch.stack((low & 15, low >> 4), dim=2)
        if weight.high is not None:
            width = form.bits - 4
            high = weight.high.view(rows, -1, 1, 32) >> _column_shifts(width, weight.device)
            high = (high & ((1 << width) - 1)).view(rows, -1, 2, 32)[:, : q.shape[1]]
            q = q | high << 4
        codes = q.reshape(rows, -1).float() - form.zero
    scale = _spread(weight.scales, weight.supers, form)
    w = codes * scale
    if weight.mins is not None:
        w = w + _spread(weight.mins, weight.super_mins, form)
    return w[:, : weight.columns].contiguous()


def _spread(numbers: torch.Tensor, supers: torch.Tensor | None, form: PackedFormat) -> torch.Tensor:
    """Scales or minima of every column, float32 [N, 64 U]."""
    values = numbers.float()
    if supers is not None:
        values = values * supers.float().repeat_interleave(SUPER // form.group, 1)[:, : values.shape[1]]
    return values.repeat_interleave(form.group, 1)


def _stacked(run: list[PackedWeight]) -> PackedWeight:
    if len(run) == 1:
        return run[0]
    joined: list[torch.Tensor | None] = []
    for planes in zip(*(w.planes for w in run), strict=True):
        there = [p for p in planes if p is not None]
        joined.append(torch.cat(there) if there else None)
    low = joined[0]
    assert low is not None
    return PackedWeight(run[0].format, low.shape[0], run[0].columns, low, *joined[1:])


def _padded(x: torch.Tensor, width: int) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, width - x.shape[1])).contiguous()


def _column_shifts(width: int, device: torch.device) -> torch.Tensor:
    return torch.arange(0, 8, width, dtype=torch.uint8, device=device)[:, None]


def _high_plane(codes: torch.Tensor, bits: int) -> torch.Tensor | None:
    if bits not in (5, 6):
        return None
    width = bits - 4
    span = 32 * (8 // width)
    rows = codes.shape[0]
    high = _padded(codes >> 4, -(-codes.shape[1] // span) * span).view(rows, -1, 8 // width, 32)
    return (high << _column_shifts(width, codes.device)).sum(2, dtype=torch.uint8).view(rows, -1).contiguous()


_Codes = tuple[torch.Tensor, tuple[torch.Tensor, ...]]


def _half(b: torch.Tensor, at: int) -> torch.Tensor:
    return b[..., at : at + 2].contiguous().view(torch.float16)


def _nibbles(b: torch.Tensor) -> torch.Tensor:
    return torch.cat((b & 15, b >> 4), dim=-1)


def _cut(b: torch.Tensor, *shape: int) -> torch.Tensor:
    return b.reshape(*b.shape[:-1], *shape)


def _bits(b: torch.Tensor) -> torch.Tensor:
    shifts = torch.arange(8, dtype=torch.uint8, device=b.device)
    return ((b[..., None] >> shifts) & 1).flatten(-2)


def _q4_0(b: torch.Tensor) -> _Codes:
    return _nibbles(b[..., 2:]), (_half(b, 0),)


def _q4_1(b: torch.Tensor) -> _Codes:
    return _nibbles(b[..., 4:]), (_half(b, 0), _half(b, 2))


def _q5_0(b: torch.Tensor) -> _Codes:
    return _nibbles(b[..., 6:]) | _bits(b[..., 2:6]) << 4, (_half(b, 0),)


def _q5_1(b: torch.Tensor) -> _Codes:
    return _nibbles(b[..., 8:]) | _bits(b[..., 4:8]) << 4, (_half(b, 0), _half(b, 2))


def _qint8(b: torch.Tensor) -> _Codes:
    return b[..., 2:].contiguous().view(torch.int8), (_half(b, 0),)


def _qint4(b: torch.Tensor) -> _Codes:
    return _nibbles(_cut(b[..., 4:], -1, 32)), (_half(b, 0), _half(b, 2))


def _qfloat8(b: torch.Tensor) -> _Codes:
    return b[..., 2:].contiguous(), (_half(b, 0),)


def _k_codes(b: torch.Tensor, at: int) -> torch.Tensor:
    return _nibbles(_cut(b[..., at:], 4, 32))  # [N, n, 4, 64]


def _k_scales(b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first, second, mixed = b[..., 4:8], b[..., 8:12], b[..., 12:16]
    s = torch.cat((first & 63, (mixed & 15) | ((first >> 2) & 48)), dim=-1)
    m = torch.cat((second & 63, (mixed >> 4) | ((second >> 2) & 48)), dim=-1)
    return s, m, _half(b, 0), -_half(b, 2)


def _q4_k(b: torch.Tensor) -> _Codes:
    return _k_codes(b, 16), _k_scales(b)


def _q5_k(b: torch.Tensor) -> _Codes:
    high = (b[..., None, 16:48] >> _column_shifts(1, b.device)) & 1  # [N, n, 8, 32]
    return _cut(_k_codes(b, 48), 2, 32).flatten(-3, -2) | high << 4, _k_scales(b)


def _q6_k(b: torch.Tensor) -> _Codes:
    low = _nibbles(_cut(b[..., :128], 2, 64))  # [N, n, 2, 128]
    pairs = _cut(b[..., 128:192], 2, 1, 32)
    high = ((pairs >> _column_shifts(2, b.device)) & 3).flatten(-2)
    scales = b[..., 192:208].contiguous().view(torch.int8)
    return low | high << 4, (scales, _half(b, 208))


_CODES = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _qint8,
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
