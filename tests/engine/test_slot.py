"""Stopping within a step, and forgetting: a slot behind its client."""

import threading
import time

import pytest

from inglenook.engine.backend import StepCancelledError
from inglenook.engine.client import EngineClient
from inglenook.engine.completion import Completion
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.generation import Generation
from inglenook.engine.kv_cache import KVTensors
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.request import Forgotten, LoadOptions, Request, SamplingParams, TokenText
from inglenook.engine.sequence import Sequence
from inglenook.engine.slot import Slot

T = 30.0


@pytest.fixture
def client(tiny):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        yield client


def ask(length=40, reply=20, first=3, **more):
    ids = tuple(first + i % 200 for i in range(length))
    sampling = SamplingParams(temperature=0, max_tokens=reply, ignore_eos=True)
    return Request(prompt_token_ids=ids, sampling=sampling, **more)


class SlowSteps:
    """Steps of a model that can be cancelled: while `hold` is set, one of `least` requests or more lasts until it is."""

    def __init__(self, monkeypatch):
        self.hold, self.begun = threading.Event(), threading.Event()
        self.least = 1
        self.cancels = 0
        self._cancelled = threading.Event()
        run = ModelRunner.run

        def slow(runner, plan, draws=()):
            if len(plan.chunks) >= self.least:
                while self.hold.is_set() and not self._cancelled.wait(0.005):
                    self.begun.set()
            if self._cancelled.is_set():
                self._cancelled.clear()
                self.cancels += 1
                raise StepCancelledError
            return run(runner, plan, draws)

        monkeypatch.setattr(ModelRunner, "run", slow)
        monkeypatch.setattr(ModelRunner, "cancel", lambda runner: self._cancelled.set())


@pytest.fixture
def steps(monkeypatch):
    return SlowSteps(monkeypatch)


@pytest.mark.parametrize("end", ["cancel", "unload", "load", "close"])
def test_whatever_makes_the_only_request_pointless_ends_its_step(client, tiny, steps, end):
    steps.hold.set()
    handle = client.submit(ask())
    assert steps.begun.wait(T)
    begun = time.monotonic()

    {
        "cancel": handle.cancel,
        "unload": client.unload,
        "load": lambda: client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)),
        "close": client.close,
    }[end]()

    assert handle.result(T).finished.finish_reason == "cancelled"
    assert time.monotonic() - begun < 2
    assert steps.cancels == 1


def test_a_step_that_others_need_goes_on_until_all_are_cancelled(client, steps):
    want = client.submit(ask()).result(T).token_ids
    steps.least = 2
    steps.hold.set()
    first, second = client.submit(ask(first=90, reply=400)), client.submit(ask(first=91, reply=400))
    assert steps.begun.wait(T)

    first.cancel()
    goes_on = not steps._cancelled.wait(0.1)
    second.cancel()

    assert goes_on
    assert first.result(T).finished.finish_reason == second.result(T).finished.finish_reason == "cancelled"
    assert steps.cancels == 1
    assert client.submit(ask()).result(T).token_ids == want


def test_a_step_that_was_cancelled_by_mistake_is_done_again_alike(client, steps):
    """The cancel of a request that has just ended may hit the step of the next one."""
    want = client.submit(ask(100, 30)).result(T).token_ids
    handle = client.submit(ask(100, 30, cache_salt="cold"))
    events = handle.events(T)
    for _ in range(10):
        next(events, None)
        steps._cancelled.set()

    assert handle.result(T).token_ids == want
    assert steps.cancels > 0
    assert client.stats().values["chat.kv_blocks_live"] == 0


def test_forgetting_drops_an_owners_text_from_cache_and_memory(client, monkeypatch):
    blanked = []
    blank = KVTensors.blank
    monkeypatch.setattr(KVTensors, "blank", lambda kv, blocks: (blanked.extend(blocks), blank(kv, blocks)))
    client.submit(ask(64, owner="a")).result(T)
    client.submit(ask(64, first=90, owner="b")).result(T)

    assert client.forget("a").result(T) == Forgotten(num_requests=0, num_blocks=6)

    assert len(blanked) == 6
    assert client.submit(ask(64)).result(T).finished.cached_tokens == 0
    assert client.submit(ask(64, first=90)).result(T).finished.cached_tokens == 63
    assert client.forget("nobody").result(T) == Forgotten(0, 0)


def test_forgetting_cancels_what_the_owner_still_asks_for(client, steps):
    steps.hold.set()
    mine, other = client.submit(ask(owner="a")), client.submit(ask(first=90, reply=3, owner="b"))
    assert steps.begun.wait(T)

    forgotten = client.forget("a")
    steps.hold.clear()

    assert forgotten.result(T).num_requests <= 1
    assert mine.result(T).finished.finish_reason == "cancelled"
    assert other.result(T).finished.finish_reason == "length"
    assert client.submit(ask()).result(T).finished.cached_tokens == 0


def test_forgetting_nobody_is_refused_and_without_an_engine_it_is_done_at_once(client):
    with pytest.raises(InvalidRequestError, match="owner must name whose text"):
        client.forget("")
    with EngineClient.child() as sleeping:
        assert sleeping.forget("a").result(0) == Forgotten(0, 0)


@pytest.mark.slow
def test_a_stop_ends_a_long_step_of_the_native_kernels_at_its_next_layer(smollm2):
    options = LoadOptions(backend="native-cpu", max_step_tokens=4096, context_length=4096)

    def long(number):
        """One step of some seconds, a thirtieth of it a layer."""
        ids = tuple(1000 + number + i % 3000 for i in range(3500))
        return Request(prompt_token_ids=ids, sampling=SamplingParams(max_tokens=0))

    with EngineClient.in_process() as client:
        client.load(smollm2, options=options).result(T)
        want = client.submit(ask(200, 8)).result(T).token_ids
        begun = time.monotonic()
        client.submit(long(0)).result(T)
        whole, waits = time.monotonic() - begun, []
        for number in range(1, 6):
            handle = client.submit(long(number))
            threading.Event().wait(whole / 5)
            begun = time.monotonic()
            handle.cancel()
            assert handle.result(T).finished.finish_reason == "cancelled"
            waits.append(time.monotonic() - begun)

        assert client.submit(ask(200, 8, cache_salt="cold")).result(T).token_ids == want
        assert client.stats().values["chat.kv_blocks_live"] == 0
    assert sorted(waits)[2] < whole / 4


class Letters:
    """A detokenizer of one letter a token."""

    def feed(self, token_id):
        return "abcdef"[token_id]

    def flush(self):
        return ""


def test_cancelling_gives_out_what_was_held_back_for_a_stop_string():
    events = []
    slot = Slot("chat", lambda _, event: events.append(event))
    generation = Generation(
        Sequence(1, [5], 1),
        SamplingParams(temperature=0, stop=("bcd",)),
        seed=0,
        max_tokens=9,
        stop_token_ids=frozenset(),
        detokenizer=Letters(),
        lookup=None,
    )
    slot.completions[1] = Completion(
        1, lambda _: generation, num_choices=1, seed=0, submitted=0.0, notices=(), left_out=()
    )
    shown = [generation.take(token_id)[1] for token_id in (0, 1, 2)]

    slot.cancel(1)

    text, finished = events
    assert shown == [TokenText("a", (0,)), None, None]
    assert text == TokenText("bc", (1, 2))
    assert finished.finish_reason == "cancelled"
