"""The models for the window: listed, fetched with progress, cancelled, imported, removed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.errors import AppError
from inglenook.app.models.model_shelf import ModelShelf, ShelfState
from inglenook.app.tasks import Tasks
from inglenook.engine.errors import FetchError
from inglenook.engine.library.model_import import ModelFacts
from inglenook.engine.model_library import InstalledModel, ModelLibrary


@pytest.fixture
def tasks(qtbot: QtBot) -> Iterator[Tasks]:
    tasks = Tasks()
    yield tasks
    tasks.close()


@pytest.fixture
def shelf(tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelShelf:
    facts = ModelFacts(
        title="M", kind="chat", licence="MIT", size_bytes=10, num_parameters=1, kv_bytes_per_token=1
    )
    monkeypatch.setattr("inglenook.engine.model_library.inspect_model", lambda _path: facts)
    return ModelShelf(tmp_path / "models", tasks)


def test_an_imported_model_is_on_the_shelf_until_it_is_removed(
    qtbot: QtBot, shelf: ModelShelf, tmp_path: Path
) -> None:
    (tmp_path / "my.gguf").write_bytes(b"GGUF")
    fetched: list[InstalledModel] = []
    states: list[ShelfState] = []
    shelf.fetched.connect(fetched.append)
    shelf.changed.connect(states.append)

    shelf.add(tmp_path / "my.gguf", name="mine")
    assert shelf.fetching == {"mine"}
    qtbot.waitUntil(lambda: bool(states))
    shelf.remove("mine")
    qtbot.waitUntil(lambda: len(states) == 2)

    assert [model.name for model in fetched] == ["mine"]
    assert states[0].preferred_chat == states[0].get("mine") == fetched[0]
    assert states[0].free_bytes > 0
    assert states[1].models == ()
    assert (tmp_path / "my.gguf").is_file()


def test_what_goes_wrong_is_a_sentence(qtbot: QtBot, shelf: ModelShelf, tmp_path: Path) -> None:
    failures: list[tuple[str, str]] = []
    shelf.failed.connect(lambda *failure: failures.append(failure))

    shelf.remove("ghost")
    qtbot.waitUntil(lambda: bool(failures))

    assert failures[0][0] == "ghost"
    assert "There is no model 'ghost' in the library." in failures[0][1]


def test_a_download_tells_its_progress_and_can_be_cancelled(
    qtbot: QtBot, shelf: ModelShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    goes_on = threading.Event()

    def fetch(_self: ModelLibrary, name: str, progress: Callable[[int, int], None]) -> InstalledModel:
        try:
            progress(5, 10)
            goes_on.wait(10)
            progress(6, 10)
        except AppError:
            ended.set()
            raise FetchError("Cancelled.") from None
        raise AssertionError("it was not cancelled")

    monkeypatch.setattr(ModelLibrary, "fetch", fetch)
    progress: list[tuple[str, int, int]] = []
    failures: list[object] = []
    shelf.progress.connect(lambda *values: progress.append(values))
    shelf.failed.connect(lambda *failure: failures.append(failure))

    shelf.fetch("small")
    shelf.fetch("small")
    qtbot.waitUntil(lambda: bool(progress))
    with qtbot.waitSignal(shelf.changed):
        shelf.cancel("small")
    goes_on.set()
    qtbot.waitUntil(ended.is_set)

    assert progress == [("small", 5, 10)]
    assert shelf.fetching == set()
    assert not failures
