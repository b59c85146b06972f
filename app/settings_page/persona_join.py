"""Joins the button that says who answers with the personas, and the choice of each chat with the history.

GUI thread only.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QPushButton

from inglenook.app.answers.answering import Turn
from inglenook.app.application import Application
from inglenook.app.chat.chat_join import ChatJoin
from inglenook.app.settings_page.settings_join import SettingsJoin
from inglenook.app.text.plain_label import plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.window.main_window import MainWindow


class PersonaJoin(QObject):
    """Lets `button` show and choose the persona of the chat on screen."""

    def __init__(
        self,
        window: MainWindow,
        application: Application,
        chats: ChatJoin,
        settings: SettingsJoin,
        button: QPushButton,
    ) -> None:
        super().__init__(window)
        self._window, self._app, self._chats, self._settings = window, application, chats, settings
        self._button = button
        button.clicked.connect(self._open_menu)
        shelf = application.personas
        shelf.changed.connect(self._show)
        chats.shown.connect(shelf.show_chat)
        application.answering.turn_started.connect(self._take_turn)
        self._show()

    def menu(self) -> QMenu:
        """Make the menu of all personas, the one of this chat marked."""
        menu = QMenu(self._button)
        group = QActionGroup(menu)
        shelf = self._app.personas
        current = shelf.current.id if shelf.current is not None else 0
        choices = [(0, self.tr("No persona")), *((persona.id, persona.name) for persona in shelf.personas)]
        for persona_id, name in choices:
            action = menu.addAction(plain_button_text(label(name, 60)), partial(shelf.choose, persona_id))
            action.setCheckable(True)
            action.setChecked(persona_id == current)
            group.addAction(action)
        menu.addSeparator()
        menu.addAction(self.tr("New persona…"), self._settings.new_persona)
        if shelf.personas:
            menu.addAction(self.tr("Edit personas…"), self._settings.show_personas)
        return menu

    def _open_menu(self) -> None:
        menu = self.menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._button.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _take_turn(self, turn: Turn) -> None:
        if turn.is_new_conversation:
            conversation_id = turn.conversation.id
            self._app.personas.adopt(conversation_id, is_shown=self._chats.conversation_id == conversation_id)

    def _show(self) -> None:
        persona = self._app.personas.current
        name = label(persona.name, 40) if persona is not None else ""
        self._button.setText(f"{plain_button_text(name or self.tr('No persona'))}  ▾")
        spoken = name or self.tr("none")
        self._button.setAccessibleName(self.tr("Persona of this chat: {0}").format(spoken))
        self._button.setToolTip(self.tr("Who answers: instructions and a style under a name"))
