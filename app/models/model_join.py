"""Joins models: first run, model page and header with the shelf of models and the engine. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject

from inglenook.app.application import Application
from inglenook.app.bridge import CHAT, EngineState, ModelState
from inglenook.app.models.comparison_join import ComparisonJoin
from inglenook.app.models.import_join import ImportJoin
from inglenook.app.models.memory_need import memory_need
from inglenook.app.models.model_card import CardState, ModelCard, gigabytes
from inglenook.app.models.model_settings_join import ModelSettingsJoin
from inglenook.app.models.model_shelf import ShelfState
from inglenook.app.text.rich_text import label
from inglenook.app.translations.sentences import said
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.engine.library.model_catalogue import STARTER_CHAT, STARTER_EMBEDDER, CatalogueEntry
from inglenook.engine.model_library import InstalledModel


class ModelJoin(QObject):
    """Shows models and does what is asked of them; `imports` takes files in, `comparison` asks two at once."""

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._progress: dict[str, tuple[int, int]] = {}
        self._problems: dict[str, str] = {}
        self._is_known = False
        self.imports = ImportJoin(window, application)
        self.imports.progress.connect(self._take_making)
        self.imports.done.connect(self._take_made)
        self.imports.failed.connect(self._take_failure)
        self._making: dict[str, tuple[str, int, int]] = {}
        self._settings = ModelSettingsJoin(window, window.theme, application)
        self.comparison = ComparisonJoin(window, application)
        self._warned = ("", "")  # path and words, so that a line taken away stays so
        page, welcome, models, bridge = window.models, window.welcome, application.models, application.bridge
        page.get_requested.connect(self._get)
        page.cancel_requested.connect(self._cancel)
        page.load_requested.connect(self._load)
        page.unload_requested.connect(lambda: bridge.unload(CHAT))
        page.remove_requested.connect(self._ask_remove)
        page.settings_requested.connect(self._open_settings)
        page.compare_requested.connect(lambda: window.pages.show_page("compare"))
        page.examine_requested.connect(self._examine)
        page.stop_examining_requested.connect(application.examiner.stop)
        page.import_requested.connect(self.choose_file)
        page.close_requested.connect(self._leave_page)
        welcome.get_requested.connect(lambda _name: self._get_starter())
        welcome.cancel_requested.connect(self._cancel_starter)
        welcome.other_requested.connect(window.show_models)
        welcome.import_requested.connect(self.choose_file)
        models.changed.connect(self._take_shelf)
        models.progress.connect(self._take_progress)
        models.fetched.connect(self._take_fetched)
        models.failed.connect(self._take_failure)
        models.removed.connect(self._take_removed)
        window.pages.shown.connect(self._take_page)
        application.examiner.changed.connect(self._take_verdict)
        bridge.model_state_changed.connect(self._take_model)
        bridge.engine_state_changed.connect(self._take_engine)

    def add(self, paths: Sequence[Path]) -> None:
        """Ask how dropped model files are to be taken in."""
        self.imports.add(paths)

    def choose_file(self) -> None:
        """Ask for a model file in a dialog, and how to take it in."""
        self.imports.choose()

    def _get(self, name: str) -> None:
        self._problems.pop(name, None)
        self._app.models.fetch(name)
        self._show()

    def _get_starter(self) -> None:
        self._problems.clear()
        self._app.get_starter()
        self._show()

    def _cancel(self, name: str) -> None:
        self._app.models.cancel(name)
        self.imports.cancel(name)
        self._progress.pop(name, None)
        self._making.pop(name, None)
        self._show()

    def _cancel_starter(self) -> None:
        for name in (STARTER_CHAT, STARTER_EMBEDDER):
            self._cancel(name)

    def _load(self, name: str) -> None:
        model = self._app.models.state.get(name)
        if model is not None:
            self._problems.pop(name, None)
            self._app.use_model(model)

    def _open_settings(self, name: str) -> None:
        model = self._app.models.state.get(name)
        if model is not None:
            self._settings.open(model, self._title_of(name))

    def _ask_remove(self, name: str) -> None:
        """Ask before a model is removed that would have to be downloaded again."""
        model = self._app.models.state.get(name)
        if model is None or model.is_reference:
            self._app.models.remove(name)
            return
        size = gigabytes(model.record.size_bytes)
        known = any(entry.name == name for entry in self._app.models.catalogue)
        again = self.tr("It can be downloaded again.") if known else self.tr("This copy is deleted for good.")
        confirm(
            self._window,
            title=self.tr("Remove model"),
            question=self.tr("Remove {0}, {1}?").format(label(self._title_of(name), 60), size),
            detail=self.tr("Chats that it answered stay as they are. {0}").format(again),
            button=self.tr("Remove"),
            accepted=lambda: self._app.models.remove(name),
        )

    def _take_removed(self, name: str, freed_bytes: int) -> None:
        """Say what a removal freed; the settings of that model go with it."""
        title, model = self._title_of(name), self._app.models.state.get(name)
        if model is not None and model.is_reference:
            words = self.tr("{0} is off the list. Its file stays at {1}.").format(title, model.path)
        else:
            words = self.tr("{0} was removed; {1} on disk are free again.").format(
                title, gigabytes(freed_bytes)
            )
        self._window.models.show_notice(words)
        self._app.settings.set_model_options(name, {})

    def _take_page(self, name: str) -> None:
        """Look again how much memory is free when the models are looked at."""
        if name == "models" and self._is_known:
            self._app.models.refresh()
        elif name != "models":
            self._window.models.show_notice("")

    def _examine(self, name: str) -> None:
        model = self._app.models.state.get(name)
        if model is not None:
            self._app.examiner.examine(model.path)

    def _take_verdict(self, path: str) -> None:
        """Show a verdict on its card, and an unsound model that is in use across the top too."""
        self._show()
        self._warn(self._app.bridge.model_state(CHAT))

    def _warn(self, state: ModelState) -> None:
        verdict = self._app.examiner.verdict(Path(state.path))
        is_held = state.phase not in ("unloaded", "failed")
        if not is_held or verdict.light != "red":
            self._warned = ("", "")
            self._window.banner.clear_line("doctor")
            return
        if self._warned == (state.path, verdict.words):
            return
        self._warned = (state.path, verdict.words)
        title = self._title(state)
        line = BannerLine(
            f"{label(title, 60)} · {said(verdict.words)}",
            "error",
            self.tr("See what was found"),
            lambda: self._show_findings(state.name),
        )
        self._window.banner.show_line("doctor", line)

    def _show_findings(self, name: str) -> None:
        self._window.show_models()
        self._window.models.card(name).check.open_findings()

    def _title(self, state: ModelState) -> str:
        return self._title_of(state.name)

    def _title_of(self, name: str) -> str:
        return next((card.title for card in self._cards() if card.name == name), name)

    def _leave_page(self) -> None:
        if self._has_chat_model():
            self._window.show_chat()
        else:
            self._window.show_welcome()

    def _take_shelf(self, state: ShelfState) -> None:
        is_first, self._is_known = not self._is_known, True
        self._window.models.set_memory(
            self.tr("{0} of memory are free for a model now.").format(gigabytes(self._free_bytes))
        )
        if not self._has_chat_model() and self._window.page is self._window.chat:
            self._window.show_welcome()
        elif is_first and self._has_chat_model() and self._window.page is self._window.welcome:
            self._window.show_chat()
        self._show()

    def _take_progress(self, name: str, done: int, total: int) -> None:
        self._progress[name] = (done, total)
        self._show()

    def _take_making(self, name: str, stage: str, done: int, total: int) -> None:
        """Show how far a model is that is being made in fewer bits."""
        self._making[name] = (stage, done, total)
        self._window.models.show_notice("")
        self._show()

    def _take_made(self, name: str, sentence: str) -> None:
        self._making.pop(name, None)
        self._window.models.show_notice(sentence)
        self._show()

    def _take_fetched(self, model: InstalledModel) -> None:
        self._progress.pop(model.name, None)
        self._window.models.show_problem("")

    def _take_failure(self, name: str, sentence: str) -> None:
        self._progress.pop(name, None)
        self._making.pop(name, None)
        known = {card.name for card in self._cards()}
        if name in known:
            self._problems[name] = sentence
        else:
            shown = f"{label(name, 80)}: {sentence}" if name else sentence
            self._window.models.show_problem(shown)
            if self._window.page is not self._window.models:
                self._window.banner.show_line("models", BannerLine(shown, "error"))
        self._show()

    def _take_model(self, state: ModelState) -> None:
        if state.slot != CHAT:
            return
        if state.phase == "failed":
            self._problems[state.name] = state.sentence
            line = BannerLine(state.sentence, "error", self.tr("Choose a model"), self._window.show_models)
            self._window.banner.show_line("model", line)
        else:
            self._problems.pop(state.name, None)
            self._window.banner.clear_line("model")
        if state.phase == "ready":
            if state.facts is not None and state.facts.notices:
                self._window.banner.show_line("loaded", BannerLine(" ".join(state.facts.notices)))
            if self._window.page is self._window.welcome:
                self._window.show_chat()
        self._show()
        self._warn(state)

    def _take_engine(self, state: EngineState) -> None:
        banner = self._window.banner
        if state.can_restart:
            restart = self._app.bridge.restart
            line = BannerLine(state.sentence, "error", self.tr("Start again"), restart, is_dismissable=False)
            banner.show_line("engine", line)
        elif state.phase == "restarting":
            banner.show_line("engine", BannerLine(state.sentence, is_dismissable=False))
        else:
            banner.clear_line("engine")

    def _has_chat_model(self) -> bool:
        return any(m.record.kind == "chat" and not m.is_missing for m in self._app.models.state.models)

    def _show(self) -> None:
        cards = self._cards()
        self._window.models.set_cards(cards)
        starter = next((card for card in cards if card.name == STARTER_CHAT), None)
        if starter is not None:
            parts = (
                card for card in cards if card.name in (STARTER_CHAT, STARTER_EMBEDDER) and not card.is_here
            )
            self._window.welcome.set_starter(starter, download_bytes=sum(card.size_bytes for card in parts))
        state = self._app.bridge.model_state(CHAT)
        self._window.set_model(self._words(state, self._title(state)), self._tip(state))
        self._window.chat.composer.set_unavailable(self._reason(state))

    @property
    def _free_bytes(self) -> int:
        """What is free for a chat model: also what the one takes that it would replace."""
        facts = self._app.bridge.model_state(CHAT).facts
        return self._app.models.state.free_bytes + (facts.weight_bytes if facts is not None else 0)

    def _cards(self) -> list[ModelCard]:
        shelf, catalogue = self._app.models.state, self._app.models.catalogue
        known = {entry.name: entry for entry in catalogue}
        chat_first = sorted(shelf.models, key=lambda model: model.record.kind != "chat")
        here = [self._installed(model, known.get(model.name)) for model in chat_first]
        names = {card.name for card in here}
        offered = [self._offered(entry) for entry in catalogue if entry.name not in names]
        names |= {entry.name for entry in catalogue}
        coming = [self._coming(name) for name in sorted({*self._app.models.fetching, *self._making} - names)]
        return [*here, *coming, *offered]

    def _coming(self, name: str) -> ModelCard:
        """A model of one's own that is being copied or made in fewer bits."""
        stage, done, total = self._making.get(name, ("", *self._progress.get(name, (0, 0))))
        return ModelCard(name, name, state="importing", stage=stage, done=done, total=total)

    def _offered(self, entry: CatalogueEntry) -> ModelCard:
        is_fetching = entry.name in self._app.models.fetching
        done, total = self._progress.get(entry.name, (0, 0))
        return ModelCard(
            entry.name,
            entry.title,
            entry.purpose,
            entry.licence,
            entry.licence_note,
            entry.size_bytes,
            entry.memory_bytes,
            self._free_bytes,
            "fetching" if is_fetching else "available",
            done=done,
            total=total,
            problem=self._problems.get(entry.name, ""),
            is_starter=entry.name == STARTER_CHAT and not self._has_chat_model(),
            is_embedder=entry.kind == "embedding",
        )

    def _installed(self, model: InstalledModel, entry: CatalogueEntry | None) -> ModelCard:
        record, options = model.record, self._app.settings.load_options(model.name)
        # What the catalogue says reads better than what a file says of itself; a user's own file keeps its words.
        said = entry if entry is not None and not model.is_reference else record
        card = ModelCard(
            model.name,
            said.title,
            self.tr("your own file, {0}").format(model.path.name) if entry is None else entry.purpose,
            said.licence,
            entry.licence_note if entry else "",
            record.size_bytes,
            memory_need(
                record, {"context_length": options.context_length, "kv_type": options.kv_dtype or ""}
            ),
            self._free_bytes,
            "missing" if model.is_missing else "here",
            problem=self._problems.get(model.name, ""),
            is_embedder=record.kind == "embedding",
        )
        if self._app.examiner.can_examine and not model.is_missing:
            card = replace(card, verdict=self._app.examiner.verdict(model.path))
        state = self._app.bridge.model_state(CHAT)
        states: dict[str, CardState] = {
            "ready": "loaded",
            "loading": "loading",
            "asleep": "asleep",
            "stopped": "loaded",
        }
        if state.name == model.name and state.phase in states:
            stage = state.stage
            card = replace(card, state=states[state.phase], stage=stage, done=state.done, total=state.total)
        return card

    def _words(self, state: ModelState, title: str) -> str:
        if state.phase == "loading":
            percent = f" {100 * state.done // state.total} %" if state.total else "…"
            return self.tr("Loading {0}").format(title) + percent
        if state.phase in ("ready", "stopped"):
            return title
        if state.phase == "asleep":
            return self.tr("{0} · sleeping").format(title)
        if self._is_known and not self._has_chat_model():
            return self.tr("No model yet")
        return self.tr("No model loaded") if self._is_known else self.tr("Models")

    def _tip(self, state: ModelState) -> str:
        facts = state.facts
        if state.phase == "asleep":
            return self.tr("Its memory is free meanwhile; the next question loads it again. Models (Ctrl+L)")
        if state.phase != "ready" or facts is None:
            return self.tr("Models (Ctrl+L)")
        return self.tr("{0} tokens of context, {1} in memory; models (Ctrl+L)").format(
            self._window.locale().toString(facts.context_length),
            gigabytes(facts.weight_bytes + facts.kv_bytes),
        )

    def _reason(self, state: ModelState) -> str:
        """Say why nothing can be asked now; "" when something can."""
        if state.phase in ("ready", "loading", "asleep", "stopped"):
            return ""
        if not self._is_known:
            return self.tr("Starting…")
        if self._app.models.fetching:
            return self.tr("The model is being downloaded…")
        return self.tr("Choose a model first: Ctrl+L")
