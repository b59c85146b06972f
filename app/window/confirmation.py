"""`confirm`: a question before something that changes much or cannot be taken back, in one look for all of them.

It does not block: the window goes on, and `accepted` is called if the button is pressed. Names in it are shown letter by
letter, whatever they hold. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QMessageBox, QWidget

from inglenook.app.text.plain_label import plain_button_text


def confirm(
    window: QWidget,
    *,
    title: str,
    question: str,
    detail: str,
    button: str,
    accepted: Callable[[], object],
    is_destructive: bool = True,
) -> None:
    """Ask `question`, with `detail` below it; Return presses Cancel where the answer would be destructive."""
    box = QMessageBox(window)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(title)
    box.setText(question)
    box.setInformativeText(detail)
    role = QMessageBox.ButtonRole.DestructiveRole if is_destructive else QMessageBox.ButtonRole.AcceptRole
    accept = box.addButton(plain_button_text(button), role)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel if is_destructive else accept)
    box.setEscapeButton(cancel)
    for made in box.buttons():
        made.setObjectName("danger_button" if is_destructive and made is accept else "plain_button")
        # The box has given them a look by then.
        made.style().unpolish(made)
        made.style().polish(made)

    def pressed(which: QAbstractButton) -> None:
        if which is accept:
            accepted()

    box.buttonClicked.connect(pressed)
    box.open()
