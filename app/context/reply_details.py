"""The details of one reply: with what it was written, what was read and how fast, as lines that can be copied."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.window.theme import Theme


class ReplyDetails(QDialog):
    """Shows names and values."""

    def __init__(self, theme: Theme, rows: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        px = theme.px
        self._rows = rows
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Details of this reply"))
        table = QWidget()
        table.setObjectName("page")
        grid = QGridLayout(table)
        grid.setContentsMargins(px(22), px(18), px(22), px(14))
        grid.setHorizontalSpacing(px(22))
        grid.setVerticalSpacing(px(7))
        grid.setColumnStretch(1, 1)
        self.values: dict[str, PlainLabel] = {}
        for place, (name, value) in enumerate(rows):
            head = PlainLabel(name, look="muted")
            head.setWordWrap(False)
            text = self.values[name] = PlainLabel(value, is_selectable=True)
            text.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            text.setAccessibleName(f"{name}: {value}")
            grid.addWidget(head, place, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text, place, 1)
        if not rows:
            grid.addWidget(PlainLabel(self.tr("Nothing is known of how this reply was written.")), 0, 0, 1, 2)
        grid.setRowStretch(len(rows) + 1, 1)
        scroll = QScrollArea()
        scroll.setObjectName("page_scroll")
        scroll.setWidgetResizable(True)
        scroll.setWidget(table)
        self.copy_button = button(self.tr("Copy"))
        self.copy_button.setEnabled(bool(rows))
        self.copy_button.clicked.connect(self._copy)
        self.close_button = button(self.tr("Close"))
        self.close_button.setDefault(True)
        self.close_button.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.setContentsMargins(px(22), px(8), px(22), px(16))
        foot.setSpacing(px(8))
        foot.addStretch()
        foot.addWidget(self.copy_button)
        foot.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)
        layout.addLayout(foot)
        self.resize(px(500), px(540))
        self.close_button.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{name}: {value}" for name, value in self._rows))
        self.copy_button.setText(self.tr("Copied"))
