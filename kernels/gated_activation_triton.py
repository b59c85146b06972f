"""Gated activations on a GPU, `silu_and_mul` and `gelu_and_mul`: element by element, in float32."""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

from typing import Literal

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, Compilation

GATES: dict[str, int] = {"silu": 0, "gelu": 1, "gelu_tanh": 2}
_BLOCK = 1024


@triton.jit
def _kernel(gate_up, out, columns, GATE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    at = gate_up + row * 2 * columns + column
    z = tl.load(at, mask=mask, other=0).to(tl.float32)
    up = tl.load(at + columns, mask=mask, other=0).to(tl.float32)
    if GATE == 0:
        z = z * tl.sigmoid(z)
    elif GATE == 1:
        z = 0.5 * z * (1 + tl.erf(z * 0.7071067811865476))
    else:
        # z / 2 * (1 + tanh(t)) is z * sigmoid(2 t)
        z = z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))
    tl.store(out + row * columns + column, (z * up).to(out.dtype.element_ty), mask=mask)


def gated_activation(
    gate_up: torch.Tensor, out: torch.Tensor, gate: Literal["silu", "gelu", "gelu_tanh"]
) -> None:
    """Apply the gate.

    gate_up: [T, 2N], the gate in the first N columns, contiguous.  out: [T, N], contiguous.
    """
    rows, columns = out.shape
    if gate_up.shape != (rows, 2 * columns) or not gate_up.is_contiguous() or not out.is_contiguous():
        raise ValueError(f"gate_up must be contiguous [{rows}, {2 * columns}], got {gate_up.shape}")
    if rows:
        _kernel[(rows, triton.cdiv(columns, _BLOCK))](gate_up, out, columns, GATE=GATES[gate], BLOCK=_BLOCK)


def compilations() -> list[Compilation]:
    """Every configuration that is shipped."""
    arguments: dict[str, str | None] = {"gate_up": BF16, "out": BF16, "columns": "i32"}
    return [
        Compilation(f"{name}_and_mul", _kernel, arguments, {"GATE": gate, "BLOCK": _BLOCK})
        for name, gate in GATES.items()
    ]
