"""The engine through `EngineClient.in_process`, on a tiny model of random weights read from a real GGUF file."""

import itertools
import threading
from dataclasses import replace

import pytest
import torch
from tiny_gguf import CONTEXT, write_tiny_gguf

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import (
    ContextLengthError,
    EngineError,
    InternalEngineError,
    InvalidRequestError,
    ModelFileError,
    ModelNotFoundError,
    NotEnoughMemoryError,
    NotLoadedError,
    TemplateError,
)
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.request import Finished, LoadOptions, LoadProgress, Request, SamplingParams, TokenText

T = 30.0


@pytest.fixture
def loaded(tiny_client):
    return tiny_client


def ask(text="hello", **params):
    params.setdefault("temperature", 0)
    params.setdefault("max_tokens", 24)
    params.setdefault("ignore_eos", True)
    return Request(messages=({"role": "user", "content": text},), sampling=SamplingParams(**params))


def ids(client, request):
    return client.submit(request).result(T).token_ids


def live_blocks(client):
    return client.stats().values["chat.kv_blocks_live"]


def test_a_load_reports_progress_and_then_facts(tiny):
    with EngineClient.in_process() as client:
        *progress, facts = client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).events(
            T
        )

    assert all(isinstance(event, LoadProgress) for event in progress)
    assert (facts.architecture, facts.backend, facts.context_length) == ("llama", "reference", CONTEXT)
    assert facts.weight_bytes > 300_000


def test_text_and_token_ids_come_in_order_and_then_one_finished(loaded):
    events = list(loaded.submit(ask(max_tokens=10)).events(T))

    assert all(isinstance(event, TokenText) for event in events[:-1])
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.finish_reason == "length"
    assert finished.completion_tokens == sum(len(e.token_ids) for e in events[:-1]) == 10
    assert finished.ttft_s > 0
    assert finished.tpot_s > 0


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 16, 17, 64])
def test_greedy_tokens_do_not_depend_on_the_chunk_size(tiny, loaded, chunk):
    want = ids(loaded, ask("what is the capital of France? " * 3, max_tokens=64))

    with EngineClient.in_process() as client:
        client.load(
            tiny, options=LoadOptions(backend="reference", num_threads=1, max_step_tokens=chunk)
        ).result(T)
        got = ids(client, ask("what is the capital of France? " * 3, max_tokens=64))

    assert got == want


def test_batch_mates_change_nothing(loaded):
    requests = [ask(f"question {i}", temperature=i % 2, seed=5, max_tokens=20) for i in range(6)]
    alone = [ids(loaded, request) for request in requests]

    handles = [loaded.submit(request) for request in requests]

    assert [handle.result(T).token_ids for handle in handles] == alone


def test_preemption_changes_nothing_and_no_block_leaks(tiny):
    options = LoadOptions(backend="reference", num_threads=1, context_length=64)
    requests = [ask(f"{i}", max_tokens=30) for i in range(6)]
    with EngineClient.in_process() as client:
        client.load(tiny, options=options).result(T)
        alone = [ids(client, request) for request in requests]

        handles = [client.submit(request) for request in requests]
        together = [handle.result(T).token_ids for handle in handles]
        stats = client.stats().values

    assert together == alone
    assert stats["chat.kv_blocks_live"] == 0


def test_the_same_seed_gives_the_same_reply_and_another_gives_another(loaded):
    first = ids(loaded, ask(temperature=1, seed=1))

    assert ids(loaded, ask(temperature=1, seed=1)) == first
    assert ids(loaded, ask(temperature=1, seed=2)) != first


def test_a_drawn_seed_is_reported_and_repeats_the_reply(loaded):
    reply = loaded.submit(ask(temperature=1)).result(T)

    assert ids(loaded, ask(temperature=1, seed=reply.finished.seed)) == reply.token_ids


def test_a_stop_string_ends_the_reply_and_is_not_shown(loaded):
    whole = loaded.submit(ask(max_tokens=40)).result(T).text
    stop = whole[8:11]

    reply = loaded.submit(ask(max_tokens=40, stop=(stop,))).result(T)

    assert reply.text == whole[: whole.index(stop)]
    assert reply.finished.finish_reason == "stop"


def test_a_stop_token_ends_the_reply_and_is_not_among_its_ids(loaded):
    want = ids(loaded, ask(max_tokens=12))
    stop = want[5]

    reply = loaded.submit(ask(max_tokens=12, stop_token_ids=(stop,))).result(T)

    assert reply.token_ids == want[: want.index(stop)]
    assert reply.finished.finish_reason == "stop"


def test_no_new_tokens_is_legal_and_only_prefills(loaded):
    reply = loaded.submit(ask(max_tokens=0)).result(T)

    assert (reply.text, reply.token_ids) == ("", ())
    assert (reply.finished.finish_reason, reply.finished.ttft_s) == ("length", None)


def test_without_a_limit_the_reply_ends_with_the_context(loaded):
    reply = loaded.submit(replace(ask(), sampling=SamplingParams(temperature=0, ignore_eos=True))).result(T)

    assert reply.finished.finish_reason == "length"
    assert reply.finished.prompt_tokens + reply.finished.completion_tokens == CONTEXT


def test_raw_text_and_token_ids_are_prompts_too(loaded):
    by_text = ids(loaded, Request(prompt="abc", sampling=SamplingParams(temperature=0, max_tokens=5)))

    letters = tuple(3 + byte for byte in b"abc")
    by_ids = ids(
        loaded, Request(prompt_token_ids=letters, sampling=SamplingParams(temperature=0, max_tokens=5))
    )

    assert by_text == by_ids


def test_cancelling_ends_with_cancelled_and_frees_the_blocks(loaded):
    handle = loaded.submit(ask(max_tokens=400))
    events = handle.events(T)
    next(events)

    handle.cancel()

    assert list(events)[-1].finish_reason == "cancelled"
    assert live_blocks(loaded) == 0


def test_a_prompt_with_the_reply_must_fit_the_context(loaded):
    with pytest.raises(ContextLengthError, match=r"has 3 tokens .* take 510 tokens.* holds 512"):
        ids(loaded, Request(prompt_token_ids=(5, 6, 7), sampling=SamplingParams(max_tokens=510)))


def test_a_prompt_as_long_as_the_context_leaves_no_room(loaded):
    with pytest.raises(ContextLengthError, match=r"512 tokens .* at least 1 token"):
        ids(loaded, Request(prompt_token_ids=(5,) * 512))


@pytest.mark.parametrize("request_", [Request(prompt=""), Request(prompt_token_ids=())])
def test_an_empty_prompt_is_refused_and_others_go_on(loaded, request_):
    with pytest.raises(InvalidRequestError, match="prompt is empty"):
        ids(loaded, request_)

    assert ids(loaded, ask(max_tokens=3))


def test_an_unknown_token_id_is_refused(loaded):
    with pytest.raises(InvalidRequestError, match="token ids must be 0 to 259, got 260"):
        ids(loaded, Request(prompt_token_ids=(1, 260)))


def test_asking_an_empty_slot_says_so():
    with (
        EngineClient.in_process() as client,
        pytest.raises(NotLoadedError, match="No model is loaded in 'chat'"),
    ):
        client.submit(ask()).result(T)


def test_a_request_during_the_load_waits_for_it(tiny):
    with EngineClient.in_process() as client:
        load = client.load(tiny, options=LoadOptions(backend="reference", num_threads=1))
        reply = client.submit(ask(max_tokens=4))

        assert reply.result(T).finished.completion_tokens == 4
        assert load.done


def test_a_request_waiting_for_a_load_that_fails_is_answered(tmp_path):
    with EngineClient.in_process() as client:
        load = client.load(tmp_path / "no.gguf")
        reply = client.submit(ask())

        with pytest.raises(ModelNotFoundError):
            load.result(T)
        with pytest.raises((NotLoadedError, ModelNotFoundError)):
            reply.result(T)


def test_a_second_model_in_another_slot_answers_beside_the_first(tiny, tmp_path, loaded):
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1)
    with EngineClient.in_process() as client:
        for path, slot in ((tiny, "chat"), (other, "second")):
            client.load(path, slot, LoadOptions(backend="reference", num_threads=1)).result(T)
        handles = [client.submit(replace(ask(), slot=slot)) for slot in ("chat", "second")]
        first, second = (handle.result(T).token_ids for handle in handles)

    assert first == ids(loaded, ask())
    assert first != second


def test_unloading_cancels_and_empties_the_slot(tiny):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        handle = client.submit(ask(max_tokens=400))
        next(handle.events(T))

        client.unload().result(T)

        assert handle.result(T).finished.finish_reason == "cancelled"
        with pytest.raises(NotLoadedError):
            client.submit(ask()).result(T)


def test_a_context_beyond_the_models_own_is_refused(tiny):
    with (
        EngineClient.in_process() as client,
        pytest.raises(InvalidRequestError, match=r"at most 512.*got 1,000"),
    ):
        client.load(
            tiny, options=LoadOptions(backend="reference", num_threads=1, context_length=1000)
        ).result(T)


def test_a_model_too_large_for_memory_is_refused_before_loading(tiny, monkeypatch):
    from inglenook.engine import memory_plan
    from inglenook.engine.memory import MemoryState

    monkeypatch.setattr(memory_plan, "memory_state", lambda: MemoryState(10**9, 9 * 10**6))
    with (
        EngineClient.in_process() as client,
        pytest.raises(NotEnoughMemoryError, match=r"needs .*, 9 MB are free"),
    ):
        client.load(tiny).result(T)


def test_a_step_that_fails_fails_its_requests_and_the_next_one_works(tiny, monkeypatch):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        want = ids(client, ask(max_tokens=5))
        run, calls = ModelRunner.run, itertools.count()

        def fail_once(self, plan, draws=()):
            if next(calls) == 2:
                raise RuntimeError("secret prompt text")
            return run(self, plan, draws)

        monkeypatch.setattr(ModelRunner, "run", fail_once)
        with pytest.raises(InternalEngineError, match="RuntimeError") as caught:
            client.submit(ask(max_tokens=5)).result(T)

        assert "secret" not in str(caught.value)
        assert ids(client, ask(max_tokens=5)) == want
        assert live_blocks(client) == 0


def test_logits_that_are_not_numbers_fail_that_request_alone(tiny, monkeypatch):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        want = ids(client, ask("good", max_tokens=5))
        run = ModelRunner.run

        def spoil(self, plan, draws=()):
            logits = [row.copy() for row in run(self, plan)]
            for row, chunk in enumerate(c for c in plan.chunks if c.is_last):
                if chunk.sequence.num_prompt_tokens > 60:
                    logits[row][:] = torch.nan
            return logits

        monkeypatch.setattr(ModelRunner, "run", spoil)
        bad, good = client.submit(ask("bad" * 20)), client.submit(ask("good", max_tokens=5))

        with pytest.raises(ModelFileError, match="not numbers"):
            bad.result(T)
        assert good.result(T).token_ids == want


def test_a_model_without_a_template_answers_raw_prompts_only(tmp_path, monkeypatch):
    import tiny_gguf

    monkeypatch.setattr(tiny_gguf.gguf.GGUFWriter, "add_chat_template", lambda self, text: None)
    path = write_tiny_gguf(tmp_path / "plain.gguf")
    with EngineClient.in_process() as client:
        client.load(path, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        with pytest.raises(TemplateError):
            client.submit(ask()).result(T)

        assert ids(client, Request(prompt="abc", sampling=SamplingParams(temperature=0, max_tokens=3)))


def test_many_requests_with_cancels_in_every_state_leak_nothing(loaded):
    handles = []
    for number in range(120):
        handles.append(loaded.submit(ask("x" * (number % 40), max_tokens=1 + number % 12)))
        if number % 3 == 0:
            handles[number // 2].cancel()
        if number % 7 == 0:
            handles[-1].cancel()
    reasons = {handle.result(T).finished.finish_reason for handle in handles}

    assert reasons == {"length", "cancelled"}
    assert live_blocks(loaded) == 0


def test_closing_ends_open_requests_and_all_threads(tiny):
    before = set(threading.enumerate())
    client = EngineClient.in_process()
    client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
    handle = client.submit(ask(max_tokens=400))
    next(handle.events(T))

    client.close()

    assert handle.done
    assert set(threading.enumerate()) <= before


def test_a_prompt_asked_again_is_found_in_the_cache_and_answered_alike(tiny):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        cold = client.submit(ask("what is this? " * 4)).result(T)
        warm = client.submit(ask("what is this? " * 4)).result(T)
        forked = client.submit(ask("what is this? " * 3 + "what?")).result(T)
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        fresh = client.submit(ask("what is this? " * 3 + "what?")).result(T)

    assert cold.finished.cached_tokens == 0
    assert warm.finished.cached_tokens == warm.finished.prompt_tokens - 1
    assert warm.token_ids == cold.token_ids
    assert forked.finished.cached_tokens > 40
    assert forked.token_ids == fresh.token_ids


def chat(*turns, **params):
    roles = ("user", "assistant")
    messages = tuple({"role": roles[i % 2], "content": text} for i, text in enumerate(turns))
    return Request(
        messages=messages,
        sampling=SamplingParams(temperature=0, max_tokens=30, ignore_eos=True),
        **params,
    )


def test_a_follow_up_finds_the_whole_history_in_the_cache(tiny):
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        first = client.submit(chat("hello there")).result(T)
        history = first.finished.prompt_tokens + len(first.token_ids)
        follow = chat("hello there", first.text, "and then?", reply_token_ids={1: first.token_ids})
        second = client.submit(follow).result(T)
        edited = client.submit(chat("hello there", first.text + "!", "and then?")).result(T)

    assert second.finished.cached_tokens >= history - 1
    assert edited.finished.cached_tokens <= history
    assert second.finished.prompt_tokens > history


def test_ids_that_are_not_the_messages_own_are_not_used(loaded):
    asked = ("hello", "an answer", "more?")
    want = ids(loaded, chat(*asked))

    assert ids(loaded, chat(*asked, reply_token_ids={1: (50, 51, 52), 0: (1,)})) == want


def slow_loads(monkeypatch):
    """Make every load wait until the returned event is set."""
    from inglenook.engine import core

    go, load_model = threading.Event(), core.load_model

    def wait_and_load(*arguments):
        assert go.wait(T)
        return load_model(*arguments)

    monkeypatch.setattr(core, "load_model", wait_and_load)
    return go


def test_a_load_in_place_of_one_that_runs_cancels_it_and_comes_next(tiny, monkeypatch):
    go = slow_loads(monkeypatch)
    options = LoadOptions(backend="reference", num_threads=1)
    with EngineClient.in_process() as client:
        first, second = client.load(tiny, options=options), client.load(tiny, options=options)
        reply = client.submit(ask(max_tokens=2))
        go.set()

        with pytest.raises(EngineError, match="Loading was cancelled"):
            first.result(T)
        assert second.result(T).architecture == "llama"
        assert reply.result(T).finished.completion_tokens == 2


def test_forgetting_an_owner_ends_its_requests_that_still_wait_for_a_load(tiny, monkeypatch):
    go = slow_loads(monkeypatch)
    with EngineClient.in_process() as client:
        client.load(tiny, options=LoadOptions(backend="reference", num_threads=1))
        mine = client.submit(replace(ask(max_tokens=2), owner="me"))
        other = client.submit(replace(ask(max_tokens=2), owner="you"))
        client.forget("me").result(T)
        go.set()

        assert mine.result(T).finished.finish_reason == "cancelled"
        assert mine.text() == ""
        assert other.result(T).finished.completion_tokens == 2


def test_unloading_during_a_load_is_answered_when_the_load_has_ended(tiny, monkeypatch):
    go = slow_loads(monkeypatch)
    options = LoadOptions(backend="reference", num_threads=1)
    with EngineClient.in_process() as client:
        load, unload, again = (
            client.load(tiny, options=options),
            client.unload(),
            client.load(tiny, options=options),
        )
        assert not unload.done
        go.set()

        with pytest.raises(EngineError, match="Loading was cancelled"):
            load.result(T)
        unload.result(T)
        assert again.result(T).architecture == "llama"
        assert client.stats().slots == {"chat": again.result(T).name}


def test_a_load_that_ends_as_its_slot_is_emptied_leaves_no_ghost(tiny):
    options = LoadOptions(backend="reference", num_threads=1)
    with EngineClient.in_process() as client:
        for _ in range(10):
            load, unload = client.load(tiny, options=options), client.unload()
            unload.result(T)
            assert load.done
            assert not client._slots


def test_more_threads_than_any_computer_has_are_refused():
    with pytest.raises(
        InvalidRequestError, match="num_threads must be a whole number from 1 to 256, got 100000"
    ):
        LoadOptions(num_threads=100_000)
