"""The whole window with everything behind it but the engine, which a test plays by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from fake_client import FakeClient
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from inglenook.app.application import Application
from inglenook.app.chat.message_list_model import Message
from inglenook.app.models.model_examiner import Look
from inglenook.app.paths import UserFolders
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.theme import Theme
from inglenook.app.window.window_join import WindowJoin
from inglenook.engine.model_library import ModelRecord


class WindowDesk:
    """A window over the profile in `folder`; close it, and make another one to start the program again."""

    def __init__(
        self,
        qtbot: QtBot,
        theme: Theme,
        folder: Path,
        client: FakeClient | None = None,
        look: Look | None = None,
    ) -> None:
        self.qtbot = qtbot
        self.client = client or FakeClient()
        self.folders = UserFolders(folder / "data", folder / "config", folder / "state", folder / "cache")
        self.folders.data.mkdir(parents=True, exist_ok=True)
        self.window = MainWindow(theme)
        self.application = Application(self.folders, client=self.client, look=look)  # type: ignore[arg-type]
        self.join = WindowJoin(self.window, self.application)
        self._is_closed = False
        self.window.show()

    def start(self) -> WindowDesk:
        with self.qtbot.waitSignals(
            [self.application.opened, self.application.models.changed], timeout=60_000
        ):
            self.application.start()
        # A title asks the engine once more; who tests that says so.
        self.application.settings.set("chat.titles", False)
        self.qtbot.waitUntil(
            lambda: self.window.page is not self.window.chat or self.can_write, timeout=60_000
        )
        return self

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.application.close()
            self.window.close()
            self.window.deleteLater()

    @property
    def can_write(self) -> bool:
        return not self.window.chat.composer.edit.isReadOnly()

    @property
    def messages(self) -> Sequence[Message]:
        return self.window.chat.model.messages

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def titles(self) -> list[str]:
        return [entry.title for entry in self.window.sidebar.chats.model.entries]

    def send(self, text: str) -> None:
        edit = self.window.chat.composer.edit
        edit.setFocus()
        edit.insertPlainText(text)
        QTest.keyClick(edit, Qt.Key.Key_Return)

    def ask(self, text: str, answer: str) -> None:
        """Ask, and have it answered."""
        num_requests, num_messages = len(self.client.requests), len(self.messages)
        self.send(text)
        self.qtbot.waitUntil(lambda: len(self.client.requests) > num_requests)
        asked = self.client.requests[-1]
        asked.say(answer, 1, 2)
        asked.finish()
        self.qtbot.waitUntil(
            lambda: len(self.messages) == num_messages + 2 and self.messages[-1].state == "complete"
        )

    def drop(self, *paths: Path) -> None:
        self.window.files_dropped.emit(list(paths))


def put_model(folder: Path, name: str = "tiny", *, kind: str = "chat", title: str = "Tiny 1M") -> None:
    """Put a model that only a fake engine would load into a library."""
    place = folder / "data" / "models" / name
    place.mkdir(parents=True)
    record = ModelRecord(
        title=title,
        kind=kind,  # type: ignore[arg-type]
        licence="MIT",
        origin="a test",
        size_bytes=1_000_000,
        num_parameters=1_000_000,
        kv_bytes_per_token=1_000,
    )
    (place / "model.json").write_bytes(msgspec.json.encode(record))
    (place / "model.gguf").write_bytes(b"GGUF")
