"""Gated activation of the feed-forward network, the reference.

    y = silu(gate) * up,   silu(z) = z / (1 + exp(-z))

Shazeer, "GLU Variants Improve Transformer", 2020.
"""

from __future__ import annotations

import torch


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """Apply the gate.

    gate_up: [T, 2N], the gate in the first N columns. Returns a new [T, N] of the same dtype, computed in float32.
    """
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up).to(gate_up.dtype)
