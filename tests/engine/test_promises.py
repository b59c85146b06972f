"""The engine's promises on the real SmolLM2 and the native kernels: a reply depends on its request and on nothing else."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_gguf import write_tiny_gguf

from inglenook.engine.backend_choice import backend_statuses
from inglenook.engine.client import EngineClient
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.sampler import sample

T = 300.0
STORY = (
    "The lighthouse keeper kept two logs. In the first she wrote the weather, the passing ships and the oil that the "
    "lamp had burned; in the second, which nobody asked for, she wrote what the sea had looked like. "
)
NUM_TOKENS = 64

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def options(**changes):
    return LoadOptions(**{"backend": "native-cpu", "context_length": 4096, "speculation": False} | changes)


def request(text=STORY * 3 + "Repeat the first sentence, then go on.", **params):
    sampling = {"temperature": 0, "max_tokens": NUM_TOKENS, "ignore_eos": True} | params
    return Request(messages=({"role": "user", "content": text},), sampling=SamplingParams(**sampling))


GREEDY, SEEDED = request(), request(temperature=0.9, top_p=0.95, seed=7)


@pytest.fixture(scope="module")
def client(smollm2):
    if not backend_statuses()[0].usable:
        pytest.skip(backend_statuses()[0].reason)
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options()).result(T)
        yield client


@pytest.fixture(scope="module")
def cold(client):
    return [client.submit(asked).result(T).token_ids for asked in (GREEDY, SEEDED)]


def replies(client):
    return [client.submit(asked).result(T) for asked in (GREEDY, SEEDED)]


def test_warm_replies_equal_cold_ones(client, cold):
    warm = replies(client)

    assert all(reply.finished.cached_tokens == reply.finished.prompt_tokens - 1 for reply in warm)
    assert [reply.token_ids for reply in warm] == cold


def test_seven_others_in_the_batch_change_nothing(client, cold):
    others = [client.submit(request(f"Question {i}: {STORY}", temperature=1, seed=i)) for i in range(7)]

    together = [client.submit(asked) for asked in (GREEDY, SEEDED)]

    assert [handle.result(T).token_ids for handle in together] == cold
    assert all(len(handle.result(T).token_ids) == NUM_TOKENS for handle in others)


@pytest.mark.parametrize("chunk", [1, 5, 16, 17, 63, 100, 512])
def test_the_chunk_size_changes_nothing(smollm2, cold, chunk):
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options(max_step_tokens=chunk)).result(T)

        assert [reply.token_ids for reply in replies(client)] == cold


@pytest.mark.parametrize("chunk", [16, 17, 100])
def test_with_an_int8_cache_neither_chunks_nor_cache_nor_mates_change_anything(smollm2, chunk):
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options(kv_dtype="int8")).result(T)
        whole = [reply.token_ids for reply in replies(client)]
        others = [client.submit(request(f"Question {i}: {STORY}", temperature=1, seed=i)) for i in range(3)]
        crowded = [reply.token_ids for reply in replies(client)]
        for handle in others:
            handle.result(T)
        client.load(
            smollm2, options=options(kv_dtype="int8", max_step_tokens=chunk, speculation=True)
        ).result(T)
        chunked = [reply.token_ids for reply in replies(client)]

    assert whole == crowded == chunked


def test_steps_that_are_interrupted_change_nothing(client, cold, monkeypatch):
    """A Stop that comes too late ends a step of the next request, which is then computed again."""
    run, calls = ModelRunner.run, itertools.count()

    def interrupted(runner, plan, draws=()):
        if next(calls) % 3 == 0:
            runner.cancel()
        return run(runner, plan, draws)

    monkeypatch.setattr(ModelRunner, "run", interrupted)
    got = [
        client.submit(replace(asked, cache_salt="interrupted")).result(T).token_ids
        for asked in (GREEDY, SEEDED)
    ]

    assert got == cold


def test_one_thread_changes_nothing(smollm2, cold):
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options(num_threads=1)).result(T)

        assert [reply.token_ids for reply in replies(client)] == cold


def test_speculation_changes_nothing_and_guesses_right(smollm2, cold):
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options(speculation=True)).result(T)
        guessed = replies(client)

    assert [reply.token_ids for reply in guessed] == cold
    assert guessed[0].finished.accepted_tokens > 0


def test_preemption_changes_nothing(smollm2, monkeypatch, cold):
    from inglenook.engine import memory_plan

    monkeypatch.setattr(memory_plan, "_SPARE_CONTEXTS", 1)
    with EngineClient.in_process() as client:
        client.load(smollm2, options=options(context_length=512)).result(T)
        crowd = [client.submit(request(f"{i} {STORY}", max_tokens=100)) for i in range(8)]
        together = [client.submit(asked) for asked in (GREEDY, SEEDED)]
        got = [handle.result(T).token_ids for handle in together]
        for handle in crowd:
            handle.result(T)
        stats = client.stats().values

    assert stats["chat.num_preemptions"] > 0
    assert got == cold


def test_two_thousand_requests_with_random_cancels_leak_nothing(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantize="Q8_0")
    rng = random.Random(5)
    with EngineClient.in_process() as client:
        client.load(path, options=LoadOptions(num_threads=1, context_length=256)).result(T)
        open_handles = []
        for number in range(2000):
            asked = request(
                "x" * rng.randrange(60),
                max_tokens=rng.randrange(20),
                temperature=rng.choice([0, 1]),
                n=rng.choice([1, 1, 1, 2]),
            )
            open_handles.append(client.submit(asked))
            if rng.random() < 0.3:
                rng.choice(open_handles[-50:]).cancel()
            if number % 100 == 99:
                assert all(handle.result(T) for handle in open_handles)
                open_handles.clear()
        stats = client.stats().values

    assert stats["chat.kv_blocks_live"] == 0
    assert stats["chat.num_requests_running"] == stats["chat.num_requests_waiting"] == 0


def test_ten_thousand_queued_requests_are_all_answered(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantize="Q8_0")
    with EngineClient.in_process() as client:
        client.load(path, options=LoadOptions(num_threads=1)).result(T)
        asked = Request(prompt_token_ids=(5, 6, 7), sampling=SamplingParams(max_tokens=1, temperature=0))
        handles = [client.submit(asked) for _ in range(10_000)]
        reasons = {handle.result(T).finished.finish_reason for handle in handles}

    assert len(reasons) == 1


def test_a_hundred_thousand_draws_follow_the_softmax_by_chi_square():
    generator = np.random.default_rng(3)
    logits = torch.tensor(generator.normal(size=24) * 1.5, dtype=torch.float32)
    expected = torch.softmax(logits.double() / 0.9, 0).numpy() * 100_000
    params = SamplingParams(temperature=0.9)

    draws = [sample(logits, params, seed=1, choice=0, position=p) for p in range(100_000)]

    counts = np.bincount(draws, minlength=24)
    assert ((counts - expected) ** 2 / expected).sum() < 49.7  # 0.1 % point with 23 degrees of freedom
