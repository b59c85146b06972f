"""The engine process: how it dies, what that costs, and that nothing of it is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from engine_processes import TIMEOUT_S, is_gone, make_client, wait_until

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError, EngineStoppedError, ModelNotFoundError, NotLoadedError
from inglenook.engine.handle import Handle, Reply
from inglenook.engine.homes import restarts
from inglenook.engine.homes.child_home import describe_end
from inglenook.engine.request import Request, SamplingParams, TokenText

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the engine process needs POSIX")


@pytest.fixture
def client() -> Iterator[EngineClient]:
    with make_client() as client:
        client.load("model.gguf").result(TIMEOUT_S)
        yield client


def ask(client: EngineClient, prompt: str, slot: str = "chat") -> Handle[Reply]:
    return client.submit(Request(prompt=prompt, slot=slot))


def child_pid(client: EngineClient) -> int:
    return int(ask(client, "pid").result(TIMEOUT_S).text)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("abort", "signal 6 (SIGABRT)"),
        ("segfault", "signal 11 (SIGSEGV)"),
        ("kill", "signal 9 (SIGKILL). The system does this when memory runs out"),
        ("exit 0", "exit code 0"),
        ("exit 3", "exit code 3"),
        ("raise", "exit code 1: RuntimeError: the fake core fell over"),
        ("garbage", "sent a malformed message"),
        ("giant", "sent a frame of 1073741824 bytes"),
        ("half", "sent the connection ended 8 bytes into a frame"),
    ],
)
def test_a_death_fails_the_reply_with_the_reason_and_the_next_ask_works(
    client: EngineClient, prompt: str, reason: str
) -> None:
    handle = ask(client, prompt)

    with pytest.raises(EngineStoppedError) as caught:
        handle.result(TIMEOUT_S)

    assert reason in str(caught.value)
    assert "What was written so far is kept; ask again to go on." in str(caught.value)
    assert handle.text() == "so far"
    assert ask(client, "count 2").result(TIMEOUT_S).text == "0 1 "


def test_a_child_killed_in_the_middle_is_noticed_within_a_second(client: EngineClient) -> None:
    pid = child_pid(client)
    handle, waiting = ask(client, "endless"), ask(client, "count 1")
    next(handle.events(TIMEOUT_S))
    killed_at = time.monotonic()

    os.kill(pid, signal.SIGKILL)

    for failed in (handle, waiting):
        with pytest.raises(EngineStoppedError, match="SIGKILL"):
            failed.result(TIMEOUT_S)
    assert time.monotonic() - killed_at < 1
    assert handle.text().startswith("x")
    assert child_pid(client) != pid


def test_all_slots_are_loaded_again_after_a_death(client: EngineClient) -> None:
    client.load("b.gguf", slot="draft").result(TIMEOUT_S)
    client.load("c.gguf", slot="gone").result(TIMEOUT_S)
    client.unload("gone").result(TIMEOUT_S)
    with pytest.raises(EngineStoppedError):
        ask(client, "kill").result(TIMEOUT_S)
    assert client.stats(TIMEOUT_S).slots == {}

    assert ask(client, "count 1", slot="draft").result(TIMEOUT_S).text == "0 "

    stats = client.stats(TIMEOUT_S)
    assert stats.slots == {"chat": "model.gguf", "draft": "b.gguf"}
    assert stats.values["deaths"] == 1


def test_a_load_that_kills_the_engine_is_not_tried_again_by_itself(client: EngineClient) -> None:
    with pytest.raises(EngineStoppedError, match="SIGKILL"):
        client.load("deadly.gguf").result(TIMEOUT_S)

    with pytest.raises(NotLoadedError, match=r"The last load failed: .*SIGKILL"):
        ask(client, "count 1").result(TIMEOUT_S)
    client.load("model.gguf")
    assert ask(client, "count 1").result(TIMEOUT_S).text == "0 "


def test_a_model_that_vanished_before_the_restart_is_the_reason_given(tmp_path: Path) -> None:
    path = tmp_path / "volatile.gguf"
    path.touch()
    with make_client() as client:
        client.load(path).result(TIMEOUT_S)
        path.unlink()
        with pytest.raises(EngineStoppedError):
            ask(client, "kill").result(TIMEOUT_S)

        with pytest.raises(NotLoadedError, match="The last load failed: There is no file"):
            ask(client, "count 1").result(TIMEOUT_S)


def test_a_relative_path_is_made_absolute_when_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "volatile.gguf").touch()
    with make_client() as client:
        client.load("elsewhere.gguf").result(TIMEOUT_S)
        monkeypatch.chdir(tmp_path)

        assert client.load("volatile.gguf").result(TIMEOUT_S).name == "volatile.gguf"


def test_three_restarts_in_five_minutes_and_then_a_clear_error(
    client: EngineClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        with pytest.raises(EngineStoppedError, match="SIGKILL"):
            ask(client, "kill").result(TIMEOUT_S)

    with pytest.raises(EngineStoppedError, match=r"ended 4 times within 5 minutes .*\(SIGKILL\)"):
        ask(client, "count 1").result(1)
    with pytest.raises(EngineStoppedError, match="not started again for"):
        client.load("model.gguf").result(1)

    monkeypatch.setattr(restarts, "WINDOW_S", 0.0)
    client.load("model.gguf")
    assert ask(client, "count 1").result(TIMEOUT_S).text == "0 "


def test_a_hung_engine_is_ended_and_the_reason_says_so() -> None:
    with make_client(heartbeat_timeout_s=1.5) as client:
        client.load("model.gguf").result(TIMEOUT_S)
        handle = ask(client, "hang")

        with pytest.raises(EngineStoppedError, match="did not respond for 2 s"):
            handle.result(TIMEOUT_S)

        assert handle.text() == "so far"
        assert ask(client, "count 1").result(TIMEOUT_S).text == "0 "


def test_a_stopped_engine_is_ended_too() -> None:
    with make_client(heartbeat_timeout_s=1.5) as client:
        client.load("model.gguf").result(TIMEOUT_S)

        with pytest.raises(EngineStoppedError, match="did not respond"):
            ask(client, "deaf").result(TIMEOUT_S)


def test_an_engine_that_beats_but_does_not_cancel_is_ended() -> None:
    with make_client(stall_timeout_s=0.5) as client:
        client.load("model.gguf").result(TIMEOUT_S)
        handle = ask(client, "stuck")
        next(handle.events(TIMEOUT_S))

        handle.cancel()

        with pytest.raises(EngineStoppedError, match="did not stop an answer"):
            handle.result(TIMEOUT_S)


def test_an_idle_engine_is_left_alone() -> None:
    with make_client(heartbeat_timeout_s=1.4, stall_timeout_s=0.1) as client:
        client.load("model.gguf").result(TIMEOUT_S)
        handle = ask(client, "endless")
        next(handle.events(TIMEOUT_S))
        handle.cancel()
        handle.result(TIMEOUT_S)
        pid = child_pid(client)

        assert not wait_until(lambda: is_gone(pid), timeout_s=2)
        assert child_pid(client) == pid


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((sys.executable, "-I", "-c", "import time; time.sleep(60)"), "did not respond"),
        (("/nonexistent/python",), "could not be started"),
        ((sys.executable, "-I", "-c", "import no_such_module"), "No module named 'no_such_module'"),
    ],
)
def test_an_engine_that_cannot_start_says_why(command: tuple[str, ...], reason: str) -> None:
    timeout = {"start_timeout_s": 0.3} if "respond" in reason else {}
    with make_client(command, **timeout) as client, pytest.raises(EngineStoppedError, match=reason):
        client.load("model.gguf").result(TIMEOUT_S)


def test_a_flood_of_events_arrives_whole_while_other_threads_run(client: EngineClient) -> None:
    handle = ask(client, "flood 100000")
    gaps, last = [], time.monotonic()

    while not handle.done:
        time.sleep(0.001)  # a thread that wants to run often, like a window's
        now = time.monotonic()
        gaps.append(now - last)
        last = now

    assert len(handle.result(TIMEOUT_S).token_ids) == 100_000
    assert sorted(gaps)[int(len(gaps) * 0.99)] < 0.1


def test_noise_on_stderr_blocks_nothing(client: EngineClient) -> None:
    assert ask(client, "shout").result(TIMEOUT_S).text == "so far"


def test_the_child_is_a_modest_process(client: EngineClient) -> None:
    state = ask(client, "state").result(TIMEOUT_S).text

    assert f"nice={min(19, os.nice(0) + 5)} core=0 sigint=SIG_IGN group=True " in state
    if sys.platform == "linux":
        assert "oom=600" in state


def test_an_interrupt_to_the_child_changes_nothing(client: EngineClient) -> None:
    handle = ask(client, "endless")
    pid = psutil.Process().children()[-1].pid

    os.kill(pid, signal.SIGINT)

    next(handle.events(TIMEOUT_S))
    handle.cancel()
    assert handle.result(TIMEOUT_S).finished.finish_reason == "cancelled"


def test_unloading_the_last_slot_ends_the_process_and_a_load_starts_it_again(client: EngineClient) -> None:
    client.load("b.gguf", slot="draft").result(TIMEOUT_S)
    pid = child_pid(client)
    client.unload("draft").result(TIMEOUT_S)
    assert not is_gone(pid)

    client.unload("chat").result(TIMEOUT_S)

    assert is_gone(pid)
    assert client.stats(TIMEOUT_S).values == {"deaths": 0.0}
    client.load("model.gguf")
    assert child_pid(client) != pid


def test_an_engine_without_a_model_does_not_stay() -> None:
    with make_client() as client:
        with pytest.raises(NotLoadedError):
            ask(client, "count 1").result(0)
        load, unload = client.load("slow.gguf"), client.unload()
        load.cancel()
        with pytest.raises(EngineError, match="cancelled"):
            load.result(TIMEOUT_S)
        unload.result(TIMEOUT_S)

        assert wait_until(lambda: not [c for c in psutil.Process().children() if not is_gone(c.pid)])


def test_a_load_right_after_the_last_unload_works(client: EngineClient) -> None:
    for _ in range(5):
        unload = client.unload()
        load = client.load("model.gguf")
        unload.result(TIMEOUT_S)
        load.result(TIMEOUT_S)

    assert ask(client, "count 1").result(TIMEOUT_S).text == "0 "


@pytest.mark.parametrize("prompt", ["count 1", "endless", "hang", "deaf"])
def test_closing_ends_the_child_whatever_it_does(prompt: str) -> None:
    client = make_client(stop_timeout_s=0.5)
    client.load("model.gguf").result(TIMEOUT_S)
    pid = child_pid(client)
    handle = ask(client, prompt)
    next(handle.events(TIMEOUT_S))
    started_at = time.monotonic()

    client.close()

    assert is_gone(pid)
    assert handle.done
    assert time.monotonic() - started_at < 3


def test_a_stuck_engine_shows_in_the_vital_signs() -> None:
    with make_client(stop_timeout_s=0.1) as client:
        client.load("model.gguf").result(TIMEOUT_S)
        next(ask(client, "stuck").events(TIMEOUT_S))

        with pytest.raises(TimeoutError):
            client.stats(0.01)

        assert wait_until(lambda: client.vital_signs()["progress_age_s"] > 1.2)
        assert client.vital_signs()["heartbeat_age_s"] < 1.2


def test_nothing_is_left_behind_after_many_lives() -> None:
    def count() -> tuple[int, int, int]:
        me = psutil.Process()
        return threading.active_count(), me.num_fds(), len(me.children())

    def live(end: Callable[[EngineClient], object]) -> None:
        with make_client() as client:
            client.load("model.gguf").result(TIMEOUT_S)
            with contextlib.suppress(EngineStoppedError):
                end(client)

    live(lambda client: None)
    before = count()

    for end in (
        lambda client: ask(client, "kill").result(TIMEOUT_S),
        lambda client: ask(client, "garbage").result(TIMEOUT_S),
        lambda client: client.unload().result(TIMEOUT_S),
        lambda client: ask(client, "endless"),
    ):
        live(end)

    assert count() == before


@pytest.mark.slow
def test_the_real_engine_process_reports_a_missing_file_as_a_typed_error() -> None:
    with EngineClient.child() as client, pytest.raises(ModelNotFoundError):
        client.load("/nonexistent/model.gguf").result(60)


@pytest.mark.slow
def test_a_real_model_killed_in_the_middle_keeps_its_text_and_answers_the_next_ask(smollm2: Path) -> None:
    prompt = Request(
        messages=({"role": "user", "content": "Count from one to fifty in words."},),
        sampling=SamplingParams(temperature=0, max_tokens=200),
    )
    with EngineClient.child() as client:
        client.load(smollm2)
        handle = client.submit(prompt)
        next(handle.events(60))
        (child,) = psutil.Process().children()

        child.kill()

        with pytest.raises(EngineStoppedError, match="SIGKILL"):
            handle.result(1)
        assert handle.text()
        again = client.submit(prompt)
        next(again.events(60))
        again.cancel()
        assert again.result(10).finished.finish_reason == "cancelled"


def test_endings_are_described_in_sentences() -> None:
    assert describe_end(-40, b"", None) == "The engine process was ended by signal 40 (unknown)."
    assert describe_end(0, b"noise", None) == "The engine process ended with exit code 0."
    assert describe_end(2, b"a\n\xff b\n\n", None) == "The engine process ended with exit code 2: \ufffd b."


def test_token_text_is_not_in_the_log(client: EngineClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"), pytest.raises(EngineStoppedError):
        ask(client, "raise").result(TIMEOUT_S)

    assert "the engine ended with 1 open commands" in caplog.text
    assert "fell over" not in caplog.text
    assert TokenText("so far", (0,)).text not in caplog.text
