"""What users of other chat programs report again and again (the letters are those of the study they were gathered in), tried here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.chat.export import html_document, read_conversation
from inglenook.app.chat.title_writer import ASKED
from inglenook.app.window.theme import Theme
from inglenook.storage.database import Database

HOSTILE = (
    "<channel>\n",
    "<smirk> waffles!",
    "![a](file:///etc/passwd) ![b](http://evil.example/x.png)",
    '<img src="file:///etc/passwd" onerror=alert(1)>',
    r"$\href{file:///etc/passwd}{x}$ and \[\includegraphics{/etc/passwd}\]",
    "<think><img src=x></think><b>bold</b>",
    "```\n<script>alert(1)</script>\n```",
    "$5 <table background=file:///x> and $10",
)


def shown(desk: WindowDesk, index: int) -> list[str]:
    view = desk.window.chat.view
    rows = [w for w in view.visible_widgets() if w.message_id == desk.messages[index].id]
    return [row.browser.document().toPlainText() for row in rows]


def tree(desk: WindowDesk) -> list[tuple[int, int | None, str]]:
    """Every message of every conversation: id, parent, text."""
    found: list[list[tuple[int, int | None, str]]] = []
    desk.application.tasks.read(
        lambda db: [tuple(row) for row in db.rows("SELECT id, parent_id, text FROM messages ORDER BY id")],
        found.append,
    )
    desk.qtbot.waitUntil(lambda: bool(found))
    return found[0]


def answer(desk: WindowDesk, count: int, text: str) -> None:
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count)
    desk.client.requests[-1].say(text, count)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: bool(desk.messages) and desk.messages[-1].state == "complete")


def test_a13_a_running_chat_that_is_reopened_has_its_text_and_a_stop_that_works(desk: WindowDesk) -> None:
    desk.send("Long?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    running = desk.client.requests[-1]
    running.say("Once", 1)
    desk.qtbot.waitUntil(lambda: desk.texts == ["Long?", "Once"])
    chat = desk.join.chats.conversation_id
    desk.window.actions_by_name["new_chat"].trigger()
    running.say(" upon", 2)

    desk.window.sidebar.chats.activated.emit(chat)
    desk.qtbot.waitUntil(lambda: desk.texts == ["Long?", "Once upon"])
    running.say(" a time", 3)
    desk.qtbot.waitUntil(lambda: desk.texts[-1] == "Once upon a time")
    assert desk.window.chat.composer.is_streaming
    QTest.mouseClick(desk.window.chat.composer.send_button, Qt.MouseButton.LeftButton)

    assert running.is_cancelled
    assert desk.messages[-1].state == "stopped"


def test_a18_no_node_of_the_tree_is_lost_by_editing_and_flipping_versions(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        desk.ask(f"Q{number}", f"A{number}")
    view = desk.window.chat.view
    view.act_on(desk.messages[2].id, "edit")
    desk.window.chat.composer.set_text("Q2b")
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Return)
    answer(desk, 4, "A2b")
    assert desk.texts == ["Q1", "A1", "Q2b", "A2b"]
    before = tree(desk)

    for name, want in (("previous", "Q2"), ("next", "Q2b"), ("previous", "Q2")):
        view.act_on(desk.messages[2].id, name)
        desk.qtbot.waitUntil(lambda want=want: desk.texts[2] == want)  # type: ignore[misc]
    desk.close()
    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: again.texts == ["Q1", "A1", "Q2", "A2", "Q3", "A3"])
    after = tree(again)
    again.close()

    assert after == before
    assert sorted(text for _, _, text in after) == ["A1", "A2", "A2b", "A3", "Q1", "Q2", "Q2b", "Q3"]


def test_a14_d3_a_title_that_fails_or_only_thinks_changes_no_title(desk: WindowDesk) -> None:
    desk.ask("First chat", "1")
    desk.window.actions_by_name["new_chat"].trigger()
    desk.application.settings.set("chat.titles", True)
    desk.ask("Second chat", "<think>secret plan</think>2")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 3)
    assert desk.client.requests[-1].what.messages[-1]["content"] == ASKED

    desk.client.requests[-1].say("secret plan without an end </think", 5)
    desk.client.requests[-1].fail("EngineStoppedError", "gone")
    desk.join.chats.refresh()
    desk.ask("More", "3")

    assert desk.titles == ["Second chat", "First chat"]


def test_d11_a_reopened_chat_sends_the_prompt_that_the_live_one_would_have_sent(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    desk.application.settings.set("chat.system", "Be brief.")
    desk.ask("Q1", "<think>t</think>A1")
    desk.ask("Q2", "A2 $x$")
    desk.ask("Q3", "A3")
    live = desk.client.requests[-1].what
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: len(again.messages) == 6)
    again.window.chat.view.act_on(again.messages[-1].id, "again")
    qtbot.waitUntil(lambda: len(again.client.requests) == 1)
    reloaded = again.client.requests[-1].what
    again.close()

    assert reloaded.messages == live.messages
    assert reloaded.messages[0] == {"role": "system", "content": "Be brief."}
    assert reloaded.reply_token_ids == live.reply_token_ids


def test_t31_text_is_shown_alike_streamed_reloaded_and_exported(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    desk.window.resize(1_000, 1_600)
    for count, text in enumerate(HOSTILE, 1):
        desk.send(text)
        desk.qtbot.waitUntil(lambda count=count: len(desk.client.requests) == count)  # type: ignore[misc]
        for piece in text:
            desk.client.requests[-1].say(piece, 1)
        desk.client.requests[-1].finish()
        desk.qtbot.waitUntil(
            lambda count=count: len(desk.messages) == 2 * count and desk.messages[-1].state == "complete"  # type: ignore[misc]
        )
    maths, rows = desk.window.chat._maths, range(2 * len(HOSTILE))
    desk.qtbot.waitUntil(lambda: not maths._waiting and maths._asked is None, timeout=20_000)
    desk.qtbot.waitUntil(lambda: all(shown(desk, row) for row in rows))
    view = desk.window.chat.view
    desk.qtbot.waitUntil(lambda: not any(row.browser.writer.awaits_maths for row in view.visible_widgets()))
    streamed = [shown(desk, row) for row in rows]
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    again.window.resize(1_000, 1_600)
    qtbot.waitUntil(lambda: len(again.messages) == len(rows))
    qtbot.waitUntil(lambda: [shown(again, row) for row in rows] == streamed, timeout=20_000)
    again.close()
    with Database.open(tmp_path / "data" / "history.db") as db:
        page = html_document(read_conversation(db, 1))

    assert [row[0] for row in streamed[::2]] == [text.rstrip("\n") for text in HOSTILE]
    assert not any(
        tag in page.lower() for tag in ("<img", "<script", "<table background", "<channel", "<smirk")
    )
    assert "default-src 'none'" in page


def test_a9_a_pasted_question_is_shown_as_it_is(desk: WindowDesk) -> None:
    text = "# x\na_b_c and *d*\n$y$ `z`\n    <think>"

    desk.ask(text, "ok")

    assert "\n".join(shown(desk, 0)) == text


def test_a25_a_giant_message_neither_stops_the_start_nor_the_chat(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    giant = "<think>" + "word " * 40_000 + "</think>" + "$x$ word " * 40_000
    desk.ask("Long", giant)
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: len(again.messages) == 2 and bool(shown(again, 1)), timeout=20_000)
    again.ask("Short", "fine")
    last = again.texts[-1]
    again.close()

    assert last == "fine"
