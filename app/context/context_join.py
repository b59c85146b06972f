"""Joins the line below the field and the panel above it with the chat on screen, its figures and its model.

Reads how full the window is when a chat is shown or a reply has ended, counts what is typed soon after it was, offers
what can be done, and does it. GUI thread only.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from inglenook.app.answers.answering import Answer, Turn
from inglenook.app.application import Application
from inglenook.app.bridge import CHAT, ModelState
from inglenook.app.chat.chat_join import ChatJoin
from inglenook.app.context.chat_foot import ChatFoot
from inglenook.app.context.context_panel import ContextPanel, LargerWindow
from inglenook.app.context.larger_window import larger_window
from inglenook.app.context.reply_details import ReplyDetails
from inglenook.app.context.reply_figures import details
from inglenook.app.context.summary_chat import SummaryChat
from inglenook.app.context.window_fill import WindowFill, window_fill
from inglenook.app.window.centred_column import in_column
from inglenook.app.window.main_window import MainWindow
from inglenook.engine.library.model_details import ModelDetails, read_details
from inglenook.engine.memory import memory_state
from inglenook.storage.messages import Messages
from inglenook.storage.records import Message
from inglenook.storage.token_counts import TurnCount, turn_counts

_TYPING_MS = 250


class ContextJoin(QObject):
    """Makes `foot` and `panel` and puts them into the chat page."""

    def __init__(self, window: MainWindow, application: Application, chats: ChatJoin) -> None:
        super().__init__(window)
        self._window, self._app, self._chats = window, application, chats
        self._counts: list[TurnCount] = []
        self._fill = WindowFill(0, 0)
        self._details: dict[str, ModelDetails] = {}
        self._dismissed: set[int] = set()
        self._panel_of = 0
        self.summary = SummaryChat(application.bridge, application.tasks, self)
        self.summary.moved.connect(self._take_part)
        self.foot = ChatFoot(window.theme)
        self.panel = ContextPanel(window.theme)
        layout, composer = window.chat.layout(), window.chat.composer
        assert isinstance(layout, QVBoxLayout)
        layout.insertWidget(layout.indexOf(composer), in_column(self.panel, window.theme))
        layout.insertWidget(layout.indexOf(composer) + 1, in_column(self.foot, window.theme))
        QWidget.setTabOrder(self.foot.persona_button, self.foot.meter)
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._show)
        composer.changed.connect(self._typing.start)
        self.foot.meter.clicked.connect(self._toggle_panel)
        self.panel.larger_requested.connect(self._take_larger)
        self.panel.summary_requested.connect(self._begin_summary)
        self.panel.cancel_requested.connect(self.summary.cancel)
        self.panel.drop_requested.connect(self._drop_oldest)
        self.panel.closed.connect(self._take_closed)
        window.chat.view.action_requested.connect(self._act)
        chats.shown.connect(lambda _id: self.refresh())
        application.answering.turn_started.connect(self._take_turn)
        application.answering.reply_ended.connect(self._take_end)
        application.bridge.model_state_changed.connect(self._take_model)
        application.settings.changed.connect(self._take_setting)

    @property
    def fill(self) -> WindowFill:
        """How full the window of the chat on screen is."""
        return self._fill

    def refresh(self) -> None:
        """Read the figures of the chat on screen anew."""
        conversation_id = self._chats.conversation_id
        if conversation_id is None:
            self._take_counts(None, [])
            return
        self._chats.home.tasks.read(
            lambda db: turn_counts(db, conversation_id),
            lambda counts: self._take_counts(conversation_id, counts),
            lambda _error: self._take_counts(conversation_id, []),
        )

    def _take_counts(self, conversation_id: int | None, counts: list[TurnCount]) -> None:
        if conversation_id == self._chats.conversation_id:
            self._counts = counts
            self._show()

    def _show(self) -> None:
        facts = self._app.bridge.model_state(CHAT).facts
        limit = facts.context_length if facts is not None else 0
        self._fill = window_fill(
            self._counts,
            limit,
            max_tokens=self._app.settings.value("chat.max_tokens") or None,
            question_bytes=len(self._window.chat.composer.text().encode("utf-8", "replace")),
        )
        self.foot.meter.show_fill(self._fill)
        asks = self._app.settings.value("chat.overflow") == "ask"
        self.panel.show_fill(self._fill, asks=asks)
        conversation_id = self._chats.conversation_id or 0
        if self._fill.left_out and conversation_id not in self._dismissed:
            if not self.panel.isVisible():
                self._open_panel()
        elif self._panel_of != conversation_id:
            self.panel.hide()

    def _toggle_panel(self) -> None:
        if self.panel.isVisible():
            self.panel.end()
        else:
            self._open_panel()
            next(w for w in self.panel.controls() if w.isVisible() and w.isEnabled()).setFocus()

    def _open_panel(self) -> None:
        self._panel_of = self._chats.conversation_id or 0
        self.panel.show_problem("")
        self.panel.show_summary(is_writing=self.summary.is_writing)
        self._show_larger()
        self.panel.show()

    def _take_closed(self) -> None:
        if self._fill.left_out:
            self._dismissed.add(self._chats.conversation_id or 0)
        self._window.chat.composer.setFocus()

    def _show_larger(self) -> None:
        """Offer the next larger window, once the model's file has said how large it may be."""
        state = self._app.bridge.model_state(CHAT)
        if state.facts is None or not state.path:
            self.panel.show_larger(LargerWindow())
            return
        known = self._details.get(state.path)
        if known is not None:
            options = self._app.settings.load_options(state.name)
            self.panel.show_larger(
                larger_window(state.facts, known, options.kv_dtype, memory_state().free_bytes)
            )
            return
        self.panel.show_larger(LargerWindow())
        path = state.path

        def read(found: ModelDetails) -> None:
            self._details[path] = found
            if self.panel.isVisible():
                self._show_larger()

        self._app.tasks.work("models", lambda _task: read_details(Path(path)), read, lambda _error: None)

    def _take_larger(self) -> None:
        """Load the model again with the larger window, which counts for this model from now on."""
        state = self._app.bridge.model_state(CHAT)
        known, model = self._details.get(state.path), self._app.models.state.get(state.name)
        if state.facts is None or known is None or model is None:
            return
        settings = self._app.settings
        options = settings.load_options(state.name)
        larger = larger_window(state.facts, known, options.kv_dtype, memory_state().free_bytes)
        if larger.refusal:
            self.panel.show_larger(larger)
            return
        own = settings.model_options(state.name)
        settings.set_model_options(state.name, own | {"context_length": larger.tokens})
        self._app.use_model(model)
        self.panel.end()

    def _begin_summary(self) -> None:
        conversation_id = self._chats.conversation_id
        if conversation_id is None:
            return
        owner = self._app.answering.cached_text.owner(conversation_id, ())
        self.panel.show_problem("")
        self.panel.show_summary(is_writing=True)
        self.summary.begin(conversation_id, owner, self._take_summary, self._take_no_summary)

    def _take_part(self, part: int, num_parts: int) -> None:
        words = self.tr("Writing the summary: reading part {0} of {1}…").format(part, num_parts)
        self.panel.show_summary(is_writing=True, words=words)

    def _take_summary(self, conversation_id: int, num_parts: int) -> None:
        self.panel.show_summary(is_writing=False)
        self.panel.hide()
        self._chats.refresh()
        self._chats.open(conversation_id)
        if num_parts > 1:
            words = self.tr("The chat is longer than the model's window, so it was read whole in {0} parts.")
            self._chats.tell(words.format(num_parts))

    def _take_no_summary(self, sentence: str) -> None:
        self.panel.show_summary(is_writing=False)
        self.panel.show_problem(sentence)

    def _drop_oldest(self) -> None:
        """Leave out the oldest turns from now on, and ask once more what was refused for its length."""
        self._app.settings.set("chat.overflow", "drop")
        messages = self._window.chat.model.messages
        self.panel.end()
        if messages and messages[-1].state == "failed":
            self._chats.regenerate(messages[-1].id)

    def _take_turn(self, turn: Turn) -> None:
        if turn.is_new_conversation and self._chats.conversation_id == turn.conversation.id:
            self._counts = []
            self._show()

    def _take_end(self, answer: Answer) -> None:
        if answer.reply.conversation_id == self._chats.conversation_id:
            if answer.reply.status == "failed":
                self._dismissed.discard(answer.reply.conversation_id)
            self.refresh()

    def _take_model(self, state: ModelState) -> None:
        if state.slot == CHAT:
            self._show()
            if self.panel.isVisible():
                self._show_larger()

    def _take_setting(self, key: str, _value: object) -> None:
        if key in ("chat.max_tokens", "chat.overflow"):
            self._show()
        elif key == "chat.figures":
            self._chats.reopen()

    def _act(self, message_id: object, name: str) -> None:
        """Open the details of a reply."""
        if name == "details" and isinstance(message_id, int):
            self._chats.home.tasks.read(lambda db: Messages(db).get(message_id), self._open_details)

    def _open_details(self, reply: Message) -> None:
        ReplyDetails(self._window.theme, details(reply), self._window).open()
