"""What the engine does when memory runs out, from the first rung of the ladder to the last."""

import functools
import sys
import threading

import pytest
import torch
from tiny_gguf import write_tiny_gguf

from inglenook.engine import memory_ladder, memory_plan
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ContextLengthError, EngineStoppedError, NotEnoughMemoryError
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.memory import MemoryState
from inglenook.engine.memory_ladder import is_out_of_memory
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.request import LoadOptions, Request, SamplingParams

T = 30.0
CONTEXT = 512


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", context=CONTEXT)


@pytest.fixture
def client(tiny, monkeypatch):
    monkeypatch.setattr(memory_ladder, "SHORTEST_CONTEXT", 128)
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1, max_step_tokens=64)).result(
            T
        )
        yield client


def ask(length=40, reply=20, first=3, **more):
    ids = tuple(first + i % 200 for i in range(length))
    return Request(
        prompt_token_ids=ids,
        sampling=SamplingParams(temperature=0, max_tokens=reply, ignore_eos=True),
        **more,
    )


def runs_out(monkeypatch, *, when):
    """Let steps fail for want of memory while `when(plan)` says so; returns the sizes of all steps tried."""
    run, tried = ModelRunner.run, []

    def limited(self, plan, draws=()):
        tried.append(plan.num_tokens)
        if when(plan):
            raise MemoryError
        return run(self, plan, draws)

    monkeypatch.setattr(ModelRunner, "run", limited)
    return tried


def test_the_cache_goes_first_and_the_reply_is_the_same(client, monkeypatch):
    want = client.submit(ask()).result(T).token_ids
    failures = iter([True])
    runs_out(monkeypatch, when=lambda plan: next(failures, False))

    got = client.submit(ask(first=90)).result(T)
    again = client.submit(ask()).result(T)

    assert got.finished.notices == ()
    assert again.token_ids == want
    assert again.finished.cached_tokens == 0
    assert client.stats().values["chat.kv_blocks_live"] == 0


def test_then_steps_are_halved_until_they_fit(client, monkeypatch):
    want = client.submit(ask(100)).result(T).token_ids
    client.submit(ask(100, first=80)).result(T)
    tried = runs_out(monkeypatch, when=lambda plan: plan.num_tokens > 16)

    got = client.submit(ask(100)).result(T)

    assert got.token_ids == want
    assert max(tried[3:]) <= 16
    assert got.finished.notices == ()


def test_then_the_context_with_a_sentence_that_reaches_the_request_and_the_client(client, monkeypatch):
    notices = []
    client.on_notice = notices.append
    client.submit(ask(30, 2)).result(T)
    tried = runs_out(monkeypatch, when=lambda plan: not notices)

    reply = client.submit(ask(60, 400)).result(T)

    assert "context is 256 tokens now instead of 512" in reply.finished.notices[0]
    assert [(n.slot, n.context_length) for n in notices] == [("chat", 256)]
    assert tried[:4] == [30, 30, 30, 16]  # the cache went, then 64 tokens a step became 32, then 16
    assert (reply.finished.finish_reason, len(reply.token_ids)) == ("length", 256 - 60)
    with pytest.raises(ContextLengthError, match="holds 256"):
        client.submit(ask(60, 400)).result(T)


def test_a_conversation_longer_than_the_shorter_context_fails_alone(client, monkeypatch):
    stop = threading.Event()
    failures = iter([True] * 4)
    runs_out(monkeypatch, when=lambda plan: stop.is_set() and next(failures, False))
    long, short = client.submit(ask(300, 200)), client.submit(ask(20, 60, first=90))
    next(long.events(T))
    next(short.events(T))

    stop.set()

    with pytest.raises(ContextLengthError, match=r"256 tokens now .* has \d+ already"):
        long.result(T)
    assert len(short.result(T).token_ids) == 60


def test_when_nothing_is_left_requests_fail_with_a_sentence_and_the_engine_goes_on(client, monkeypatch):
    hungry = threading.Event()
    hungry.set()
    tried = runs_out(monkeypatch, when=lambda plan: hungry.is_set())

    with pytest.raises(
        NotEnoughMemoryError, match=r"ran out of memory while answering\. Close other programs"
    ):
        client.submit(ask()).result(T)

    hungry.clear()
    assert len(tried) < 12
    assert len(client.submit(ask()).result(T).token_ids) == 20


STARVED = """
import sys
from inglenook.engine import memory_ladder
from inglenook.engine.core import EngineCore
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.homes.process import main
run = ModelRunner.run
def starve(self, plan, draws=()):
    if any(chunk.sequence.token_ids[0] == 99 for chunk in plan.chunks):
        raise MemoryError
    return run(self, plan, draws)
ModelRunner.run = starve
main(sys.argv[1:], EngineCore)
"""


@pytest.mark.slow
def test_an_engine_process_without_memory_is_replaced_by_the_next_request(tiny, tmp_path):
    script = tmp_path / "starved_engine.py"
    script.write_text(STARVED)
    home = functools.partial(ChildHome, command=(sys.executable, "-I", str(script)))
    with EngineClient(home) as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(60)
        doomed = client.submit(ask(first=99))

        with pytest.raises(EngineStoppedError, match=r"ran out of memory and ended\. .* ask again to go on"):
            doomed.result(60)

        assert len(client.submit(ask()).result(60).token_ids) == 20
        assert client.vital_signs()["deaths"] == 1


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("shapes do not match"), False),
        (OSError("Cannot allocate memory"), False),
    ],
)
def test_what_counts_as_running_out_of_memory(error, is_one):
    assert is_out_of_memory(error) is is_one


def test_a_second_model_makes_the_first_give_up_what_it_has_to_spare(tiny, monkeypatch):
    monkeypatch.setattr(memory_plan, "memory_state", lambda: MemoryState(10**10, 10**9))
    options = LoadOptions(backend="reference", num_threads=1)
    with EngineClient.in_process() as client:
        first = client.load(tiny, "chat", options).result(T)
        promised = client.stats().values["chat.kv_blocks"]
        # As much as the second needs once the first keeps one context of its four, and no more.
        tight = first.need_bytes + first.kv_bytes // 4 + 100_000
        monkeypatch.setattr(memory_plan, "memory_state", lambda: MemoryState(10**10, tight))
        second = client.load(tiny, "second", options).result(T)
        with pytest.raises(NotEnoughMemoryError):
            client.load(tiny, "third", options).result(T)
        left = client.stats().values["chat.kv_blocks"]
        reply = client.submit(ask(100, 400)).result(T)

    assert promised == 4 * CONTEXT // 16
    assert left == CONTEXT // 16
    assert second.context_length == CONTEXT
    assert len(reply.token_ids) == 400
