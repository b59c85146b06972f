"""Memory that is promised once, although loads run beside each other and caches fill later."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tiny_encoders import make_encoder
from tiny_gguf import CONTEXT

from inglenook.engine import loaded_encoder, loaded_model, memory_plan
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import NotEnoughMemoryError
from inglenook.engine.memory import MemoryState
from inglenook.engine.memory_promises import MemoryPromises
from inglenook.engine.request import LoadOptions
from inglenook.engine.torch_backend import TorchBackend

T = 60.0
OPTIONS = LoadOptions(backend="reference", num_threads=1)


def promised_to_others(promises: MemoryPromises, slot: str) -> int:
    with promises.deciding(slot) as promised:
        return promised


def test_a_slot_sees_what_the_others_were_promised_and_have_not_taken() -> None:
    promises, left = MemoryPromises(), {"chat": 100, "embedder": 7}
    for slot in left:
        promises.make(slot, lambda slot=slot: left[slot])  # type: ignore[misc]

    before = promised_to_others(promises, "chat"), promised_to_others(promises, "embedder")
    left["chat"] = -3  # more than was thought
    after = promised_to_others(promises, "embedder")
    promises.drop("chat")
    promises.drop("chat")

    assert before == (7, 100)
    assert after == 0
    assert promised_to_others(promises, "embedder") == 0


def test_of_two_who_decide_at_once_the_second_sees_the_promise_of_the_first() -> None:
    promises, seen, inside = MemoryPromises(), [], threading.Event()

    def first() -> None:
        with promises.deciding("a") as promised:
            inside.set()
            seen.append(promised)
            promises.make("a", lambda: 50)

    thread = threading.Thread(target=first)
    with promises.deciding("b") as promised:
        thread.start()
        assert not inside.wait(0.05)
        seen.append(promised)
        promises.make("b", lambda: 20)
    thread.join(T)

    assert seen == [0, 20]


def give_memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    for module in (memory_plan, loaded_encoder):
        monkeypatch.setattr(module, "memory_state", lambda: MemoryState(10**12, free))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    make_encoder(folder, "xlm-roberta")
    return folder


@pytest.mark.slow  # it imports transformers
def test_an_encoder_counts_the_cache_that_a_model_has_not_filled_yet(
    tiny: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_memory(monkeypatch, 10**9)
    needs = [10**8]
    monkeypatch.setattr(loaded_encoder, "estimate_need", lambda *sizes: needs[-1])
    with EngineClient.in_process() as client:
        one_context = client.load(tiny, options=OPTIONS).result(T).kv_bytes // 4
        give_memory(monkeypatch, 10**8)
        needs.append(10**8 - one_context + 1)
        with pytest.raises(NotEnoughMemoryError):
            client.load(encoder, "embedder", OPTIONS).result(T)
        needs.append(10**8 - one_context)
        client.load(encoder, "embedder", OPTIONS).result(T)
        left = client.stats().values["chat.kv_blocks"]

    assert left == CONTEXT // 16  # what the model could spare was given up first


def test_two_loads_at_once_are_not_promised_the_same_memory(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EngineClient.in_process() as client:
        need = client.load(tiny, options=OPTIONS).result(T).need_bytes
    give_memory(monkeypatch, int(1.7 * need))
    both_decided, decisions, plan, load = threading.Event(), [], loaded_model.plan_memory, TorchBackend.load

    def decide(*arguments: object, **options: object) -> object:
        try:
            return plan(*arguments, **options)  # type: ignore[arg-type]
        finally:
            decisions.append(1)
            if len(decisions) == 2:
                both_decided.set()

    def load_later(*arguments: object) -> object:
        assert both_decided.wait(T)
        return load(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(loaded_model, "plan_memory", decide)
    monkeypatch.setattr(TorchBackend, "load", load_later)
    with EngineClient.in_process() as client:
        handles = [client.load(tiny, slot, OPTIONS) for slot in ("chat", "second")]
        outcomes = []
        for handle in handles:
            try:
                outcomes.append(handle.result(T).slot)
            except NotEnoughMemoryError as error:
                outcomes.append(str(error))

    assert sum(outcome in ("chat", "second") for outcome in outcomes) == 1
    assert any("needs" in outcome and "are free" in outcome for outcome in outcomes)
