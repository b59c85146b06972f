"""Labels that are too narrow for their text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from inglenook.app.text.plain_label import ElidedButton, ElidedLabel, PlainLabel
from inglenook.app.window.theme import Theme


def test_a_narrow_line_of_figures_loses_whole_figures_from_its_end(qtbot: QtBot, theme: Theme) -> None:
    line = ElidedLabel("0.40 s to the first word · 58 tokens a second · 24 tokens", between=" · ")
    qtbot.addWidget(line)
    room = line.fontMetrics().horizontalAdvance

    line.resize(room("0.40 s to the first word · 58 tokens a second · 24"), 20)
    assert line.shown_text() == "0.40 s to the first word · 58 tokens a second"
    line.resize(room("0.40 s to the"), 20)
    assert line.shown_text().startswith("0.40 s")
    assert line.shown_text().endswith("…")
    line.resize(line.sizeHint())

    assert line.shown_text() == line.text()


def test_a_title_keeps_its_beginning_whatever_stands_in_it(qtbot: QtBot, theme: Theme) -> None:
    title = ElidedLabel("Heating · Radiators and their valves")
    qtbot.addWidget(title)

    title.resize(title.fontMetrics().horizontalAdvance("Heating · Radiators"), 20)

    assert title.shown_text().startswith("Heating · Rad")


def test_a_button_shows_as_much_of_its_text_as_fits(qtbot: QtBot, theme: Theme) -> None:
    button = ElidedButton("SmolLM2 135M Instruct, Q4_1", "side_button")
    qtbot.addWidget(button)

    button.resize(button.fontMetrics().horizontalAdvance("SmolLM2 135M Instruct, Q4_1") + 80, 34)
    button.show()
    assert button.text() == "SmolLM2 135M Instruct, Q4_1"
    button.resize(button.width() // 2, 34)

    assert button.text().endswith("…")
    assert len(button.text()) > 8


@pytest.mark.parametrize("is_selectable", [False, True])
@pytest.mark.parametrize("text", ["For trying it out.", "491 MB على القرص", "النماذج"])
def test_a_text_begins_at_the_right_in_a_window_that_is_read_from_there(
    qtbot: QtBot, theme: Theme, text: str, is_selectable: bool
) -> None:
    label = PlainLabel(text, is_selectable=is_selectable)
    qtbot.addWidget(label)
    label.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    label.resize(600, 30)

    assert label.text() == text
    assert ink(label.grab().toImage())[0] > 300


def test_an_elided_line_keeps_its_ellipsis_at_its_own_end_in_either_window(
    qtbot: QtBot, theme: Theme
) -> None:
    line = ElidedLabel("Tell me a long story about a lighthouse")
    qtbot.addWidget(line)
    line.resize(line.sizeHint().width() - 40, 24)

    line.setLayoutDirection(Qt.LayoutDirection.RightToLeft)

    # Three dots on the line stand last, where any letter is higher.
    picture = line.grab().toImage()
    _, end = ink(picture)
    ground = picture.pixel(0, 0)
    rows = {y for y in range(24) for x in range(end - 7, end + 1) if picture.pixel(x, y) != ground}
    assert max(rows) - min(rows) <= 3


def ink(picture: QImage) -> tuple[int, int]:
    """Return the first and the last column of a picture that is not its ground."""
    ground = picture.pixel(0, 0)
    columns = [
        x
        for x in range(picture.width())
        if any(picture.pixel(x, y) != ground for y in range(picture.height()))
    ]
    return columns[0], columns[-1]
