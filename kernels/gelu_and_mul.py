"""Gated activation of the feed-forward network with the Gaussian error unit, the reference.

    y = gelu(gate) * up,   gelu(z) = z * Phi(z), or by tanh: z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))

Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016; Shazeer, "GLU Variants Improve Transformer", 2020.
"""

from __future__ import annotations

import torch


def gelu_and_mul(gate_up: torch.Tensor, *, by_tanh: bool) -> torch.Tensor:
    """Apply the gate.

    gate_up: [T, 2N], the gate in the first N columns. Returns a new [T, N] of the same dtype, computed in float32.
    """
    gate, up = gate_up.float().chunk(2, dim=-1)
    gelu = torch.nn.functional.gelu(gate, approximate="tanh" if by_tanh else "none")
    return (gelu * up).to(gate_up.dtype)
