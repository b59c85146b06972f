"""Rotary position embedding of the first `2 * P` elements of each head, the reference.

Pairs are (i, i + P). With c and s the cosine and sine of position times frequency i:

    y[i]     = x[i] * c - x[i + P] * s
    y[i + P] = x[i + P] * c + x[i] * s

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
"""

from __future__ import annotations

import torch


def rotary_embedding(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate queries or keys.

    x: [T, H, D] of any float dtype.  cos, sin: [T, P] float32 of each token's position, 2P <= D.
    Returns a new tensor of x's shape and dtype; arithmetic in float32; elements from 2P on are copied.
    """
    half = cos.shape[-1]
    cos, sin = cos[:, None, :], sin[:, None, :]
    first, second = x[..., :half].float(), x[..., half : 2 * half].float()
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)
    return torch.cat((rotated, x[..., 2 * half :]), dim=-1)
