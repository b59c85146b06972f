"""The objects behind the window, joined: start, crash, second start, close, reopen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_client import Asked, FakeClient
from pytestqt.qtbot import QtBot

from inglenook.app.answers.answering import Answer, OpenedConversation, open_conversation
from inglenook.app.answers.citations import shown_citations
from inglenook.app.application import HISTORY_FILE, Application
from inglenook.app.paths import UserFolders, user_folders
from inglenook.app.single_instance import SingleInstance
from inglenook.engine.client import EngineClient
from inglenook.engine.library.model_import import ModelFacts
from inglenook.engine.model_library import ModelLibrary
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages

TOWER = "The tower of Zorb is 34 metres high."


@pytest.fixture
def folders(tmp_path: Path) -> UserFolders:
    return user_folders({"HOME": str(tmp_path)})


@pytest.fixture
def library(folders: UserFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelLibrary:
    """A library with the chat models "first" and "second"."""
    facts = ModelFacts(
        title="M", kind="chat", licence="MIT", size_bytes=10, num_parameters=1, kv_bytes_per_token=1
    )
    monkeypatch.setattr("inglenook.engine.model_library.inspect_model", lambda _path: facts)
    library = ModelLibrary(folders.models)
    for name in ("first", "second"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
        library.add(tmp_path / f"{name}.gguf")
    return library


class Programs:
    """Starts applications of one profile, and closes what is left."""

    def __init__(self, qtbot: QtBot, folders: UserFolders) -> None:
        self.qtbot = qtbot
        self.folders = folders
        self.running: list[Application] = []

    def start(self, client: FakeClient | EngineClient | None = None, *, lock: bool = False) -> Application:
        instance = SingleInstance(self.folders.data) if lock else None
        assert instance is None or instance.acquire()
        application = Application(self.folders, client=client or FakeClient(), instance=instance)  # type: ignore[arg-type]
        self.running.append(application)
        application.start()
        return application

    def opened(self, client: FakeClient | EngineClient | None = None) -> Application:
        application = self.start(client)
        with self.qtbot.waitSignal(application.opened, timeout=20_000):
            pass
        return application


@pytest.fixture
def programs(qtbot: QtBot, folders: UserFolders) -> Iterator[Programs]:
    programs = Programs(qtbot, folders)
    yield programs
    for application in programs.running:
        application.close()


def say(text: str) -> Callable[[Asked], None]:
    def answer(asked: Asked) -> None:
        asked.say(text, 1)
        asked.finish()

    return answer


def ask(qtbot: QtBot, application: Application, text: str, **options: object) -> Answer:
    answers: list[Answer] = []
    application.answering.reply_ended.connect(answers.append)
    application.answering.ask(text, **options)  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: bool(answers), timeout=120_000)
    return answers[0]


def test_without_a_model_nothing_is_loaded_and_the_history_stands(programs: Programs) -> None:
    client = FakeClient()

    application = programs.opened(client)

    assert not client.loads
    assert application.models.state.models == ()
    assert (programs.folders.data / HISTORY_FILE).is_file()


def test_the_model_last_used_is_loaded_at_the_next_start(
    qtbot: QtBot, programs: Programs, library: ModelLibrary
) -> None:
    application = programs.opened()
    qtbot.waitUntil(lambda: application.bridge.model_state().phase == "ready")
    application.use_model(library.get("second"))
    application.close()
    client = FakeClient()

    again = programs.opened(client)
    qtbot.waitUntil(lambda: again.bridge.model_state().phase == "ready")

    assert again.bridge.model_state().name == "second"
    assert len(client.loads) == 1


def test_a_model_that_the_user_unloads_stays_unloaded(
    qtbot: QtBot, programs: Programs, library: ModelLibrary
) -> None:
    application = programs.opened()
    qtbot.waitUntil(lambda: application.bridge.model_state().phase == "ready")

    application.bridge.unload()
    with qtbot.waitSignal(application.models.changed):
        application.models.refresh()

    assert application.bridge.model_state().phase == "unloaded"


def test_what_was_asked_is_there_after_a_restart(
    qtbot: QtBot, programs: Programs, library: ModelLibrary, tmp_path: Path
) -> None:
    (tmp_path / "facts.txt").write_text(TOWER)
    client = FakeClient(answers=say(TOWER))
    application = programs.opened(client)
    application.indexing.add([tmp_path / "facts.txt"])
    qtbot.waitUntil(lambda: [d.status for d in application.indexing.documents] == ["ready"], timeout=20_000)
    ids = [document.id for document in application.indexing.documents]
    first = ask(qtbot, application, "How high is it?", document_ids=ids)
    application.close()

    again = programs.opened()
    opened: list[OpenedConversation] = []
    again.tasks.read(lambda db: open_conversation(db, first.reply.conversation_id), opened.append)
    qtbot.waitUntil(lambda: bool(opened) and bool(again.indexing.documents))

    assert [message.text for message in opened[0].messages] == ["How high is it?", TOWER]
    assert list(opened[0].document_ids) == ids
    (citation,) = shown_citations(TOWER, opened[0].sources[first.reply.id])
    assert citation.is_verified
    assert [document.name for document in again.indexing.documents] == ["facts.txt"]


def test_a_reply_that_a_crash_cut_off_is_marked(
    qtbot: QtBot, programs: Programs, folders: UserFolders
) -> None:
    with Database.open(folders.data / HISTORY_FILE) as db:
        conversation = Conversations(db).create("x")
        reply = Messages(db).begin_reply(conversation, parent_id=None, model="m", sampling={})
        Messages(db).save_reply(reply, "so far", [1])

    application = programs.opened()
    found: list[OpenedConversation] = []
    application.tasks.read(lambda db: open_conversation(db, conversation), found.append)
    qtbot.waitUntil(lambda: bool(found))

    assert [(m.text, m.status) for m in found[0].messages] == [("so far", "interrupted")]


def test_a_damaged_history_is_refused_and_left_as_it_is(
    qtbot: QtBot, programs: Programs, folders: UserFolders
) -> None:
    folders.data.mkdir(parents=True)
    (folders.data / HISTORY_FILE).write_bytes(b"")

    application = programs.start()
    with qtbot.waitSignal(application.refused) as blocker:
        pass

    assert "is empty (0 bytes)" in str(blocker.args[0])
    assert (folders.data / HISTORY_FILE).read_bytes() == b""


def test_a_second_start_raises_the_first_window(
    qtbot: QtBot, programs: Programs, folders: UserFolders
) -> None:
    application = programs.start(lock=True)
    started = time.monotonic()

    with qtbot.waitSignal(application.raised):
        second = SingleInstance(folders.data)
        assert not second.acquire()
        assert second.ring()

    assert time.monotonic() - started < 2


def test_settings_are_kept(qtbot: QtBot, programs: Programs) -> None:
    application = programs.opened()
    application.settings.set("chat.temperature", 0.0)
    application.settings.set("window.state", {"geometry": "abc"})
    application.close()

    again = programs.opened()

    assert again.settings.value("chat.temperature") == 0.0
    assert again.settings.value("window.state") == {"geometry": "abc"}


def test_closing_at_once_is_fine_and_twice_too(programs: Programs) -> None:
    application = programs.start()

    started = time.monotonic()
    application.close()
    application.close()

    assert time.monotonic() - started < 5


@pytest.mark.slow
def test_real_models_answer_about_a_dropped_document_and_stop_at_once(
    qtbot: QtBot, programs: Programs, folders: UserFolders, smollm2: Path, minilm: Path, tmp_path: Path
) -> None:
    library = ModelLibrary(folders.models)
    library.add(smollm2, name="chat")
    library.add(minilm, name="embedder")
    (tmp_path / "facts.md").write_text(f"# Facts\n\nThe mill of Mell is old.\n\n{TOWER}\n")
    application = programs.opened(EngineClient.child())
    application.settings.set("chat.temperature", 0.0)
    application.settings.set("chat.max_tokens", 24)
    application.indexing.add([tmp_path / "facts.md"])
    qtbot.waitUntil(lambda: [d.status for d in application.indexing.documents] == ["ready"], timeout=60_000)
    qtbot.waitUntil(lambda: application.bridge.model_state().phase == "ready", timeout=60_000)

    ids = [document.id for document in application.indexing.documents]
    answer = ask(qtbot, application, "How high is the tower of Zorb?", document_ids=ids)
    (citation,) = shown_citations(answer.reply.text, answer.sources)[:1]
    assert "34" in answer.reply.text
    assert citation.is_verified
    assert TOWER in citation.source.quote

    pieces: list[str] = []
    answers: list[Answer] = []
    application.answering.reply_text.connect(lambda _id, text: pieces.append(text))
    application.answering.reply_ended.connect(answers.append)
    application.settings.set("chat.max_tokens", 400)
    application.answering.ask("Tell a very long story.", conversation_id=answer.reply.conversation_id)
    qtbot.waitUntil(lambda: bool(pieces), timeout=120_000)
    started = time.monotonic()
    reply_id = application.answering.active_reply(answer.reply.conversation_id)
    assert reply_id is not None
    with qtbot.waitSignal(application.answering.reply_stopping):
        application.answering.stop(reply_id)
    acknowledged_s = time.monotonic() - started
    qtbot.waitUntil(lambda: bool(answers), timeout=20_000)

    assert acknowledged_s < 0.1
    assert answers[0].reply.finish_reason == "cancelled"
    assert answers[0].reply.text == "".join(pieces)
