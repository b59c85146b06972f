"""Texts out of sight are dropped beyond a number and a size, and come back as they were."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.chat.message_list_model import Message, MessageListModel
from inglenook.app.chat.message_view import MessageView
from inglenook.app.chat.transcript_texts import _KEPT, _KEPT_CHARS, FEED_CHARS, TranscriptTexts
from inglenook.app.window.theme import Theme


@pytest.mark.parametrize("size", [100, 20_000])
def test_what_is_kept_is_bounded_in_number_and_size(size: int) -> None:
    texts = TranscriptTexts()
    texts.reset(300)
    for index in range(300):
        texts.read(index, Message(index, "assistant", "word " * (size // 5)), is_followed=True)
        texts.touch(index)
        texts.forget([index])

    kept = [index for index in range(300) if texts[index] is not None]
    assert kept == list(range(300))[-min(_KEPT, _KEPT_CHARS // size) :]


def test_rows_in_sight_and_what_is_read_in_slices_stay() -> None:
    texts = TranscriptTexts()
    texts.reset(200)
    for index in range(200):
        giant = index in (0, 1)
        words = "word " * (FEED_CHARS if giant else 10)
        while texts.read(index, Message(index, "assistant", words), is_followed=True):
            pass
        texts.touch(index)
        texts.forget([2])

    kept = [index for index in range(200) if texts[index] is not None]
    assert kept[:3] == [0, 1, 2]
    assert len(kept) == _KEPT


def test_going_through_many_long_messages_and_back_keeps_the_rows_together(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inglenook.app.chat.transcript_texts._KEPT_CHARS", 40_000)
    paragraph = "The quick brown fox jumps over the lazy dog. " * 20 + "\n\n"
    model = MessageListModel(Message(n, "assistant", f"Message {n}. " + paragraph * 9) for n in range(12))
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    bar = view.verticalScrollBar()

    def sight() -> dict[tuple[object, int], int]:
        QApplication.processEvents()
        widgets = view.visible_widgets()
        assert all(a.y() + a.height() == b.y() for a, b in pairwise(widgets))
        return {(w.message_id, w._part): w.y() for w in widgets if -w.height() < w.y() < 600}

    for up in (True, False):
        for number in range(11, -1, -1) if up else range(12):
            view.show_message(number)
            before = sight()
            assert before[number, 0] == 0
            bar.setValue(bar.value() + 30)
            after = sight()
            assert {before[key] - after[key] for key in before.keys() & after.keys()} <= {0, 30}

    assert sum(text is not None for text in view._blocks._texts) < 9
