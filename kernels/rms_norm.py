"""Root-mean-square normalisation, the reference.

    y = x / sqrt(mean(x^2) + eps) * weight

Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
"""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalise rows.

    x: [T, N] float32.  weight: [N] float32.  Returns a new [T, N] float32; statistics in float32.
    """
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
