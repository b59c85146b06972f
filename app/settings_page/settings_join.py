"""Joins the settings page with the settings and the personas: what is changed counts at once. GUI thread only."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject

from inglenook.app.application import Application
from inglenook.app.bridge import CHAT, ModelState
from inglenook.app.errors import AppError
from inglenook.app.settings_page.late_page import LatePage
from inglenook.app.settings_page.persona_dialog import PersonaDialog
from inglenook.app.settings_page.settings_page import SettingsPage
from inglenook.app.settings_presets import values_in_words
from inglenook.app.settings_table import OWN_STYLE_KEYS, SETTINGS
from inglenook.app.text.rich_text import label
from inglenook.app.translations.figures import numbered
from inglenook.app.translations.sentences import said_list
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.personas import Persona


class SettingsJoin(QObject):
    """Registers the settings page and does what is asked on it."""

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._late = LatePage(self._make_page, self._show_all)
        window.add_page("settings", self._late, self.tr("Settings"), lambda: self.page.search)
        application.settings.changed.connect(self._take_setting)
        application.personas.changed.connect(self._show_personas)
        application.opened.connect(lambda _sentence: self._show_all())
        application.bridge.model_state_changed.connect(self._take_model)

    @property
    def page(self) -> SettingsPage:
        """The page, made when it is first wanted."""
        return self._late.page

    def _make_page(self) -> SettingsPage:
        page, settings = SettingsPage(self._window.theme), self._app.settings
        page.edited.connect(self._edit)
        page.reset_requested.connect(self._reset)
        page.reset_all_requested.connect(self._ask_reset_all)
        page.expert_toggled.connect(lambda is_expert: settings.set("settings.is_expert", is_expert))
        page.reload_requested.connect(self._reload)
        page.personas.new_requested.connect(self.new_persona)
        page.personas.edit_requested.connect(self.edit_persona)
        page.personas.delete_requested.connect(self._ask_delete)
        page.personas.default_requested.connect(lambda id_: settings.set("chat.persona", id_))
        page.close_requested.connect(self._late.close_requested)
        return page

    def show_personas(self) -> None:
        """Bring the personas to the front."""
        self._window.pages.show_page("settings")
        self.page.reveal_personas()

    def new_persona(self) -> None:
        """Open the form of a new persona."""
        self._open_dialog(Persona(0, ""))

    def edit_persona(self, persona_id: int) -> None:
        """Open the form of a persona."""
        persona = self._app.personas.get(persona_id)
        if persona is not None:
            self._open_dialog(persona)

    def _edit(self, key: str, value: object) -> None:
        try:
            self._app.settings.set(key, value)
        except AppError as error:
            self.page.rows[key].field.faulted.emit(str(error))

    def _reset(self, key: str) -> None:
        self._app.settings.reset(key)
        # The button that was pressed is gone.
        self.page.rows[key].field.setFocus()

    def _ask_reset_all(self) -> None:
        keys = [key for key in self._app.settings.shown_keys() if not self._app.settings.is_default(key)]
        count = self.tr("1 setting goes") if len(keys) == 1 else numbered("{0} settings go", len(keys))
        confirm(
            self._window,
            title=self.tr("Reset all settings"),
            question=self.tr("{0} back to the default.").format(count),
            detail=self.tr("Personas, chats, documents and models stay as they are."),
            button=self.tr("Reset"),
            accepted=lambda: self._app.settings.reset(*keys),
        )

    def _take_setting(self, key: str, _value: object) -> None:
        if not self._late.is_made:
            return
        spec = self._app.settings.spec(key)
        if spec.label:
            self._show(key)
            state = self._app.bridge.model_state(CHAT)
            if spec.needs_load and state.phase not in ("unloaded", "failed"):
                self.page.show_reload(self._app.models.title(state.name))
        if key == "chat.preset" or key in OWN_STYLE_KEYS:
            for other in OWN_STYLE_KEYS:
                self._show(other)
        if key == "chat.persona":
            self._show_personas()
        if key == "settings.is_expert":
            self.page.show_expert(is_expert=self._app.settings.value(key))
        self._show_resettable()

    def _show_all(self) -> None:
        if not self._late.is_made:
            return
        settings = self._app.settings
        keys = [spec.key for spec in SETTINGS if spec.label]
        self.page.show_values(
            {key: self._value(key) for key in keys}, {key: settings.is_default(key) for key in keys}
        )
        self.page.show_expert(is_expert=settings.value("settings.is_expert"))
        self._show_style()
        self._show_resettable()
        self._show_personas()

    def _show_resettable(self) -> None:
        settings = self._app.settings
        self.page.show_resettable(is_resettable=not all(map(settings.is_default, settings.shown_keys())))

    def _show(self, key: str) -> None:
        self.page.show_values({key: self._value(key)}, {key: self._app.settings.is_default(key)})
        if key == "chat.preset":
            self._show_style()

    def _value(self, key: str) -> Any:
        """The value in force, which for a number of the style is that of the style chosen."""
        if key in OWN_STYLE_KEYS:
            return getattr(self._app.settings.style(), key.removeprefix("chat."))
        return self._app.settings.value(key)

    def _show_style(self) -> None:
        words = said_list(values_in_words(self._app.settings.style()))
        self.page.show_hint(
            "chat.preset", self.tr("Precise keeps to what is likeliest. Now: {0}.").format(words)
        )

    def _show_personas(self) -> None:
        if not self._late.is_made:
            return
        shelf = self._app.personas
        self.page.personas.show_personas(shelf.personas, shelf.default_id)

    def _take_model(self, state: ModelState) -> None:
        is_new = state.slot == CHAT and state.phase in ("loading", "unloaded", "failed")
        if self._late.is_made and is_new:
            self.page.show_reload("")

    def _reload(self) -> None:
        model = self._app.models.state.get(self._app.bridge.model_state(CHAT).name)
        self.page.show_reload("")
        if model is not None:
            self._app.use_model(model)

    def _open_dialog(self, persona: Persona) -> None:
        shelf = self._app.personas
        dialog = PersonaDialog(self._window.theme, persona, self._app.settings.style(), self._window)

        def failed(error: Exception) -> None:
            dialog.show_problem(str(error))

        def save(changed: Persona) -> None:
            if changed.id:
                shelf.change(changed, lambda _id: dialog.accept(), failed)
                return
            own = changed.sampling
            shelf.add(changed.name, changed.system, changed.preset, own, lambda _id: dialog.accept(), failed)

        dialog.saved.connect(save)
        dialog.open()

    def _ask_delete(self, persona_id: int) -> None:
        persona = self._app.personas.get(persona_id)
        if persona is None:
            return
        confirm(
            self._window,
            title=self.tr("Delete persona"),
            question=self.tr("Delete the persona “{0}”?").format(label(persona.name, 60)),
            detail=self.tr("Chats that use it go on without it. What was written with it stays as it is."),
            button=self.tr("Delete"),
            accepted=lambda: self._app.personas.delete(persona_id),
        )
