"""The row of buttons under a message: copy, edit, answer again, which version is shown, and a menu with the rest.

Buttons are made when they are first needed, since most rows pass by without them. Nothing is changed here: each
button and menu entry is asked for by its name.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from inglenook.app.chat.message_list_model import Message
from inglenook.app.text.plain_label import ElidedLabel, PlainLabel
from inglenook.app.window.theme import Theme

ActionName = Literal[
    "copy",
    "copy_text",
    "copy_rich",
    "copy_all",
    "edit",
    "again",
    "continue",
    "fork",
    "details",
    "select",
    "select_to",
    "delete_turn",
    "previous",
    "next",
]
_COPIED_MS = 1_500


class MessageActions(QWidget):
    """The buttons of one row; `asked(name)` is one of `ActionName`."""

    asked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._message = Message(0, "user", "")
        self._buttons: dict[str, QPushButton] = {}
        self._place: PlainLabel | None = None
        self._figures: ElidedLabel | None = None
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(theme.px(2))
        self._flash = QTimer(self, singleShot=True, interval=_COPIED_MS)
        self._flash.timeout.connect(self.end_flash)
        self.hide()

    def show_for(self, message: Message, *, is_done: bool, is_quiet: bool) -> None:
        """Show what can be done with a message; a quiet row shows only that it has other versions."""
        self._message = message
        is_shown = {
            "copy": is_done and bool(message.text) and not is_quiet,
            "edit": is_done and message.role == "user" and not is_quiet,
            "again": is_done and message.role == "assistant" and not is_quiet,
            "previous": is_done and message.num_branches > 1,
            "next": is_done and message.num_branches > 1,
            "more": is_done and not is_quiet,
        }
        for name, shown in is_shown.items():
            if shown or name in self._buttons:
                self._button(name).setVisible(shown)
        if is_shown["next"]:
            self._show_version(message)
        elif self._place is not None:
            self._place.hide()
        self._show_figures(message.figures if is_shown["more"] else "")
        self.setVisible(any(is_shown.values()))
        if any(is_shown.values()):
            self._name_buttons(message)
            self._line.activate()

    def sizeHint(self) -> QSize:
        hint, parent = super().sizeHint(), self.parentWidget()
        room = parent.width() - 2 * self._theme.px(16) if parent is not None else hint.width()
        return QSize(min(hint.width(), max(room, self.minimumSizeHint().width())), hint.height())

    def controls(self) -> list[QWidget]:
        """The buttons in sight, in reading order."""
        if self.isHidden():
            return []
        order = ("copy", "edit", "again", "previous", "next", "more")
        return [self._buttons[n] for n in order if n in self._buttons and not self._buttons[n].isHidden()]

    def restyle(self) -> None:
        """Take the theme's font anew."""
        for button in self._buttons.values():
            button.setFont(self._theme.font(0.86))
        if self._place is not None:
            self._place.setFont(self._theme.font(0.86))
        if self._figures is not None:
            self._figures.setFont(self._theme.font(0.86))
        self._line.setSpacing(self._theme.px(2))

    def begin_flash(self) -> None:
        """Say on the button that the message was copied."""
        if "copy" in self._buttons:
            self._buttons["copy"].setText(self.tr("Copied"))
            self._flash.start()

    def end_flash(self) -> None:
        """Go back to the button's own word."""
        self._flash.stop()
        if "copy" in self._buttons:
            self._buttons["copy"].setText(self.tr("Copy"))

    def menu(self) -> QMenu:
        """Make the menu with all that can be done with the message."""
        menu = QMenu(self)
        is_user = self._message.role == "user"

        def add(name: ActionName, words: str) -> None:
            menu.addAction(words, partial(self.asked.emit, name))

        add("copy", self.tr("Copy as Markdown"))
        add("copy_text", self.tr("Copy as plain text"))
        add("copy_rich", self.tr("Copy with formatting"))
        if self._message.parted.has_thought:
            add("copy_all", self.tr("Copy with the reasoning"))
        menu.addSeparator()
        add("edit", self.tr("Edit and ask again…") if is_user else self.tr("Edit this reply…"))
        if not is_user:
            add("again", self.tr("Answer again"))
        if self._message.can_go_on:
            add("continue", self.tr("Continue this reply"))
        add("fork", self.tr("New chat from here"))
        if not is_user:
            add("details", self.tr("Details of this reply…"))
        add("select", self.tr("Choose several messages"))
        menu.addSeparator()
        add("delete_turn", self.tr("Delete question and answer…"))
        return menu

    def open_menu(self) -> None:
        """Open the menu at its button."""
        menu = self.menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        place = self._buttons.get("more", self)
        menu.popup(place.mapToGlobal(QPoint(0, place.height())))

    def _button(self, name: str) -> QPushButton:
        if name in self._buttons:
            return self._buttons[name]
        words = {
            "copy": self.tr("Copy"),
            "edit": self.tr("Edit"),
            "again": self.tr("Answer again"),
            "previous": "‹",
            "next": "›",
            "more": "⋯",
        }
        button = QPushButton(words[name], self)
        button.setObjectName("quiet_button")
        button.setAutoDefault(False)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFont(self._theme.font(0.86))
        button.clicked.connect(self.open_menu if name == "more" else partial(self.asked.emit, name))
        self._buttons[name] = button
        order = ("copy", "edit", "again", "previous", "place", "next", "more")
        before = [n for n in order[: order.index(name)] if n in self._buttons]
        place = self._line.indexOf(self._buttons[before[-1]]) + 1 if before else 0
        if name in ("next", "more") and self._place is not None:
            place = max(place, self._line.indexOf(self._place) + 1)
        self._line.insertWidget(place, button)
        return button

    def _show_version(self, message: Message) -> None:
        if self._place is None:
            self._place = PlainLabel(look="small")
            self._place.setFont(self._theme.font(0.86))
            self._line.insertWidget(self._line.indexOf(self._buttons["next"]), self._place)
        self._place.setText(f"{message.branch + 1}/{message.num_branches}")
        self._place.show()
        self._buttons["previous"].setEnabled(message.branch > 0)
        self._buttons["next"].setEnabled(message.branch + 1 < message.num_branches)

    def _show_figures(self, figures: str) -> None:
        if self._figures is None and figures:
            self._figures = ElidedLabel(look="small", between=" · ", parent=self)
            self._figures.setFont(self._theme.font(0.86))
            self._line.addSpacing(self._theme.px(8))
            self._line.addWidget(self._figures, 1)
        if self._figures is not None:
            self._figures.setText(figures)
            self._figures.setVisible(bool(figures))

    def _name_buttons(self, message: Message) -> None:
        who = self.tr("your message") if message.role == "user" else self.tr("this reply")
        version = self.tr("version {0} of {1}").format(message.branch + 1, message.num_branches)
        names = {
            "copy": self.tr("Copy {0}").format(who),
            "edit": self.tr("Edit {0}").format(who),
            "again": self.tr("Answer again"),
            "previous": self.tr("Earlier version; this is {0}").format(version),
            "next": self.tr("Later version; this is {0}").format(version),
            "more": self.tr("More for {0}").format(who),
        }
        tips = {"copy": self.tr("Copy the message as Markdown")}
        for name, button in self._buttons.items():
            button.setAccessibleName(names[name])
            button.setToolTip(tips.get(name, names[name]))
