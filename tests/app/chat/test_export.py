"""A conversation as a file that stands alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.chat.export import (
    ExportedConversation,
    file_name,
    html_document,
    json_document,
    markdown_document,
    read_conversation,
    write_export,
)
from inglenook.app.errors import AppError
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages


@pytest.fixture
def exported() -> Iterator[ExportedConversation]:
    with Database.in_memory() as db:
        chat, messages = Conversations(db).create("Tea & <cake>"), Messages(db)
        question = messages.add(chat, "user", "What is *this* <b>?", parent_id=None)
        for text in (
            "First try.",
            "It is **tea**.\n\n| a | b |\n|---|---|\n| 1 | ünï 灯 |\n\n![x](http://evil/x.png)",
        ):
            reply = messages.begin_reply(
                chat, parent_id=question, model="tiny", sampling={"temperature": 0.5}
            )
            messages.finish_reply(reply, text, [1], finish_reason="stop")
        yield read_conversation(db, chat)


def test_markdown_has_what_is_shown_as_it_is_stored(exported: ExportedConversation) -> None:
    text = markdown_document(exported)

    assert text.startswith("# Tea & <cake>\n\n## You\n\nWhat is *this* <b>?\n\n## tiny\n\nIt is **tea**.")
    assert "First try." not in text


def test_html_loads_nothing_and_shows_the_question_literally(exported: ExportedConversation) -> None:
    page = html_document(exported)

    assert "<title>Tea &amp; &lt;cake&gt;</title>" in page
    assert "default-src 'none'" in page
    assert "<p>What is *this* &lt;b&gt;?</p>" in page
    assert "<strong>tea</strong>" in page
    assert "<img" not in page
    assert "<script" not in page


def test_json_has_every_version_with_model_and_sampling(exported: ExportedConversation) -> None:
    value = json.loads(json_document(exported))

    texts = [message["text"].split(".")[0] for message in value["messages"]]
    assert texts == ["What is *this* <b>?", "First try", "It is **tea**"]
    assert value["messages"][1]["sampling"] == {"temperature": 0.5}
    assert value["shown"] == [value["messages"][0]["id"], value["messages"][2]["id"]]


def test_pdf_has_the_words(qtbot: QtBot, exported: ExportedConversation, tmp_path: Path) -> None:
    write_export(exported, tmp_path / "chat.pdf")

    document = pypdfium2.PdfDocument(tmp_path / "chat.pdf")
    words = " ".join(document[0].get_textpage().get_text_range().split())
    document.close()
    assert "Tea & <cake>" in words
    assert "It is tea." in words
    assert "What is *this* <b>?" in words


def test_another_ending_and_a_missing_folder_are_sentences(
    exported: ExportedConversation, tmp_path: Path
) -> None:
    with pytest.raises(AppError, match=r"\.md, \.html, \.pdf, \.json; 'chat.docx' ends otherwise"):
        write_export(exported, tmp_path / "chat.docx")
    with pytest.raises(AppError, match=r"'chat\.md' could not be written: No such file"):
        write_export(exported, tmp_path / "missing" / "chat.md")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Tea: a/b\\c?", "Tea a b c"),
        ("", "Chat"),
        ("...", "Chat"),
        ("x" * 300, "x" * 80),
        ("a\n\tb", "a b"),
        ("灯台", "灯台"),
    ],
)
def test_a_title_becomes_a_name_that_every_file_system_takes(title: str, name: str) -> None:
    assert file_name(title) == name


def test_what_was_thought_is_only_in_the_json_file(tmp_path: Path) -> None:
    with Database.in_memory() as db:
        conversation = Conversations(db).create("Sums")
        messages = Messages(db)
        question = messages.add(conversation, "user", "<think>2</think> and 2?", parent_id=None)
        messages.add(conversation, "assistant", "<think>hidden</think>\n\nFour.", parent_id=question)
        exported = read_conversation(db, conversation)

    for write in (markdown_document, html_document):
        assert "hidden" not in write(exported)
        assert "Four." in write(exported)
        assert "and 2?" in write(exported)
    assert "<think>2</think> and 2?" in markdown_document(exported)
    assert "hidden" in json_document(exported)
