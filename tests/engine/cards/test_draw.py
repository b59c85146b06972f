"""Tokens drawn where the logits lie: which rows, and the same tokens as on the host."""

import numpy as np
import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.engine.cards.draw import Draw
from inglenook.engine.cards.plain_drawer import PlainDrawer
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ModelFileError
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.request import LoadOptions, Request, SamplingParams

T = 60
OPTIONS = {
    "greedy": {"temperature": 0.0},
    "greedy with filters": {"temperature": 0.0, "top_p": 0.5},
    "temperature": {"temperature": 0.9},
    "top p": {"temperature": 0.9, "top_p": 0.8},
    "log-probabilities": {"temperature": 0.9, "logprobs": 2},
    "penalty": {"temperature": 0.9, "presence_penalty": 1.0},
    "three choices": {"temperature": 0.9, "n": 3},
}
DRAWN = {"greedy", "greedy with filters", "temperature", "three choices"}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory):
    path = write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with EngineClient.in_process() as client:
        client.load(path, options=LoadOptions(backend="cuda:reference", num_threads=1)).result(T)
        yield client


def ask(client: EngineClient, **options: object):
    sampling = SamplingParams(**{"max_tokens": 10, "seed": 5, "ignore_eos": True} | options)
    return client.submit(Request(prompt_token_ids=(40, 41, 42), sampling=sampling))


def tokens(reply) -> list[tuple[int, ...]]:
    events = [e for e in reply.events(T) if hasattr(e, "token_ids")]
    choices = sorted({e.choice for e in events})
    return [tuple(t for e in events if e.choice == c for t in e.token_ids) for c in choices]


@pytest.mark.parametrize("name", OPTIONS)
def test_tokens_are_those_of_the_host_and_only_what_needs_its_row_takes_it(
    loaded, monkeypatch, name: str
) -> None:
    counts, draw = [], PlainDrawer.draw

    def counted(self, logits, draws):
        counts.append(len(draws))
        return draw(self, logits, draws)

    monkeypatch.setattr(PlainDrawer, "draw", counted)
    on_device = tokens(ask(loaded, **OPTIONS[name]))
    drawn = sum(counts)
    monkeypatch.setattr(ModelRunner, "drawer", None)

    on_host = tokens(ask(loaded, **OPTIONS[name]))

    assert on_device == on_host
    assert [len(choice) for choice in on_host] == [10] * OPTIONS[name].get("n", 1)
    # the first tokens of three choices come from one row
    assert drawn == {"three choices": 27}.get(name, 10 if name in DRAWN else 0)


def test_a_step_may_mix_rows_that_are_drawn_with_rows_that_are_wanted(loaded, monkeypatch) -> None:
    alone = {name: tokens(ask(loaded, **options)) for name, options in OPTIONS.items()}

    replies = {name: ask(loaded, **options) for name, options in OPTIONS.items()}

    assert {name: tokens(reply) for name, reply in replies.items()} == alone


def test_logits_that_are_no_numbers_fail_the_request_with_the_samplers_words(loaded, monkeypatch) -> None:
    monkeypatch.setattr(PlainDrawer, "draw", lambda self, logits, draws: [-1] * len(draws))

    with pytest.raises(ModelFileError, match="values that are not numbers"):
        ask(loaded, temperature=0.0).result(T)


def test_the_plain_drawer_says_minus_one_for_them() -> None:
    import torch

    logits = torch.from_numpy(np.array([[0.0, np.nan], [0.0, 1.0]], dtype=np.float32))
    draw = Draw(SamplingParams(temperature=0.0), 0, 0, 0)

    assert PlainDrawer().draw(logits, [draw, draw]) == [-1, 1]
