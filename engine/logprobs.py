"""Log-probabilities of chosen tokens under the model's own distribution: before penalties, temperature and filters."""

from __future__ import annotations

import torch

from inglenook.engine.request import TokenLogprob


def token_logprob(logits: torch.Tensor, token_id: int, num_top: int) -> TokenLogprob:
    """Return the natural logarithm of a token's probability and of the `num_top` best tokens', best first.

    logits: float32 [V]. Computed in float64; equal scores are listed by ascending id.
    """
    scores = logits.double()
    scores = scores - torch.logsumexp(scores, dim=0)
    top: tuple[tuple[int, float], ...] = ()
    if num_top:
        threshold = torch.topk(scores, min(num_top, scores.shape[0])).values[-1]
        candidates = torch.nonzero(scores >= threshold).flatten()
        best = candidates[torch.sort(scores[candidates], descending=True, stable=True).indices[:num_top]]
        top = tuple((int(i), float(scores[i])) for i in best)
    return TokenLogprob(token_id, float(scores[token_id]), top)
