"""Which experts a token goes to, and with what weights: the reference.

    p = softmax(logits);  the k largest p_e are taken, and divided by their sum if asked

Fedus et al., "Switch Transformers", 2021; Jiang et al., "Mixtral of Experts", 2024.
"""

from __future__ import annotations

import torch


def route_to_experts(logits: torch.Tensor, k: int, *, normalizes: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose experts.

    logits: float32 [T, E].  Returns their weights, float32 [T, k], largest first, and numbers, int64 [T, k].
    """
    weights, numbers = torch.topk(torch.softmax(logits.float(), dim=-1), k, dim=-1)
    if normalizes:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights, numbers
