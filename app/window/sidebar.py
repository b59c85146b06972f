"""The left pane: new chat, the list of chats, the documents, and at its foot the models and the menu. GUI thread only."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QToolButton, QVBoxLayout, QWidget

from inglenook.app.chat.conversation_list import ConversationList
from inglenook.app.documents.document_list import DocumentList
from inglenook.app.text.plain_label import ElidedButton, PlainLabel, button, plain_tooltip
from inglenook.app.window.icons import icon
from inglenook.app.window.shortcuts import with_keys
from inglenook.app.window.theme import Theme


class Sidebar(QWidget):
    """Holds `chats` and `documents`. Signals: `new_chat_requested()`, `models_requested()`, `menu_requested()`."""

    new_chat_requested = Signal()
    models_requested = Signal()
    menu_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model, self._models_keys = self.tr("Models"), ""
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Side bar"))
        self._name = PlainLabel("Inglenook", look="heading")
        self.new_button = button(self.tr("New chat"), "side_button")
        self.new_button.clicked.connect(self.new_chat_requested)
        self.chats = ConversationList(theme)
        self.documents = DocumentList(theme)
        self._lists = QSplitter(Qt.Orientation.Vertical)
        self._lists.setChildrenCollapsible(False)
        self._lists.addWidget(self.chats)
        self._lists.addWidget(self.documents)
        self._lists.setStretchFactor(0, 3)
        self._lists.setStretchFactor(1, 2)
        self._lists.setSizes([600, 400])  # shares of what there is
        self.models_button = ElidedButton(self.tr("Models"), "side_button")
        self.models_button.clicked.connect(self.models_requested)
        self.menu_button = QToolButton()
        self.menu_button.setObjectName("icon_button")
        self.menu_button.setAccessibleName(self.tr("Menu"))
        self.menu_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.menu_button.clicked.connect(self.menu_requested)
        foot = QHBoxLayout()
        foot.addWidget(self.models_button, 1)
        foot.addWidget(self.menu_button)
        self._layout = QVBoxLayout(self)
        self._layout.addWidget(self._name)
        self._layout.addWidget(self.new_button)
        self._layout.addWidget(self._lists, 1)
        self._layout.addLayout(foot)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_keys(self, keys: Mapping[str, str]) -> None:
        """Name the keys of "new_chat", "menu" and "models" on their buttons; "" for none."""
        self._models_keys = keys["models"]
        self.new_button.setToolTip(plain_tooltip(with_keys(self.tr("New chat"), keys["new_chat"])))
        self.menu_button.setToolTip(plain_tooltip(with_keys(self.tr("Menu"), keys["menu"])))
        self.set_model(self._model)

    def set_model(self, words: str) -> None:
        """Say on the models' button which model answers, or that there is none."""
        self._model = words
        self.models_button.set_whole_text(words)
        self.models_button.setAccessibleName(self.tr("Models: {0}").format(words))
        tip = with_keys(self.tr("{0} — models").format(words), self._models_keys)
        self.models_button.setToolTip(plain_tooltip(tip))

    def _restyle(self) -> None:
        px, muted = self._theme.px, self._theme.colours.muted
        self._layout.setContentsMargins(px(12), px(14), px(12), px(12))
        self._layout.setSpacing(px(10))
        self._name.setContentsMargins(px(10), 0, px(10), px(2))
        self._lists.setHandleWidth(1)  # a line; Qt lets it be taken hold of beside it, too
        self.documents.setContentsMargins(0, px(8), 0, 0)
        size = QSize(px(17), px(17))
        self.new_button.setIcon(icon("plus", muted))
        self.models_button.setIcon(icon("chip", muted))
        self.menu_button.setIcon(icon("more", muted))
        for made in (self.new_button, self.models_button, self.menu_button):
            made.setIconSize(size)
        self.setMinimumWidth(px(220))
        # Their lists scroll; what they would like to have is more than a small screen has.
        self.chats.setMinimumHeight(px(80))
        self.documents.setMinimumHeight(px(60))
