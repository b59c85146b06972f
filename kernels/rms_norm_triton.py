"""RMS norm on a GPU, joined with the residual stream: one program a row, statistics in float32.

x = x + factor * norm(branch; post_weight)        norm(branch) is branch itself without a post_weight
y = norm(x; weight)                               y is x itself without a weight
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, F32, Compilation


@triton.jit
def _kernel(
    x, branch, post_weight, weight, out, columns, branch_stride, out_stride, eps, factor,
    HAS_BRANCH: tl.constexpr, HAS_POST: tl.constexpr, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(x + row * columns + column, mask=mask, other=0).to(tl.float32)
    if HAS_BRANCH:
        joined = tl.load(branch + row * branch_stride + column, mask=mask, other=0).to(tl.float32)
        if HAS_POST:
            scale = tl.rsqrt(tl.sum(joined * joined, 0) / columns + eps)
            joined = joined * scale * tl.load(post_weight + column, mask=mask, other=0)
        value += joined * factor
        tl.store(x + row * columns + column, value.to(x.dtype.element_ty), mask=mask)
    if HAS_WEIGHT:
        scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
        value = value * scale * tl.load(weight + column, mask=mask, other=0)
    tl.store(out + row * out_stride + column, value.to(out.dtype.element_ty), mask=mask)


def add_rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
    out: torch.Tensor,
    *,
    branch: torch.Tensor | None = None,
    post_weight: torch.Tensor | None = None,
    factor: float = 1.0,
) -> None:
    """Join a branch to the residual stream, in place, and write its norm.

    x: [T, N] float32, contiguous; changed only with a branch.  branch: [T, N] of a float dtype.
    weight, post_weight: float32 [N] or None.  out: [T, N] of a float dtype; its rows may be slices of wider ones, and
    it may be `branch`.
    """
    rows, columns = x.shape
    if not x.is_contiguous() or out.shape != x.shape or (branch is not None and branch.shape != x.shape):
        raise ValueError(f"x, branch and out must be one shape and x contiguous, got {x.shape}, {out.shape}")
    if rows:
        _kernel[(rows,)](
            x, branch, post_weight, weight, out, columns,
            columns if branch is None else branch.stride(0), out.stride(0), eps, factor,
            HAS_BRANCH=branch is not None, HAS_POST=post_weight is not None, HAS_WEIGHT=weight is not None,
            BLOCK=triton.next_power_of_2(columns), num_warps=_warps(columns),
        )  # fmt: skip


def rms_norm_rows(x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Normalise the rows of x [T, N], in place; they may be slices of wider rows."""
    if x.stride(1) != 1:
        raise ValueError("the last axis of x must be contiguous")
    if x.shape[0]:
        # x as a branch that joins nothing would read it twice; as the stream it must be contiguous: so by strides.
        _rows_kernel[(x.shape[0],)](
            x, weight, x.shape[1], x.stride(0), eps,
            BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=_warps(x.shape[1]),
        )  # fmt: skip


@triton.jit
def _rows_kernel(x, weight, columns, stride, eps, BLOCK: tl.constexpr):
    at = x + tl.program_id(0).to(tl.int64) * stride
    column = tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(at + column, mask=mask, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    value = value * scale * tl.load(weight + column, mask=mask, other=0)
    tl.store(at + column, value.to(x.dtype.element_ty), mask=mask)


def _warps(columns: int) -> int:
    return 4 if columns <= 2048 else 8 if columns <= 8192 else 16


def compilations() -> list[Compilation]:
    """Every configuration that is shipped, at widths from a small model's to the largest."""
    found = []
    sizes = dict.fromkeys(("columns", "branch_stride", "out_stride"), "i32")
    numbers = dict.fromkeys(("eps", "factor"), "fp32")
    for columns in (4096, 16384):
        for has_branch, has_post, has_weight in [
            (False, False, True),
            (True, False, True),
            (True, True, True),
            (True, True, False),
        ]:
            found.append(
                Compilation(
                    f"rms_norm {columns}{', residual' * has_branch}{', post' * has_post}",
                    _kernel,
                    {
                        "x": F32,
                        "branch": BF16 if has_branch else None,
                        "post_weight": F32 if has_post else None,
                        "weight": F32 if has_weight else None,
                        "out": BF16,
                        **sizes,
                        **numbers,
                    },
                    {
                        "HAS_BRANCH": has_branch,
                        "HAS_POST": has_post,
                        "HAS_WEIGHT": has_weight,
                        "BLOCK": columns,
                    },
                    num_warps=_warps(columns),
                )
            )
    rows: dict[str, str | None] = {"x": BF16, "weight": F32, "columns": "i32", "stride": "i32", "eps": "fp32"}
    found.append(Compilation("rms_norm of rows in place", _rows_kernel, rows, {"BLOCK": 4096}, num_warps=8))
    return found
