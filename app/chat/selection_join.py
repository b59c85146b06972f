"""Joins the choice of several messages with what can be done with them: copy, export, delete. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from inglenook.app.application import Application
from inglenook.app.chat.export import (
    FORMATS,
    ExportedConversation,
    file_name,
    read_conversation,
    write_export,
)
from inglenook.app.chat.message_list_model import Message
from inglenook.app.translations.figures import numbered
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.database import Database
from inglenook.storage.message_edits import MessageEdits

if TYPE_CHECKING:
    from inglenook.app.chat.chat_join import ChatJoin


class SelectionJoin(QObject):
    """Works on the chosen messages of the chat on screen."""

    def __init__(self, window: MainWindow, application: Application, chats: ChatJoin) -> None:
        super().__init__(chats)
        self._window, self._app, self._chats = window, application, chats
        self._selection = window.chat.view.selection
        bar = window.chat.selection_bar
        bar.copy_requested.connect(self._copy)
        bar.export_requested.connect(self._ask_where)
        bar.delete_requested.connect(self._ask_delete)
        window.on_action("select_messages", self.begin)

    def begin(self) -> None:
        """Let messages be chosen, by the mouse and by the keys."""
        if self._window.chat.model.messages:
            self._window.show_chat()
            self._selection.begin()
            self._window.chat.view.setFocus()

    def _copy(self) -> None:
        messages = self._selection.messages
        QGuiApplication.clipboard().setText(markdown_of(messages, self.tr("You"), self.tr("Assistant")))
        count = len(messages)
        self._selection.end()
        self._chats.tell(
            self.tr("1 message was copied.") if count == 1 else numbered("{0} messages were copied.", count)
        )

    def _ask_where(self) -> None:
        suffixes = {
            f"{QCoreApplication.translate('export', words)} (*.{suffix})": suffix
            for suffix, words in FORMATS.items()
        }
        dialog = QFileDialog(self._window, self.tr("Export the chosen messages"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(list(suffixes))
        dialog.setDefaultSuffix("md")
        dialog.filterSelected.connect(lambda name: dialog.setDefaultSuffix(suffixes.get(name, "md")))
        dialog.selectFile(file_name(self._chats.title))
        dialog.fileSelected.connect(lambda path: self.write(Path(path)))
        dialog.open()

    def write(self, path: Path) -> None:
        """Write the chosen messages to a file, whose ending says as what."""
        conversation_id = self._chats.conversation_id or 0
        ids = {message.id for message in self._selection.messages}

        def read(db: Database) -> ExportedConversation:
            whole = read_conversation(db, conversation_id)
            chosen = tuple(message for message in whole.shown if message.id in ids)
            return replace(whole, shown=chosen, tree=chosen)

        def done(_result: object) -> None:
            self._selection.end()
            self._chats.tell(self.tr("The chosen messages were written to {0}.").format(path.name))

        self._chats.home.tasks.read(
            read,
            lambda exported: self._app.tasks.work(
                "export", lambda _task: write_export(exported, path), done, self._fail
            ),
            self._fail,
        )

    def _ask_delete(self) -> None:
        if self._window.chat.composer.is_streaming:
            self._chats.tell(self.tr("Stop the reply first; then messages can be deleted."))
            return
        ids = [message.id for message in self._selection.messages]
        one = self.tr("Delete this message?")
        confirm(
            self._window,
            title=self.tr("Delete messages"),
            question=one if len(ids) == 1 else numbered("Delete these {0} messages?", len(ids)),
            detail=self.tr("A question and its answer go together, with all their versions. The rest stays."),
            button=self.tr("Delete"),
            accepted=lambda: self._delete(ids),
        )

    def _delete(self, ids: Sequence[int | str]) -> None:
        def work(db: Database) -> None:
            with db.atomic():
                for message_id in ids:
                    MessageEdits(db).delete_turn(int(message_id))

        def done(_result: object) -> None:
            self._chats.home.answering.cached_text.forget_conversation(conversation_id)
            self._chats.reopen()

        conversation_id = self._chats.conversation_id or 0
        self._selection.end()
        self._chats.home.tasks.write(work, done, self._fail)

    def _fail(self, error: Exception) -> None:
        self._chats.tell(str(error))


def markdown_of(messages: Sequence[Message], you: str, assistant: str) -> str:
    """Return messages as Markdown, each under who said it, without what was thought."""
    who = {"user": you, "assistant": assistant}
    return "\n\n".join(f"**{who[message.role]}:**\n\n{message.answer.strip()}" for message in messages)
