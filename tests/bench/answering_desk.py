"""What tests of one turn share: its surroundings, with an engine played by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fake_client import Asked, FakeClient
from pytestqt.qtbot import QtBot

from inglenook.app.answers.answering import Answer, Answering, ReplyOptions, Turn
from inglenook.app.bridge import EngineBridge
from inglenook.app.documents.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.storage.database import Database


class AnsweringDesk:
    """A turn's surroundings: the engine is `client`, everything told is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.client = FakeClient()
        self.tasks = Tasks()
        self.tasks.open(path)
        self.bridge = EngineBridge(self.client)  # type: ignore[arg-type]
        self.embedder = Embedder(self.bridge)
        self.options = ReplyOptions()
        self.answering = Answering(
            self.bridge, self.tasks, self.embedder, lambda _conversation_id: self.options
        )
        self.turns: list[Turn] = []
        self.texts: list[str] = []
        self.stages: list[str] = []
        self.answers: list[Answer] = []
        self.refusals: list[tuple[str, str]] = []
        self.notices: list[str] = []
        self.stopping: list[int] = []
        self.answering.turn_started.connect(self.turns.append)
        self.answering.reply_text.connect(lambda _id, text: self.texts.append(text))
        self.answering.stage_changed.connect(lambda _id, stage: self.stages.append(stage))
        self.answering.reply_ended.connect(self.answers.append)
        self.answering.turn_refused.connect(lambda *refusal: self.refusals.append(refusal))
        self.answering.notice.connect(lambda _id, text: self.notices.append(text))
        self.answering.reply_stopping.connect(self.stopping.append)

    def start(self, qtbot: QtBot) -> AnsweringDesk:
        """Have a model stand in the chat's slot."""
        self.bridge.load(Path("/models/m.gguf"), name="m")
        qtbot.waitUntil(lambda: self.bridge.model_state().phase == "ready")
        return self

    def close(self) -> None:
        self.answering.close()
        self.tasks.close()
        self.bridge.close()


def read(qtbot: QtBot, desk: AnsweringDesk, work: Callable[[Database], object]) -> object:
    """Return what a function finds in the database."""
    results: list[object] = []
    desk.tasks.read(work, results.append)
    qtbot.waitUntil(lambda: bool(results))
    return results[0]


def say(text: str) -> Callable[[Asked], None]:
    """Return what answers every request with a text."""

    def answer(asked: Asked) -> None:
        asked.say(text, 1, 2)
        asked.finish()

    return answer
