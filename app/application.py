"""The composition root: makes the objects behind the window, joins them, and closes them in order.

Knows all of them; none of them knows this. The window is given what it needs by whoever makes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from PySide6.QtCore import QObject, QSocketNotifier, Signal

from inglenook.app.answers.answering import Answering, ReplyOptions
from inglenook.app.bridge import CHAT, EngineBridge
from inglenook.app.documents.embedder import Embedder
from inglenook.app.documents.embedder_choice import EMBEDDER_SETTING, NEXT_EMBEDDER_SETTING, embedder_in_use
from inglenook.app.documents.indexing import Indexing
from inglenook.app.documents.page_views import PageViews
from inglenook.app.documents.reading_queue import MakeParser, make_parser
from inglenook.app.models.model_examiner import Look, ModelExaminer
from inglenook.app.models.model_shelf import ModelShelf, ShelfState
from inglenook.app.paths import UserFolders
from inglenook.app.settings import AppSettings
from inglenook.app.settings_page.persona_shelf import PersonaShelf
from inglenook.app.single_instance import SingleInstance
from inglenook.app.tasks import Tasks
from inglenook.engine.client import EngineClient
from inglenook.engine.library.model_catalogue import STARTER_CHAT, STARTER_EMBEDDER
from inglenook.engine.model_library import InstalledModel
from inglenook.storage.database import Database
from inglenook.storage.errors import StorageError
from inglenook.storage.forget import finish_forgetting
from inglenook.storage.messages import Messages
from inglenook.storage.settings import Settings
from inglenook.storage.vectors import Vectors

HISTORY_FILE = "history.db"


class Application(QObject):
    """All objects behind the window: `tasks`, `settings`, `personas`, `bridge`, `models`, `examiner`, `embedder`,
    `answering`, `indexing`, `pages`.

    `look` is how models are examined, None not at all. `instance` holds the profile's lock, acquired before this is made; this closes it at the end.

    Signals:
        opened(str): history and settings stand; a sentence for the user, or "". Lists can be read from now on.
        refused(Exception): the history cannot be used (damaged, newer, full disk ...); its text says what to do.
        raised(): a second start asks for the window to come to the front.
    """

    opened = Signal(str)
    refused = Signal(object)
    raised = Signal()

    def __init__(
        self,
        folders: UserFolders,
        *,
        instance: SingleInstance | None = None,
        client: EngineClient | None = None,
        make_parser: MakeParser = make_parser,
        look: Look | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.folders = folders
        self._instance = instance
        self._is_opened = False
        self._vector_counts: Mapping[str, int] = {}
        self._has_loaded = False
        self._is_closed = False
        self.tasks = Tasks(self)
        self.settings = AppSettings(self._save_settings, self)
        self.bridge = EngineBridge(client, self)
        self.settings.changed.connect(self._take_setting)
        self.personas = PersonaShelf(self.tasks, self.settings, self)
        self.models = ModelShelf(folders.models, self.tasks, parent=self)
        self.examiner = ModelExaminer(
            self.bridge, self.tasks, look, lambda: self.settings.load_options().backend, self
        )
        self.embedder = Embedder(self.bridge, self)
        self.answering = Answering(self.bridge, self.tasks, self.embedder, self.reply_options, self)
        self.indexing = Indexing(self.tasks, self.embedder, make_parser=make_parser, parent=self)
        self.indexing.forgotten.connect(self.answering.cached_text.forget_document)
        self.indexing.swap.completed.connect(self._take_embedder)
        self.pages = PageViews(self.tasks, make_parser=make_parser, parent=self)
        self.tasks.refused.connect(self.refused)
        self.models.changed.connect(self._take_models)
        self.models.fetched.connect(self._take_fetched)
        self._bell = self._listen()

    def start(self) -> None:
        """Open the history, go on with unfinished documents, and load the model last used. Returns at once."""
        self.tasks.open(self.folders.data / HISTORY_FILE)
        self.tasks.write(_begin, self._take_begun, lambda _error: None)
        self.models.refresh()

    def use_model(self, model: InstalledModel) -> None:
        """Load a chat model, and remember it for the next start."""
        self.settings.set("model.name", model.name)
        self.bridge.load(model.path, name=model.name, options=self.settings.load_options(model.name))

    def use_embedder(self, model: InstalledModel) -> None:
        """Find passages with another sentence encoder, once its vectors are made beside those in use."""
        if model.name == self.embedder.name:
            self.stop_embedder_change()
        elif not self.embedder.name:
            self._take_embedder(model)
        else:
            self.settings.set(NEXT_EMBEDDER_SETTING, model.name)
            self.indexing.swap.start(model)

    def stop_embedder_change(self) -> None:
        """Stay with the sentence encoder in use."""
        self.settings.set(NEXT_EMBEDDER_SETTING, "")
        self.indexing.swap.cancel()

    def get_starter(self) -> None:
        """Download the starter chat model, which is loaded when it is there, and the small embedder; the one click."""
        for name in (STARTER_CHAT, STARTER_EMBEDDER):
            if self.models.state.get(name) is None:
                self.models.fetch(name)

    def close(self) -> None:
        """Save what is being written, end all threads and processes; some seconds at most. Twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._bell is not None:
            self._bell.setEnabled(False)
        self.examiner.close()
        self.answering.close()
        self.indexing.close()
        self.pages.close()
        self.tasks.close()
        self.bridge.close()
        if self._instance is not None:
            self._instance.close()

    def _take_begun(self, begun: tuple[str, Mapping[str, Any], Mapping[str, int]]) -> None:
        notice, stored, self._vector_counts = begun
        sentence = self.settings.load(stored)
        self.bridge.unload_when_idle(self.settings.idle_s())
        self._is_opened = True
        self._choose_embedder(self.models.state)
        self.personas.refresh()
        self.indexing.start()
        self._load_last_model(self.models.state)
        self.opened.emit(" ".join(filter(None, (notice, sentence))))

    def _take_models(self, state: ShelfState) -> None:
        self._choose_embedder(state)
        self.examiner.recall(model.path for model in state.models if not model.is_missing)
        self._load_last_model(state)

    def _choose_embedder(self, state: ShelfState) -> None:
        """Use the sentence encoder that was chosen, or whose vectors are there, and go on with a change to another."""
        if not self._is_opened:
            return
        chosen, counts = self.settings.value(EMBEDDER_SETTING), self._vector_counts
        self.embedder.use(
            embedder_in_use(state.models, state.preferred_embedder, chosen=chosen, counts=counts)
        )
        wanted = state.get(self.settings.value(NEXT_EMBEDDER_SETTING))
        if wanted is not None and not wanted.is_missing and wanted.name != self.embedder.name:
            self.indexing.swap.start(wanted)

    def _take_embedder(self, model: InstalledModel) -> None:
        self.settings.set(EMBEDDER_SETTING, model.name)
        self.settings.set(NEXT_EMBEDDER_SETTING, "")
        self.embedder.use(model)

    def _load_last_model(self, state: ShelfState) -> None:
        """Load the model last used, or the best there is; once, so that one that the user unloads stays so."""
        if self._is_opened and state.models and not self._has_loaded:
            self._has_loaded = True
            model = state.get(self.settings.value("model.name"))
            if model is None or model.is_missing or model.record.kind != "chat":
                model = state.preferred_chat
            if model is not None and self.bridge.model_state(CHAT).phase == "unloaded":
                self.bridge.load(model.path, name=model.name, options=self.settings.load_options(model.name))

    def _take_fetched(self, model: InstalledModel) -> None:
        self.examiner.drop(model.path)
        if model.record.kind == "chat" and self.bridge.model_state(CHAT).phase in ("unloaded", "failed"):
            self.use_model(model)

    def _take_setting(self, key: str, _value: object) -> None:
        if key == "model.idle_minutes":
            self.bridge.unload_when_idle(self.settings.idle_s())

    def _save_settings(self, values: Mapping[str, object]) -> None:
        self.tasks.write(lambda db: Settings(db).update(values))

    def reply_options(self, conversation_id: int | None) -> ReplyOptions:
        """How a reply in a conversation is written; None is the one on screen."""
        settings, persona = self.settings, self.personas.of(conversation_id)
        facts = self.bridge.model_state(CHAT).facts
        kept: dict[str, Any] = {"preset": settings.value("chat.preset")}
        system = settings.value("chat.system")
        if persona is None:
            sampling = settings.sampling()
        else:
            sampling = settings.sampling(persona.preset, persona.sampling)
            kept = {"preset": persona.preset or kept["preset"], "persona": persona.name}
            system = persona.system if persona.system.strip() else system
        if facts is not None:
            kept |= {"context_length": facts.context_length, "backend": facts.backend}
        overflow: Literal["refuse", "drop_oldest"]
        overflow = "refuse" if settings.value("chat.overflow") == "ask" else "drop_oldest"
        return ReplyOptions(sampling, system.strip(), overflow, kept)

    def _listen(self) -> QSocketNotifier | None:
        if self._instance is None or self._instance.bell is None:
            return None
        notifier = QSocketNotifier(self._instance.bell, QSocketNotifier.Type.Read, self)
        notifier.activated.connect(self._answer_bell)
        return notifier

    def _answer_bell(self) -> None:
        if self._instance is not None and self._instance.answer():
            self.raised.emit()


def _begin(db: Database) -> tuple[str, Mapping[str, Any], Mapping[str, int]]:
    """Mark what a crash cut off, take up a forgetting that is owed, and read the settings."""
    notice = db.notice
    if not db.is_read_only:
        Messages(db).mark_interrupted()
        try:
            finish_forgetting(db)
        except StorageError as error:
            notice = f"{notice} {error}".strip()
    return notice, Settings(db).all(), Vectors(db).counts()
