"""The client over both homes with a fake core. What only a child process can do is in `test_process.py`."""

from __future__ import annotations

import functools
import gc
import importlib.util
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import (
    EngineError,
    EngineStoppedError,
    InvalidRequestError,
    ModelNotFoundError,
    NotLoadedError,
)
from inglenook.engine.handle import Handle, Reply
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.request import (
    Event,
    Failed,
    Finished,
    Forgotten,
    LoadProgress,
    Request,
    TokenText,
    Unloaded,
)

FAKE_CORE = Path(__file__).with_name("fake_core.py")
TIMEOUT_S = 20


def fake_in_process() -> EngineClient:
    spec = importlib.util.spec_from_file_location("fake_core", FAKE_CORE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return EngineClient.in_process(module.FakeCore)


def fake_child() -> EngineClient:
    return EngineClient(functools.partial(ChildHome, command=(sys.executable, "-I", str(FAKE_CORE))))


@pytest.fixture(params=[fake_in_process, fake_child], ids=["in_process", "child"])
def client(request: pytest.FixtureRequest) -> Iterator[EngineClient]:
    with request.param() as client:
        yield client


def ask(client: EngineClient, prompt: str, slot: str = "chat") -> Handle[Reply]:
    return client.submit(Request(prompt=prompt, slot=slot))


def test_a_reply_is_streamed_and_then_whole(client: EngineClient) -> None:
    assert client.load("model.gguf").result(TIMEOUT_S).name == "model.gguf"

    handle = ask(client, "count 4")
    events = list(handle.events(TIMEOUT_S))

    assert isinstance(events[-1], Finished)
    assert "".join(e.text for e in events if isinstance(e, TokenText)) == "0 1 2 3 "
    assert sum((e.token_ids for e in events if isinstance(e, TokenText)), ()) == (0, 1, 2, 3)
    reply = handle.result(TIMEOUT_S)
    assert (reply.text, reply.token_ids) == ("0 1 2 3 ", (0, 1, 2, 3))
    assert reply.finished.finish_reason == "stop"
    assert handle.done
    assert list(handle.events(0)) == []


def test_a_reply_that_nobody_reads_is_one_event(client: EngineClient) -> None:
    client.load("model.gguf")
    handle = ask(client, "count 1000")
    handle.result(TIMEOUT_S)

    events = list(handle.events(0))

    assert [type(event) for event in events] == [TokenText, Finished]


def test_loading_reports_progress(client: EngineClient) -> None:
    events: list[Event] = []

    client.load("model.gguf", on_event=events.append).result(TIMEOUT_S)

    assert [e.done for e in events if isinstance(e, LoadProgress)] == [0, 1, 2]


def test_a_listener_gets_every_event_in_order(client: EngineClient) -> None:
    client.load("model.gguf")
    events: list[Event] = []
    ended = threading.Event()

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, Finished):
            ended.set()

    client.submit(Request(prompt="count 50"), listen)

    assert ended.wait(TIMEOUT_S)
    assert [e.text for e in events[:-1] if isinstance(e, TokenText)] == [f"{i} " for i in range(50)]


def test_a_listener_that_raises_stops_nothing(client: EngineClient, caplog: pytest.LogCaptureFixture) -> None:
    client.load("model.gguf")

    def listen(event: Event) -> None:
        raise ValueError("secret")

    assert client.submit(Request(prompt="count 3"), listen).result(TIMEOUT_S).text == "0 1 2 "
    assert ask(client, "count 1").result(TIMEOUT_S).text == "0 "
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_listener_may_submit_the_next_request(client: EngineClient) -> None:
    client.load("model.gguf")
    following: list[Handle[Reply]] = []
    submitted = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Finished):
            following.append(ask(client, "count 2"))
            submitted.set()

    client.submit(Request(prompt="count 1"), listen)

    assert submitted.wait(TIMEOUT_S)
    assert following[0].result(TIMEOUT_S).text == "0 1 "


def test_a_prompt_while_the_model_loads_waits_for_it(client: EngineClient) -> None:
    load = client.load("slow.gguf")
    handle = ask(client, "count 2")

    assert not load.done
    assert handle.result(TIMEOUT_S).text == "0 1 "
    assert load.done


def test_cancel_ends_a_reply_and_keeps_its_text(client: EngineClient) -> None:
    client.load("model.gguf")
    handle = ask(client, "endless")
    next(handle.events(TIMEOUT_S))

    handle.cancel()

    reply = handle.result(TIMEOUT_S)
    assert reply.finished.finish_reason == "cancelled"
    assert reply.text.startswith("x")
    handle.cancel()


def test_cancel_ends_a_load(client: EngineClient) -> None:
    load = client.load("slow.gguf")

    load.cancel()

    with pytest.raises(EngineError, match="cancelled"):
        load.result(TIMEOUT_S)


def test_a_failure_is_the_typed_error(client: EngineClient) -> None:
    with pytest.raises(ModelNotFoundError):
        client.load("missing.gguf").result(TIMEOUT_S)
    with pytest.raises(NotLoadedError):
        ask(client, "count 1").result(TIMEOUT_S)


def test_waiting_too_long_is_a_timeout_and_the_request_goes_on(client: EngineClient) -> None:
    client.load("slow.gguf")
    handle = ask(client, "count 1")

    with pytest.raises(TimeoutError):
        next(handle.events(0.01))
    with pytest.raises(TimeoutError):
        handle.result(0.01)

    assert handle.result(TIMEOUT_S).text == "0 "


def test_a_request_that_cannot_be_sent_fails_alone(client: EngineClient) -> None:
    client.load("model.gguf")
    good = ask(client, "count 200")

    bad = ask(client, "half a pair \ud83d")
    wrong = client.submit(Request(prompt_token_ids=("one",)))  # type: ignore[arg-type]

    for handle in (bad, wrong):
        assert isinstance(list(handle.events(0))[-1], Failed)
        with pytest.raises(InvalidRequestError, match="cannot be sent"):
            handle.result(0)
    assert good.result(TIMEOUT_S).finished.completion_tokens == 200


def test_slots_hold_several_models(client: EngineClient) -> None:
    client.load("a.gguf")
    client.load("b.gguf", slot="draft").result(TIMEOUT_S)

    assert client.stats(TIMEOUT_S).slots == {"chat": "a.gguf", "draft": "b.gguf"}

    assert client.unload("draft").result(TIMEOUT_S) == Unloaded("draft")
    assert client.stats(TIMEOUT_S).slots == {"chat": "a.gguf"}


def test_forgetting_is_passed_on_and_answered(client: EngineClient) -> None:
    assert client.forget("me").result(TIMEOUT_S) == Forgotten(0, 0)  # no engine, nothing to forget
    client.load("model.gguf")

    assert client.forget("me").result(TIMEOUT_S) == Forgotten(0, 2)


def test_stats_have_the_engines_and_the_clients_numbers(client: EngineClient) -> None:
    assert client.stats(TIMEOUT_S).values == {"deaths": 0.0}
    client.load("model.gguf").result(TIMEOUT_S)

    values = client.stats(TIMEOUT_S).values

    assert values["fake"] == 1.0
    assert values["deaths"] == 0.0
    assert values["progress"] >= 0


def test_unloading_from_an_engine_that_is_not_started_is_done_at_once(client: EngineClient) -> None:
    assert client.unload().result(0) == Unloaded("chat")


def test_closing_ends_what_is_open_and_is_fine_twice(client: EngineClient) -> None:
    client.load("model.gguf")
    handle = ask(client, "count 3")
    handle.result(TIMEOUT_S)
    waiting = client.load("slow.gguf", slot="other")

    client.close()
    client.close()

    assert waiting.done
    with pytest.raises(EngineStoppedError, match="closed"):
        ask(client, "count 1")


def test_many_threads_may_submit_at_once(client: EngineClient) -> None:
    client.load("model.gguf")
    texts: list[str] = []

    def work() -> None:
        texts.extend(ask(client, "count 3").result(TIMEOUT_S).text for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)

    assert texts == ["0 1 2 "] * 100


def test_a_forgotten_client_is_collected_with_its_engine(client: EngineClient) -> None:
    before = threading.active_count()
    forgotten = fake_child()
    forgotten.load("model.gguf").result(TIMEOUT_S)

    del forgotten
    gc.collect()

    deadline = time.monotonic() + TIMEOUT_S
    while threading.active_count() > before and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threading.active_count() == before


def test_importing_the_client_imports_no_torch() -> None:
    code = (
        "import sys, inglenook.engine.client;"
        "print([m for m in ('torch', 'numpy', 'jinja2', 'tokenizers') if m in sys.modules])"
    )

    shown = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout

    assert shown.strip() == "[]"
