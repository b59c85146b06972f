"""The threads behind the window: databases of their own, callbacks on the GUI thread, no error lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from inglenook.app.errors import AppError
from inglenook.app.tasks import Task, Tasks
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DamagedDatabaseError, NotFoundError, ReadOnlyError, StorageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def tasks(qtbot: QtBot, path: Path) -> Iterator[Tasks]:
    tasks = Tasks()
    tasks.open(path)
    yield tasks
    tasks.close()


def test_a_reader_sees_what_the_writer_was_told_is_done(qtbot: QtBot, tasks: Tasks) -> None:
    titles: list[list[str]] = []

    def written(_id: int) -> None:
        tasks.read(lambda db: [c.title for c in Conversations(db).entries()], titles.append)

    tasks.write(lambda db: Conversations(db).create("first"), written)
    qtbot.waitUntil(lambda: bool(titles))

    assert titles == [["first"]]


def test_callbacks_come_on_the_gui_thread_in_order(qtbot: QtBot, tasks: Tasks) -> None:
    seen: list[tuple[int, QThread]] = []
    work_threads: set[QThread] = set()

    for number in range(20):
        tasks.write(
            lambda db, number=number: (work_threads.add(QThread.currentThread()), number)[1],
            lambda n: seen.append((n, QThread.currentThread())),
        )
    qtbot.waitUntil(lambda: len(seen) == 20)

    assert [n for n, _ in seen] == list(range(20))
    assert {thread for _, thread in seen} == {tasks.thread()}
    assert tasks.thread() not in work_threads


def test_the_reader_cannot_write(qtbot: QtBot, tasks: Tasks) -> None:
    errors: list[Exception] = []

    tasks.read(lambda db: Conversations(db).create("no"), None, errors.append)
    qtbot.waitUntil(lambda: bool(errors))

    assert isinstance(errors[0], ReadOnlyError)


def test_an_expected_error_that_nobody_takes_is_told(qtbot: QtBot, tasks: Tasks) -> None:
    with qtbot.waitSignal(tasks.problem) as blocker:
        tasks.write(lambda db: Conversations(db).get(99))

    assert isinstance(blocker.args[0], NotFoundError)


def test_a_fault_reaches_the_excepthook_and_the_callback_gets_a_sentence(qtbot: QtBot, tasks: Tasks) -> None:
    errors: list[Exception] = []

    with qtbot.captureExceptions() as faults:
        tasks.write(lambda db: {}["secret text"], None, errors.append)
        qtbot.waitUntil(lambda: bool(errors))

    assert [fault[0] for fault in faults] == [KeyError]
    assert isinstance(errors[0], AppError)
    assert "secret" not in str(errors[0])


def test_a_cancelled_task_calls_nothing_back(qtbot: QtBot, tasks: Tasks) -> None:
    called: list[object] = []
    release = threading.Event()
    cancelled: list[Task] = []

    tasks.work("slow", lambda _task: release.wait(10), called.append)
    cancelled.append(tasks.work("slow", lambda _task: called.append("ran"), called.append))
    cancelled[0].cancel()
    release.set()
    done: list[object] = []
    tasks.work("slow", lambda _task: None, lambda _: done.append(1))
    qtbot.waitUntil(lambda: bool(done))

    assert called == [True]


def test_progress_is_reported_before_the_end(qtbot: QtBot, tasks: Tasks) -> None:
    seen: list[object] = []

    def work(task: Task) -> str:
        task.report(1)
        task.report(2)
        return "end"

    tasks.work("slow", work, seen.append, None, seen.append)
    qtbot.waitUntil(lambda: len(seen) == 3)

    assert seen == [1, 2, "end"]


def test_closing_lets_the_writer_finish(qtbot: QtBot, path: Path) -> None:
    tasks = Tasks()
    tasks.open(path)

    for number in range(50):
        tasks.write(lambda db, number=number: Conversations(db).create(str(number)))
    assert tasks.close(20)

    with Database.open(path) as db:
        assert Conversations(db).count() == 50
    assert tasks.close()
    assert tasks.write(lambda db: None).is_cancelled


def test_a_damaged_file_is_refused_and_every_task_says_why(qtbot: QtBot, path: Path) -> None:
    path.write_bytes(b"not a database at all")
    tasks = Tasks()
    refused: list[StorageError] = []
    errors: list[Exception] = []
    tasks.refused.connect(refused.append)

    tasks.open(path)
    tasks.write(lambda db: None, None, errors.append)
    tasks.read(lambda db: None, None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 2)
    tasks.close()

    assert isinstance(refused[0], DamagedDatabaseError)
    assert all(isinstance(error, DamagedDatabaseError) for error in errors)
    assert path.read_bytes() == b"not a database at all"


def test_a_sound_file_is_opened_with_its_notice(qtbot: QtBot, path: Path) -> None:
    tasks = Tasks()

    with qtbot.waitSignal(tasks.opened) as blocker:
        tasks.open(path)
    tasks.close()

    assert blocker.args == [""]
