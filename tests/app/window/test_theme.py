"""Colours and their contrast."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.window.theme import DARK, LIGHT, Colours, Theme, contrast


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_every_ground_it_is_used_on(colours: Colours) -> None:
    c = colours
    pairs = [(t, g) for t in (c.text, c.muted) for g in (c.window, c.panel, c.code, c.hover)]
    pairs += [(token, c.code) for token in c.tokens.values()]
    pairs += [(c.text, c.bubble), (c.text, c.inline_code), (c.accent, c.window), (c.accent, c.bubble)]
    pairs += [
        (c.error, c.error_ground),
        (c.error, c.window),
        (c.error, c.hover),
        (c.error, c.panel),
        (c.caution, c.panel),
        (c.caution, c.window),
        (c.on_accent, c.accent),
    ]
    pairs += [(c.on_selection, c.selection), (c.text, c.error_ground)]

    assert {(t, g): round(contrast(t, g), 2) for t, g in pairs if contrast(t, g) < 4.5} == {}
    assert contrast(c.accent, c.panel) >= 3


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_systems_scheme_is_followed_live(qapp: QApplication, qtbot: QtBot) -> None:
    theme = Theme(qapp, scheme="system")
    try:
        with qtbot.waitSignal(theme.changed):
            qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
        assert theme.is_dark
        assert qapp.palette().color(QPalette.ColorRole.Base).name() == DARK.window
        qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Light)
        assert theme.colours is LIGHT
        theme.set_scheme("dark")
        assert theme.colours is DARK
    finally:
        theme.deleteLater()


def test_zoom_scales_fonts_and_distances_within_bounds(theme: Theme, qtbot: QtBot) -> None:
    before = theme.font().pointSizeF()

    with qtbot.waitSignal(theme.changed):
        theme.set_scale(2.0)

    assert theme.font().pointSizeF() == pytest.approx(2 * before)
    assert theme.px(10) == 20
    theme.set_scale(99)
    assert theme.scale == 3.0
    theme.zoom_in()
    assert theme.scale == 3.0
    theme.reset_zoom()
    theme.zoom_out()
    assert theme.scale == 0.9
    theme.set_scale(0)
    assert theme.scale == 0.7
