"""The source viewer beside the chat."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from inglenook.app.documents.source_panel import SourcePanel, SourceView
from inglenook.app.window.theme import Theme

SOURCE = SourceView(7, "<i>manual</i>.pdf", 5, 120, "iv", "It holds 1.2 kg.", ((100, 400, 300, 420),))


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme) -> SourcePanel:
    panel = SourcePanel(theme)
    qtbot.addWidget(panel)
    panel.resize(400, 500)
    panel.show()
    return panel


def page(colour: str = "white") -> QImage:
    picture = QImage(1190, 1684, QImage.Format.Format_RGBA8888)
    picture.fill(QColor(colour))
    return picture


def show(panel: SourcePanel, index: int = 5, label: str | None = "iv") -> None:
    panel.show_picture(index, page(), scale=2.0, page_label=label, num_pages=120)


def test_a_source_shows_its_words_at_once_and_asks_for_its_page(qtbot: QtBot, panel: SourcePanel) -> None:
    with qtbot.waitSignal(panel.page_requested) as asked:
        panel.open(SOURCE)

    assert asked.args[0] == 5
    assert 1.0 <= asked.args[1] <= 4.0
    assert panel._title.text() == "<i>manual</i>.pdf"
    assert panel._quote.text() == "“It holds 1.2 kg.”"
    assert panel.page_label.text() == "p. iv (6 of 120)"
    assert panel._sentence.text() == "Opening the page…"


def test_the_passage_is_marked_and_scrolled_into_sight(qtbot: QtBot, panel: SourcePanel) -> None:
    panel.open(SOURCE)
    show(panel)

    assert panel.canvas.marks == SOURCE.rects
    bar = panel._scroll.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() > 0)
    passage = panel.canvas.passage()
    assert bar.value() < passage.top() < passage.bottom() < bar.value() + panel._scroll.viewport().height()
    inside = panel.canvas.grab().toImage().pixelColor(passage.center().toPoint() * panel.devicePixelRatioF())
    assert inside.name() == "#ffe08a"


def test_turning_pages_asks_once_for_the_last_and_drops_the_quote_and_the_marks(
    qtbot: QtBot, panel: SourcePanel
) -> None:
    panel.open(SOURCE)
    show(panel)
    asked: list[int] = []
    panel.page_requested.connect(lambda index, _scale: asked.append(index))

    for _ in range(3):
        panel.next_button.click()
    qtbot.waitUntil(lambda: asked == [8])
    show(panel, 8, None)

    assert panel.page_label.text() == "p. 9 of 120"
    assert panel.canvas.marks == ()
    assert panel._quote.isHidden()
    panel.back_button.click()
    assert asked == [8, 5]


def test_a_page_that_is_no_longer_wanted_is_not_shown(panel: SourcePanel) -> None:
    panel.open(SOURCE)

    show(panel, 4, "iii")

    assert panel.canvas.is_empty


def test_the_first_and_the_last_page_end_the_turning(panel: SourcePanel) -> None:
    panel.open(SourceView(7, "x.pdf", 0, 1))

    assert not panel.previous_button.isEnabled()
    assert not panel.next_button.isEnabled()


def test_a_text_is_shown_with_its_lines_and_the_passage_marked_past_emoji(panel: SourcePanel) -> None:
    panel.open(SourceView(7, "notes.md", 0, 1, None, "tea"))
    text = "😀 water\nand tea\nand rest"

    panel.show_text(
        0, text, start=text.index("tea"), end=text.index("tea") + 3, place="lines 1–3", num_pages=1
    )

    assert panel.page_label.text() == "lines 1–3"
    (mark,) = panel.text.extraSelections()
    assert mark.cursor.selectedText() == "tea"


def test_a_page_that_cannot_be_shown_has_a_sentence_and_the_quote_stays(panel: SourcePanel) -> None:
    panel.open(SOURCE)

    panel.show_problem(5, "The file is no longer there.")

    assert panel._sentence.text() == "The file is no longer there."
    assert not panel._quote.isHidden()


def test_escape_asks_to_close(qtbot: QtBot, panel: SourcePanel) -> None:
    with qtbot.waitSignal(panel.close_requested):
        QTest.keyClick(panel, Qt.Key.Key_Escape)
