"""Proof of a forgetting: what was looked for afterwards, in which files, and what is out of reach.

Phrases and rare words of the documents are taken before they are deleted. Afterwards every byte of the database, its
companions and our backups is searched for them, as they were written and in small letters. What is found because
another document, a message or a setting says it too is set aside. Nothing of the text is kept in the receipt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inglenook.storage.backup import automatic_backups
from inglenook.storage.database import Database
from inglenook.storage.file_process import search
from inglenook.storage.forget import forget_documents

MAX_SAMPLES = 400

_PHRASE_CHARS = 40
_LEAST_PHRASE_CHARS = 6
_RARE_WORD = re.compile(r"[^\W_]{8,40}")
_COMPANIONS = ("-wal", "-shm", "-journal")

OUT_OF_REACH = (
    "what you or a model wrote about the documents in conversations",
    "the files themselves, which stay where they are",
    "backups that you made elsewhere",
    "blocks that the disk or its snapshots keep of what was overwritten",
)


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """A file whose every byte was looked through: its size, and how many of the samples it still holds."""

    path: str
    size_bytes: int
    num_found: int


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """What was forgotten, and where nothing of it is left.

    `num_shared` of the samples are not counted, as other documents or messages hold them too. `is_complete` is
    False while a reader still holds old pages; forgetting is then finished at the next start.
    """

    names: tuple[str, ...]
    num_chunks: int
    num_vectors: int
    num_quotes: int
    num_samples: int
    num_shared: int
    files: tuple[SearchedFile, ...]
    removed_backups: tuple[str, ...]
    is_complete: bool
    out_of_reach: tuple[str, ...] = OUT_OF_REACH

    @property
    def is_clean(self) -> bool:
        """Whether it is complete and no file holds any of the samples."""
        return self.is_complete and not any(file.num_found for file in self.files)


def forget_with_receipt(db: Database, document_ids: Iterable[int]) -> ForgetReceipt:
    """Forget documents as `forget_documents` does, then search for them; call from the writer's thread."""
    ids = json.dumps(list(document_ids))
    chunks = (
        "FROM chunks c JOIN document_versions v ON v.id = c.version_id "
        "WHERE v.document_id IN (SELECT value FROM json_each(?))"
    )
    names = [row[0] for row in db.rows(
        "SELECT name FROM documents WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (ids,)
    )]  # fmt: skip
    num_chunks = _number(db, f"SELECT count(*) {chunks}", ids)
    num_vectors = _number(
        db, f"SELECT count(*) FROM chunk_vectors WHERE chunk_id IN (SELECT c.id {chunks})", ids
    )
    num_quotes = _number(
        db, "SELECT count(*) FROM sources WHERE document_id IN (SELECT value FROM json_each(?))", ids
    )
    step = max(1, num_chunks // (MAX_SAMPLES // 2))
    texts = [row[0] for row in db.rows(
        f"SELECT text FROM (SELECT c.text, row_number() OVER (ORDER BY c.id) AS n {chunks}) WHERE n % {step} = 0", (ids,)
    )]  # fmt: skip
    samples = _samples(texts)
    backups = automatic_backups(db.path) if db.path else []
    is_complete = forget_documents(db, json.loads(ids))
    found = dict(_searched(db.path, samples)) if db.path else {}
    shared = {i for i in set().union(*found.values()) if _is_elsewhere(db, samples[i])}
    return ForgetReceipt(
        names=tuple(names),
        num_chunks=num_chunks,
        num_vectors=num_vectors,
        num_quotes=num_quotes,
        num_samples=len(samples) - len(shared),
        num_shared=len(shared),
        files=tuple(
            SearchedFile(str(path), path.stat().st_size, len(each - shared)) for path, each in found.items()
        ),
        removed_backups=tuple(str(path) for path in backups if not path.exists()),
        is_complete=is_complete,
    )


def _samples(texts: Sequence[str]) -> list[str]:
    """Take from each text a phrase of its middle, or all of a short one, and its longest word if that is a rare one."""
    result: dict[str, None] = {}
    for text in texts:
        start = max(0, (len(text) - _PHRASE_CHARS) // 2)
        # one line of it: only a page's text holds its line ends
        phrase = max(text[start : start + _PHRASE_CHARS].split("\n"), key=len).strip()
        if len(phrase) >= _LEAST_PHRASE_CHARS:
            result.setdefault(phrase)
        word = max(_RARE_WORD.findall(text), key=len, default="")
        if word:
            result.setdefault(word)
    return list(result)[:MAX_SAMPLES]


def _is_elsewhere(db: Database, sample: str) -> bool:
    """Return whether what is still stored holds a sample, which then proves nothing."""
    places = (
        "SELECT 1 FROM messages WHERE instr(lower(text), ?1)",
        "SELECT 1 FROM pages WHERE instr(lower(text), ?1)",
        "SELECT 1 FROM sources WHERE instr(lower(quote), ?1) OR instr(lower(document_name), ?1)",
        "SELECT 1 FROM documents WHERE instr(lower(path), ?1)",
        "SELECT 1 FROM document_versions WHERE instr(lower(title || notices), ?1)",
        "SELECT 1 FROM conversations WHERE instr(lower(title), ?1)",
        "SELECT 1 FROM settings WHERE instr(lower(value), ?1)",
    )
    return any(db.row(f"{sql} LIMIT 1", (sample.lower(),)) is not None for sql in places)


def _searched(path: Path, samples: Sequence[str]) -> Iterator[tuple[Path, set[int]]]:
    """Yield each file that there is, with the indexes of the samples that it holds."""
    needles = [sorted({sample.encode(), sample.lower().encode()}) for sample in samples]
    others = [path.with_name(path.name + suffix) for suffix in _COMPANIONS]
    for each in (path, *others, *automatic_backups(path)):
        if each.is_file():
            yield each, search(each, needles)


def _number(db: Database, sql: str, ids: str) -> int:
    row = db.row(sql, (ids,))
    return int(row[0]) if row else 0
