"""Writing and sending a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.chat.composer import LONG_PASTE_CHARS, Composer
from inglenook.app.window.theme import Theme

NO_BUTTON, NO_KEY = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def composer(qtbot: QtBot, theme: Theme) -> Composer:
    composer = Composer(theme)
    qtbot.addWidget(composer)
    composer.resize(700, 120)
    composer.show()
    composer.edit.setFocus()
    return composer


def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.send_requested.connect(texts.append)
    return texts


def compose(composer: Composer, preedit: str = "", commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(composer.edit, event)


@pytest.mark.parametrize("modifier", [NO_KEY, Qt.KeyboardModifier.ControlModifier])
def test_enter_sends_and_empties_the_field(
    composer: Composer, qtbot: QtBot, modifier: Qt.KeyboardModifier
) -> None:
    texts = sent(composer)
    qtbot.keyClicks(composer.edit, "Hello")

    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, modifier)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, modifier)

    assert texts == ["Hello"]
    assert composer.text() == ""


def test_both_buttons_are_of_one_size_and_on_one_line(composer: Composer, theme: Theme) -> None:
    attach, send = composer.attach_button.geometry(), composer.send_button.geometry()

    assert attach.size() == send.size()
    assert attach.center().y() == send.center().y()
    assert attach.height() == theme.px(36)


def test_shift_enter_breaks_the_line(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)

    qtbot.keyClicks(composer.edit, "a")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.edit, "b")

    assert texts == []
    assert composer.text() == "a\nb"


@pytest.mark.parametrize("text", ["", "   ", "\n\n \t"])
def test_nothing_is_never_sent(composer: Composer, qtbot: QtBot, text: str) -> None:
    texts = sent(composer)
    composer.set_text(text)

    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.send_button.click()

    assert texts == []
    assert not composer.send_button.isEnabled()


def test_enter_during_composition_belongs_to_the_input_method(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)
    compose(composer, preedit="にほ")

    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)

    assert texts == []
    assert composer.edit.textCursor().block().layout().preeditAreaText() == "にほ"
    compose(composer, commit="日本")
    assert texts == []
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert texts == ["日本"]


def test_the_button_stops_while_a_reply_streams(composer: Composer, qtbot: QtBot) -> None:
    texts, queued = sent(composer), []
    composer.queue_requested.connect(queued.append)
    composer.set_text("next")
    composer.set_streaming(True)

    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    with qtbot.waitSignal(composer.stop_requested):
        composer.send_button.click()
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)

    assert texts == []
    assert queued == ["next"]
    assert composer.text() == ""
    assert composer.send_button.accessibleName() == "Stop"
    composer.set_streaming(False)
    assert composer.send_button.accessibleName() == "Send"


def test_why_nothing_can_be_sent_stands_in_the_field(composer: Composer, qtbot: QtBot) -> None:
    texts = sent(composer)
    composer.set_text("kept")

    composer.set_unavailable("Choose a model first.")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)

    assert texts == []
    assert composer.text() == "kept"
    assert composer.edit.placeholderText() == "Choose a model first."
    assert not composer.attach_button.isEnabled()
    composer.set_unavailable("")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert texts == ["kept"]


def test_up_in_the_empty_field_asks_for_the_last_message(composer: Composer, qtbot: QtBot) -> None:
    with qtbot.waitSignal(composer.recall_requested):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Up)
    composer.set_text("x")
    with qtbot.assertNotEmitted(composer.recall_requested):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Up)


def test_the_field_grows_to_eight_lines(composer: Composer) -> None:
    def height(lines: int) -> int:
        composer.set_text("\n".join("x" * lines))
        return composer.edit.height()

    assert height(1) < height(3) < height(8)
    assert height(8) == height(40)
    assert height(1) == height(1)


def test_files_that_are_dropped_are_reported(composer: Composer, qtbot: QtBot, tmp_path: Path) -> None:
    data = QMimeData()
    data.setUrls(
        [
            QUrl.fromLocalFile(str(tmp_path / "a b.pdf")),
            QUrl("https://x.y/z.pdf"),
            QUrl.fromLocalFile(str(tmp_path)),
        ]
    )

    with qtbot.waitSignal(composer.files_dropped) as dropped:
        composer.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, NO_BUTTON, NO_KEY))

    assert dropped.args == [[tmp_path / "a b.pdf", tmp_path]]
    with qtbot.waitSignal(composer.files_dropped):
        composer.edit.insertFromMimeData(data)
    assert composer.text() == ""


def test_pasted_markup_is_plain_text(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b><img src='file:///dev/zero'>")
    data.setText("bold")

    composer.edit.insertFromMimeData(data)

    assert composer.text() == "bold"


@pytest.mark.parametrize("text", ["word " * LONG_PASTE_CHARS, "x" * 1_000_000, "y" * 5_000 + "\nz"])
def test_a_very_long_paste_is_held_beside_the_field_and_sent_exactly(
    composer: Composer, qtbot: QtBot, text: str
) -> None:
    texts = sent(composer)
    data = QMimeData()
    data.setText(text)
    qtbot.keyClicks(composer.edit, "Look:")

    composer.edit.insertFromMimeData(data)

    assert composer.edit.toPlainText() == "Look:"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert texts == ["Look:\n\n" + text]
    composer.restore(text)
    assert composer.text() == text


def test_tab_leaves_the_field_and_control_tab_types_one(composer: Composer, qtbot: QtBot) -> None:
    composer.set_text("x")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier)
    assert composer.text() == "x\t"

    with qtbot.waitActive(composer):
        composer.activateWindow()
    qtbot.keyClick(composer.edit, Qt.Key.Key_Tab)

    assert QApplication.focusWidget() is composer.attach_button


def test_every_control_has_a_name(composer: Composer) -> None:
    assert composer.edit.accessibleName() == "Message"
    assert composer.attach_button.accessibleName() == "Attach files"
    assert composer.attach_button.toolTip()
