"""An engine that nothing is asked of for a while gives its memory back, and comes back with the next request."""

import functools
import importlib.util
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.idle_timer import IdleTimer
from inglenook.engine.request import Request, Unloaded

FAKE_CORE = Path(__file__).with_name("fake_core.py")
T = 20


def fake_in_process():
    spec = importlib.util.spec_from_file_location("fake_core", FAKE_CORE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return EngineClient.in_process(module.FakeCore)


def fake_child():
    return EngineClient(functools.partial(ChildHome, command=(sys.executable, "-I", str(FAKE_CORE))))


@pytest.fixture(params=[fake_in_process, fake_child], ids=["in_process", "child"])
def client(request):
    with request.param() as client:
        yield client


def wait_until(condition):
    deadline = time.monotonic() + T
    while not condition() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return condition()


def ask(client, prompt, slot="chat"):
    return client.submit(Request(prompt=prompt, slot=slot))


def test_an_idle_engine_unloads_and_the_next_request_loads_what_was_there(client):
    for slot in ("chat", "second"):
        client.load(f"{slot}.gguf", slot).result(T)
    client.unload_when_idle(0.05)
    assert wait_until(lambda: client.stats(T).slots == {})

    assert ask(client, "count 2").result(T).text == "0 1 "
    assert ask(client, "count 1", "second").result(T).text == "0 "
    assert client.stats(T).values["deaths"] == 0


def test_falling_asleep_is_told_once_and_not_for_what_a_person_unloads(client):
    told = threading.Semaphore(0)
    client.on_sleep = told.release
    client.load("chat.gguf").result(T)
    client.unload_when_idle(0.05)

    assert told.acquire(timeout=T)
    client.unload_when_idle(None)
    client.load("chat.gguf").result(T)
    client.unload().result(T)
    client.unload_when_idle(0.05)
    threading.Event().wait(0.2)

    assert not told.acquire(blocking=False)


def test_asking_for_numbers_keeps_nothing_awake_and_work_does(client):
    client.load("chat.gguf").result(T)
    busy = ask(client, "endless")
    next(busy.events(T))
    client.unload_when_idle(0.1)
    threading.Event().wait(0.3)
    assert not busy.done

    busy.cancel()
    assert busy.result(T).finished.finish_reason == "cancelled"
    assert wait_until(lambda: client.stats(T).slots == {})


def test_never_is_the_default_and_can_be_set_again(client):
    client.load("chat.gguf").result(T)
    client.unload_when_idle(0.05)
    client.unload_when_idle(None)
    threading.Event().wait(0.2)

    assert client.stats(T).slots == {"chat": "chat.gguf"}


def test_a_sleeping_slot_that_is_emptied_stays_empty(client):
    client.load("chat.gguf").result(T)
    client.load("b.gguf", "second").result(T)
    client.unload_when_idle(0.05)
    assert wait_until(lambda: client.stats(T).slots == {})

    assert client.unload("chat").result(T) == Unloaded("chat")
    assert ask(client, "count 1", "second").result(T).text == "0 "
    assert client.stats(T).slots == {"second": "b.gguf"}


def test_a_child_that_sleeps_is_gone():
    with fake_child() as client:
        client.load("chat.gguf").result(T)
        pid = int(ask(client, "pid").result(T).text)
        client.unload_when_idle(0.05)

        assert wait_until(lambda: not psutil.pid_exists(pid))
        assert int(ask(client, "pid").result(T).text) != pid


def test_closing_ends_the_timer():
    before = set(threading.enumerate())
    with fake_in_process() as client:
        client.unload_when_idle(100)
        client.load("chat.gguf").result(T)

    assert wait_until(lambda: set(threading.enumerate()) <= before)


def test_each_restart_counts_anew():
    calls = []
    timer = IdleTimer(lambda: calls.append(time.monotonic()), 0.2)
    for _ in range(5):
        last = time.monotonic()
        timer.restart()
        threading.Event().wait(0.02)

    assert wait_until(lambda: bool(calls))
    assert len(calls) == 1
    assert calls[0] - last >= 0.2
    timer.restart()
    timer.cancel()
