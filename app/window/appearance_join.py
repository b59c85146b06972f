"""Joins the window's look and keys with the settings: colours, text size, shortcuts, and where the window stood.

`window.json` is what the first paint is made from, before the history is opened; the settings are what lasts, move to
another computer with a backup, and win. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from inglenook.app.settings import AppSettings
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow


class AppearanceJoin(QObject):
    """Keeps `appearance.*`, `window.*` and the window the same; call `take_settings` once they are loaded."""

    def __init__(self, window: MainWindow, settings: AppSettings) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._is_loaded = False
        settings.changed.connect(self._take_setting)
        window.theme.changed.connect(self._take_theme)
        window.closing.connect(self._keep_state)
        window.shortcuts.changed.connect(self._keep_shortcuts)

    def take_settings(self) -> None:
        """Put the window into the look that was kept."""
        theme, settings = self._window.theme, self._settings
        if settings.is_kept("appearance.scheme"):
            theme.set_scheme(settings.value("appearance.scheme"))
        if settings.is_kept("appearance.scale"):
            theme.set_scale(settings.value("appearance.scale"))
        if settings.is_kept("appearance.contrast"):
            theme.set_contrast(settings.value("appearance.contrast"))
        theme.set_motion(settings.value("appearance.motion"))
        # What a backup brought along, or the settings page: it counts from the next start.
        if settings.is_kept("appearance.language"):
            self._window.language = settings.value("appearance.language")
        self._window.shortcuts.take(settings.value("window.shortcuts"))
        self._window.shortcuts.set_on(settings.value("window.has_shortcuts"))
        self._is_loaded = True
        settings.set("appearance.scheme", theme.scheme)
        settings.set("appearance.scale", theme.scale)
        settings.set("appearance.contrast", theme.contrast)
        state = settings.value("window.state")
        if not self._window.is_restored and all(isinstance(text, str) for text in state.values()):
            self._window.restore_state(state)

    def _take_setting(self, key: str, value: object) -> None:
        if not self._is_loaded:
            return
        if key == "appearance.scheme":
            self._window.theme.set_scheme(value)  # type: ignore[arg-type]  # checked by the setting's choices
        elif key == "appearance.scale":
            self._window.theme.set_scale(value)  # type: ignore[arg-type]  # checked by the setting's type
        elif key == "appearance.contrast":
            self._window.theme.set_contrast(value)  # type: ignore[arg-type]  # checked by the setting's choices
        elif key == "appearance.language" and value != self._window.language:
            self._window.language = str(value)
            line = BannerLine(self.tr("The other language is spoken from the next start of Inglenook on."))
            self._window.banner.show_line("language", line)
        elif key == "appearance.motion":
            self._window.theme.set_motion(bool(value))

    def _take_theme(self) -> None:
        if self._is_loaded:
            self._settings.set("appearance.scheme", self._window.theme.scheme)
            self._settings.set("appearance.scale", self._window.theme.scale)
            self._settings.set("appearance.contrast", self._window.theme.contrast)

    def _keep_state(self) -> None:
        if self._is_loaded:
            self._settings.set("window.state", self._window.save_state())

    def _keep_shortcuts(self) -> None:
        if self._is_loaded:
            self._settings.set("window.shortcuts", self._window.shortcuts.kept())
            self._settings.set("window.has_shortcuts", self._window.shortcuts.is_on)
