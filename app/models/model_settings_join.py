"""Joins the form of one model's settings with the settings, the model's file and the engine. GUI thread only."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from inglenook.app.application import Application
from inglenook.app.bridge import CHAT
from inglenook.app.models.memory_need import fit_of, memory_need
from inglenook.app.models.model_settings_dialog import TEMPLATE, ModelSettingsDialog
from inglenook.app.settings_table import MODEL_SETTINGS
from inglenook.app.translations import figures
from inglenook.app.window.theme import Theme
from inglenook.engine.library.model_details import check_template, read_details
from inglenook.engine.memory import memory_state
from inglenook.engine.model_library import InstalledModel


class ModelSettingsJoin(QObject):
    """Opens the form of a model, and keeps what was set in it."""

    def __init__(self, window: QWidget, theme: Theme, application: Application) -> None:
        super().__init__(window)
        self._window, self._theme, self._app = window, theme, application

    def open(self, model: InstalledModel, title: str) -> None:
        """Open the form of a model."""
        settings, state = self._app.settings, self._app.bridge.model_state(CHAT)
        is_loaded = state.name == model.name and state.phase in ("ready", "loading", "asleep", "stopped")
        common = {
            spec.key: settings.value(f"model.{spec.key}") for spec in MODEL_SETTINGS if spec.key != TEMPLATE
        }
        dialog = ModelSettingsDialog(
            self._theme,
            title,
            settings.model_options(model.name),
            common,
            is_loaded=is_loaded,
            parent=self._window,
        )
        dialog.changed.connect(lambda own: dialog.show_fit(self._fit(model, common | own)))
        dialog.template_check_requested.connect(partial(self._check, dialog, model))
        dialog.saved.connect(partial(self._save, dialog, model, is_loaded))
        dialog.show_fit(self._fit(model, common | dialog.own))
        self._app.tasks.work(
            "models",
            lambda _task: read_details(model.path),
            dialog.show_details,
            lambda error: dialog.facts.setText(str(error)),
        )
        dialog.open()

    def _check(self, dialog: ModelSettingsDialog, model: InstalledModel, template: str) -> None:
        self._app.tasks.work(
            "models",
            lambda _task: check_template(model.path, template),
            lambda check: dialog.show_check(template, check),
        )

    def _save(
        self, dialog: ModelSettingsDialog, model: InstalledModel, is_loaded: bool, own: dict[str, Any]
    ) -> None:
        before = self._app.settings.load_options(model.name)
        self._app.settings.set_model_options(model.name, own)
        dialog.accept()
        self._app.models.refresh()
        if is_loaded and self._app.settings.load_options(model.name) != before:
            self._app.use_model(model)

    def _fit(self, model: InstalledModel, values: dict[str, Any]) -> str:
        """Say what the model needs with these values; what it takes now is free once it is loaded anew."""
        need, free = memory_need(model.record, values), free_for_a_model(self._app)
        words = {
            "yes": self.tr("Fits: it needs {0}, and {1} are free."),
            "maybe": self.tr("May be slow: it needs {0}, nearly all of the {1} that are free."),
            "no": self.tr("Won't fit: it needs {0}; {1} are free. A shorter window needs less."),
        }[fit_of(need, free)]
        return words.format(figures.size(need), figures.size(free))


def free_for_a_model(application: Application) -> int:
    """The bytes that a chat model may take: those that are free, and those of the one that it would replace."""
    facts = application.bridge.model_state(CHAT).facts
    return memory_state().free_bytes + (facts.weight_bytes if facts is not None else 0)
