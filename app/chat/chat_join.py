"""Joins chats: the list, the transcript and the composer with the history and the answering of turns.

The shown conversation is one; others may be answered meanwhile, and what arrives for them is kept so that opening one
shows all of it. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from inglenook.app.answers.answering import Answer, Answering, OpenedConversation, Turn, open_conversation
from inglenook.app.answers.sentence_checks import SentenceCheck
from inglenook.app.application import Application
from inglenook.app.chat.chat_home import ChatHome
from inglenook.app.chat.chat_list_join import ChatListJoin
from inglenook.app.chat.message_list_model import Message
from inglenook.app.chat.shown_messages import ShownMessages, unfound_sentences
from inglenook.app.chat.temporary_chat import MemoryTasks
from inglenook.app.chat.thinking_clock import ThinkingClock
from inglenook.app.chat.turn_join import TurnJoin
from inglenook.app.tasks import Tasks
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.database import Database
from inglenook.storage.temporary import is_temporary

_MOST_LISTED = 2_000
_OF_ENDED = ("text", "state", "error", "citations", "others", "unfound", "figures")


class ChatJoin(QObject):
    """Shows and changes conversations.

    `ticked` says which documents the next question is about. Signals: `source_requested(ShownCitation)` when a citation
    was clicked; `documents_chosen(ids)` when a conversation with ticks of its own was opened; `shown(id)` when
    a conversation was brought on screen, None for a new one.
    """

    source_requested = Signal(object)
    documents_chosen = Signal(object)
    shown = Signal(object)

    def __init__(self, window: MainWindow, application: Application, ticked: Callable[[], list[int]]) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._conversation_id: int | None = None
        self._wanted: int | None = None
        self._texts: dict[int, str] = {}
        self._conversation_of: dict[int, int] = {}
        self._stages: dict[int, str] = {}
        self.unread: set[int] = set()
        self._checks: dict[int, list[SentenceCheck]] = {}
        self._last_question = ""
        self._shown_at: int | None = None
        self.home = ChatHome(application, ticked, self)
        self._clock = ThinkingClock(application.bridge, self)
        self._clock.told.connect(self._take_thinking)
        self._shown_messages = ShownMessages(
            self._texts,
            self._clock,
            lambda: bool(application.settings.value("chat.figures")),
            self,
        )
        self.turns = TurnJoin(window, application, self)
        self.list = ChatListJoin(window, application, self)
        window.on_action("temporary_chat", self.new_temporary)
        chat = window.chat
        chat.composer.send_requested.connect(self._send)
        chat.composer.stop_requested.connect(self.stop)
        chat.composer.recall_requested.connect(lambda: chat.composer.set_text(self._last_question))
        chat.example_chosen.connect(self._ask_example)
        chat.view.citation_activated.connect(self._open_citation)
        chat.view.retry_requested.connect(self.regenerate)
        self._listen_to(application.answering, application.tasks)

    def _listen_to(self, answering: Answering, tasks: Tasks | MemoryTasks) -> None:
        self._clock.watch(answering, tasks)
        answering.turn_started.connect(self._take_turn)
        answering.stage_changed.connect(self._take_stage)
        answering.reply_text.connect(self._take_text)
        answering.sentence_checked.connect(self._take_check)
        answering.reply_stopping.connect(self._take_stopping)
        answering.reply_ended.connect(self._take_end)
        answering.turn_refused.connect(self._take_refusal)
        answering.stop_unanswered.connect(self._take_unanswered)
        answering.notice.connect(lambda _reply, sentence: self._tell(sentence))

    @property
    def conversation_id(self) -> int | None:
        """The conversation on screen; None for a new chat."""
        return self._conversation_id

    def new_temporary(self) -> None:
        """Begin a chat that is never written, and is gone when it is left."""
        self.new()
        temporary = self.home.begin_temporary()
        self._listen_to(temporary.answering, temporary.tasks)
        self._window.chat.set_temporary(True)
        self._window.set_title(self._title(""))
        self._window.chat.composer.setFocus()

    def _leave_temporary(self) -> None:
        if self.home.is_temporary:
            self.turns.forget_temporary()
            self.home.leave_temporary()
            self._window.chat.set_temporary(False)
            for kept in (self._texts, self._conversation_of, self._stages, self._checks):
                for id_ in [id_ for id_ in kept if is_temporary(id_)]:
                    del kept[id_]

    def start(self) -> None:
        """List the conversations and show the one that was last on screen."""
        self.list.start()
        last = self._app.settings.value("window.conversation")
        if last:
            self.open(last, is_asked_for=False)

    @property
    def busy(self) -> set[int]:
        """The conversations in which a reply is being written."""
        return set(self._conversation_of.values())

    def refresh(self) -> None:
        """Read the list anew."""
        self.list.refresh()

    def new(self) -> None:
        """Begin a new chat; it is saved with its first question."""
        self._wanted = None
        self._leave_temporary()
        self._show(None, "", [])
        self._window.show_chat()

    def open(self, conversation_id: int, *, is_asked_for: bool = True, at: int | None = None) -> None:
        """Read a conversation and show it, from the message `at` on or at its end."""
        if not is_temporary(conversation_id):
            self._leave_temporary()
        self._shown_at = at
        self._wanted = conversation_id

        def opened(conversation: OpenedConversation) -> None:
            if self._wanted == conversation_id and not conversation.conversation.trashed_at_ms:
                self._take_opened(conversation, is_asked_for=is_asked_for)

        def failed(error: Exception) -> None:
            if is_asked_for:
                self._tell(str(error), is_error=True)
            self.refresh()

        self.home.tasks.read(partial(_opened, conversation_id), opened, failed)

    @property
    def title(self) -> str:
        """The title of the conversation on screen; "" for a new chat."""
        return self.list.title_of(self._conversation_id)

    def reopen(self, *, at: int | None = None) -> None:
        """Read the shown conversation anew, for instance after a document was forgotten; `at` is the message to go to."""
        if self._conversation_id is not None:
            self.open(self._conversation_id, is_asked_for=False, at=at)

    def _send(self, text: str) -> None:
        if not self.turns.take(text):
            self.ask(text)

    def ask(self, text: str, *, conversation_id: int | None = None) -> None:
        """Ask at the end of the shown conversation, or of another one about the documents that were ticked there."""
        if conversation_id not in (None, self._conversation_id):
            self._app.tasks.read(
                partial(_opened, conversation_id),
                lambda opened: self._app.answering.ask(
                    text, conversation_id=conversation_id, document_ids=opened.document_ids
                ),
            )
            return
        self._begin(text)
        self.home.answering.ask(
            text, conversation_id=self._conversation_id, document_ids=self.home.documents()
        )

    def ask_in_place_of(self, question_id: int, text: str) -> None:
        """Ask another question in place of one; the old one stays as a version."""
        self._begin(text)
        self.home.answering.edit(question_id, text, document_ids=self.home.documents())

    def _begin(self, text: str) -> None:
        self._last_question = text
        self._window.banner.clear_line("notice")
        self._window.banner.clear_line("turn")
        # Until the turn is saved nothing else is sent.
        self._window.chat.composer.set_streaming(True)

    def stop(self) -> None:
        """Stop the reply of the shown conversation."""
        if self._conversation_id is not None:
            self.stop_in(self._conversation_id)

    def regenerate_last(self) -> None:
        """Answer the last question once more."""
        messages = self._window.chat.model.messages
        if messages and messages[-1].role == "assistant" and not self._window.chat.composer.is_streaming:
            self.regenerate(messages[-1].id)

    def stop_in(self, conversation_id: int) -> None:
        """Stop the reply that is being written in a conversation, if there is one."""
        answering = self.home.answering if is_temporary(conversation_id) else self._app.answering
        if (reply_id := answering.active_reply(conversation_id)) is not None:
            answering.stop(reply_id)

    def go_on_with(self, reply_id: int) -> None:
        """Let a reply that was cut off grow from where it ended."""
        if not self._window.chat.composer.is_streaming:
            self.turns.end_edit()
            self._window.banner.clear_line("notice")
            self._window.chat.composer.set_streaming(True)
            self.home.answering.resume(reply_id, document_ids=self.home.documents())

    def _take_unanswered(self, reply_id: int) -> None:
        self.tell(
            self.tr(
                "The engine has not said for 2 seconds that it stopped. What it wrote is kept; ending it frees the "
                "processor, and the next question starts it again."
            ),
            self.tr("End the engine"),
            self._app.bridge.end_engine,
        )

    def _ask_example(self, text: str) -> None:
        composer = self._window.chat.composer
        composer.set_text(text)
        composer.setFocus()

    def regenerate(self, reply_id: object) -> None:
        """Answer the question of a reply once more; the reply stays as a version."""
        if isinstance(reply_id, int) and not self._window.chat.composer.is_streaming:
            self.turns.end_edit()
            self._window.chat.composer.set_streaming(True)
            self.home.answering.regenerate(reply_id, document_ids=self.home.documents())

    # What answering tells.

    def _take_turn(self, turn: Turn) -> None:
        reply, model = turn.reply, self._window.chat.model
        conversation_id = turn.conversation.id
        self._texts[reply.id] = reply.text
        self._conversation_of[reply.id] = conversation_id
        is_shown = conversation_id == self._conversation_id
        if turn.is_new_conversation and self._conversation_id is None:
            is_shown = True
            self._conversation_id = self._wanted = conversation_id
            self._remember(conversation_id)
            self._window.set_title(self._title(turn.conversation.title))
            self.turns.adopt_queue(conversation_id)
        if is_shown:
            known = {message.id for message in model.messages}
            if turn.question.id in known:
                model.remove_from(model.row_of(turn.question.id) + 1)
            else:
                # An edited question stands in place of the one before, and of all that followed that.
                parent = turn.question.parent_id
                model.remove_from(model.row_of(parent) + 1 if parent in known and parent is not None else 0)
                model.append(self._shown_messages.message(turn.question))
            model.append(self._shown_messages.message(reply))
            self._show_activity()
        self._window.sidebar.chats.set_current(self._conversation_id or 0)
        self.refresh()

    def _take_stage(self, reply_id: int, sentence: str) -> None:
        self._stages[reply_id] = sentence
        self._show_activity()

    def _take_text(self, reply_id: int, text: str) -> None:
        self._texts[reply_id] = self._texts.get(reply_id, "") + text
        self._update(reply_id, text=self._texts[reply_id])

    def _take_thinking(self, reply_id: int, seconds: float | None, end_tag: str) -> None:
        self._update(reply_id, reasoning_s=seconds, reasoning_end=end_tag)

    def _take_check(self, reply_id: int, check: SentenceCheck) -> None:
        """Mark a sentence that was not found in the documents, as soon as it stands."""
        checks = self._checks.setdefault(reply_id, [])
        checks.append(check)
        text = self._texts.get(reply_id)
        if check.status == "not found" and text is not None:
            unfound = unfound_sentences(text, checks, self._clock.end_tag(reply_id))
            self._update(reply_id, unfound=unfound)

    def _take_stopping(self, reply_id: int) -> None:
        self._update(reply_id, state="stopped")
        self._stages.pop(reply_id, None)
        self._show_activity()

    def _take_end(self, answer: Answer) -> None:
        reply = answer.reply
        self._texts.pop(reply.id, None)
        self._stages.pop(reply.id, None)
        self._conversation_of.pop(reply.id, None)
        self._checks.pop(reply.id, None)
        shown = self._shown_messages.message(reply, answer.sources)
        self._update(reply.id, **{name: getattr(shown, name) for name in _OF_ENDED})
        if reply.conversation_id == self._conversation_id:
            if answer.notices:
                self._tell(" ".join(answer.notices))
        else:
            self.unread.add(reply.conversation_id)
        self._show_activity()
        self.refresh()
        self.turns.take_end(answer)

    def _take_refusal(self, text: str, sentence: str) -> None:
        if text:
            self._window.chat.composer.restore(text)
        self._show_activity()
        self._window.banner.show_line("turn", BannerLine(sentence, "error"))

    # What is shown.

    def _take_opened(self, opened: OpenedConversation, *, is_asked_for: bool) -> None:
        conversation = opened.conversation
        self._shown_messages.clear()
        messages = []
        for message in opened.messages:
            if message.role == "system":
                continue
            messages.append(self._shown_messages.message(message, opened.sources.get(message.id, [])))
        self._show(conversation.id, conversation.title, messages)
        if self._shown_at is not None and any(message.id == self._shown_at for message in messages):
            self._window.chat.view.show_message(self._shown_at)
        self._shown_at = None
        self._remember(conversation.id)
        self.documents_chosen.emit(opened.document_ids)
        if is_asked_for:
            self._window.show_chat()

    def _show(
        self,
        conversation_id: int | None,
        title: str,
        messages: list[Message],
    ) -> None:
        if conversation_id != self._conversation_id:
            self.turns.end_edit()
        self._conversation_id = conversation_id
        self.unread.discard(conversation_id or 0)
        self._window.chat.model.replace(messages)
        self._window.set_title(self._title(title))
        self._window.sidebar.chats.set_current(conversation_id or 0)
        questions = [message.text for message in messages if message.role == "user"]
        self._last_question = questions[-1] if questions else self._last_question
        self._show_activity()
        self.turns.show_queue()
        self.list.show()
        # Whoever reads more about it finds nothing of a temporary one.
        self.shown.emit(None if self.home.is_temporary else conversation_id)

    def _title(self, title: str) -> str:
        return self.tr("Temporary chat") if self.home.is_temporary else title

    def _show_activity(self) -> None:
        """Make the composer stop or send, and say what is being done, for the shown conversation."""
        current = self._conversation_id
        reply_id = None if current is None else self.home.answering.active_reply(current)
        self._window.chat.composer.set_streaming(reply_id is not None)
        self._window.chat.set_stage(self._stages.get(reply_id, "") if reply_id is not None else "")

    def _open_citation(self, message_id: object, number: int) -> None:
        citation = self._shown_messages.citation(message_id, number)
        if citation is not None:
            self.source_requested.emit(citation)

    def _update(self, reply_id: int, **changes: object) -> None:
        model = self._window.chat.model
        if any(message.id == reply_id for message in reversed(model.messages)):
            model.update(reply_id, **changes)

    def _remember(self, conversation_id: int) -> None:
        is_new = self._app.settings.value("window.conversation") != conversation_id
        if is_new and not self.home.is_temporary:
            self._app.settings.set("window.conversation", conversation_id)

    def tell(self, sentence: str, button: str = "", on_button: Callable[[], object] | None = None) -> None:
        """Say something about the conversation in the line above it, with at most one button."""
        self._window.banner.show_line("notice", BannerLine(sentence, "notice", button, on_button))

    def _tell(self, sentence: str, *, is_error: bool = False) -> None:
        self._window.banner.show_line("notice", BannerLine(sentence, "error" if is_error else "notice"))


def _opened(conversation_id: int, db: Database) -> OpenedConversation:
    return open_conversation(db, conversation_id)
