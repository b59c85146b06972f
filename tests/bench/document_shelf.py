"""`Shelf`: documents in a database file, read by the real parser and asked as the program does it, for tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from inglenook.app.answers.retrieval import Evidence, gather
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.search import Search


class Shelf:
    """Documents in a database file, read by the real parser."""

    def __init__(self, folder: Path, parser: ParserClient) -> None:
        self.folder, self.parser = folder, parser
        self.path = folder / "profile" / "history.db"
        self.db = Database.open(self.path)
        self.documents = Documents(self.db)

    def add(self, name: str, content: bytes | str) -> int:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.add_file(path)

    def add_file(self, path: Path) -> int:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        document, is_to_be_read = self.documents.add(
            str(path), name=path.name, sha256=sha256, size_bytes=path.stat().st_size, modified_at_ns=1
        )
        if is_to_be_read:
            self.documents.store(document.version_id, self.parser.parse(path))
        return document.id

    def ask(self, question: str, *ids: int, whole_bytes: int = 0, previous: str = "") -> Evidence:
        every = ids or tuple(document.id for document in self.documents.entries())
        search = Search(self.db)
        return gather(self.db, search, question, every, whole_bytes=whole_bytes, previous_question=previous)

    def found(self, question: str, *ids: int) -> list[str]:
        return [hit.chunk.text for hit in self.ask(question, *ids).candidates]
