"""One conversation as a file that stands alone: Markdown, HTML, PDF, or JSON with every version.

The first three have what is shown, without what was thought over it; JSON has the whole tree with models, sampling and sources. HTML goes through the
elements that the window shows and loads nothing; PDF is printed from it. Reading is for a thread of the database,
writing for any other.
"""

from __future__ import annotations

import html
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from inglenook.app.answers.citations import with_checked_only
from inglenook.app.errors import AppError
from inglenook.app.text.elements_html import elements_of, html_of
from inglenook.app.text.reasoning import part_reply
from inglenook.engine.private_files import replace_file
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import Conversation, Message, Source
from inglenook.storage.sources import Sources

FORMATS = {"md": "Markdown", "html": "Web page", "pdf": "PDF", "json": "JSON, with every version"}
_LONGEST_NAME = 80
_STYLE = (
    "body{font-family:sans-serif;line-height:1.5;max-width:46em;margin:2em auto;padding:0 1em;color:#1f1d1b}"
    "h2{font-size:1em;margin:2em 0 .3em;color:#6a655f}pre{background:#f8f6f3;padding:.8em;white-space:pre-wrap}"
    "code{font-family:monospace}table{border-collapse:collapse}td,th{border:1px solid #dcd7d0;padding:.3em .6em}"
    "blockquote{border-left:3px solid #dcd7d0;margin-left:0;padding-left:1em}.source{color:#6a655f;font-size:.9em}"
)


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """What is written: the messages shown, all messages of the tree, and the sources by message."""

    conversation: Conversation
    shown: tuple[Message, ...]
    tree: tuple[Message, ...]
    sources: dict[int, list[Source]]


def read_conversation(db: Database, conversation_id: int) -> ExportedConversation:
    """Read all of a conversation.

    Raises:
        NotFoundError: it was deleted.
    """
    messages = Messages(db)
    ids = db.rows("SELECT id FROM messages WHERE conversation_id = ? ORDER BY id", (conversation_id,))
    return ExportedConversation(
        Conversations(db).get(conversation_id),
        tuple(messages.shown(conversation_id)),
        tuple(messages.get(row[0]) for row in ids),
        Sources(db).of_conversation(conversation_id),
    )


def write_export(exported: ExportedConversation, path: Path) -> None:
    """Write a conversation in the format that the file's ending names, whole or not at all.

    Raises:
        AppError: another ending, or a place that cannot be written to.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise AppError(
            f"A chat can be exported as {endings}; '{path.name}' ends otherwise. Choose one of these."
        )
    if kind == "pdf":
        from inglenook.app.chat.export_pdf import pdf_of

        data = pdf_of(html_document(exported), exported.conversation.title)
    else:
        write = {"md": markdown_document, "html": html_document, "json": json_document}[kind]
        data = write(exported).encode()
    try:
        replace_file(path, data)
    except OSError as error:
        raise AppError(
            f"'{path.name}' could not be written: {error.strerror or error}. Choose another folder, or free some space."
        ) from error


def file_name(title: str) -> str:
    """Return a title as a file's name without an ending, which every file system takes."""
    name = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]+', " ", title)
    name = " ".join(name.split()).strip(". ")[:_LONGEST_NAME].strip(". ")
    return name or "Chat"


def free_path(folder: Path, name: str, suffix: str) -> Path:
    """Return a path in a folder where no file is: "Name.md", "Name (2).md" and so on."""
    path, number = folder / f"{name}.{suffix}", 1
    while os.path.lexists(path):
        number += 1
        path = folder / f"{name} ({number}).{suffix}"
    return path


def markdown_document(exported: ExportedConversation) -> str:
    """Return the conversation as Markdown, each message as it is stored."""
    parts = [f"# {_title(exported)}"]
    for message in exported.shown:
        parts.append(f"## {_who(message)}")
        parts.append(_answer(message).strip())
        cited = [f"- {_source(source)}" for source in _cited(exported, message)]
        if cited:
            parts.append("Sources:\n\n" + "\n".join(cited))
    return "\n\n".join(parts) + "\n"


def html_document(exported: ExportedConversation) -> str:
    """Return the conversation as one page that loads nothing and runs nothing."""
    title = html.escape(_title(exported))
    parts = [f"<h1>{title}</h1>"]
    for message in exported.shown:
        elements = elements_of(_answer(message), is_plain=message.role != "assistant")
        parts.append(f'<h2>{html.escape(_who(message))}</h2><div dir="auto">{html_of(elements)}</div>')
        parts += [f'<p class="source">{html.escape(_source(s))}</p>' for s in _cited(exported, message)]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>{''.join(parts)}</body></html>\n"
    )


def json_document(exported: ExportedConversation) -> str:
    """Return the whole tree as JSON."""
    conversation = exported.conversation
    value = {
        "format": "inglenook-chat",
        "version": 1,
        "title": conversation.title,
        "model": conversation.model,
        "created_at_ms": conversation.created_at_ms,
        "shown": [message.id for message in exported.shown],
        "messages": [_fields(message) for message in exported.tree],
        "sources": [asdict(source) for sources in exported.sources.values() for source in sources],
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _fields(message: Message) -> dict[str, object]:
    kept = asdict(message)
    for name in ("conversation_id", "branch", "num_branches", "token_ids"):
        del kept[name]
    return kept


def _title(exported: ExportedConversation) -> str:
    return " ".join(exported.conversation.title.split()) or "Chat"


def _who(message: Message) -> str:
    return {"user": "You", "assistant": message.model or "Assistant"}.get(message.role, "System")


def _answer(message: Message) -> str:
    """What was said; what was thought over it is in the JSON file alone."""
    if message.role != "assistant":
        return message.text
    parted = part_reply(message.text, end_tag=message.reasoning_end)
    return parted.answer or parted.thought


def _cited(exported: ExportedConversation, message: Message) -> list[Source]:
    sources = with_checked_only(message.text, exported.sources.get(message.id, []))
    return [source for source in sources if source.is_cited]


def _source(source: Source) -> str:
    place = source.place
    if place.first_line is not None:
        where = f"lines {place.first_line}–{place.last_line}"
    else:
        where = f"page {place.page_label or place.page_index + 1}"
    return f"{source.document_name}, {where}: “{' '.join(source.quote.split())}”"
