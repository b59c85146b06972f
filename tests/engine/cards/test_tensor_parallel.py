"""One model on several cards: real processes and gloo on the CPU in their place, compared with one process; and deaths."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest
from random_models import Steps
from tiny_gguf import write_tiny_gguf

from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.cards.placement import CardOptions
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import CardLostError, UnsupportedModelError
from inglenook.engine.request import Loaded, LoadOptions, Request, SamplingParams
from inglenook.engine.weights.loader import ModelFile, open_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf", quantize="Q8_0")


def load(file: ModelFile, count: int = 2):
    backend = choose_backend("cuda:reference", file.spec, file, cards=CardOptions(num_cards=count))
    model = backend.load(file.spec, file, lambda done, total: None)
    steps = Steps(file.spec, 1, 2)
    model.allocate_kv((steps.num_blocks,))
    return model, steps


def test_two_processes_give_the_logits_of_one(path: Path) -> None:
    with open_model(path) as file:
        together, steps = load(file)
        alone, _ = load(file, 1)
        try:
            for counts in ({0: 9, 1: 21}, {0: 1, 1: 1}, {1: 1}):
                batch = steps.batch(counts, wants_all=True)
                assert (together.forward(batch) - alone.forward(batch)).abs().max() <= 1e-4
            # what the engine does to blocks, it does on every card
            for kv in (together.kv[0], alone.kv[0]):
                kv.copy_blocks([(int(steps.tables[0, 0]), int(steps.tables[1, 3]))])
            steps.tables[0, 0] = steps.tables[1, 3]
            batch = steps.batch({0: 1})
            assert (together.forward(batch) - alone.forward(batch)).abs().max() <= 1e-4
        finally:
            together.close()
            alone.close()


def test_a_card_killed_in_the_middle_of_a_step_fails_it_within_seconds_and_every_later_one(
    path: Path,
) -> None:
    with open_model(path) as file:
        model, steps = load(file)
        (pid,) = model.cards.pids
        model.forward(steps.batch({0: 5}))
        errors: list[BaseException] = []

        def step() -> None:
            try:
                model.forward(steps.batch({0: 1}))
            except BaseException as error:  # noqa: BLE001 - looked at below
                errors.append(error)

        os.kill(pid, signal.SIGSTOP)  # so that the step cannot end without it
        thread = threading.Thread(target=step)
        started = time.monotonic()
        thread.start()
        os.kill(pid, signal.SIGKILL)
        thread.join(20)
        took = time.monotonic() - started

        assert not thread.is_alive()
        assert isinstance(errors[0], CardLostError)
        assert "The process of card 1 was ended by SIGKILL. Load the model again." in str(errors[0])
        assert took < 8
        with pytest.raises(CardLostError, match="SIGKILL"):
            model.forward(steps.batch({0: 1}))
        model.kv[0].blank([0])  # what the engine does after a failed step
        model.close()
        model.close()


def test_two_cards_answer_as_one_and_a_death_is_told_with_the_way_out(path: Path) -> None:
    def ask(client: EngineClient) -> tuple[int, ...]:
        sampling = SamplingParams(max_tokens=12, temperature=0.8, seed=3, ignore_eos=True)
        return client.submit(Request(prompt_token_ids=(40, 41, 42), sampling=sampling)).result(60).token_ids

    def options(count: int) -> LoadOptions:
        return LoadOptions(backend="cuda:reference", num_cards=count, num_threads=1)

    before = children()
    with EngineClient.in_process() as client:
        client.load(path, options=options(1)).result(60)
        alone = ask(client)
        facts = client.load(path, options=options(2)).result(120)
        together = ask(client)
        (pid,) = children() - before
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(CardLostError, match=r"card 1 was ended by SIGKILL\. Load the model again"):
            ask(client)
        client.load(path, options=options(2)).result(120)
        again = ask(client)

    assert together == alone == again
    assert (facts.backend, facts.backend_reason) == ("cuda", "2 cards were asked for")
    assert "2 cards were asked for." in facts.notices
    assert not children() - before


def children() -> set[int]:
    """Processes that this one started and that still run."""
    return {child.pid for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}


def test_no_process_of_a_card_outlives_its_engine(path: Path) -> None:
    with EngineClient.child() as client:
        client.load(path, options=LoadOptions(backend="cuda:reference", num_cards=2, num_threads=1)).result(
            120
        )
        (engine,) = (
            psutil.Process(pid) for pid in children() if "inglenook.engine.homes.process" in command(pid)
        )
        cards = engine.children()

        engine.kill()
        _, alive = psutil.wait_procs(cards, timeout=10)

    assert len(cards) == 1
    assert not alive


def test_a_load_that_is_given_up_ends_the_processes_it_started(path: Path) -> None:
    before = children()
    started = threading.Event()
    with EngineClient.in_process() as client:
        options = LoadOptions(backend="cuda:reference", num_cards=2, num_threads=1)
        handle = client.load(path, options=options, on_event=lambda event: started.set())
        assert started.wait(30)

        handle.cancel()

        assert not any(isinstance(event, Loaded) for event in handle.events(60))
        gone = [psutil.Process(pid) for pid in children() - before]
        _, alive = psutil.wait_procs(gone, timeout=10)
    assert not alive


def command(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline())


def test_what_cannot_be_shared_is_refused_before_any_process_is_started(path: Path) -> None:
    with open_model(path) as file:
        backend = choose_backend("cuda:reference", file.spec, file, cards=CardOptions(num_cards=16))
        with pytest.raises(UnsupportedModelError, match="16 cards cannot share"):
            backend.load(file.spec, file, lambda done, total: None)
