"""Products with packed weights on a GPU: y = x w^T + bias, w dequantised on its way from memory to the multiplier.

Three kernels, all float32 sums in an order that does not depend on the number of rows around a row:

- `_four_bit_rows_kernel`, 1 to 4 rows of 16-bit floats: no tensor cores; each program holds a few outputs, walks all
  columns, adds element by element and reduces once at its end. A card reads codes faster than it converts them one by
  one, so they are taken as floats where they lie: some five instructions a weight (of one row, with what is around).
- `_few_rows_kernel`, the same for other formats and for float32.
- `_tiled_kernel`: tensor cores, the weights as the left operand so that they go from registers into the product.
  With few rows the columns are split over programs, whose sums are added in order by `_sum_splits_kernel`.

Wider steps do better by unpacking a matrix once and leaving the product to cuBLAS: `WIDE_ROWS`.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, F32, Compilation
from inglenook.kernels.packed_weight import PACKED_FORMATS, PackedFormat, PackedWeight
from inglenook.kernels.packed_weight_triton import format_constants, load_numbers, load_pair, plane_types

FEW_ROWS = 4
WIDE_ROWS = 256
_MAX_SPLITS = 8
# rows -> (outputs, units) of a program
_FEW_TILES = {1: (8, 8), 2: (8, 8), 4: (4, 8)}
# rows -> outputs of a program, where codes have four bits and activations two bytes
_FOUR_BIT_OUTPUTS = {1: 4, 2: 4, 4: 2}
# rows of a tile -> (outputs, warps, stages); a turn takes one unit of columns
_TILES = {16: (64, 4, 4), 64: (64, 4, 3), 128: (128, 8, 3)}


@triton.jit(do_not_specialize=["rows"])  # it changes from step to step, and must compile nothing then
def _few_rows_kernel(
    x, bias, out, low, high, scales, mins, supers, super_mins, rows, outputs, columns, units, out_stride,
    HAS_BIAS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, UNITS: tl.constexpr, BITS: tl.constexpr,
    GROUP: tl.constexpr, ZERO: tl.constexpr, HAS_MINS: tl.constexpr, HAS_SUPERS: tl.constexpr,
    IS_FLOAT: tl.constexpr,
):  # fmt: skip
    output = tl.program_id(0) * N + tl.arange(0, N)
    m = tl.arange(0, M)[:, None, None, None]
    row = output.to(tl.int64)[:, None, None]
    j = tl.arange(0, 32)[None, None, :]
    total = tl.zeros((M, N, UNITS, 32), dtype=tl.float32)
    for start in tl.range(0, units, UNITS, num_stages=3):
        unit = start + tl.arange(0, UNITS)[None, :, None]
        mask = (row < outputs) & (unit < units)
        if BITS == 16:
            column = unit * 64 + j
            at = low + row * columns + column
            a = tl.load(at, mask=mask & (column < columns), other=0).to(tl.float32)
            b = tl.load(at + 32, mask=mask & (column + 32 < columns), other=0).to(tl.float32)
        else:
            a, b = load_pair(
                low, high, scales, mins, supers, super_mins, row, unit, j, mask, units,
                BITS, GROUP, ZERO, HAS_MINS, HAS_SUPERS, IS_FLOAT,
            )  # fmt: skip
        wide = (tl.arange(0, UNITS)[None, None, :, None] + start) * 64 + tl.arange(0, 32)[None, None, None, :]
        x_at = x + m * columns + wide
        x_a = tl.load(x_at, mask=(m < rows) & (wide < columns), other=0).to(tl.float32)
        x_b = tl.load(x_at + 32, mask=(m < rows) & (wide + 32 < columns), other=0).to(tl.float32)
        total += a[None] * x_a + b[None] * x_b
    y = tl.sum(tl.sum(total, 3), 2)
    valid = output < outputs
    if HAS_BIAS:
        y += tl.load(bias + output, mask=valid, other=0)[None, :]
    m_out = tl.arange(0, M)[:, None]
    tl.store(
        out + m_out * out_stride + output[None, :],
        y.to(out.dtype.element_ty),
        mask=(m_out < rows) & valid[None, :],
    )


@triton.jit
def _number(words, SECOND: tl.constexpr, kind: tl.constexpr):
    """The first or second of two 16-bit floats in each 32-bit word, as float32."""
    if kind == tl.bfloat16:
        bits = words & -65536 if SECOND else words << 16
        return bits.to(tl.float32, bitcast=True)
    return (words >> (16 * SECOND)).to(tl.int16).to(kind, bitcast=True).to(tl.float32)


@triton.jit
def _spread(numbers, N: tl.constexpr, UNITS: tl.constexpr):
    """Numbers [N, UNITS] for each word: [1, N, 8 UNITS]."""
    return tl.reshape(tl.broadcast_to(numbers[:, :, None], (N, UNITS, 8)), (1, N, UNITS * 8))


@triton.jit(do_not_specialize=["rows"])
def _four_bit_rows_kernel(
    x, bias, out, low, high, scales, mins, supers, super_mins, rows, outputs, columns, units, out_stride,
    HAS_BIAS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, UNITS: tl.constexpr,
    GROUP: tl.constexpr, ZERO: tl.constexpr, HAS_MINS: tl.constexpr, HAS_SUPERS: tl.constexpr,
):  # fmt: skip
    output = tl.program_id(0) * N + tl.arange(0, N)
    row = output.to(tl.int64)[:, None]
    m = tl.arange(0, M)[:, None, None]
    # a word is four bytes of a unit: columns 4 w .. 4 w + 3 in their low halves, and the same 32 further in the high ones
    word = tl.arange(0, UNITS * 8)
    own_unit = tl.arange(0, UNITS)
    words = low.to(tl.pointer_type(tl.int32))
    x_words = x.to(tl.pointer_type(tl.int64))
    kind: tl.constexpr = x.dtype.element_ty
    total = tl.zeros((M, N, UNITS * 8), dtype=tl.float32)
    for start in range(0, units, UNITS):
        mask = (row < outputs) & (start * 8 + word < units * 8)[None, :]
        # pairs of words, so that a thread has the codes of the very columns of x that it loads
        at = tl.max_contiguous(row * (units * 8) + (start * 8 + word)[None, :], (1, 2))
        codes = tl.load(words + at, mask=mask, other=0)
        wide = (start * 16 + word // 8 * 16 + word % 8)[None, None, :]
        x_at = x_words + m * (columns // 4) + wide
        x_a = tl.load(x_at, mask=(m < rows) & (wide < columns // 4), other=0)
        x_b = tl.load(x_at + 8, mask=(m < rows) & (wide < columns // 4 - 8), other=0)
        sum_a = tl.zeros((M, N, UNITS * 8), dtype=tl.float32)
        sum_b = tl.zeros((M, N, UNITS * 8), dtype=tl.float32)
        all_a = tl.zeros((M, 1, UNITS * 8), dtype=tl.float32)
        all_b = tl.zeros((M, 1, UNITS * 8), dtype=tl.float32)
        for i in tl.static_range(4):
            a = _number((x_a >> (32 * (i // 2))).to(tl.int32), i % 2, kind)
            b = _number((x_b >> (32 * (i // 2))).to(tl.int32), i % 2, kind)
            all_a += a
            all_b += b
            # Four bits alone are a float32 too, 2^-149 of what they say: no shift and no conversion. x makes up for 2^64
            # of it and for the place of the bits, the scale for the rest; products stay far from either end.
            part = codes if i < 2 else codes >> 16
            code_a = (part & (15 * 256 ** (i % 2))).to(tl.float32, bitcast=True)
            code_b = (part & (240 * 256 ** (i % 2))).to(tl.float32, bitcast=True)
            sum_a += code_a[None] * (a * (2.0**64 / 256 ** (i % 2)))
            sum_b += code_b[None] * (b * (2.0**60 / 256 ** (i % 2)))
        unit = (start + own_unit)[None, :]
        first = unit * 2 if GROUP == 32 else unit // (GROUP // 64)
        second = first + 1 if GROUP == 32 else first
        own, above = row * (units * 64 // GROUP), row * ((units + 3) // 4)
        there = (row < outputs) & (unit < units)
        scale_a = load_numbers(scales, supers, own, above, first, unit, there, HAS_SUPERS)
        scale_b = load_numbers(scales, supers, own, above, second, unit, there, HAS_SUPERS)
        if HAS_MINS:
            min_a = load_numbers(mins, super_mins, own, above, first, unit, there, HAS_SUPERS)
            min_b = load_numbers(mins, super_mins, own, above, second, unit, there, HAS_SUPERS)
        else:
            min_a, min_b = scale_a * -ZERO, scale_b * -ZERO
        total += sum_a * _spread(scale_a * 2.0**85, N, UNITS)
        total += all_a * _spread(min_a, N, UNITS)
        total += sum_b * _spread(scale_b * 2.0**85, N, UNITS)
        total += all_b * _spread(min_b, N, UNITS)
    y = tl.sum(total, 2)
    valid = output < outputs
    if HAS_BIAS:
        y += tl.load(bias + output, mask=valid, other=0)[None, :]
    m_out = tl.arange(0, M)[:, None]
    at_out = out + m_out * out_stride + output[None, :]
    tl.store(at_out, y.to(out.dtype.element_ty), mask=(m_out < rows) & valid[None, :])


@triton.jit(do_not_specialize=["rows", "split_units"])
def _tiled_kernel(
    x, bias, out, low, high, scales, mins, supers, super_mins, rows, outputs, columns, units, out_stride,
    split_units,
    HAS_BIAS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, IS_SPLIT: tl.constexpr, BITS: tl.constexpr,
    GROUP: tl.constexpr, ZERO: tl.constexpr, HAS_MINS: tl.constexpr, HAS_SUPERS: tl.constexpr,
    IS_FLOAT: tl.constexpr,
):  # fmt: skip
    output = tl.program_id(0) * N + tl.arange(0, N)
    m = tl.program_id(1) * M + tl.arange(0, M)
    row = output.to(tl.int64)[:, None]
    x_row = x + m.to(tl.int64)[None, :] * columns
    j = tl.arange(0, 32)
    is_output, is_row = row < outputs, (m < rows)[None, :]
    total = tl.zeros((N, M), dtype=tl.float32)
    first = tl.program_id(2) * split_units
    last = tl.minimum(first + split_units, units)
    for unit in tl.range(first, last):
        column = unit * 64 + j
        if BITS == 16:
            at = low + row * columns + column[None, :]
            a = tl.load(at, mask=is_output & (column < columns)[None, :], other=0)
            b = tl.load(at + 32, mask=is_output & (column + 32 < columns)[None, :], other=0)
        else:
            a, b = load_pair(
                low, high, scales, mins, supers, super_mins, row, unit, j[None, :], is_output, units,
                BITS, GROUP, ZERO, HAS_MINS, HAS_SUPERS, IS_FLOAT,
            )  # fmt: skip
        x_a = tl.load(x_row + column[:, None], mask=is_row & (column < columns)[:, None], other=0)
        x_b = tl.load(x_row + (column + 32)[:, None], mask=is_row & (column + 32 < columns)[:, None], other=0)
        total = tl.dot(a.to(x_a.dtype), x_a, total, input_precision="ieee")
        total = tl.dot(b.to(x_b.dtype), x_b, total, input_precision="ieee")
    valid = (row < outputs) & (m < rows)[None, :]
    if IS_SPLIT:
        out += tl.program_id(2).to(tl.int64) * rows * outputs
    elif HAS_BIAS:
        total += tl.load(bias + output, mask=output < outputs, other=0)[:, None]
    at_out = out + m.to(tl.int64)[None, :] * out_stride + output[:, None]
    tl.store(at_out, total.to(out.dtype.element_ty), mask=valid)


@triton.jit(do_not_specialize=["rows", "splits"])
def _sum_splits_kernel(
    parts, bias, out, rows, outputs, splits, out_stride, HAS_BIAS: tl.constexpr, N: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * N + tl.arange(0, N)
    mask = n < outputs
    total = tl.zeros((N,), dtype=tl.float32)
    for split in range(splits):
        total += tl.load(parts + (split * rows.to(tl.int64) + row) * outputs + n, mask=mask, other=0)
    if HAS_BIAS:
        total += tl.load(bias + n, mask=mask, other=0)
    tl.store(out + row * out_stride + n, total.to(out.dtype.element_ty), mask=mask)


def split_count(rows: int, outputs: int, columns: int, num_sms: int) -> int:
    """Into how many parts the columns are cut: enough programs for two waves, at least 8 units each."""
    tile = _tile_rows(rows)
    programs = -(-outputs // _TILES[tile][0]) * -(-rows // tile)
    return max(1, min(_MAX_SPLITS, 2 * num_sms // programs, -(-columns // 64) // 8))


def quantized_linear(
    x: torch.Tensor,
    weight: PackedWeight,
    bias: torch.Tensor | None,
    out: torch.Tensor,
    *,
    splits: int = 1,
    workspace: torch.Tensor | None = None,
    tile_rows: int | None = None,
) -> None:
    """Multiply.

    x: [T, K] float32, float16 or bfloat16, contiguous.  bias: float32 [N] or None.
    out: [T, N] of a float dtype; its rows may be a slice of wider ones.
    splits: from `split_count`, with a float32 `workspace` of at least splits * T * N numbers when above 1.
    tile_rows: 16, 64 or 128 forces the tiled kernel with that tile and one split: a row's result then is the same,
    bit for bit, at every T.
    """
    rows, columns, outputs = x.shape[0], weight.columns, weight.rows
    if x.shape[1] != columns or not x.is_contiguous() or out.shape != (rows, outputs) or out.stride(1) != 1:
        raise ValueError(
            f"x must be contiguous [T, {columns}] and out [T, {outputs}], got {x.shape}, {out.shape}"
        )
    if not rows:
        return
    units = triton.cdiv(columns, 64)
    constants = {**format_constants(weight.format), "HAS_BIAS": bias is not None}
    if rows <= FEW_ROWS and tile_rows is None:
        padded = triton.next_power_of_2(rows)
        if weight.format.bits == 4 and x.element_size() == 2:
            n, per_turn, warps = _four_bit_tile(padded, units)
            del constants["BITS"], constants["IS_FLOAT"]
            _four_bit_rows_kernel[(triton.cdiv(outputs, n),)](
                x, bias, out, *weight.planes, rows, outputs, columns, units, out.stride(0),
                M=padded, N=n, UNITS=per_turn, num_warps=warps, **constants,
            )  # fmt: skip
            return
        n, per_turn = _FEW_TILES[padded]
        _few_rows_kernel[(triton.cdiv(outputs, n),)](
            x, bias, out, *weight.planes, rows, outputs, columns, units, out.stride(0),
            M=padded, N=n, UNITS=per_turn, num_warps=4, **constants,
        )  # fmt: skip
        return
    tile = tile_rows or _tile_rows(rows)
    n, warps, stages = _TILES[tile]
    splits = 1 if tile_rows else splits
    split_units = triton.cdiv(units, splits)
    target = out
    if splits > 1:
        if workspace is None or workspace.numel() < splits * rows * outputs:
            raise ValueError(f"{splits} splits need a workspace of {splits * rows * outputs} numbers")
        target = workspace
    _tiled_kernel[(triton.cdiv(outputs, n), triton.cdiv(rows, tile), splits)](
        x, bias, target, *weight.planes, rows, outputs, columns, units,
        outputs if splits > 1 else out.stride(0), split_units,
        M=tile, N=n, IS_SPLIT=splits > 1, num_warps=warps, num_stages=stages, **constants,
    )  # fmt: skip
    if splits > 1:
        _sum_splits_kernel[(rows, triton.cdiv(outputs, 1024))](
            target, bias, out, rows, outputs, splits, out.stride(0), HAS_BIAS=bias is not None, N=1024
        )


def _four_bit_tile(rows: int, units: int) -> tuple[int, int, int]:
    """Outputs and units of a program, and warps: a warp has 16 units, and each thread the same columns of all outputs."""
    warps = 2 if units >= 32 and rows < 4 else 1  # with four rows, two warps spill
    return _FOUR_BIT_OUTPUTS[rows], 16 * warps, warps


def _tile_rows(rows: int) -> int:
    return 16 if rows <= 16 else 64 if rows <= 64 else 128


def _arguments(form: PackedFormat, out: str, has_bias: bool, activations: str) -> dict[str, str | None]:
    return {
        "x": activations,
        "bias": F32 if has_bias else None,
        "out": out,
        **plane_types(form),
        **dict.fromkeys(("rows", "outputs", "columns", "units", "out_stride"), "i32"),
    }


def compilations() -> list[Compilation]:
    """Every configuration that is shipped: all formats, with bias where that costs more."""
    found = []
    for form in PACKED_FORMATS.values():
        constants = {**format_constants(form), "HAS_BIAS": True}
        for m in _FOUR_BIT_OUTPUTS if form.bits == 4 else ():
            for units in (16, 32) if m < 4 else (16,):
                n, per_turn, warps = _four_bit_tile(m, units)
                found.append(
                    Compilation(
                        f"linear {form.name}, {m} rows of {units} units",
                        _four_bit_rows_kernel,
                        _arguments(form, BF16, True, BF16),
                        {
                            **{n: c for n, c in constants.items() if n not in ("BITS", "IS_FLOAT")},
                            "M": m, "N": n, "UNITS": per_turn,
                        },
                        num_warps=warps,
                    )
                )  # fmt: skip
        for m, (n, units) in _FEW_TILES.items() if form.bits != 4 else ():
            found.append(
                Compilation(
                    f"linear {form.name}, {m} rows",
                    _few_rows_kernel,
                    _arguments(form, BF16, True, BF16),
                    {**constants, "M": m, "N": n, "UNITS": units},
                )
            )
        for m, (n, warps, stages) in _TILES.items():
            for is_split in (False, True):
                found.append(
                    Compilation(
                        f"linear {form.name}, tiles of {m} rows{', split' if is_split else ''}",
                        _tiled_kernel,
                        {**_arguments(form, F32 if is_split else BF16, True, BF16), "split_units": "i32"},
                        {**constants, "M": m, "N": n, "IS_SPLIT": is_split},
                        num_warps=warps,
                        num_stages=stages,
                    )
                )
    sums = dict.fromkeys(("rows", "outputs", "splits", "out_stride"), "i32")
    found.append(
        Compilation(
            "sum of splits",
            _sum_splits_kernel,
            {"parts": F32, "bias": F32, "out": BF16, **sums},
            {"HAS_BIAS": True, "N": 1024},
        )
    )
    return found
