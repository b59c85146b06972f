"""The whole window in each language, page by page: nothing is cut, nothing stays English, and all can be hit and left.

A06 and A11 of the conventions in `test_accessibility.py`, with German's long words and Arabic's other direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, Qt
from PySide6.QtGui import QAccessible, QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from source_texts import source_texts
from window_desk import WindowDesk, put_model

from inglenook.app.translations.catalogue import Catalogue, catalogue_texts, number_locale
from inglenook.app.window.theme import Theme

PAGES = ("chat", "models", "settings", "privacy", "compare", "welcome")
# What the tests wrote, names, and words that a language has in common with English.
_OURS = {"A question", "An answer.", "Inglenook"}
_ENGLISH = re.compile(r"\b(the|of|and|is|are|for|with|your|this|to|not|it|from)\b")


@pytest.fixture
def spoken(
    qtbot: QtBot, qapp: QApplication, theme: Theme, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[WindowDesk]:
    """The window of a person who reads the test's language, with one question answered."""
    language = request.param
    catalogue = Catalogue(catalogue_texts(language), language=language)
    before, direction = QLocale(), qapp.layoutDirection()
    if language != "en":
        QCoreApplication.installTranslator(catalogue)
    QLocale.setDefault(number_locale(language))
    if language == "ar":
        qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    desk.ask("A question", "An answer.")
    yield desk
    theme.set_scale(1.0)
    desk.close()
    # No widget of this window hears that the program is turned round again.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.removeTranslator(catalogue)
    QLocale.setDefault(before)
    qapp.setLayoutDirection(direction)


def shown(desk: WindowDesk, page: str) -> Iterator[QWidget]:
    desk.window.pages.show_page(page)
    desk.qtbot.waitUntil(lambda: desk.window.pages.name == page)
    settle(desk)
    for widget in desk.window.findChildren(QWidget):
        if widget.isVisibleTo(desk.window):
            yield widget


def settle(desk: WindowDesk) -> None:
    """Let the layouts of the page in sight come to rest: heights follow widths, over some rounds."""
    places: list[object] = []
    for _ in range(20):
        QApplication.processEvents()
        now = [widget.geometry().getRect() for widget in desk.window.findChildren(QWidget)]
        if now == places:
            return
        places = list(now)


def is_cut(widget: QWidget) -> bool:
    """Whether a label, button or field is too small for its words, and does not say so by its full name."""
    if "Elided" in type(widget).__name__:
        return False
    if isinstance(widget, QLabel) and widget.text() and not widget.pixmap():
        if widget.wordWrap():
            return widget.heightForWidth(widget.width()) > widget.height() + 1
        return widget.sizeHint().width() > widget.width() + 1
    if isinstance(widget, QAbstractButton) and widget.text():
        words = QFontMetrics(widget.font()).size(Qt.TextFlag.TextShowMnemonic, widget.text())
        return words.width() > widget.width() or words.height() > widget.height()
    if isinstance(widget, QLineEdit) and widget.placeholderText() and not widget.toolTip():
        return QFontMetrics(widget.font()).horizontalAdvance(widget.placeholderText()) > widget.width()
    return False


def words_of(widget: QWidget) -> str:
    return str(getattr(widget, "text", lambda: "")()) or widget.accessibleName()


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["en", "de", "ar"], indirect=True)
@pytest.mark.parametrize(
    ("scale", "width", "height"), [(1.0, 1_000, 700), (2.0, 1_280, 720), (1.5, 1_920, 1_080)]
)
def test_no_words_are_cut_in_any_language_at_any_size(
    spoken: WindowDesk, theme: Theme, scale: float, width: int, height: int
) -> None:
    theme.set_scale(scale)
    spoken.window.resize(width, height)

    cut = [
        f"{page}: {type(w).__name__} {words_of(w)!r}"
        for page in PAGES
        for w in shown(spoken, page)
        if is_cut(w)
    ]

    assert "\n".join(cut) == ""


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["de", "ar"], indirect=True)
def test_no_words_of_the_window_stay_english(spoken: WindowDesk) -> None:
    known = source_texts()
    left = set()
    for page in PAGES:
        for widget in shown(spoken, page):
            interface = QAccessible.queryAccessibleInterface(widget)
            heard = (
                [interface.text(part) for part in (QAccessible.Text.Name, QAccessible.Text.Description)]
                if interface
                else []
            )
            texts = [
                words_of(widget),
                widget.toolTip(),
                getattr(widget, "placeholderText", lambda: "")(),
                *heard,
            ]
            texts += [action.text() for action in widget.actions()]
            for text in (t for t in texts if t and t not in _OURS):
                bare = re.sub(r"<[^>]+>|“.*?”|„.*?“|\"[^\"]*\"|/\S+", "", text).replace("&", "")
                if (bare in known and bare not in catalogue_texts("de").values()) or _ENGLISH.search(bare):
                    left.add(f"{page}: {type(widget).__name__} {bare!r}")

    assert "\n".join(sorted(left)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["en", "ar"], indirect=True)
def test_what_is_pressed_is_at_least_24_pixels_high_and_wide(spoken: WindowDesk) -> None:
    small = {
        f"{page}: {type(w).__name__} {words_of(w)!r} {w.width()}x{w.height()}"
        for page in PAGES
        for w in shown(spoken, page)
        if isinstance(w, QAbstractButton | QLineEdit) and w.isEnabled() and min(w.width(), w.height()) < 24
    }

    assert sorted(small) == []


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["en", "ar"], indirect=True)
def test_tab_comes_back_to_where_it_began_on_every_page(spoken: WindowDesk) -> None:
    spoken.window.activateWindow()
    for page in PAGES:
        list(shown(spoken, page))
        QTest.keyClick(QApplication.focusWidget() or spoken.window, Qt.Key.Key_Tab)
        first = QApplication.focusWidget()
        walked: list[QWidget | None] = []
        while len(walked) < 200 and (not walked or walked[-1] is not first):
            QTest.keyClick(QApplication.focusWidget() or spoken.window, Qt.Key.Key_Tab)
            walked.append(QApplication.focusWidget())

        assert first is not None, page
        assert 2 < len(walked) < 200, (page, first.accessibleName())


@pytest.mark.parametrize("spoken", ["ar"], indirect=True)
def test_the_window_is_mirrored_where_it_is_read_from_right_to_left(spoken: WindowDesk) -> None:
    window = spoken.window
    middle = window.mapToGlobal(window.rect().center()).x()

    assert window.sidebar.mapToGlobal(window.sidebar.rect().center()).x() > middle
    send = window.chat.composer.send_button
    assert (
        send.mapToGlobal(send.rect().center()).x()
        < window.chat.composer.mapToGlobal(window.chat.composer.rect().center()).x()
    )


@pytest.mark.parametrize("spoken", ["de"], indirect=True)
def test_a_fraction_is_written_and_read_with_the_comma_of_the_language(spoken: WindowDesk) -> None:
    spoken.window.pages.show_page("settings")
    spoken.application.settings.set("appearance.scale", 1.25)
    field = spoken.join.settings.page.rows["appearance.scale"].field
    assert field.control.text() == "1,25"

    field.control.setText("1,5")
    field.commit()

    assert spoken.application.settings.value("appearance.scale") == 1.5


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["en", "de", "ar"], indirect=True)
@pytest.mark.parametrize("name", ["shortcuts", "palette", "personas"])
def test_a_dialog_cuts_no_words_and_gives_the_keyboard_back(
    spoken: WindowDesk, theme: Theme, name: str
) -> None:
    theme.set_scale(1.5)
    spoken.window.resize(1_280, 720)
    spoken.window.activateWindow()
    before = spoken.window.chat.composer.edit
    before.setFocus()
    if name == "personas":
        spoken.join.settings.new_persona()
    else:
        spoken.window.actions_by_name[name].trigger()
    dialog = next(d for d in spoken.window.findChildren(QDialog) if d.isVisible())
    settle(spoken)

    widgets = [w for w in dialog.findChildren(QWidget) if w.isVisibleTo(dialog)]
    assert "\n".join(f"{type(w).__name__} {words_of(w)!r}" for w in widgets if is_cut(w)) == ""

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    assert spoken.window.focusWidget() is before
