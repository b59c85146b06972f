"""Reading packed weights inside Triton kernels, and two kernels made of nothing else: embedding rows, and a matrix.

The layout is that of `packed_weight.py`. `load_pair` gives the weights of columns j and 32 + j of units as two
tensors of one shape, so that a product is two products with one pass over the bytes.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, F16, F32, I8, I64, U8, Compilation
from inglenook.kernels.packed_weight import PACKED_FORMATS, PackedFormat, PackedWeight

_UNITS = 4


@triton.jit
def load_numbers(numbers, supers, row_numbers, row_supers, index, unit, mask, HAS_SUPERS: tl.constexpr):
    """Scales or minima: float32, 0 where masked."""
    value = tl.load(numbers + row_numbers + index, mask=mask, other=0).to(tl.float32)
    if HAS_SUPERS:
        value *= tl.load(supers + row_supers + unit // 4, mask=mask, other=0).to(tl.float32)
    return value


@triton.jit
def _codes(at, mask, IS_FLOAT: tl.constexpr):
    """Eight-bit codes as float32."""
    code = tl.load(at, mask=mask, other=0)
    if IS_FLOAT:
        # As the upper byte of fp16 the exponent is a bit too far left and its bias 8 too small. No architecture before
        # sm_89 converts this type itself.
        code = code.to(tl.int32)
        half = ((code & 0x80) << 8) | ((code & 0x7F) << 7)
        value = half.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * 256
        value = tl.where((code & 0x7F) == 0x7F, float("nan"), value)
    else:
        value = code.to(tl.float32)
    return value


@triton.jit
def load_pair(
    low,
    high,
    scales,
    mins,
    supers,
    super_mins,
    row,
    unit,
    j,
    mask,
    units,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    ZERO: tl.constexpr,
    HAS_MINS: tl.constexpr,
    HAS_SUPERS: tl.constexpr,
    IS_FLOAT: tl.constexpr,
):
    """Weights of columns j and 32 + j of units, float32, 0 where masked.

    row (int64), unit and mask have the shape of the codes with 1 for the last axis, so that a group's numbers are
    loaded once; j runs along that axis from 0 to 31. `units` is the number of units of a row.
    """
    if BITS == 8:
        at = low + row * (units * 64) + unit * 64 + j
        a = _codes(at, mask, IS_FLOAT)
        b = _codes(at + 32, mask, IS_FLOAT)
    else:
        byte = tl.load(low + row * (units * 32) + unit * 32 + j, mask=mask, other=0).to(tl.int32)
        first, second = byte & 15, byte >> 4
        if BITS == 5:
            spread = (units + 3) // 4
            bits = tl.load(high + row * (spread * 32) + (unit // 4) * 32 + j, mask=mask, other=0).to(tl.int32)
            bits = bits >> (2 * (unit % 4))
            first, second = first | ((bits & 1) << 4), second | ((bits & 2) << 3)
        if BITS == 6:
            spread = (units + 1) // 2
            bits = tl.load(high + row * (spread * 32) + (unit // 2) * 32 + j, mask=mask, other=0).to(tl.int32)
            bits = bits >> (4 * (unit % 2))
            first, second = first | ((bits & 3) << 4), second | ((bits & 12) << 2)
        a, b = (first - ZERO).to(tl.float32), (second - ZERO).to(tl.float32)
    row_numbers = row * (units * 64 // GROUP)
    row_supers = row * ((units + 3) // 4)
    if GROUP == 16:
        index = unit * 4 + j // 16
        second_index = index + 2
    elif GROUP == 32:
        index = unit * 2
        second_index = index + 1
    else:
        index = unit // (GROUP // 64)
        second_index = index
    a *= load_numbers(scales, supers, row_numbers, row_supers, index, unit, mask, HAS_SUPERS)
    b *= load_numbers(scales, supers, row_numbers, row_supers, second_index, unit, mask, HAS_SUPERS)
    if HAS_MINS:
        a += load_numbers(mins, super_mins, row_numbers, row_supers, index, unit, mask, HAS_SUPERS)
        b += load_numbers(mins, super_mins, row_numbers, row_supers, second_index, unit, mask, HAS_SUPERS)
    return a, b


@triton.jit
def _embedding_kernel(
    ids, out, low, high, scales, mins, supers, super_mins, columns, units, factor,
    IS_LOOKUP: tl.constexpr, UNITS: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr,
    ZERO: tl.constexpr, HAS_MINS: tl.constexpr, HAS_SUPERS: tl.constexpr, IS_FLOAT: tl.constexpr,
):  # fmt: skip
    target = tl.program_id(0).to(tl.int64)
    row = target
    if IS_LOOKUP:
        row = tl.load(ids + target)
    if BITS == 16:
        column = tl.program_id(1) * (UNITS * 64) + tl.arange(0, UNITS * 64)
        mask = column < columns
        value = tl.load(low + row * columns + column, mask=mask, other=0).to(tl.float32) * factor
        tl.store(out + target * columns + column, value.to(out.dtype.element_ty), mask=mask)
    else:
        unit = (tl.program_id(1) * UNITS + tl.arange(0, UNITS))[:, None]
        j = tl.arange(0, 32)[None, :]
        mask = unit < units
        a, b = load_pair(
            low, high, scales, mins, supers, super_mins, row, unit, j, mask, units,
            BITS, GROUP, ZERO, HAS_MINS, HAS_SUPERS, IS_FLOAT,
        )  # fmt: skip
        column = unit * 64 + j
        at = out + target * columns + column
        tl.store(at, (a * factor).to(out.dtype.element_ty), mask=column < columns)
        tl.store(at + 32, (b * factor).to(out.dtype.element_ty), mask=column + 32 < columns)


def embedding(table: PackedWeight, token_ids: torch.Tensor, out: torch.Tensor, factor: float = 1.0) -> None:
    """Write rows of a packed table times `factor`.

    token_ids: int64 [T], each below the table's rows.  out: [T, columns] of a float dtype, contiguous.
    """
    if out.shape != (token_ids.shape[0], table.columns) or not out.is_contiguous():
        raise ValueError(f"out must be contiguous [{token_ids.shape[0]}, {table.columns}], got {out.shape}")
    _launch(table, token_ids, out, factor)


def unpack(weight: PackedWeight, out: torch.Tensor) -> None:
    """Write the whole matrix; out: [rows, columns] of a float dtype, contiguous."""
    if out.shape != (weight.rows, weight.columns) or not out.is_contiguous():
        raise ValueError(f"out must be contiguous [{weight.rows}, {weight.columns}], got {out.shape}")
    _launch(weight, None, out, 1.0)


def _launch(weight: PackedWeight, ids: torch.Tensor | None, out: torch.Tensor, factor: float) -> None:
    units = -(-weight.columns // 64)
    if out.shape[0]:
        _embedding_kernel[(out.shape[0], triton.cdiv(units, _UNITS))](
            ids, out, *weight.planes, weight.columns, units, factor,
            IS_LOOKUP=ids is not None, UNITS=_UNITS, **format_constants(weight.format), num_warps=1,
        )  # fmt: skip


def format_constants(form: PackedFormat) -> dict[str, int]:
    """The compile-time arguments that describe a format."""
    return {
        "BITS": form.bits,
        "GROUP": form.group or 32,
        "ZERO": form.zero,
        "HAS_MINS": form.has_mins,
        "HAS_SUPERS": form.has_supers,
        "IS_FLOAT": form.is_float,
    }


def plane_types(form: PackedFormat, plain: str = BF16) -> dict[str, str | None]:
    """Types of the six plane pointers, None for absent ones."""
    small = I8 if form.zero == 32 else U8
    number = small if form.has_supers else F16
    return {
        "low": plain if form.bits == 16 else I8 if form.bits == 8 and not form.is_float else U8,
        "high": U8 if form.bits in (5, 6) else None,
        "scales": None if form.bits == 16 else number,
        "mins": number if form.has_mins else None,
        "supers": F16 if form.has_supers else None,
        "super_mins": F16 if form.has_supers and form.has_mins else None,
    }


def compilations() -> list[Compilation]:
    """Every configuration that is shipped."""
    found = []
    for form in PACKED_FORMATS.values():
        for is_lookup in (True, False):
            found.append(
                Compilation(
                    f"{'embedding' if is_lookup else 'unpack'} {form.name}",
                    _embedding_kernel,
                    {
                        "ids": I64 if is_lookup else None,
                        "out": F32 if is_lookup else BF16,
                        **plane_types(form),
                        "columns": "i32",
                        "units": "i32",
                        "factor": "fp32",
                    },
                    {"IS_LOOKUP": is_lookup, "UNITS": _UNITS, **format_constants(form)},
                    num_warps=1,
                )
            )
    return found
