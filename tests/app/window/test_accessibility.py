"""Everything by keyboard, by name, in contrast, at any size, without motion: the whole window, page by page.

A01 to A12 are the conventions that this program holds itself to; what one part does alone is tested beside that part
(A03 announcements, A07 input methods, A08 text from right to left, A10 selecting), and A04 in `test_screen_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QFontDatabase, QFontMetrics, QImage, QRawFont, QTextLayout
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QToolButton,
    QWidget,
)
from window_desk import WindowDesk

from inglenook.app.window.actions import ACTIONS
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.shortcuts_dialog import ShortcutsDialog
from inglenook.app.window.theme import (
    DARK,
    DARK_CONTRAST,
    LIGHT,
    LIGHT_CONTRAST,
    Colours,
    Theme,
    contrast,
)

APP = Path(__file__).resolve().parents[3] / "app"
PAGES = ("chat", "models", "settings", "privacy", "compare", "welcome")
# Hexadecimal colours outside of the theme: pages of paper, which stay white, and files that are exported.
_PAPER = {"export.py", "source_panel.py"}


@pytest.fixture
def desk(desk: WindowDesk, theme: Theme) -> Iterator[WindowDesk]:
    desk.ask("A question", "An answer.")
    desk.window.activateWindow()
    yield desk
    theme.set_contrast("system")
    theme.set_motion(True)
    theme.set_scheme("light")


def controls(parent: QWidget) -> list[QWidget]:
    return [
        widget
        for widget in parent.findChildren(QWidget)
        if widget.isVisibleTo(parent)
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
    ]


def show(desk: WindowDesk, page: str) -> None:
    desk.window.pages.show_page(page)
    desk.qtbot.waitUntil(lambda: desk.window.pages.name == page)


@pytest.mark.slow
@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_Backtab], ids=["tab", "back tab"])
def test_a01_tab_and_back_tab_reach_every_control_of_a_page_and_end_nowhere(
    desk: WindowDesk, key: Qt.Key
) -> None:
    for page in PAGES:
        show(desk, page)
        wanted, reached = set(controls(desk.window)), set()
        for _ in range(3 * len(wanted) + 20):
            QTest.keyClick(QApplication.focusWidget() or desk.window, key)
            focus = QApplication.focusWidget()
            if focus is not None:
                reached.add(focus)

        # Radio buttons of a group are one stop, and arrows go on.
        missed = [w for w in wanted - reached if not (isinstance(w, QAbstractButton) and w.group())]
        assert [(page, w.accessibleName() or type(w).__name__) for w in missed] == []


def test_a01_every_action_is_in_the_menu_and_the_palette(desk: WindowDesk) -> None:
    for spec in ACTIONS:
        action = desk.window.actions_by_name[spec.name]
        assert action.isVisible(), spec.name
        assert action.isEnabled(), spec.name


def test_a02_every_control_has_a_name_in_words_as_a_screen_reader_hears_it(desk: WindowDesk) -> None:
    desk.window.open_source()
    for page in PAGES:
        show(desk, page)
        for widget in controls(desk.window):
            name = QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)
            said = f"{page}: {type(widget).__name__} {widget.objectName()!r} is called {name!r}"
            assert name.strip(), said
            assert name != type(widget).__name__, said
            assert not re.search(r"&|\[object|0x[0-9a-f]{6}", name), said
            is_icon = isinstance(widget, QToolButton) and not widget.text()
            assert widget.toolTip() or not is_icon, f"{said} and has no tooltip"


@pytest.mark.parametrize(
    "colours", [LIGHT, DARK, LIGHT_CONTRAST, DARK_CONTRAST], ids=["light", "dark", "light high", "dark high"]
)
def test_a05_text_and_the_keyboard_s_ring_stand_out(colours: Colours) -> None:
    c = colours
    wanted = 7.0 if colours in (LIGHT_CONTRAST, DARK_CONTRAST) else 4.5
    grounds = (c.window, c.panel, c.bubble, c.code, c.hover, c.inline_code)
    texts = [(t, g) for t in (c.text, c.muted) for g in grounds]
    texts += [(token, c.code) for token in c.tokens.values()]
    texts += [(c.error, c.error_ground), (c.error, c.window), (c.error, c.panel), (c.text, c.error_ground)]
    texts += [(c.caution, c.window), (c.caution, c.panel), (c.on_accent, c.accent)]
    texts += [(c.on_selection, c.selection), (c.accent, c.window)]
    rings = [(c.accent, g) for g in (c.window, c.panel, c.hover)]
    if wanted == 7.0:
        rings += [(c.border, g) for g in (c.window, c.panel)]

    assert {pair: round(contrast(*pair), 2) for pair in texts if contrast(*pair) < wanted} == {}
    assert {pair: round(contrast(*pair), 2) for pair in rings if contrast(*pair) < 3} == {}


def test_a05_no_colour_is_written_outside_of_the_theme() -> None:
    faults = [
        f"{path.relative_to(APP)}: {found}"
        for path in APP.rglob("*.py")
        if path.name != "theme.py" and path.name not in _PAPER
        for found in re.findall(r"[\"' :]#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))
    ]

    assert faults == []


def test_a05_the_system_s_wish_for_contrast_is_followed_live_and_overruled(
    desk: WindowDesk, theme: Theme
) -> None:
    theme._follow_contrast(Qt.ContrastPreference.HighContrast)
    assert theme.colours is LIGHT_CONTRAST
    desk.window.actions_by_name["contrast"].trigger()
    assert theme.colours is LIGHT
    theme.set_contrast("system")
    theme._follow_contrast(Qt.ContrastPreference.NoPreference)
    assert theme.colours is LIGHT
    desk.window.actions_by_name["contrast"].trigger()
    theme.set_scheme("dark")

    assert theme.colours is DARK_CONTRAST
    assert desk.application.settings.value("appearance.contrast") == "high"
    assert desk.window.save_state()["contrast"] == "high"


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.7, 1.0, 1.5, 2.0, 3.0])
def test_a06_no_button_and_no_box_is_cut_at_any_size(desk: WindowDesk, theme: Theme, scale: float) -> None:
    theme.set_scale(scale)
    desk.window.resize(1280, 720)
    cut: list[str] = []

    def found() -> list[str]:
        return [
            f"{page}: {widget.accessibleName()}"
            for widget in desk.window.findChildren(QWidget)
            if isinstance(widget, QPushButton | QToolButton | QCheckBox | QComboBox | QLineEdit)
            and widget.isVisibleTo(desk.window)
            and widget.objectName() != "side_button"
            and widget.height() < QFontMetrics(widget.font()).height()
        ]

    for page in PAGES:
        show(desk, page)
        desk.qtbot.waitUntil(lambda: not found())
        cut += found()

    assert cut == []


@pytest.mark.parametrize(("scale", "width", "height"), [(1.0, 640, 360), (2.0, 1280, 720)])
def test_a06_the_window_fits_a_small_screen_at_twice_the_size(
    desk: WindowDesk, theme: Theme, scale: float, width: int, height: int
) -> None:
    theme.set_scale(scale)
    for page in PAGES:
        show(desk, page)
        least = desk.window.minimumSizeHint().expandedTo(desk.window.minimumSize())

        assert (least.width() <= width, least.height() <= height) == (True, True), (page, least)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["usual", "high"])
@pytest.mark.parametrize("page", PAGES)
def test_a09_whatever_has_the_keyboard_looks_different(
    desk: WindowDesk, theme: Theme, page: str, kind: str
) -> None:
    theme.set_contrast(kind)  # type: ignore[arg-type]  # one of its choices
    desk.window.resize(1280, 900)
    show(desk, page)
    desk.qtbot.waitUntil(desk.window.isActiveWindow)
    same = []
    for widget in controls(desk.window):
        come_into_sight(widget)
        desk.window.setFocus()
        before = picture(widget)
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        if widget.hasFocus() and picture(widget) == before:
            same.append(f"{type(widget).__name__} {widget.accessibleName() or widget.objectName()}")

    assert same == []


def come_into_sight(widget: QWidget) -> None:
    """Scroll to a widget, as Tab does."""
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()


def picture(widget: QWidget) -> QImage:
    """Return the widget with what is around it, where some rings are drawn."""
    QApplication.processEvents()
    window = widget.window()
    place = widget.mapTo(window, widget.rect().topLeft())
    return window.grab(widget.rect().translated(place).adjusted(-16, -16, 16, 16)).toImage()


def test_a09_a_ring_turns_only_while_motion_is_wanted(desk: WindowDesk, theme: Theme) -> None:
    turning = desk.window.sidebar.chats._turning
    desk.send("Another question")
    desk.qtbot.waitUntil(lambda: any(e.is_busy for e in desk.window.sidebar.chats.model.entries))
    assert turning.isActive()

    desk.application.settings.set("appearance.motion", False)
    assert not turning.isActive()
    assert not theme.has_motion
    desk.application.settings.set("appearance.motion", True)
    assert turning.isActive()
    desk.client.requests[-1].finish()

    desk.qtbot.waitUntil(lambda: not turning.isActive())


def test_a09_an_answer_being_written_takes_the_keyboard_from_nobody(desk: WindowDesk) -> None:
    desk.send("Another question")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    search = desk.window.sidebar.chats.search
    search.setFocus()
    for number in range(20):
        desk.client.requests[-1].say(f"Word {number}. ", number)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")

    assert search.hasFocus()


SCRIPTS = {
    "Latin": "Straße żółć", "Greek": "Αθήνα", "Cyrillic": "Їжак", "Arabic": "مرحبا", "Hebrew": "שלום",
    "Thai": "สวัสดี", "Devanagari": "नमस्ते", "Bengali": "নমস্কার", "Tamil": "வணக்கம்", "Georgian": "გამარჯობა",
    "Armenian": "Բարեւ", "Khmer": "សួស្តី", "Lao": "ສະບາຍດີ", "Sinhala": "ආයුබෝවන්", "Telugu": "నమస్తే",
    "Gujarati": "નમસ્તે", "Malayalam": "നമസ്കാരം", "Myanmar": "မင်္ဂလာပါ", "Japanese": "日本語です", "Korean": "안녕하세요",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_a11_no_letter_is_a_box_where_the_system_has_a_font_for_it(theme: Theme, script: str) -> None:
    text = SCRIPTS[script]
    families = [f for f in QFontDatabase.families() if _has_letters(f, text)]
    if not families:
        pytest.skip(f"no font of this system has {script}")
    layout = QTextLayout(text, theme.font())
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()

    glyphs = [glyph for run in layout.glyphRuns() for glyph in run.glyphIndexes()]
    assert glyphs
    assert 0 not in glyphs


def _has_letters(family: str, text: str) -> bool:
    font = QRawFont.fromFont(QFontDatabase.font(family, "", 10))
    return all(font.supportsCharacter(ord(letter)) for letter in text if letter != " ")


def test_a12_dialogs_have_a_safe_default_and_leave_with_esc(desk: WindowDesk) -> None:
    desk.join.privacy.ask_forget()
    (box,) = desk.window.findChildren(QMessageBox)
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
    QTest.keyClick(box, Qt.Key.Key_Escape)
    assert desk.titles == ["A question"]
    for name in ("shortcuts", "palette"):
        desk.window.actions_by_name[name].trigger()
        dialog = desk.window.findChildren(QDialog)[-1]
        assert dialog.windowTitle()
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        assert not dialog.isVisible()


def test_a12_tab_goes_round_in_the_dialog_of_keys_and_its_controls_have_names(desk: WindowDesk) -> None:
    desk.window.actions_by_name["shortcuts"].trigger()
    dialog = desk.window.findChildren(ShortcutsDialog)[-1]
    desk.qtbot.waitUntil(dialog.isActiveWindow)
    wanted, reached = set(controls(dialog)), set()
    for _ in range(len(wanted) + 10):
        QTest.keyClick(QApplication.focusWidget() or dialog, Qt.Key.Key_Tab)
        reached.add(QApplication.focusWidget())

    assert wanted <= reached
    assert all(QAccessible.queryAccessibleInterface(w).text(QAccessible.Text.Name) for w in wanted)
    dialog.reject()


def test_a12_what_went_wrong_can_be_selected_and_copied(desk: WindowDesk) -> None:
    desk.window.banner.show_line("problem", BannerLine("It broke: 5 of 7.", "error"))

    shown = next(found for found in desk.window.banner.findChildren(QLabel) if "It broke" in found.text())
    assert shown.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
