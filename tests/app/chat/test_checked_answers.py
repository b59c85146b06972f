"""Answers from documents: what no passage says is marked and said, what was only found is folded away."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.answers.sentence_checks import SentenceCheck
from inglenook.app.chat.message_list_model import Citation, Message
from inglenook.app.chat.message_widget import MessageWidget
from inglenook.app.chat.shown_messages import unfound_sentences
from inglenook.app.text.reply_text import ReplyText
from inglenook.app.window.theme import Theme
from inglenook.storage.messages import Messages
from inglenook.storage.records import Message as StoredMessage
from inglenook.storage.records import Place, Source

TEXT = "The unit holds **1.2 kg** of R290. It was built in 1987. That is all."
SOURCES = (
    Citation(1, "Manual.pdf", "4", "1.2 kilograms", True),
    Citation(2, "Manual.pdf", "5", "water", True, is_cited=False),
    Citation(3, "Notes.md", "", "lines", True, is_cited=False),
)


def shown(qtbot: QtBot, theme: Theme, message: Message) -> MessageWidget:
    widget = MessageWidget(theme)
    qtbot.addWidget(widget)
    reply = ReplyText()
    reply.take(message.text, 10_000, is_streaming=False)
    widget.bind(message, reply.elements(0))
    widget.fit(900)
    widget.show()
    return widget


def underlined(widget: MessageWidget) -> list[str]:
    return [mark.cursor.selectedText() for mark in widget.browser.extraSelections()]


def test_a_sentence_that_was_not_found_is_underlined_and_said(qtbot: QtBot, theme: Theme) -> None:
    message = Message(
        1, "assistant", TEXT, citations=SOURCES[:1], others=SOURCES[1:], unfound=("It was built in 1987.",)
    )

    widget = shown(qtbot, theme, message)

    assert underlined(widget) == ["It was built in 1987."]
    assert "1 sentence, underlined, was not found" in widget._status.text()
    assert widget.accessibleDescription() == "Not found in the documents: It was built in 1987."


def test_a_sentence_with_marks_of_its_own_is_found_in_the_text(qtbot: QtBot, theme: Theme) -> None:
    message = Message(1, "assistant", TEXT, unfound=("The unit holds **1.2 kg** of R290.",))

    assert underlined(shown(qtbot, theme, message)) == ["The unit holds 1.2 kg of R290."]


def test_a_row_that_is_used_again_loses_its_marks(qtbot: QtBot, theme: Theme) -> None:
    widget = shown(qtbot, theme, Message(1, "assistant", TEXT, unfound=("It was built in 1987.",)))

    widget.bind(Message(2, "assistant", TEXT), widget.browser.writer._shown)

    assert underlined(widget) == []
    assert widget.accessibleDescription() == ""


def test_passages_that_were_only_found_unfold_below_the_cited_ones(qtbot: QtBot, theme: Theme) -> None:
    widget = shown(qtbot, theme, Message(1, "assistant", TEXT, citations=SOURCES[:1], others=SOURCES[1:]))
    chips = widget.chips
    names = [button.accessibleName() for button in chips.controls()]
    assert names == ["Source 1: Manual.pdf, page 4", "2 more passages were found, show them"]

    with qtbot.waitSignal(widget.room_changed):
        QTest.mouseClick(chips.toggle, Qt.MouseButton.LeftButton)

    names = [button.accessibleName() for button in chips.controls()]
    assert names[2:] == ["Found but not used: Manual.pdf, page 5", "Found but not used: Notes.md"]
    with qtbot.waitSignal(widget.citation_activated) as told:
        QTest.mouseClick(chips.controls()[2], Qt.MouseButton.LeftButton)
    assert told.args == [1, 2]


def test_what_was_only_thought_is_not_judged() -> None:
    text = "<think>It weighs 9 kg.</think>\n\nIt weighs 5 kg."
    start = text.rindex("It")
    checks = [SentenceCheck(7, 22, "not found"), SentenceCheck(start, len(text), "not found")]

    assert unfound_sentences(text, checks) == ("It weighs 5 kg.",)


def test_a_sentence_is_marked_while_the_reply_goes_on(desk: WindowDesk) -> None:
    desk.send("How much?")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[-1].say("It holds 9 kg. And", 1)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text.endswith("And"))

    desk.application.answering.sentence_checked.emit(desk.messages[-1].id, SentenceCheck(0, 14, "not found"))

    view = desk.window.chat.view
    desk.qtbot.waitUntil(lambda: underlined(view.visible_widgets()[-1]) == ["It holds 9 kg."])


def test_a_source_that_only_the_thought_rests_on_is_not_cited(desk: WindowDesk) -> None:
    text = "<think>It weighs 9 kg.</think>\n\nIt weighs 5 kg."
    start = text.rindex("It")
    places = [Place(page_index=n, page_label=None, char_start=0, char_end=9) for n in (0, 1)]
    sources = [
        Source(n, 1, None, None, None, "a.pdf", place, "It weighs", 1.0, True, range_)
        for n, (place, range_) in enumerate(zip(places, ((7, 22), (start, len(text))), strict=True))
    ]
    desk.ask("How heavy?", text)
    stored: list[StoredMessage] = []
    desk.application.tasks.read(lambda db: Messages(db).get(int(desk.messages[-1].id)), stored.append)
    desk.qtbot.waitUntil(lambda: bool(stored))

    shown_message = desk.join.chats._shown_messages.message(stored[0], sources)

    assert [citation.page for citation in shown_message.citations] == ["2"]
    assert [citation.page for citation in shown_message.others] == ["1"]
