"""Soft cap of scores, the reference.

    y = cap * tanh(x / cap)

Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024.
"""

from __future__ import annotations

import torch


def softcap(x: torch.Tensor, cap: float) -> torch.Tensor:
    """Keep scores between -cap and cap. Returns a new tensor of x's shape and dtype."""
    return torch.tanh(x / cap) * cap
