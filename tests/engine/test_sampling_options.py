"""Penalties, biases, log-probabilities, several choices and speculation, through the engine and on their own."""

import math

import numpy as np
import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.logprobs import token_logprob
from inglenook.engine.penalties import TokenCounts, penalised
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.sampler import sample
from inglenook.engine.step_cost import StepCost

T = 30.0


def one_thread(**options):
    return LoadOptions(backend="reference", num_threads=1, **options)


@pytest.fixture
def client(tiny_client):
    return tiny_client


def ask(**params):
    params = {"temperature": 0, "max_tokens": 20, "ignore_eos": True} | params
    return Request(messages=({"role": "user", "content": "hello there"},), sampling=SamplingParams(**params))


def counts(prompt=(), reply=()):
    result = TokenCounts(list(prompt))
    for token in reply:
        result.add(token)
    return result


def test_penalties_follow_their_formulas():
    logits = np.array([2.0, -2.0, 1.0, 4.0], np.float32)
    params = SamplingParams(
        repetition_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.25, logit_bias={3: -1.5}
    )

    got = penalised(logits, params, counts(prompt=[1], reply=[0, 0]))

    assert got.tolist() == [2.0 / 2 - 0.5 - 2 * 0.25, -4.0, 1.0, 2.5]
    assert logits.tolist() == [2.0, -2.0, 1.0, 4.0]


@pytest.mark.parametrize("penalty", [1e-38, 1e-45])
def test_a_penalty_near_zero_leaves_numbers(penalty):
    logits = np.array([30.0, -2.0, 1.0], np.float32)

    got = penalised(logits, SamplingParams(repetition_penalty=penalty), counts(prompt=[0, 1]))

    assert np.isfinite(got).all()
    assert sample(got, SamplingParams(temperature=1), seed=1, choice=0, position=1) == 0


def test_without_penalties_the_logits_are_the_same_object():
    logits = np.zeros(4, np.float32)

    assert penalised(logits, SamplingParams(), counts([1], [2])) is logits


def test_a_bias_forces_and_forbids_tokens(client):
    best = client.submit(ask(max_tokens=1)).result(T).token_ids[0]

    assert client.submit(ask(max_tokens=3, logit_bias={77: 100.0})).result(T).token_ids == (77, 77, 77)
    assert client.submit(ask(max_tokens=1, logit_bias={best: -100.0})).result(T).token_ids[0] != best


def test_a_bias_for_an_unknown_token_is_refused(client):
    with pytest.raises(InvalidRequestError, match=r"logit_bias.*0 to 259.*260"):
        client.submit(ask(logit_bias={260: 1.0})).result(T)


def test_logprobs_are_of_the_models_own_distribution():
    logits = np.array([0.0, 1.0, 1.0, -math.inf], np.float32)

    got = token_logprob(logits, 0, 2)

    total = math.log(1 + 2 * math.e)
    assert got.logprob == pytest.approx(-total)
    assert got.top == ((1, pytest.approx(1 - total)), (2, pytest.approx(1 - total)))


def test_each_token_of_a_reply_has_its_logprob_and_the_greedy_one_is_the_best(client):
    events = list(client.submit(ask(max_tokens=8, logprobs=3)).events(T))

    ids = [t for e in events[:-1] for t in e.token_ids]
    logprobs = [p for e in events[:-1] for p in e.logprobs]
    assert [p.token_id for p in logprobs] == ids
    assert all(p.top[0] == (p.token_id, p.logprob) and len(p.top) == 3 for p in logprobs)


def test_several_choices_differ_and_each_equals_itself_alone(client):
    many = client.submit(ask(temperature=1, seed=7, n=4)).result(T)
    fewer = client.submit(ask(temperature=1, seed=7, n=2)).result(T)

    assert len(set(many.texts)) == 4
    assert many.texts[:2] == fewer.texts
    assert many.finished.finish_reasons == ("length",) * 4
    assert many.finished.completion_tokens == 80
    assert client.stats().values["chat.kv_blocks_live"] == 0


def test_several_choices_of_no_tokens_end_at_once(client):
    reply = client.submit(ask(n=3, max_tokens=0)).result(T)

    assert (reply.texts, reply.finished.finish_reasons) == (("",) * 3, ("length",) * 3)


def test_several_choices_can_be_cancelled_together(client):
    handle = client.submit(ask(temperature=1, n=3, max_tokens=300))
    next(handle.events(T))

    handle.cancel()

    assert handle.result(T).finished.finish_reasons[0] == "cancelled"
    assert client.stats().values["chat.kv_blocks_live"] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("temperature", math.nan),
        ("temperature", "1"),
        ("top_k", -1),
        ("top_k", 2**31),
        ("top_k", True),
        ("top_p", 0),
        ("top_p", 1.1),
        ("min_p", 1.0),
        ("min_p", -0.1),
        ("seed", -1),
        ("seed", 2**63),
        ("max_tokens", -1),
        ("max_tokens", 1.5),
        ("repetition_penalty", 0),
        ("presence_penalty", 2.1),
        ("frequency_penalty", math.inf),
        ("logprobs", 21),
        ("logprobs", -1),
        ("n", 0),
        ("n", 65),
        ("stop", "word"),
        ("stop", None),
        ("stop", (1,)),
        ("stop_token_ids", 5),
        ("stop_token_ids", (1.0,)),
        ("stop_token_ids", (1,) * 1025),
        ("ignore_eos", "yes"),
        ("logit_bias", [3]),
        ("logit_bias", {"3": 1.0}),
        ("logit_bias", {3: 101.0}),
        ("logit_bias", dict.fromkeys(range(1025), 1.0)),
    ],
)
def test_a_parameter_out_of_range_is_named_with_value_and_range(name, value):
    with pytest.raises(InvalidRequestError, match=rf"^{name} must be .*got"):
        SamplingParams(**{name: value})


@pytest.mark.parametrize("stop", [("",), ("x" * 1025,), ("a",) * 65])
def test_stop_strings_are_bounded(stop):
    with pytest.raises(InvalidRequestError, match="stop must be"):
        SamplingParams(stop=stop)


def test_speculation_changes_no_token_and_saves_steps(tiny, client, monkeypatch):
    from inglenook.engine.torch_backend import TorchBackend

    requests = [
        ask(max_tokens=120, logit_bias={70: 100.0, 71: 100.0}),
        ask(temperature=1, seed=3, max_tokens=120, top_k=2),
        ask(temperature=0.7, seed=4, max_tokens=60, repetition_penalty=1.3, n=2),
    ]
    plain = [client.submit(request).result(T) for request in requests]
    monkeypatch.setattr(TorchBackend, "rows_are_exact", True)
    monkeypatch.setattr(StepCost, "ratio", lambda self, rows, fewer: 1.0)  # a busy machine must not decide
    with EngineClient.in_process() as drafting:
        drafting.load(tiny, options=one_thread()).result(T)
        guessed = [drafting.submit(request).result(T) for request in requests]
        together = [handle.result(T) for handle in [drafting.submit(request) for request in requests]]
        stats = drafting.stats().values

    assert [reply.texts for reply in guessed] == [reply.texts for reply in plain]
    assert [reply.texts for reply in together] == [reply.texts for reply in plain]
    assert stats["chat.spec_decode_num_accepted_tokens"] > 10
    assert stats["chat.steps"] < stats["chat.generation_tokens"]
    assert stats["chat.kv_blocks_live"] == 0
