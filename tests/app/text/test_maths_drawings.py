"""Formulas drawn by a process of its own: in lines of text, copied as LaTeX, and bounded whatever is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QImage, QTextCursor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.text import maths_drawings
from inglenook.app.text.elements_html import elements_of, html_of, text_of
from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.maths_object import OBJECT
from inglenook.app.text.text_browser import SafeTextBrowser
from inglenook.app.window.theme import Theme

TEXT = r"Since $x^2$ grows:" + "\n\n" + r"$$\frac{a}{b}$$" + "\n\nit costs $5 and $10."


@pytest.fixture
def drawings(qapp: QApplication) -> Iterator[MathsDrawings]:
    made = MathsDrawings()
    yield made
    made.close()


def show(qtbot: QtBot, theme: Theme, drawings: MathsDrawings, text: str) -> SafeTextBrowser:
    browser = SafeTextBrowser(theme, None, drawings)
    qtbot.addWidget(browser)
    elements = elements_of(text, is_plain=False)
    browser.show_elements(elements)
    while browser.writer.awaits_maths:
        with qtbot.waitSignal(drawings.drawn, timeout=20_000):
            pass
        browser.show_elements(elements)
    browser.fit(600)
    browser.show()
    return browser


def ink(browser: SafeTextBrowser) -> QImage:
    return browser.grab().toImage()


def test_formulas_stand_in_the_text_and_money_stays_money(
    qtbot: QtBot, theme: Theme, drawings: MathsDrawings
) -> None:
    browser = show(qtbot, theme, drawings, TEXT)

    assert browser.document().toPlainText() == f"Since {OBJECT} grows:\n{OBJECT}\nit costs $5 and $10."


def test_a_copy_has_the_latex(qtbot: QtBot, theme: Theme, drawings: MathsDrawings) -> None:
    browser = show(qtbot, theme, drawings, TEXT)

    browser.selectAll()
    everything = browser.selected_text()
    cursor = QTextCursor(browser.document())
    cursor.setPosition(6)
    cursor.setPosition(9, QTextCursor.MoveMode.KeepAnchor)
    browser.setTextCursor(cursor)

    assert everything == "Since $x^2$ grows:\n$$\\frac{a}{b}$$\nit costs $5 and $10."
    assert browser.selected_text() == "$x^2$ g"


def test_a_formula_is_painted_in_the_colour_of_the_text(
    qtbot: QtBot, theme: Theme, drawings: MathsDrawings
) -> None:
    light = ink(show(qtbot, theme, drawings, r"$$\rule{3em}{3em} \blacksquare$$"))
    theme.set_scheme("dark")
    try:
        dark = ink(show(qtbot, theme, drawings, r"$$\blacksquare$$"))
    finally:
        theme.set_scheme("light")

    def extreme(image: QImage, choose: object) -> int:
        greys = [
            image.pixelColor(x, y).lightness() for x in range(image.width()) for y in range(image.height())
        ]
        return choose(greys)  # type: ignore[operator]

    assert extreme(light, min) < 80
    assert extreme(dark, max) > 200


def test_a_wide_formula_is_made_to_fit(qtbot: QtBot, theme: Theme, drawings: MathsDrawings) -> None:
    browser = show(qtbot, theme, drawings, "$$" + " + ".join(f"x_{{{n}}}" for n in range(40)) + "$$")

    browser.fit(300)

    assert browser.document().idealWidth() <= 300


@pytest.mark.parametrize(
    "latex", [r"\frac{a", r"\unknown{x}", r"\ce{H2O}", r"\text{a < b & c}", "^", r"\left(", "x_1_2"]
)
def test_what_cannot_be_drawn_is_shown_as_typed(
    qtbot: QtBot, theme: Theme, drawings: MathsDrawings, latex: str
) -> None:
    browser = show(qtbot, theme, drawings, f"See $${latex}$$ here")

    assert browser.document().toPlainText() == f"See $${latex}$$ here"
    browser.selectAll()
    assert browser.selected_text() == f"See $${latex}$$ here"


def test_deep_nesting_is_not_even_tried(drawings: MathsDrawings) -> None:
    for source in ("$" + "{" * 40 + "x" + "}" * 40 + "$", "$" + r"\left(" * 30 + "x" + r"\right)" * 30 + "$"):
        assert drawings.get(source, is_display=False) is None
        assert not drawings.is_awaited(source, is_display=False)


def test_a_formula_that_takes_too_long_is_given_up_and_the_next_one_is_drawn(
    qtbot: QtBot, drawings: MathsDrawings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maths_drawings, "MAX_DEPTH", 100)
    drawings._patience.setInterval(1_500)
    slow = "$" + r"\frac{1}{" * 14 + "x" + "}" * 14 + "$"

    with qtbot.waitSignal(drawings.drawn, timeout=20_000):
        drawings.get(slow, is_display=False)
    drawings._patience.setInterval(20_000)
    with qtbot.waitSignal(drawings.drawn, timeout=20_000):
        drawings.get("$y$", is_display=False)

    assert drawings.get(slow, is_display=False) is None
    assert drawings.get("$y$", is_display=False) is not None


def test_a_process_that_dies_again_and_again_is_not_started_for_ever(qtbot: QtBot) -> None:
    drawings = MathsDrawings(command=(sys.executable, "-c", "import sys; sys.exit(3)"))

    for number in range(8):
        drawings.get(f"$x_{number}$", is_display=False)
    qtbot.waitUntil(lambda: drawings._num_deaths >= maths_drawings.MAX_DEATHS, timeout=20_000)

    assert not any(drawings.is_awaited(f"$x_{n}$", is_display=False) for n in range(8))
    drawings.close()


def test_what_is_destroyed_without_being_closed_ends_its_process(qtbot: QtBot) -> None:
    parent = QObject()
    drawings = MathsDrawings(parent)
    with qtbot.waitSignal(drawings.drawn, timeout=20_000):
        drawings.get("$x$", is_display=False)

    shiboken6.delete(parent)


def test_a_program_that_is_not_there_leaves_formulas_as_text(qtbot: QtBot) -> None:
    drawings = MathsDrawings(command=("/nowhere/python",))

    drawings.get("$x$", is_display=False)
    qtbot.waitUntil(lambda: not drawings.is_awaited("$x$", is_display=False))

    assert drawings.get("$x$", is_display=False) is None
    drawings.close()


def test_the_process_reads_no_file_that_a_formula_names() -> None:
    asked = [r"\href{file:///etc/passwd}{x}", r"\includegraphics{/etc/passwd}", r"\input{/etc/passwd}x"]
    lines = "".join(
        json.dumps({"id": n, "latex": t, "is_display": False}) + "\n" for n, t in enumerate(asked)
    )

    done = subprocess.run(
        maths_drawings.COMMAND, input=lines, capture_output=True, text=True, timeout=60, check=True
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    kinds = {shape[0] for answer in answers for shape in answer.get("shapes", [])}
    assert kinds <= {"path", "line", "rect", "frame"}
    assert "root" not in done.stdout


def test_exports_and_copies_keep_the_latex() -> None:
    elements = elements_of(TEXT, is_plain=False)

    assert text_of(elements) == "Since $x^2$ grows:\n\n$$\\frac{a}{b}$$\n\nit costs $5 and $10."
    assert "$x^2$" in html_of(elements)
    assert r"$$\frac{a}{b}$$" in html_of(elements)


def test_nothing_of_the_library_is_loaded_with_the_window() -> None:
    code = "import sys, inglenook.app.chat.chat_page; print([m for m in ('ziamath', 'ziafont', 'latex2mathml') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"
