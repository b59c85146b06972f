"""The line above the page: the side bar's button, the title, and which model answers. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from inglenook.app.text.plain_label import ElidedLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.shortcuts import with_keys
from inglenook.app.window.theme import Theme


class Header(QWidget):
    """Holds `title` of a chat, in its place `back_button` on every other page, and `model_button`.

    Signals: `sidebar_requested()`, `back_requested()`, `models_requested()`.
    """

    sidebar_requested = Signal()
    back_requested = Signal()
    models_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sidebar_button = QToolButton()
        self.sidebar_button.setObjectName("icon_button")
        self.sidebar_button.setAccessibleName(self.tr("Show or hide the side bar"))
        self.sidebar_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.sidebar_button.clicked.connect(self.sidebar_requested)
        self.title = ElidedLabel(look="strong")
        self.back_button = button(self.tr("Back to the chat"), "quiet_button")
        self.back_button.clicked.connect(self.back_requested)
        self.back_button.hide()
        self.model_button = button("", "quiet_button")
        self.model_button.clicked.connect(self.models_requested)
        self._line = QHBoxLayout(self)
        self._line.addWidget(self.sidebar_button)
        self._line.addWidget(self.back_button)
        self._line.addWidget(self.title, 1)
        self._line.addWidget(self.model_button)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_keys(self, sidebar: str) -> None:
        """Name the keys of the side bar; "" for none."""
        self.sidebar_button.setToolTip(with_keys(self.tr("Show or hide the side bar"), sidebar))

    def show_title(self, title: str, *, is_page: bool) -> None:
        """Show a chat's title, or on a page, which has its own, the way back."""
        self.title.setText("" if is_page else title)
        self.back_button.setVisible(is_page)

    def set_model(self, words: str, tip: str = "") -> None:
        """Say which model answers."""
        self.model_button.setText(plain_button_text(label(words, 40)))
        self.model_button.setAccessibleName(self.tr("Model: {0}").format(words))
        self.model_button.setToolTip(tip)

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(12), px(7), px(12), px(7))
        self._line.setSpacing(px(8))
        self.sidebar_button.setIcon(icon("sidebar", self._theme.colours.muted))
        self.sidebar_button.setIconSize(QSize(px(18), px(18)))
        self.back_button.setIcon(icon("right" if self.isRightToLeft() else "left", self._theme.colours.muted))
        self.back_button.setIconSize(QSize(px(14), px(14)))
