"""The list of documents in the side bar."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from pytestqt.qtbot import QtBot

from inglenook.app.documents.document_list import DocumentList
from inglenook.app.documents.document_list_model import DocumentEntry, DocumentListModel
from inglenook.app.window.theme import Theme

READY = DocumentEntry(1, "manual.pdf", num_pages=120)
READING = DocumentEntry(2, "a<b>.md", "reading", 3, 12)
FAILED = DocumentEntry(3, "scan.pdf", "failed", problem="No text on 3 of 3 pages.", is_ticked=False)


@pytest.fixture
def documents(qtbot: QtBot, theme: Theme) -> DocumentList:
    documents = DocumentList(theme)
    qtbot.addWidget(documents)
    documents.set_entries([READY, READING, FAILED])
    documents.resize(240, 300)
    documents.show()
    return documents


def test_the_model_keeps_qts_rules(qtbot: QtBot) -> None:
    model = DocumentListModel([READY, READING])
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)

    model.replace([READY, FAILED, READING])
    model.replace([])

    assert model.rowCount() == 0
    tester.deleteLater()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (READY, "120 pages, searchable"),
        (READING, "Reading page 4 of 12"),
        (DocumentEntry(4, "x", "reading"), "Reading…"),
        (DocumentEntry(4, "x", "queued"), "Waiting to be read"),
        (DocumentEntry(4, "x"), "Searchable"),
        (DocumentEntry(4, "x", done=30, total=120), "30 of 120 passages embedded"),
        (DocumentEntry(4, "x", done=120, total=120), "Searchable"),
        (DocumentEntry(4, "x", problem="No text on 2 of 9 pages."), "No text on 2 of 9 pages."),
        (DocumentEntry(4, "x", is_missing=True), "File moved or deleted; its text stays searchable"),
        (FAILED, "No text on 3 of 3 pages."),
    ],
)
def test_every_state_is_said_in_words(qtbot: QtBot, entry: DocumentEntry, words: str) -> None:
    assert DocumentListModel().status(entry) == words


def test_a_row_is_heard_with_its_name_and_state(documents: DocumentList) -> None:
    heard = documents.model.index(1).data(Qt.ItemDataRole.AccessibleTextRole)

    assert heard == "a<b>.md, Reading page 4 of 12"


def test_the_tick_changes_by_mouse_and_space_bar_only_when_told(
    qtbot: QtBot, documents: DocumentList
) -> None:
    row = documents.view.visualRect(documents.model.index(0))
    with qtbot.waitSignal(documents.ticked) as clicked:
        place = QPoint(row.left() + 20, row.center().y())
        QTest.mouseClick(documents.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    documents.view.setCurrentIndex(documents.model.index(2))
    with qtbot.waitSignal(documents.ticked) as pressed:
        QTest.keyClick(documents.view, Qt.Key.Key_Space)

    assert clicked.args == [1, False]
    assert pressed.args == [3, True]
    assert documents.model.entries[0].is_ticked


def test_a_failed_document_has_one_button(qtbot: QtBot, documents: DocumentList) -> None:
    assert documents.retry_button.isHidden()
    documents.view.setCurrentIndex(documents.model.index(2))
    assert not documents.retry_button.isHidden()

    with qtbot.waitSignal(documents.retry_requested) as asked:
        documents.retry_button.click()

    assert asked.args == [3]


def test_the_heading_counts_what_is_used_and_the_line_below_what_is_embedded(documents: DocumentList) -> None:
    assert documents._heading.text() == "Documents · 2 of 3 used"
    documents.set_embedding(30, 120)
    assert documents._embedding.text() == "Searchable; 30 of 120 passages embedded"
    documents.set_embedding(120, 120)
    assert documents._embedding.isHidden()


def test_progress_keeps_the_row_that_is_current(documents: DocumentList) -> None:
    documents.view.setCurrentIndex(documents.model.index(1))

    documents.set_entries([READY, DocumentEntry(2, "a<b>.md", "reading", 4, 12), FAILED])

    assert documents.view.currentIndex().row() == 1
