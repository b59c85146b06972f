"""Log-probabilities of chosen tokens under the model's own distribution: before penalties, temperature and filters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from inglenook.engine.request import TokenLogprob


def token_logprob(logits: npt.NDArray[np.float32], token_id: int, num_top: int) -> TokenLogprob:
    """Return the natural logarithm of a token's probability and of the `num_top` best tokens', best first.

    logits: float32 [V], the largest finite. Computed in float64; equal scores are listed by ascending id.
    """
    scores = logits.astype(np.float64)
    scores -= scores.max()
    scores -= np.log(np.exp(scores).sum())
    top: tuple[tuple[int, float], ...] = ()
    if num_top:
        count = min(num_top, len(scores))
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        candidates = np.flatnonzero(scores >= threshold)
        best = candidates[np.argsort(-scores[candidates], kind="stable")[:count]]
        top = tuple((int(i), float(scores[i])) for i in best)
    return TokenLogprob(token_id, float(scores[token_id]), top)
