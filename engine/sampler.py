"""Choosing the next token of one row of logits.

Order: arg-max when the temperature is below 1e-5; else maximum subtracted, temperature, top-k, top-p, min-p (each on
the probabilities at that temperature, over what the one before kept), and the arg-max of what is left plus Gumbel
noise keyed by (seed, choice, position, token id), which is an exact draw. Ties go to the lowest id everywhere.

All of it is NumPy on one thread: PyTorch's threads would take the cores from the step that comes next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError
from inglenook.engine.request import SamplingParams
from inglenook.kernels.gumbel import gumbel_argmax

GREEDY_BELOW = 1e-5
_FIRST_TRY = 512

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def sample(logits: npt.ArrayLike, params: SamplingParams, *, seed: int, choice: int, position: int) -> int:
    """Choose a token.

    logits: float32 [V], an array or a tensor on the CPU, not changed; -inf forbids a token.
    position: index that the chosen token will have in its sequence.

    Raises:
        ModelFileError: the logits hold NaN or +infinity, or forbid every token.
    """
    scores: npt.NDArray[np.float32] = np.asarray(logits)
    best = int(scores.argmax())  # NumPy takes the first of equals, and a NaN if there is one
    largest = float(scores[best])
    if not -np.inf < largest < np.inf:
        raise not_numbers()
    if params.temperature < GREEDY_BELOW:
        return best
    kept = _kept_tokens(scores, largest, params)
    if kept is not None:
        scores = scores[kept]
    index = gumbel_argmax(
        scores, params.temperature, seed=seed, choice=choice, position=position, token_ids=kept
    )
    return index if kept is None else int(kept[index])


def not_numbers() -> ModelFileError:
    """The error for logits that hold NaN or +infinity, or forbid every token."""
    return ModelFileError(
        "The model computed values that are not numbers. Its file is damaged or unsuitable; "
        "fetch it again or use another model."
    )


def _kept_tokens(scores: npt.NDArray[np.float32], largest: float, params: SamplingParams) -> Ids | None:
    """Ids that the filters keep, ascending; None for all."""
    size = len(scores)
    limit = min(params.top_k or size, size)
    if limit == size and params.top_p >= 1.0 and params.min_p == 0.0:
        return None
    scaled = scores.astype(np.float64)
    scaled -= largest
    scaled /= params.temperature
    order = _descending(scaled, limit if params.top_k else min(limit, _FIRST_TRY))
    if params.top_k:
        probabilities = np.exp(scaled[order])
        probabilities /= probabilities.sum()
    else:
        # The best few hundred tokens nearly always hold what top-p and min-p keep; a full sort is the exception.
        every = np.exp(scaled)
        every /= every.sum()
        if not _covers(every[order], params):
            order = _descending(scaled, limit)
        probabilities = every[order]
    count = len(order)
    if params.top_p < 1.0:
        # A token is kept while the mass before it is below top_p, so the one that crosses it stays.
        before = probabilities.cumsum() - probabilities
        count = max(1, int((before < params.top_p).sum()))
    if params.min_p > 0.0:
        count = min(count, max(1, int((probabilities >= params.min_p * probabilities[0]).sum())))
    return np.sort(order[:count])


def _covers(probabilities: Floats, params: SamplingParams) -> bool:
    """Whether the filters certainly keep no token beyond these best ones."""
    by_mass = params.top_p < 1.0 and float(probabilities.sum()) >= params.top_p
    by_ratio = params.min_p > 0.0 and float(probabilities[-1]) < params.min_p * float(probabilities[0])
    return by_mass or by_ratio


def _descending(scaled: Floats, limit: int) -> Ids:
    """The `limit` best ids, best first, equal scores by ascending id."""
    candidates = np.arange(len(scaled))
    if limit < len(scaled):
        threshold = np.partition(scaled, len(scaled) - limit)[len(scaled) - limit]
        candidates = np.flatnonzero(scaled >= threshold)
    return candidates[np.argsort(-scaled[candidates], kind="stable")[:limit]]
