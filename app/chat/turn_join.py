"""Joins what a person does with turns: edit, versions, fork, delete, and messages that wait for the reply to end.

A message that is edited and asked again, or answered again, keeps the old version beside the new one. Works for the
conversation on screen; queued messages belong to the conversation in which they were written. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from inglenook.app.answers.answering import Answer
from inglenook.app.application import Application
from inglenook.app.chat.selection_join import SelectionJoin
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.database import Database
from inglenook.storage.message_edits import MessageEdits
from inglenook.storage.messages import Messages
from inglenook.storage.temporary import is_temporary

if TYPE_CHECKING:
    from inglenook.app.chat.chat_join import ChatJoin


@dataclass(slots=True)
class _Edit:
    message_id: int
    is_reply: bool
    draft: str  # what stood in the composer before


class TurnJoin(QObject):
    """What can be done with the turns of the conversation on screen."""

    def __init__(self, window: MainWindow, application: Application, chats: ChatJoin) -> None:
        super().__init__(chats)
        self._window, self._app, self._chats = window, application, chats
        self.selection = SelectionJoin(window, application, chats)
        self._edit: _Edit | None = None
        self._queued: dict[int, list[str]] = {}
        self._paused: set[int] = set()
        self._eager: set[int] = set()
        chat = window.chat
        chat.view.action_requested.connect(self.act)
        chat.edit_bar.save_requested.connect(self._save_edit)
        chat.edit_bar.cancel_requested.connect(self.end_edit)
        chat.composer.queue_requested.connect(self._queue)
        chat.queue.drop_requested.connect(self._drop_waiting)
        chat.queue.edit_requested.connect(self._take_back)
        chat.queue.remove_requested.connect(self._remove)
        chat.queue.send_requested.connect(self._resume)

    @property
    def is_editing(self) -> bool:
        """Whether the composer holds a message that was written before."""
        return self._edit is not None

    def act(self, message_id: object, name: str) -> None:
        """Do what a message's button or menu asks for."""
        if not isinstance(message_id, int):
            return
        if name == "edit":
            self._begin_edit(message_id)
        elif name == "again":
            self._chats.regenerate(message_id)
        elif name in ("previous", "next"):
            self._show_version(message_id, 1 if name == "next" else -1)
        elif name == "continue":
            self._chats.go_on_with(message_id)
        elif name == "fork":
            self._fork(message_id)
        elif name == "delete_turn":
            self._ask_delete(message_id)

    def edit_last_question(self) -> None:
        """Take the last question into the composer, to be changed."""
        for message in reversed(self._window.chat.model.messages):
            if message.role == "user" and isinstance(message.id, int):
                self._begin_edit(message.id)
                return

    def take(self, text: str) -> bool:
        """Take a text that was sent while a message is edited; False when none is."""
        edit = self._edit
        if edit is None:
            return False
        if edit.is_reply:
            self._save(edit, text)
            return True
        self._finish(edit)
        self._chats.ask_in_place_of(edit.message_id, text)
        return True

    def end_edit(self) -> None:
        """Leave the message as it was; what had been typed comes back."""
        if self._edit is not None:
            self._finish(self._edit)

    def show_queue(self) -> None:
        """Show what waits in the conversation on screen."""
        key = self._chats.conversation_id or 0
        self._window.chat.queue.show_texts(self._queued.get(key, []), is_paused=key in self._paused)

    def _begin_edit(self, message_id: int) -> None:
        composer = self._window.chat.composer
        if composer.is_streaming:
            self._chats.tell(self.tr("Stop the reply first; then its turn can be edited."))
            return
        message = self._window.chat.model.message(message_id)
        draft = self._edit.draft if self._edit is not None else composer.text()
        self._edit = _Edit(message_id, message.role == "assistant", draft)
        self._window.chat.edit_bar.begin(is_reply=self._edit.is_reply)
        composer.set_text(message.text)
        composer.setFocus()

    def _save_edit(self) -> None:
        text = self._window.chat.composer.text()
        if self._edit is not None and text.strip():
            self._save(self._edit, text)

    def _save(self, edit: _Edit, text: str) -> None:
        self._finish(edit)
        conversation_id = self._chats.conversation_id or 0
        self._chats.home.tasks.write(
            lambda db: MessageEdits(db).set_text(edit.message_id, text),
            lambda _: self._changed(conversation_id, at=edit.message_id),
        )

    def _changed(self, conversation_id: int, *, at: int | None = None) -> None:
        """Show the conversation anew, and have the engine forget what it was before."""
        self._chats.home.answering.cached_text.forget_conversation(conversation_id)
        self._chats.reopen(at=at)

    def _finish(self, edit: _Edit) -> None:
        self._edit = None
        self._window.chat.edit_bar.hide()
        self._window.chat.composer.set_text(edit.draft)
        self._window.chat.composer.setFocus()

    def _show_version(self, message_id: int, step: int) -> None:
        def work(db: Database) -> int:
            messages = Messages(db)
            branches = messages.branches(message_id)
            place = min(max(0, branches.index(message_id) + step), len(branches) - 1)
            messages.show(branches[place])
            return branches[place]

        if self._window.chat.composer.is_streaming:
            self._chats.tell(self.tr("Another version can be shown when this reply has ended."))
            return
        self.end_edit()
        self._chats.home.tasks.write(work, lambda shown: self._chats.reopen(at=shown))

    def _fork(self, message_id: int) -> None:
        title = self._chats.title

        def forked(conversation_id: int) -> None:
            self._chats.refresh()
            self._chats.open(conversation_id)

        name = self.tr("{0} (from here)").format(title) if title else ""
        self._chats.home.tasks.write(lambda db: MessageEdits(db).fork(message_id, name), forked)

    def _ask_delete(self, message_id: int) -> None:
        if self._window.chat.composer.is_streaming:
            self._chats.tell(self.tr("Stop the reply first; then its turn can be deleted."))
            return
        confirm(
            self._window,
            title=self.tr("Delete question and answer"),
            question=self.tr("Delete this question and its answer?"),
            detail=self.tr("All versions of both go with it. What was said before and after stays."),
            button=self.tr("Delete"),
            accepted=lambda: self._delete(message_id),
        )

    def _delete(self, message_id: int) -> None:
        self.end_edit()
        conversation_id = self._chats.conversation_id or 0
        self._chats.home.tasks.write(
            lambda db: MessageEdits(db).delete_turn(message_id),
            lambda _: self._changed(conversation_id),
        )

    # Messages that wait.

    def _queue(self, text: str) -> None:
        conversation_id, messages = self._chats.conversation_id or 0, self._window.chat.model.messages
        waiting = self._queued.setdefault(conversation_id, [])
        if not waiting and messages and messages[-1].state == "stopped":
            # The reply was stopped to ask this; it waits only until the engine has let go.
            self._eager.add(conversation_id)
        waiting.append(text)
        self.show_queue()

    def adopt_queue(self, conversation_id: int) -> None:
        """Give what was queued before a new chat had its number to that chat."""
        if 0 in self._queued:
            self._queued[conversation_id] = self._queued.pop(0)
            self.show_queue()

    def _take_back(self, place: int) -> None:
        texts = self._queued.get(self._chats.conversation_id or 0, [])
        if place < len(texts):
            composer = self._window.chat.composer
            waiting = composer.text()
            text = texts.pop(place)
            if waiting.strip():
                texts.insert(place, waiting)
            composer.set_text(text)
            composer.setFocus()
        self._drop_empty()

    def _remove(self, place: int) -> None:
        texts = self._queued.get(self._chats.conversation_id or 0, [])
        if place < len(texts):
            del texts[place]
        self._drop_empty()

    def _resume(self) -> None:
        conversation_id = self._chats.conversation_id or 0
        self._paused.discard(conversation_id)
        self._send_next(conversation_id)

    def take_end(self, answer: Answer) -> None:
        """Go on with what waits in the conversation of a reply that has ended."""
        reply = answer.reply
        is_eager = reply.conversation_id in self._eager
        self._eager.discard(reply.conversation_id)
        if not self._queued.get(reply.conversation_id):
            return
        if reply.status == "complete" and (
            is_eager or reply.finish_reason not in ("cancelled", "repetition")
        ):
            self._send_next(reply.conversation_id)
        else:
            # What was stopped, failed or ran wild may change what should be asked next.
            self._paused.add(reply.conversation_id)
            self.show_queue()

    def _send_next(self, conversation_id: int) -> None:
        texts = self._queued.get(conversation_id, [])
        if texts:
            self._chats.ask(texts.pop(0), conversation_id=conversation_id)
        self._drop_empty()

    def forget_temporary(self) -> None:
        """Drop what waits in temporary chats, which are gone."""
        self._queued = {key: texts for key, texts in self._queued.items() if not is_temporary(key)}
        self._paused = {key for key in self._paused if not is_temporary(key)}

    def _drop_waiting(self) -> None:
        """After the reply was stopped, Stop once more drops what waits, and offers it back."""
        conversation_id = self._chats.conversation_id or 0
        texts = self._queued.get(conversation_id, [])
        if self._window.chat.composer.is_streaming or conversation_id not in self._paused or not texts:
            return

        def take_back() -> None:
            self._queued[conversation_id] = [*texts, *self._queued.get(conversation_id, [])]
            self._paused.add(conversation_id)
            self.show_queue()

        del self._queued[conversation_id]
        self._paused.discard(conversation_id)
        self.show_queue()
        words = (
            self.tr("1 waiting message was dropped.")
            if len(texts) == 1
            else self.tr("{0} waiting messages were dropped.").format(len(texts))
        )
        self._chats.tell(words, self.tr("Undo"), take_back)

    def _drop_empty(self) -> None:
        for conversation_id in [key for key, texts in self._queued.items() if not texts]:
            del self._queued[conversation_id]
            self._paused.discard(conversation_id)
        self.show_queue()
