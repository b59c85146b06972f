"""Joins the page of two models with the comparison, the shelf and the history. GUI thread only."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject

from inglenook.app.answers.turns import title_of
from inglenook.app.application import Application
from inglenook.app.bridge import CHAT, ModelState
from inglenook.app.models.comparison import Comparison, Side
from inglenook.app.models.comparison_page import ComparisonPage
from inglenook.app.settings_page.late_page import LatePage
from inglenook.app.text.rich_text import label
from inglenook.app.translations import figures
from inglenook.app.translations.figures import numbered
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.engine.model_library import InstalledModel
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import ReplyFigures

PAGE = "compare"


class ComparisonJoin(QObject):
    """Registers the page and does what is asked on it."""

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._chosen: tuple[str, ...] = ()
        self._late = LatePage(self._make_page, self._show_models)
        self.comparison = Comparison(
            application.bridge, application.tasks, application.settings, self._restore, self
        )
        window.add_page(PAGE, self._late, self.tr("Ask two models"), lambda: self.page.question)
        self.comparison.changed.connect(self._show_side)
        self.comparison.ended.connect(self._show_running)
        window.pages.shown.connect(self._take_page)
        application.models.changed.connect(lambda _state: self._show_models())
        application.bridge.model_state_changed.connect(self._take_model)

    @property
    def page(self) -> ComparisonPage:
        """The page, made when it is first wanted."""
        return self._late.page

    def _make_page(self) -> ComparisonPage:
        page = ComparisonPage(self._window.theme)
        page.asked.connect(self._ask)
        page.stop_requested.connect(self._stop)
        page.chosen.connect(self._show_plan)
        page.keep_requested.connect(self._keep)
        page.close_requested.connect(self._late.close_requested)
        return page

    def _models(self) -> list[InstalledModel]:
        shelf = self._app.models.state
        return [model for model in shelf.models if model.record.kind == "chat" and not model.is_missing]

    def _show_models(self) -> None:
        """Offer the chat models that are here: those chosen before, else the one in use and another."""
        if not self._late.is_made:
            return
        models = self._models()
        names = [model.name for model in models]
        current = self._app.bridge.model_state(CHAT).name
        wanted = [name for name in (*self._chosen, current, *names) if name in names]
        chosen = list(dict.fromkeys(wanted))[:2]
        chosen += [""] * (2 - len(chosen))
        self.page.show_models([(name, self._app.models.title(name)) for name in names], chosen)

    def _pair(self) -> tuple[InstalledModel, InstalledModel] | None:
        models = [self._app.models.state.get(name) for name in self.page.chosen_names]
        if len(models) != 2 or models[0] is None or models[1] is None or models[0].name == models[1].name:
            return None
        return models[0], models[1]

    def _show_plan(self) -> None:
        if self.comparison.is_running:
            return
        pair = self._pair()
        if pair is not None:
            self._chosen = tuple(model.name for model in pair)
            self.page.show_plan(self.comparison.plan(*pair).sentence, can_ask=True)
        elif len(self._models()) < 2:
            self.page.show_plan(
                self.tr("This needs two models on this computer. Get another one on the model page."),
                can_ask=False,
            )
        else:
            self.page.show_plan(self.tr("Choose two different models."), can_ask=False)

    def _ask(self, question: str) -> None:
        pair = self._pair()
        if pair is None or not question:
            return
        self.comparison.begin(question, *pair)
        self._show_running()

    def _stop(self) -> None:
        self.comparison.stop()
        self._show_running()

    def _show_running(self) -> None:
        self.page.show_running(is_running=self.comparison.is_running)

    def _show_side(self, number: int) -> None:
        side = self.comparison.sides[number]
        self.page.panes[number].show_answer(
            side.text,
            status=self._status(side),
            problem=side.problem,
            is_streaming=side.phase == "writing",
            can_keep=side.phase in ("done", "stopped") and bool(side.text),
        )

    def _status(self, side: Side) -> str:
        finished = side.finished
        if side.phase == "waiting":
            return self.tr("Waits until the other model has answered")
        if side.phase == "loading":
            state = self._app.bridge.model_state(side.slot)
            percent = f" {100 * state.done // state.total} %" if state.total else "…"
            return self.tr("Loading") + percent
        if side.phase == "writing":
            return self.tr("Writing…") if side.pieces else self.tr("Reading…")
        if side.phase in ("done", "stopped") and finished is not None:
            parts = [self.tr("Stopped")] if side.phase == "stopped" else []
            if finished.ttft_s is not None:
                parts.append(self.tr("{0} s to the first word").format(figures.decimal(finished.ttft_s, 2)))
            if finished.tpot_s:
                parts.append(self.tr("{0} tokens a second").format(figures.decimal(1 / finished.tpot_s, 0)))
            parts.append(numbered("{0} tokens", finished.completion_tokens))
            return " · ".join(parts)
        return self.tr("Stopped") if side.phase == "stopped" else ""

    def _keep(self, number: int) -> None:
        """Make a chat of the question and one answer, and go on with its model."""
        side, question = self.comparison.sides[number], self.comparison.question
        model = side.model
        if model is None:
            return
        sampling = self.comparison.kept_sampling()
        self._app.tasks.write(
            lambda db: _keep_chat(db, question, side, model.name, sampling),
            lambda conversation_id: self._open(conversation_id, model),
        )

    def _open(self, conversation_id: int, model: InstalledModel) -> None:
        state = self._app.bridge.model_state(CHAT)
        self.comparison.forget_restore()
        if state.name != model.name or state.phase in ("unloaded", "failed"):
            self._app.use_model(model)
        self._window.sidebar.chats.activated.emit(conversation_id)

    def _take_page(self, name: str) -> None:
        if name == PAGE:
            _ = self.page
            self._show_models()
        elif any(side.phase != "empty" for side in self.comparison.sides):
            self.comparison.close()
            self._show_running()

    def _take_model(self, state: ModelState) -> None:
        if state.slot == CHAT and self._late.is_made and self._window.pages.name == PAGE:
            self._show_plan()

    def _restore(self, name: str) -> None:
        model = self._app.models.state.get(name)
        if model is not None:
            self._app.use_model(model)
        else:
            words = self.tr("{0} is no longer here and was not loaded again.").format(label(name, 60))
            self._window.banner.show_line("model", BannerLine(words))


def _keep_chat(db: Database, question: str, side: Side, model: str, sampling: dict[str, Any]) -> int:
    finished = side.finished
    with db.atomic():
        messages = Messages(db)
        conversation_id = Conversations(db).create(title_of(question), model=model)
        question_id = messages.add(conversation_id, "user", question, parent_id=None)
        reply_id = messages.begin_reply(
            conversation_id, parent_id=question_id, model=model, sampling=sampling
        )
        figures = (
            ReplyFigures(seed=sampling["seed"])
            if finished is None
            else ReplyFigures(
                prompt_tokens=finished.prompt_tokens,
                cached_tokens=finished.cached_tokens,
                ttft_s=finished.ttft_s,
                tpot_s=finished.tpot_s,
                seed=finished.seed,
            )
        )
        messages.finish_reply(
            reply_id,
            side.text,
            side.token_ids,
            finish_reason="cancelled" if side.phase == "stopped" else "stop",
            figures=figures,
        )
        return conversation_id
