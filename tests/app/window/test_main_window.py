"""The whole window over a real profile, with an engine played by hand."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMessageBox, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from small_pdf import write_pdf
from window_desk import WindowDesk, put_model

from inglenook.app.window.banner import BannerLine
from inglenook.app.window.theme import Theme
from inglenook.app.window.window_start import read_state, write_state

ANSWER = "The outdoor unit holds 1.2 kilograms of refrigerant R290."
PAGES = (
    ["Safety", "Keep children away from the unit while it is open."],
    [
        "The refrigerant circuit",
        "The outdoor unit holds 1.2 kilograms of refrigerant R290.",
        "Never top it up.",
    ],
    ["Maintenance", "Clean the filter twice a year with lukewarm water."],
)

MakeDesk = Callable[[], WindowDesk]


@pytest.fixture
def make_desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[MakeDesk]:
    desks: list[WindowDesk] = []

    def make() -> WindowDesk:
        for desk in desks:
            desk.close()
        desks.append(WindowDesk(qtbot, theme, tmp_path))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


@pytest.fixture
def desk(make_desk: MakeDesk, tmp_path: Path) -> WindowDesk:
    put_model(tmp_path)
    return make_desk().start()


def test_the_first_run_welcomes_and_says_what_stays_private(make_desk: MakeDesk) -> None:
    desk = make_desk().start()
    welcome = desk.window.welcome

    assert desk.window.page is welcome
    assert welcome.main_button.text() == "Download and begin"
    assert "stays on this computer" in welcome._privacy.text()
    assert "190 MB download" in welcome._facts.text()
    assert not desk.can_write


def test_the_model_of_the_library_is_loaded_and_named_in_header_and_side_bar(desk: WindowDesk) -> None:
    assert [asked.what for asked in desk.client.loads] == [str(desk.folders.models / "tiny" / "model.gguf")]
    desk.qtbot.waitUntil(lambda: desk.window.model_button.text() == "Tiny 1M")
    assert desk.window.sidebar.models_button.accessibleName() == "Models: Tiny 1M"
    assert desk.can_write


def test_a_question_is_shown_answered_listed_and_there_after_a_restart(
    desk: WindowDesk, make_desk: MakeDesk
) -> None:
    desk.ask("What is a <b>hedge</b>?", "A row of *shrubs*.")
    desk.qtbot.waitUntil(lambda: desk.titles == ["What is a <b>hedge</b>?"])

    again = make_desk().start()
    again.qtbot.waitUntil(lambda: len(again.messages) == 2)

    assert [message.text for message in again.messages] == ["What is a <b>hedge</b>?", "A row of *shrubs*."]
    assert again.titles == ["What is a <b>hedge</b>?"]
    assert again.window.windowTitle() == "What is a <b>hedge</b>? — Inglenook"


def test_stop_is_taken_at_once_and_the_composer_sends_again(desk: WindowDesk) -> None:
    desk.send("Count to a thousand")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[0].say("One two", 1, 2)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "One two")

    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)

    assert desk.messages[-1].state == "stopped"
    assert desk.client.requests[0].is_cancelled
    desk.client.requests[0].finish("cancelled")
    desk.qtbot.waitUntil(lambda: not desk.window.chat.composer.is_streaming)


def test_another_chat_can_be_read_while_one_is_answered_and_its_dot_tells(desk: WindowDesk) -> None:
    desk.ask("First question", "First answer.")
    desk.window.actions_by_name["new_chat"].trigger()
    desk.send("Second question")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2 and len(desk.titles) == 2)
    desk.client.requests[1].say("Half", 1)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "Half")
    first, second = (
        next(e.id for e in desk.window.sidebar.chats.model.entries if e.title == title)
        for title in ("First question", "Second question")
    )

    desk.window.sidebar.chats.activated.emit(first)
    desk.qtbot.waitUntil(lambda: desk.messages[0].text == "First question")
    assert not desk.window.chat.composer.is_streaming
    desk.client.requests[1].say(" done.", 2)
    desk.window.sidebar.chats.activated.emit(second)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "Half done.")
    assert desk.window.chat.composer.is_streaming
    desk.window.sidebar.chats.activated.emit(first)
    desk.qtbot.waitUntil(lambda: desk.messages[0].text == "First question")
    desk.client.requests[1].finish()

    desk.qtbot.waitUntil(
        lambda: [e.is_unread for e in desk.window.sidebar.chats.model.entries if e.id == second] == [True]
    )


def test_a_dropped_pdf_is_read_asked_about_and_its_citation_opens_the_page(
    desk: WindowDesk, tmp_path: Path
) -> None:
    pdf = write_pdf(tmp_path / "Heat pump <manual>.pdf", *PAGES, label_prefix="A-")
    desk.drop(pdf)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(
        lambda: bool(entries.entries) and entries.entries[0].state == "ready", timeout=20_000
    )
    assert entries.status(entries.entries[0]) == "3 pages, searchable"
    assert entries.entries[0].is_ticked

    desk.ask("How much refrigerant does the unit hold?", ANSWER)
    (citation,) = desk.messages[-1].citations
    desk.window.chat.view.citation_activated.emit(desk.messages[-1].id, citation.number)
    source = desk.window.source
    desk.qtbot.waitUntil(lambda: not source.canvas.is_empty, timeout=20_000)

    assert (citation.page, citation.verified) == ("A-2", True)
    assert not source.isHidden()
    assert source.page_label.text() == "p. A-2 (2 of 3)"
    assert source.canvas.marks
    QTest.keyClick(source, Qt.Key.Key_Escape)
    assert source.isHidden()


def test_an_unticked_document_is_not_asked_about(desk: WindowDesk, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The password of the garden shed is marmalade.")
    desk.drop(note)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(
        lambda: bool(entries.entries) and entries.entries[0].state == "ready", timeout=20_000
    )

    desk.window.sidebar.documents.ticked.emit(entries.entries[0].id, False)
    desk.ask("What is the password of the shed?", "I do not know.")

    assert "marmalade" not in str(desk.client.requests[-1].what)
    assert desk.messages[-1].citations == ()


def test_a_document_is_forgotten_only_after_a_question_that_names_it(
    desk: WindowDesk, tmp_path: Path
) -> None:
    pdf = write_pdf(tmp_path / "manual.pdf", *PAGES)
    desk.drop(pdf)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(
        lambda: bool(entries.entries) and entries.entries[0].state == "ready", timeout=20_000
    )
    desk.ask("How much refrigerant does the unit hold?", ANSWER)

    desk.window.sidebar.documents.remove_requested.emit(entries.entries[0].id)
    (box,) = desk.window.findChildren(QMessageBox)
    assert "manual.pdf" in box.text()
    assert box.textFormat() == Qt.TextFormat.PlainText
    next(b for b in box.buttons() if b.text() == "Remove").click()
    desk.qtbot.waitUntil(lambda: not entries.entries)
    desk.qtbot.waitUntil(lambda: [c.quote for c in desk.messages[-1].citations] == ["[forgotten]"])

    assert pdf.exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.txt", b"", "empty"),
        ("table.xlsx", b"PK\x03\x04" + b"\0" * 64, "not"),
        ("scan.pdf", None, "no text"),
    ],
)
def test_a_file_that_cannot_be_used_gets_a_sentence_and_no_dialog(
    desk: WindowDesk, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    path = tmp_path / name
    if content is None:
        write_pdf(path, [], [])
    else:
        path.write_bytes(content)

    desk.drop(path)

    def told() -> bool:
        entries = desk.window.sidebar.documents.model
        said = [desk.window.banner.text, *(entries.status(entry) for entry in entries.entries)]
        return any(words in sentence.lower() for sentence in said)

    desk.qtbot.waitUntil(told, timeout=20_000)
    assert not desk.window.findChildren(QMessageBox)


def test_the_end_of_the_engine_is_one_line_with_one_button(desk: WindowDesk) -> None:
    desk.client.die("It was killed (signal 9).")
    banner = desk.window.banner
    desk.qtbot.waitUntil(lambda: "killed" in banner.text)
    assert banner.button.text() == "Start again"

    banner.button.click()

    desk.qtbot.waitUntil(lambda: banner.text == "")
    assert len(desk.client.loads) == 2
    assert desk.can_write


def test_a_model_that_cannot_be_loaded_is_told_in_place_and_others_are_offered(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    put_model(tmp_path)
    desk = make_desk()
    desk.client.loads_at_once = False
    desk.application.start()
    desk.qtbot.waitUntil(lambda: bool(desk.client.loads))

    desk.client.loads[0].fail("MemoryNeededError", "It needs 14.2 GB; 9.1 GB are free.")

    desk.qtbot.waitUntil(lambda: desk.window.banner.text == "It needs 14.2 GB; 9.1 GB are free.")
    assert desk.window.models.card("tiny").problem.text() == "It needs 14.2 GB; 9.1 GB are free."
    assert not desk.can_write
    desk.window.banner.button.click()
    assert desk.window.page is desk.window.models


def test_a_deleted_chat_comes_back_with_undo(desk: WindowDesk) -> None:
    desk.ask("Keep this", "Kept.")
    desk.qtbot.waitUntil(lambda: desk.titles == ["Keep this"])

    desk.window.actions_by_name["delete_chat"].trigger()
    desk.qtbot.waitUntil(lambda: desk.titles == [])
    assert desk.window.banner.text == "“Keep this” was moved to the trash, where it stays for 30 days."
    assert not desk.messages
    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: desk.titles == ["Keep this"] and len(desk.messages) == 2)


def test_a_history_that_cannot_be_opened_is_told_and_left_as_it_is(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    history = desk.folders.data / "history.db"
    history.write_bytes(b"this is no database" * 100)

    desk.application.start()
    desk.qtbot.waitUntil(lambda: desk.window.banner.text != "")

    assert desk.window.banner.button.text() == "Quit"
    assert history.read_bytes() == b"this is no database" * 100


def test_files_dropped_anywhere_are_covered_by_an_invitation_and_taken(
    desk: WindowDesk, tmp_path: Path, qtbot: QtBot
) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "x.pdf"))])
    arguments = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    overlay = desk.window._overlay

    desk.window.dragEnterEvent(QDragEnterEvent(QPoint(5, 5), *arguments))
    assert not overlay.isHidden()
    with qtbot.waitSignal(desk.window.files_dropped) as dropped:
        desk.window.dropEvent(QDropEvent(QPointF(5, 5), *arguments))

    assert overlay.isHidden()
    assert dropped.args == [[tmp_path / "x.pdf"]]


def test_f6_goes_round_the_panes_and_back(desk: WindowDesk) -> None:
    desk.ask("A question", "An answer.")
    window = desk.window
    window.activateWindow()
    window.chat.composer.edit.setFocus()
    seen = []
    for _ in range(4):
        window.actions_by_name["next_pane"].trigger()
        seen.append(QApplication.focusWidget())

    side, chat = window.sidebar, window.chat
    assert seen == [side.chats.view, side.documents.add_button, chat.view, chat.composer.edit]


def controls(window: QWidget) -> list[QWidget]:
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.isVisibleTo(window)
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    ]


def test_tab_reaches_every_control_and_is_nowhere_trapped(desk: WindowDesk) -> None:
    desk.ask("A question", "An answer.")
    window = desk.window
    window.chat.composer.edit.setFocus()
    reached = set()
    for _ in range(200):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        reached.add(QApplication.focusWidget())

    missed = [w for w in controls(window) if w not in reached and w.focusProxy() is None]
    assert [w.accessibleName() or type(w).__name__ for w in missed] == []


def test_every_control_has_a_name_that_is_words(desk: WindowDesk) -> None:
    desk.ask("A question", "An answer.")
    desk.window.open_source()
    for show in (desk.window.show_models, desk.window.show_welcome, desk.window.show_chat):
        show()
        for widget in controls(desk.window):
            name = widget.accessibleName()
            if widget.focusProxy() is None:
                assert name, f"{type(widget).__name__} {widget.objectName()} has no name"
                assert name != type(widget).__name__
                assert "&" not in name
                assert "object" not in name


def test_no_label_and_no_button_guesses_whether_a_text_is_rich(desk: WindowDesk) -> None:
    labels = [found for found in desk.window.findChildren(QLabel) if found.text()]

    assert labels
    assert all(found.textFormat() == Qt.TextFormat.PlainText for found in labels)
    tips = [w.toolTip() for w in desk.window.findChildren(QWidget) if w.toolTip()]
    assert [tip for tip in tips if "<" in tip and not tip.startswith("<p style='white-space")] == []


@pytest.mark.parametrize("scale", [0.8, 1.0, 2.0])
@pytest.mark.slow
def test_no_button_is_cut_at_any_zoom(desk: WindowDesk, theme: Theme, scale: float) -> None:
    theme.set_scale(scale)
    desk.window.resize(1280, 720)
    desk.window.show_models()

    def cut() -> list[str]:
        buttons = [*desk.window.findChildren(QPushButton), *desk.window.findChildren(QToolButton)]
        return [
            button.accessibleName()
            for button in buttons
            if button.isVisibleTo(desk.window)
            and button.objectName() != "side_button"
            and (
                button.width() < button.minimumSizeHint().width()
                or button.height() < button.fontMetrics().height()
            )
        ]

    # Cards made on the way to the page are laid out in the turns of the loop that follow.
    desk.qtbot.waitUntil(lambda: not cut())


def test_zoom_and_scheme_change_live_and_are_kept_with_the_window(
    desk: WindowDesk, theme: Theme, tmp_path: Path
) -> None:
    desk.window.actions_by_name["zoom_in"].trigger()
    desk.window.actions_by_name["scheme_dark"].trigger()
    ground = desk.window.grab().toImage().pixelColor(desk.window.width() - 30, desk.window.height() - 20)
    state = desk.window.save_state()
    theme.set_scheme("light")

    write_state(tmp_path / "config", state)

    assert ground.lightness() < 60
    assert (state["scale"], state["scheme"]) == ("1.1", "dark")
    assert read_state(tmp_path / "config" / "window.json") == state
    assert stat.S_IMODE((tmp_path / "config" / "window.json").stat().st_mode) == 0o600
    desk.window.restore_state(state)


@pytest.mark.parametrize(
    "content", ["", "[1]", "{", '{"geometry": "%%%", "panes": "1,x", "scale": 3}', "\0" * 50]
)
def test_a_damaged_window_state_is_left_out(desk: WindowDesk, tmp_path: Path, content: str) -> None:
    (tmp_path / "window.json").write_text(content)

    desk.window.restore_state(read_state(tmp_path / "window.json"))

    assert read_state(tmp_path / "missing.json") == {}


def test_an_error_stands_before_a_notice_and_each_goes_when_it_is_over(desk: WindowDesk) -> None:
    banner = desk.window.banner
    banner.show_line("a", BannerLine("It broke.", "error"))
    banner.show_line("b", BannerLine("Added."))
    assert banner.text == "It broke."

    banner.dismiss_button.click()
    assert banner.text == "Added."
    banner.clear_line("b")
    assert banner.isHidden()


def test_closing_the_window_loses_nothing_of_a_reply(desk: WindowDesk, make_desk: MakeDesk) -> None:
    desk.send("Tell me a story")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[0].say("Once upon a time", 1, 2, 3)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "Once upon a time")

    again = make_desk().start()
    again.qtbot.waitUntil(lambda: len(again.messages) == 2)

    assert again.messages[-1].text == "Once upon a time"
    assert again.messages[-1].state in ("stopped", "interrupted")


def test_the_window_never_imports_torch_nor_storage_before_it_is_painted() -> None:
    code = (
        "import sys; import inglenook.app.window.main_window, inglenook.app.window.window_start;"
        "early = [m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy', 'sqlcipher3') or "
        "m.startswith(('inglenook.storage', 'inglenook.engine.'))"
        "and m != 'inglenook.engine.private_files' or m == 'inglenook.storage'];"
        "import inglenook.app.window.window_join, inglenook.app.application;"
        "print(early, 'torch' in sys.modules)"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert shown.stdout.strip() == "[] False"
