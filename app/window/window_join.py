"""Joins the window with the objects behind it, once it has been painted: chats, documents, models, and what goes wrong.

GUI thread only.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Qt

from inglenook.app.application import Application
from inglenook.app.chat.chat_join import ChatJoin
from inglenook.app.context.context_join import ContextJoin
from inglenook.app.documents.document_join import DocumentJoin
from inglenook.app.models.model_join import ModelJoin
from inglenook.app.models.model_page import model_files
from inglenook.app.settings_page.persona_join import PersonaJoin
from inglenook.app.settings_page.settings_join import SettingsJoin
from inglenook.app.tasks import unexpected_sentence
from inglenook.app.window.appearance_join import AppearanceJoin
from inglenook.app.window.backup_join import BackupJoin
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.palette_join import PaletteJoin
from inglenook.app.window.privacy_join import PrivacyJoin
from inglenook.app.window.sample_join import SampleJoin
from inglenook.app.window.welcome_join import WelcomeJoin


class WindowJoin(QObject):
    """All joins of a window: `chats`, `documents`, `models`, `settings`, `context`, `personas`, `palette`."""

    def __init__(self, window: MainWindow, application: Application, *, is_first_start: bool = False) -> None:
        super().__init__(window)
        self._window, self._is_first_start = window, is_first_start
        self._appearance = AppearanceJoin(window, application.settings)
        self.documents = DocumentJoin(window, application)
        self.chats = ChatJoin(window, application, self.documents.ticked)
        self.models = ModelJoin(window, application)
        self.settings = SettingsJoin(window, application)
        self.context = ContextJoin(window, application, self.chats)
        self.personas = PersonaJoin(
            window, application, self.chats, self.settings, self.context.foot.persona_button
        )
        self.palette = PaletteJoin(
            window, application, self.chats.open, window.sidebar.documents.open_requested.emit
        )
        self.backups = BackupJoin(window, application)
        self.backups.restored.connect(self.chats.refresh)
        self.privacy = PrivacyJoin(window, application)
        self.privacy.forgotten.connect(self.chats.new)
        self.privacy.forgotten.connect(self.chats.refresh)
        self.sample = SampleJoin(window, application)
        self.welcome = WelcomeJoin(window)
        self.chats.source_requested.connect(self.documents.open_citation)
        self.chats.shown.connect(self.documents.take_shown)
        self.chats.documents_chosen.connect(self.documents.set_ticked)
        self.documents.forgotten.connect(self.chats.reopen)
        window.files_dropped.connect(self._take_drop)
        window.chat.composer.files_dropped.connect(self._take_drop)
        window.chat.composer.picture_pasted.connect(self._refuse_picture)
        window.action_triggered.connect(self._act)
        application.opened.connect(self._take_opened)
        application.refused.connect(self._take_refusal)
        application.raised.connect(self._raise)
        application.tasks.problem.connect(lambda error: self._tell(str(error)))

    def tell_unexpected(self, error: BaseException) -> None:
        """Say that something went wrong which the program did not expect."""
        self._tell(unexpected_sentence(error))

    def _take_opened(self, sentence: str) -> None:
        if sentence:
            self._window.banner.show_line("opened", BannerLine(sentence))
        self._appearance.take_settings()
        self.chats.start()
        if self._is_first_start:
            self.sample.begin()

    def _take_refusal(self, error: Exception) -> None:
        line = BannerLine(str(error), "error", self.tr("Quit"), self._window.close, is_dismissable=False)
        self._window.banner.show_line("history", line)

    def _take_drop(self, paths: list[Path]) -> None:
        models = model_files(paths)
        others = [path for path in paths if path not in models]
        if models:
            self._window.show_models()
            self.models.add(models)
        if others:
            self.documents.add(others)

    def _refuse_picture(self) -> None:
        words = self.tr(
            "Models here read text, not pictures, so the picture was not pasted. If it shows a document, drop the "
            "document itself; if it shows text, copy the text."
        )
        self._window.banner.show_line("notice", BannerLine(words))

    def _act(self, name: str) -> None:
        chats = self.chats
        if name == "edit_question":
            chats.turns.edit_last_question()
        elif name == "new_chat":
            chats.new()
        elif name == "regenerate":
            chats.regenerate_last()
        elif name == "add_documents":
            self.documents.choose_files()
        elif name == "add_folder":
            self.documents.choose_folder()

    def _raise(self) -> None:
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()

    def _tell(self, sentence: str) -> None:
        self._window.banner.show_line("problem", BannerLine(sentence, "error"))
