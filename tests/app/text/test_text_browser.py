"""The read-only text of a message."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QAccessible, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.text.markdown_blocks import StreamingMarkdown
from inglenook.app.text.text_browser import SafeTextBrowser
from inglenook.app.window.theme import Theme


@pytest.fixture
def browser(qtbot: QtBot, theme: Theme) -> SafeTextBrowser:
    browser = SafeTextBrowser(theme)
    qtbot.addWidget(browser)
    return browser


def show(browser: SafeTextBrowser, text: str, *, width: int = 600) -> SafeTextBrowser:
    blocks = StreamingMarkdown.of(text)
    browser.show_elements([e for part in range(blocks.num_parts) for e in blocks.elements(part)])
    browser.fit(width)
    browser.show()
    QApplication.processEvents()
    return browser


def test_the_button_of_code_stands_at_its_right_end_before_the_text_is_shown(
    browser: SafeTextBrowser,
) -> None:
    browser.show_elements(StreamingMarkdown.of("```python\nprint()\n```").elements(0))

    browser.fit(600)

    assert 560 < browser.copy_buttons()[0].geometry().right() < 600


IMAGES = [
    "![a]({})", "![a](<{}>)", "[![a]({})](http://x)", "![a][r]\n\n[r]: {}", '<img src="{}">', '<table background="{}"><tr><td>x',
    '<div style="background-image:url({})">x</div>', '<link rel=stylesheet href="{}">', "<style>@import '{}'</style>",
]  # fmt: skip


@pytest.mark.parametrize("form", IMAGES)
def test_no_text_makes_the_window_read_a_file(browser: SafeTextBrowser, tmp_path: Path, form: str) -> None:
    fifo = tmp_path / "fifo.png"
    os.mkfifo(fifo)
    show(browser, "warm up")

    for place in (f"file://{fifo}", str(fifo), "file:///dev/zero", "/dev/zero", "http://127.0.0.1:1/x.png"):
        began = time.perf_counter()
        show(browser, form.format(place))
        browser.grab()
        assert time.perf_counter() - began < 0.5


def test_even_html_loads_nothing(browser: SafeTextBrowser, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.png"
    os.mkfifo(fifo)

    # What no code of ours does: the second wall has to stand alone.
    browser.setHtml(
        f'<img src="file://{fifo}"><img src="file:///dev/zero"><p style="background:url(file://{fifo})">x'
    )
    browser.resize(300, 200)
    browser.show()
    browser.grab()

    image = browser.loadResource(QTextDocument.ResourceType.ImageResource.value, QUrl("file:///dev/zero"))
    assert (image.width(), image.height()) == (1, 1)
    assert (
        browser.loadResource(QTextDocument.ResourceType.HtmlResource.value, QUrl("file:///etc/passwd")) == ""
    )


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://a.b", "#a", "x.html", ""])
def test_a_click_never_navigates(browser: SafeTextBrowser, url: str) -> None:
    show(browser, "some text")

    browser.setSource(QUrl(url))

    assert browser.toPlainText() == "some text"


def test_a_link_is_reported_and_not_followed(browser: SafeTextBrowser, qtbot: QtBot) -> None:
    show(browser, "[words](https://example.org/a)")
    cursor = browser.textCursor()
    cursor.setPosition(2)
    place = browser.cursorRect(cursor).center()

    with qtbot.waitSignal(browser.link_activated) as activated:
        qtbot.mouseClick(browser.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert activated.args == ["https://example.org/a"]
    assert browser.toPlainText() == "words"


def test_nothing_can_be_dropped_or_pasted(browser: SafeTextBrowser) -> None:
    data = QMimeData()
    data.setHtml("<img src='file:///dev/zero'>")

    assert not browser.acceptDrops()
    assert not browser.viewport().acceptDrops()
    assert not browser.canInsertFromMimeData(data)
    assert browser.isReadOnly()


def test_the_menu_copies_and_selects(browser: SafeTextBrowser) -> None:
    show(browser, "text")

    names = [action.text() for action in browser.context_menu(QPoint(1, 1)).actions()]

    assert names == ["Copy", "Copy message as Markdown", "Select all"]


def test_a_selection_is_copied_as_plain_text_with_its_marks(browser: SafeTextBrowser) -> None:
    show(
        browser,
        "# Head\n\nA **b** `c`\nd\n\n- x\n  - y\n\n2. z\n\n| p | q |\n|--|--|\n| 1 | 2 |\n\n```py\nif a:\n    b\n```\n",
    )
    browser.selectAll()

    data = browser.createMimeDataFromSelection()

    assert data.text() == "Head\nA b c\nd\n• x\n  • y\n2. z\np\tq\n1\t2\nif a:\n    b"
    assert data.formats() == ["text/plain"]


def test_code_boxes_have_a_named_copy_button(browser: SafeTextBrowser, qtbot: QtBot) -> None:
    show(browser, "```python\na\n```\n\ntext\n\n```\nb\n```\n")

    assert [b.accessibleName() for b in browser.copy_buttons()] == ["Copy code python", "Copy code"]
    with qtbot.waitSignal(browser.code_copy_asked) as asked:
        browser.copy_buttons()[1].click()
    assert asked.args == [1]


def test_text_from_right_to_left_is_laid_out_so_and_code_is_not(browser: SafeTextBrowser) -> None:
    show(browser, "مرحبا بالعالم\n\n```\nمرحبا\n```\n\nhello")

    block = browser.document().begin()
    directions = []
    while block.isValid():
        directions.append(block.textDirection())
        block = block.next()
    right, left = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight
    assert directions == [right, left, left]


def test_streamed_text_rewrites_only_its_end(browser: SafeTextBrowser) -> None:
    show(browser, "first\n\nsecond\n\n- a")
    changes: list[tuple[int, int, int]] = []
    browser.document().contentsChange.connect(lambda *change: changes.append(change))

    show(browser, "first\n\nsecond\n\n- a\n- b")

    assert changes
    assert min(position for position, _, _ in changes) >= len("first\nsecond\na")


@pytest.mark.parametrize("end", ["| a |\n|--|\n| 1 |\n", "```\nx\n```\n", "text", "- a\n\n> b", "---\n"])
def test_a_rewritten_document_is_like_a_new_one(qtbot: QtBot, theme: Theme, end: str) -> None:
    old, new = SafeTextBrowser(theme), SafeTextBrowser(theme)
    qtbot.addWidget(old)
    qtbot.addWidget(new)
    text = "start\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n" + end

    for length in range(1, len(text) + 1):
        show(old, text[:length])
    show(new, text)

    assert old.document().toHtml() == new.document().toHtml()
    assert old.height() == new.height()


def test_the_text_is_readable_for_assistive_programs(browser: SafeTextBrowser) -> None:
    show(browser, "words to read")
    browser.setAccessibleName("Assistant, words to read")

    interface = QAccessible.queryAccessibleInterface(browser)

    assert interface.text(QAccessible.Text.Name) == "Assistant, words to read"
    assert interface.textInterface().text(0, 5) == "words"
