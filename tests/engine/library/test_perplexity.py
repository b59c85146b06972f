"""Perplexity: the loss of every token as the formula has it, in windows, and the comparison of two models."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from tiny_checkpoints import Runner
from tiny_folders import write_tiny_folder

from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.errors import InvalidRequestError, NotEnoughMemoryError
from inglenook.engine.library.perplexity import compare, token_losses
from inglenook.engine.memory import MemoryState
from inglenook.engine.weights.loader import open_model

IDS = [(11 * i + i * i) % 390 for i in range(150)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny") / "model", max_position_embeddings=70)


def losses(folder: Path, ids: list[int], seen: list[tuple[int, int]] | None = None) -> torch.Tensor:
    with open_model(folder) as file:
        backend = choose_backend("reference", file.spec, file)
        note = (lambda *now: None) if seen is None else lambda *now: seen.append(now)
        return token_losses("m", backend, file.spec, file, ids, note)


def test_the_loss_of_each_token_is_that_of_its_window(folder: Path) -> None:
    seen: list[tuple[int, int]] = []

    got = losses(folder, IDS, seen)

    want = []
    for start in (0, 70, 140):  # a context of 70 tokens
        ids = IDS[start : start + 70]
        logits = Runner(folder).step(ids).double()
        want += [float(logits[i].logsumexp(0) - logits[i, ids[i + 1]]) for i in range(len(ids) - 1)]
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-4)
    assert seen[-1] == (150, 150)


def test_a_text_that_is_too_short_is_refused_with_the_numbers(folder: Path) -> None:
    with pytest.raises(InvalidRequestError, match="has 31 tokens; perplexity needs at least 32"):
        losses(folder, IDS[:31])


def test_a_model_that_does_not_fit_is_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inglenook.engine.library.perplexity.memory_state", lambda: MemoryState(10**6, 10**6))

    with pytest.raises(NotEnoughMemoryError):
        losses(folder, IDS)


def test_two_models_are_compared_token_by_token() -> None:
    before = torch.tensor([1.0, 2.0, 3.0, 2.0], dtype=torch.float64)
    step = torch.tensor([0.1, 0.2, 0.1, 0.2], dtype=torch.float64)

    change = compare(before, before + step)

    assert change.before == pytest.approx(math.exp(2))
    assert change.after == pytest.approx(math.exp(2.15))
    assert change.ratio == pytest.approx(math.exp(0.15))
    assert change.error == pytest.approx(math.exp(0.15) * 0.0577350269 / 2)
    assert change.num_tokens == 4
