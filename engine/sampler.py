"""Choosing the next token of one row of logits.

Order: arg-max when the temperature is below 1e-5; else maximum subtracted, temperature, top-k, top-p, min-p (each on
the probabilities at that temperature, over what the one before kept), and the arg-max of what is left plus Gumbel
noise keyed by (seed, choice, position, token id), which is an exact draw. Ties go to the lowest id everywhere.
"""

from __future__ import annotations

import torch

from inglenook.engine.errors import ModelFileError
from inglenook.engine.request import SamplingParams
from inglenook.kernels.gumbel import gumbel_noise

GREEDY_BELOW = 1e-5
_FIRST_TRY = 512


def sample(logits: torch.Tensor, params: SamplingParams, *, seed: int, choice: int, position: int) -> int:
    """Choose a token.

    logits: float32 [V] on the CPU, not changed; -inf forbids a token.
    position: index that the chosen token will have in its sequence.

    Raises:
        ModelFileError: the logits hold NaN or +infinity, or forbid every token.
    """
    scores = logits.numpy()
    best = int(scores.argmax())  # NumPy takes the first of equals, and a NaN if there is one
    if not -torch.inf < float(scores[best]) < torch.inf:
        raise ModelFileError(
            "The model computed values that are not numbers. Its file is damaged or unsuitable; "
            "fetch it again or use another model."
        )
    if params.temperature < GREEDY_BELOW:
        return best
    scaled = (logits.double() - float(scores[best])) / params.temperature
    token_ids = _kept_tokens(scaled, params)
    noise = gumbel_noise(seed, choice, position, token_ids)
    return int(token_ids[int((scaled[token_ids] + noise).numpy().argmax())])


def _kept_tokens(scaled: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """Ids that the filters keep, ascending; `scaled` is float64 [V] with maximum 0."""
    size = scaled.shape[0]
    limit = min(params.top_k or size, size)
    if limit == size and params.top_p >= 1.0 and params.min_p == 0.0:
        return torch.arange(size)
    probabilities = torch.exp(scaled)
    order = _descending(scaled, limit if params.top_k else min(limit, _FIRST_TRY))
    if params.top_k:
        probabilities = probabilities[order] / probabilities[order].sum()
    else:
        # The best few hundred tokens nearly always hold what top-p and min-p keep; a full sort is the exception.
        total = probabilities.sum()
        if not _covers(probabilities[order] / total, params):
            order = _descending(scaled, limit)
        probabilities = probabilities[order] / total
    count = order.shape[0]
    if params.top_p < 1.0:
        # A token is kept while the mass before it is below top_p, so the one that crosses it stays.
        before = probabilities.cumsum(0) - probabilities
        count = max(1, int((before < params.top_p).sum()))
    if params.min_p > 0.0:
        count = min(count, max(1, int((probabilities >= params.min_p * probabilities[0]).sum())))
    return order[:count].sort().values


def _covers(probabilities: torch.Tensor, params: SamplingParams) -> bool:
    """Whether the filters certainly keep no token beyond these best ones."""
    by_mass = params.top_p < 1.0 and float(probabilities.sum()) >= params.top_p
    by_ratio = params.min_p > 0.0 and float(probabilities[-1]) < params.min_p * float(probabilities[0])
    return by_mass or by_ratio


def _descending(scaled: torch.Tensor, limit: int) -> torch.Tensor:
    """The `limit` best ids, best first, equal scores by ascending id."""
    if limit == scaled.shape[0]:
        return torch.sort(scaled, descending=True, stable=True).indices
    threshold = torch.topk(scaled, limit, sorted=True).values[-1]
    candidates = torch.nonzero(scaled >= threshold).flatten()
    return candidates[torch.sort(scaled[candidates], descending=True, stable=True).indices[:limit]]
