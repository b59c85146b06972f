"""Products with packed weights on a GPU: y = x w^T + bias, w dequantised on its way from memory to the multiplier.

Two kernels, both float32 sums in an order that does not depend on the number of rows around a row:

- `_few_rows_kernel`, 1 to 4 rows: no tensor cores; each program holds a few outputs, walks all columns, adds
  element by element and reduces once at its end. It is bound by reading the weights.
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
from inglenook.kernels.packed_weight_triton import format_constants, load_pair, plane_types

FEW_ROWS = 4
WIDE_ROWS = 256
_MAX_SPLITS = 8
# rows -> (outputs, units) of a program
_FEW_TILES = {1: (8, 8), 2: (8, 8), 4: (4, 8)}
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
        for m, (n, units) in _FEW_TILES.items():
            found.append(
                Compilation(
                    f"linear {form.name}, {m} rows",
                    _few_rows_kernel,
                    _arguments(form, BF16, True, BF16),
                    {**constants, "M": m, "N": n, "UNITS": units},
                )
            )
        for m, (n, warps, stages) in _TILES.items():
            for is_split in (False, True) if m < 128 else (False,):
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
