"""Labels that are too narrow for their text."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from inglenook.app.text.plain_label import ElidedButton, ElidedLabel
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
