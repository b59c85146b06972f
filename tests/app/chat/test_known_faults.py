"""What users of other chat programs report again and again, each as a test of its whole kind: here, or where the table says.

The letters are those of the study they were gathered in: A of chats, D of histories and their safety.

    A1  Enter on a candidate sends half a word   test_a1_enter_on_a_candidate_sends_and_queues_nothing
    A2  no scrolling up while a reply streams    test_a2_one_notch_up_leaves_the_end_while_code_streams
    A3  the view jumps when the reply ends       test_a3_nothing_moves_when_the_reply_ends
    A5  maths stays raw, A6 escaped dollars      test_maths_is_found
    A7  text in angle brackets vanishes          test_t31_text_is_shown_alike_streamed_reloaded_and_exported
    A9  a pasted question is turned to headings  test_a9_a_pasted_question_is_shown_as_it_is
    A10 characters split over tokens             test_any_bytes_split_anywhere_decode_as_python_does_with_replace
                                                 test_a10_a_character_that_was_cut_in_the_middle_is_whole_once_the_reply_goes_on
    A11 Stop hides text, and the work goes on    test_cancelling_ends_with_cancelled_and_frees_the_blocks
                                                 test_a_stop_ends_a_long_step_of_the_native_kernels_at_its_next_layer
                                                 test_what_is_asked_after_stop_is_asked_as_soon_as_the_engine_has_let_go
    A13 a running chat reopened has no Stop      test_a13_a_running_chat_that_is_reopened_has_its_text_and_a_stop_that_works
    A14 a title made of hidden thoughts          test_a14_d3_a_title_that_fails_or_only_thinks_changes_no_title
    A15 a thought that never closed is lost      test_a_thought_that_was_stopped_is_kept_marked_and_shown_after_a_restart
                                                 test_a_thought_that_never_ends_is_kept_and_said_to_be_open
    A17 a title reads the whole chat again       test_a_first_turn_is_named_by_a_request_that_goes_on_from_its_prompt
                                                 test_the_next_question_cancels_it
    A18 replies vanish when versions are flipped test_a18_no_node_of_the_tree_is_lost_by_editing_and_flipping_versions
    A19 edits and forks overwrite each other     test_a19_edits_before_and_in_a_fork_are_there_after_a_restart
    A21 a typo cannot be mended without a run    test_a_message_only_saved_is_not_asked_again_and_the_draft_comes_back
    A22 the search misses titles                 test_a22_titles_bodies_and_other_versions_are_found
    A23 find sees only what is on screen         test_words_are_found_out_of_sight_and_marked
    A25 a giant message stops every start        test_a25_a_giant_message_neither_stops_the_start_nor_the_chat
    A26 long streaming takes memory and time     test_a26_a_long_reply_neither_gathers_widgets_nor_documents_nor_undo
                                                 test_sixty_pieces_a_second_leave_the_event_loop_free
    A27 buttons without names, unread replies    test_a27_every_control_of_the_chat_page_has_a_name_and_a_reply_is_read_line_by_line
                                                 test_a02_every_control_has_a_name_in_words_as_a_screen_reader_hears_it
    D1  a history gone after an update           test_older_file_is_migrated_with_its_rows_and_a_backup
    D2  what streamed is lost in a crash         test_fifty_kills_leave_a_sound_file_without_doubles
                                                 test_killing_the_window_loses_at_most_half_a_second_and_leaves_no_process
    D3  one failed title resets others           test_a14_d3_a_title_that_fails_or_only_thinks_changes_no_title
    D5  a backup replaces what is here           test_d5_restoring_says_what_comes_merges_and_changes_nothing_that_is_here
    D6  a backup without its documents           test_d6_documents_and_sources_come_along_to_a_clean_profile
    D7  chats fused or doubled                   test_d7_restoring_twice_or_from_two_backups_keeps_chats_apart_and_makes_no_second_ones
    D10 a damaged model is taken in              test_d10_a_file_that_was_cut_short_is_refused_by_name_and_not_added
                                                 test_d10_of_several_shards_the_damaged_one_is_named
    D11 a reopened chat forgets what was said    test_d11_a_reopened_chat_sends_the_prompt_that_the_live_one_would_have_sent
"""

from __future__ import annotations

import re
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


def test_every_test_that_the_table_names_exists() -> None:
    folder = Path(__file__).parent.parent.parent
    defined = set(re.findall(r"def (test_\w+)", "".join(p.read_text() for p in folder.glob("**/test_*.py"))))

    assert set(re.findall(r"test_\w+", __doc__)) <= defined
