"""The messages of a chat as a list model."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex, Qt
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from inglenook.app.chat.message_list_model import Citation, Message, MessageListModel, MessageRole

HELLO = Message("a", "user", "Hello <b>there</b>")
REPLY = Message("b", "assistant", "", "streaming")


def test_the_model_passes_qts_own_tester(qtmodeltester: ModelTester) -> None:
    model = MessageListModel([HELLO])
    qtmodeltester.check(model)

    model.append(REPLY)
    model.append_text("b", "Hi")
    model.update("b", state="failed", error="No model is loaded.")
    model.remove_from(1)
    model.replace([REPLY])
    model.replace([])


def test_every_field_has_a_role() -> None:
    citation = Citation(1, "report.pdf", "4", "a quote", True)
    message = Message("a", "assistant", "text", "failed", "why", (citation,))
    model = MessageListModel([message])
    index = model.index(0)

    assert index.data(MessageRole.MESSAGE) == message
    assert index.data(MessageRole.ID) == "a"
    assert index.data(MessageRole.ROLE) == "assistant"
    assert index.data(MessageRole.TEXT) == index.data() == "text"
    assert index.data(MessageRole.STATE) == "failed"
    assert index.data(MessageRole.ERROR) == "why"
    assert index.data(MessageRole.CITATIONS) == (citation,)
    assert index.data(Qt.ItemDataRole.DecorationRole) is None
    assert model.data(QModelIndex()) is None


def test_a_message_is_read_out_with_its_author() -> None:
    model = MessageListModel([HELLO, Message("b", "assistant", "Line one\nline two")])

    assert model.index(0).data(Qt.ItemDataRole.AccessibleTextRole) == "You, Hello <b>there</b>"
    assert model.index(1).data(Qt.ItemDataRole.AccessibleTextRole) == "Assistant, Line one line two"


def test_streamed_text_changes_one_row_and_says_which_roles(qtbot: QtBot) -> None:
    model = MessageListModel([HELLO, REPLY])

    with qtbot.waitSignal(model.dataChanged) as changed:
        model.append_text("b", "Hi")

    top, _bottom, roles = changed.args
    assert top.row() == 1
    assert set(roles) == {MessageRole.MESSAGE, MessageRole.TEXT, Qt.ItemDataRole.DisplayRole}
    assert model.message("b").text == "Hi"


def test_an_equal_value_is_no_change(qtbot: QtBot) -> None:
    model = MessageListModel([HELLO])

    with qtbot.assertNotEmitted(model.dataChanged):
        model.update_text("a", HELLO.text)


def test_ids_are_unique_and_kept() -> None:
    model = MessageListModel([HELLO])

    with pytest.raises(ValueError, match="in the list already"):
        model.append(HELLO)
    with pytest.raises(ValueError, match="same id"):
        model.replace([HELLO, HELLO])
    with pytest.raises(ValueError, match="keeps its id"):
        model.update("a", id="b")
    with pytest.raises(KeyError):
        model.update_text("unknown", "x")


def test_asking_a_turn_again_removes_what_follows() -> None:
    model = MessageListModel([HELLO, REPLY])

    model.remove_from(1)
    model.remove_from(7)

    assert list(model.messages) == [HELLO]
    model.append(REPLY)
    assert model.row_of("b") == 1
