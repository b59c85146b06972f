"""How well a model predicts a text: the loss of every token, and what changed between two models.

Perplexity is the exponential of the mean loss: 10 means that the model was on average as unsure as between ten equally
likely tokens. It is measured in windows without a beginning before them, and depends on the text: two models may be
compared on the same one, with the same tokenizer, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import torch

from inglenook.engine.backend import Backend, Progress, WeightSource
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.memory import check_fit, estimate_need, kv_bytes, memory_state
from inglenook.engine.model_doctor.sequence import Sequence
from inglenook.engine.models.spec import ModelSpec

WINDOW_TOKENS = 1024
_MIN_TOKENS = 32
_STEP_TOKENS = 64


@dataclass(frozen=True, slots=True)
class PerplexityChange:
    """Two models on one text. `error` is one standard error of `ratio`, from the differences token by token."""

    before: float
    after: float
    ratio: float
    error: float
    num_tokens: int


def token_losses(
    name: str,
    backend: Backend,
    spec: ModelSpec,
    source: WeightSource,
    token_ids: SequenceOf[int],
    progress: Progress,
) -> torch.Tensor:
    """Load a model, run it over a text, and close it.

    Args:
        name: of the model, for errors.
        backend: runs the model.
        spec: of the model.
        source: its weights.
        token_ids: the text's, at least 32.
        progress: called with tokens done and all; cancels by raising.

    Returns:
        The negative log-likelihood of every token but the first of each window: float64 [tokens].

    Raises:
        InvalidRequestError: the text is too short.
        NotEnoughMemoryError: the model does not fit as this back end loads it.
    """
    if len(token_ids) < _MIN_TOKENS:
        raise InvalidRequestError(
            f"The text has {len(token_ids)} tokens; perplexity needs at least {_MIN_TOKENS}. Give a longer one."
        )
    window = min(WINDOW_TOKENS, spec.context_length)
    groups = backend.kv_groups(spec)
    need = estimate_need(
        backend.estimate_weight_bytes(spec, source.size_bytes), kv_bytes(groups, window), spec.vocab_size
    )
    check_fit(name, need, memory_state().free_bytes)
    model = backend.load(spec, source, lambda _done, _total: None)
    losses = []
    try:
        for start in range(0, len(token_ids), window):
            ids = list(token_ids[start : start + window])
            sequence = Sequence(model, spec, len(groups), len(ids))
            for first in range(0, len(ids), _STEP_TOKENS):
                logits = sequence.step(ids[first : first + _STEP_TOKENS], wants_all=True)
                wanted = torch.tensor(ids[first + 1 : first + 1 + _STEP_TOKENS])
                found = torch.log_softmax(logits[: len(wanted)].double(), dim=-1)
                losses.append(-found.gather(1, wanted[:, None]).flatten())
                progress(min(start + first + _STEP_TOKENS, len(token_ids)), len(token_ids))
    finally:
        model.close()
    return torch.cat(losses)


def compare(before: torch.Tensor, after: torch.Tensor) -> PerplexityChange:
    """Compare the losses of two models on the same tokens."""
    difference = after - before
    ratio = math.exp(float(difference.mean()))
    error = ratio * float(difference.std()) / math.sqrt(len(difference))
    return PerplexityChange(
        math.exp(float(before.mean())), math.exp(float(after.mean())), ratio, error, len(difference)
    )
