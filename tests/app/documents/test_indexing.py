"""From a drop to searchable documents, with the real parser process: what is read, refused, resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from encoder_record import installed_encoder
from fake_client import FakeClient
from pytestqt.qtbot import QtBot
from small_pdf import pdf_file

from inglenook.app.bridge import EngineBridge
from inglenook.app.documents import dropped_files
from inglenook.app.documents.dropped_files import Refusal
from inglenook.app.documents.embedder import Embedder
from inglenook.app.documents.indexing import Indexing
from inglenook.app.documents.page_views import PageViews
from inglenook.app.tasks import Tasks
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import PagePicture, ParsedPage
from inglenook.storage.records import Document
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

BLANK_PAGE = b"q Q"


def pdf(*pages: bytes) -> bytes:
    """A PDF of pages with these contents and Helvetica as /F1."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, content in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * i)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    return pdf_file(objects)


def line(text: str) -> bytes:
    return b"BT /F1 12 Tf 1 0 0 1 20 200 Tm (%s) Tj ET" % text.encode("ascii")


class Shelf:
    """The surroundings of indexing; everything told is kept."""

    def __init__(self, path: Path, *, with_embedder: bool = False) -> None:
        self.client = FakeClient()
        self.tasks = Tasks()
        self.tasks.open(path)
        self.bridge = EngineBridge(self.client)  # type: ignore[arg-type]
        self.embedder = Embedder(self.bridge)
        if with_embedder:
            self.embedder.use(installed_encoder(path.parent))
        self.indexing = Indexing(self.tasks, self.embedder)
        self.pages = PageViews(self.tasks)
        self.refusals: list[Refusal] = []
        self.notices: list[str] = []
        self.progress: list[tuple[int, int, int]] = []
        self.lists: list[list[Document]] = []
        self.embedded: list[tuple[int, int]] = []
        self.embedded_parts: list[tuple[int, int, int]] = []
        self.indexing.refused.connect(self.refusals.append)
        self.indexing.notice.connect(self.notices.append)
        self.indexing.progress_changed.connect(lambda *values: self.progress.append(values))
        self.indexing.documents_changed.connect(self.lists.append)
        self.indexing.embedding_changed.connect(lambda *values: self.embedded.append(values))
        self.indexing.document_embedding_changed.connect(lambda *values: self.embedded_parts.append(values))
        self.indexing.start()

    @property
    def statuses(self) -> list[str]:
        return [document.status for document in self.indexing.documents]

    def close(self) -> None:
        self.indexing.close()
        self.pages.close()
        self.tasks.close()
        self.bridge.close()


@pytest.fixture
def shelf(qtbot: QtBot, tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "history.db")
    qtbot.waitUntil(lambda: bool(shelf.lists))
    yield shelf
    shelf.close()


def read(qtbot: QtBot, shelf: Shelf, work: Callable[[Database], object]) -> object:
    results: list[object] = []
    shelf.tasks.read(work, results.append)
    qtbot.waitUntil(lambda: bool(results))
    return results[0]


def add(qtbot: QtBot, shelf: Shelf, *paths: Path, count: int = 1) -> list[Document]:
    shelf.indexing.add(paths)
    qtbot.waitUntil(
        lambda: len(shelf.statuses) == count and not {"waiting", "parsing"} & set(shelf.statuses),
        timeout=30_000,
    )
    return shelf.indexing.documents


def test_a_text_is_searchable_by_keyword_when_it_is_ready(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "facts.txt"
    path.write_text("The tower of Zorb is 34 metres high.")

    (document,) = add(qtbot, shelf, path)

    assert (document.name, document.status, document.num_chunks) == ("facts.txt", "ready", 1)
    hits = read(qtbot, shelf, lambda db: Search(db).search("tower of Zorb", limit=5))
    assert [hit.chunk.document_id for hit in hits] == [document.id]  # type: ignore[attr-defined]


def test_a_pdf_has_its_pages_and_a_page_can_be_drawn_with_its_passage_marked(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(line("First page."), line("The tower is high.")))
    (document,) = add(qtbot, shelf, path)
    pictures: list[PagePicture] = []
    pages: list[ParsedPage | None] = []

    shelf.pages.picture(
        document, 1, scale=1.0, highlight=(4, 9), on_done=pictures.append, on_error=lambda error: None
    )
    shelf.pages.text(document.version_id, 1, on_done=pages.append)
    qtbot.waitUntil(lambda: bool(pictures) and bool(pages), timeout=20_000)

    assert document.num_pages == 2
    assert shelf.progress[-1] == (document.id, 2, 2)
    assert (pictures[0].width, pictures[0].height, len(pictures[0].rects)) == (300, 300, 1)
    assert pages[0] is not None
    assert "The tower is high." in pages[0].text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("scan.pdf", pdf(BLANK_PAGE, BLANK_PAGE, BLANK_PAGE), "o text on 3 of 3 pages"),
        ("broken.pdf", b"%PDF-1.4\nnothing", "damaged"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "a picture (PNG)"),
        ("blank.txt", b" \n \n", "only blank lines"),
    ],
)
def test_a_document_that_cannot_be_read_stays_with_its_sentence(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    (document,) = add(qtbot, shelf, path)

    assert document.status == "failed"
    assert sentence in document.error
    assert document.error.endswith(".")


def test_an_empty_file_and_a_huge_one_are_refused_without_being_read(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    with open(tmp_path / "huge.pdf", "wb") as file:
        file.truncate(1 << 30)

    shelf.indexing.add([tmp_path / "empty.txt", tmp_path / "huge.pdf"])
    qtbot.waitUntil(lambda: len(shelf.refusals) == 2)

    assert "empty (0 bytes)" in shelf.refusals[0].sentence
    assert "1,024.0 MiB; the limit is 200.0 MiB" in shelf.refusals[1].sentence
    assert [refusal.name for refusal in shelf.refusals] == ["empty.txt", "huge.pdf"]
    assert not shelf.indexing.documents


def test_files_that_have_not_changed_are_not_read_again(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text(f"This is paper {number}.")
    add(qtbot, shelf, folder, count=12)
    (folder / "3.txt").write_text("This is paper three, written anew.")
    opened: list[str] = []
    noted = dropped_files.note_file
    monkeypatch.setattr(
        dropped_files, "note_file", lambda path, task: (opened.append(path.name), noted(path, task))[1]
    )

    shelf.indexing.add([folder])
    qtbot.waitUntil(lambda: "11 files are in the list already and have not changed." in shelf.notices)

    assert opened == ["3.txt"]
    qtbot.waitUntil(lambda: shelf.statuses == ["ready"] * 12, timeout=20_000)
    assert len(shelf.indexing.documents) == 12


def test_the_same_file_twice_at_once_is_one_document(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    path, copy = tmp_path / "a.txt", tmp_path / "copy.txt"
    path.write_text("The same text.")
    copy.write_text("The same text.")

    shelf.indexing.add([path, copy, path])
    shelf.indexing.add([path])
    add(qtbot, shelf, path)
    qtbot.waitUntil(lambda: "a.txt is in the list already." in shelf.notices)

    assert len(shelf.indexing.documents) == 1
    rows = read(qtbot, shelf, lambda db: db.rows("SELECT count(*) FROM chunks"))
    assert rows[0][0] == 1  # type: ignore[index]


def test_a_folder_is_searched_without_following_a_loop(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "b.md").write_text("# B\n\nText.")
    (folder / "a.txt").write_text("Other text.")
    os.symlink(folder, folder / "inner" / "loop")

    documents = add(qtbot, shelf, folder, count=2)
    qtbot.waitUntil(lambda: bool(shelf.notices))

    assert sorted(document.name for document in documents) == ["a.txt", "b.md"]
    assert shelf.notices == ["Left out: 1 link, not followed."]


def test_a_folder_without_documents_says_so(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()

    shelf.indexing.add([tmp_path / "none"])
    qtbot.waitUntil(lambda: bool(shelf.notices))

    assert shelf.notices == [
        "There is nothing to read in there. Documents can be PDF, Word (DOCX), web pages (HTML), Markdown, plain text and "
        "tables (CSV, TSV)."
    ]


def test_a_document_deleted_on_disk_stays_searchable_and_is_marked(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The tower of Zorb.")
    add(qtbot, shelf, path)

    path.unlink()
    shelf.indexing.check_files()
    qtbot.waitUntil(lambda: shelf.indexing.documents[0].is_missing)
    path.write_text("The tower of Zorb.")
    shelf.indexing.check_files()
    qtbot.waitUntil(lambda: not shelf.indexing.documents[0].is_missing)

    assert shelf.statuses == ["ready"]


def test_a_changed_file_is_not_drawn_as_if_it_were_the_old_one(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(line("Old.")))
    (document,) = add(qtbot, shelf, path)
    path.write_bytes(pdf(line("New.")))
    errors: list[Exception] = []

    shelf.pages.picture(document, 0, scale=1.0, on_done=lambda picture: None, on_error=errors.append)
    qtbot.waitUntil(lambda: bool(errors), timeout=20_000)
    shelf.pages.picture(
        document, 0, scale=1.0, version_id=99, on_done=lambda picture: None, on_error=errors.append
    )

    assert "changed since it was added" in str(errors[0])
    assert "read anew since that answer" in str(errors[1])


def test_removing_and_restoring_and_forgetting(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The tower of Zorb.")
    (document,) = add(qtbot, shelf, path)

    shelf.indexing.remove(document.id)
    qtbot.waitUntil(lambda: not shelf.indexing.documents)
    shelf.indexing.restore(document.id)
    qtbot.waitUntil(lambda: bool(shelf.indexing.documents))
    shelf.indexing.forget(document.id)
    qtbot.waitUntil(lambda: not shelf.indexing.documents)

    assert read(qtbot, shelf, lambda db: db.rows("SELECT count(*) FROM chunks"))[0][0] == 0  # type: ignore[index]


def test_cancelling_is_a_state_and_retry_reads_again(qtbot: QtBot, shelf: Shelf, tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("One.\n" * 20_000)
    second.write_text("Two.")
    shelf.indexing.add([first, second])
    qtbot.waitUntil(lambda: len(shelf.indexing.documents) == 2)
    one = shelf.indexing.documents[0].id

    shelf.indexing.cancel(one)
    qtbot.waitUntil(lambda: shelf.statuses == ["failed", "ready"], timeout=20_000)
    assert shelf.indexing.documents[0].error == "Reading was cancelled. Read it again when you need it."
    shelf.indexing.retry(one)
    qtbot.waitUntil(lambda: shelf.statuses == ["ready", "ready"], timeout=20_000)

    assert shelf.indexing.documents[0].error == ""


def test_what_was_cut_off_is_read_at_the_next_start(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The tower of Zorb.")
    with Database.open(tmp_path / "history.db") as db:
        document, _ = Documents(db).add(
            str(path), name="a.txt", sha256="f" * 64, size_bytes=18, modified_at_ns=1
        )
        Documents(db).begin_version(document.version_id)

    shelf = Shelf(tmp_path / "history.db")
    # Its bytes are others than those that were noted, so it is noted again as well.
    qtbot.waitUntil(lambda: shelf.statuses == ["ready"], timeout=20_000)
    shelf.close()

    assert shelf.indexing.documents[0].id == document.id


def test_vectors_are_made_in_the_background_until_none_is_missing(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"Paragraph {n}: " + "words of some length " * 60 for n in range(45)))
    shelf = Shelf(tmp_path / "history.db", with_embedder=True)

    (document,) = add(qtbot, shelf, path)
    qtbot.waitUntil(lambda: bool(shelf.embedded) and shelf.embedded[-1] == (document.num_chunks,) * 2)

    assert document.num_chunks > 32
    parts = [(done, total) for id_, done, total in shelf.embedded_parts if id_ == document.id]
    assert parts[0] == (0, document.num_chunks)
    assert parts[1] == (32, document.num_chunks)
    assert parts[-1] == (document.num_chunks, document.num_chunks)
    assert len(shelf.client.embeddings) >= 2
    assert read(qtbot, shelf, lambda db: Vectors(db).count("e")) == document.num_chunks
    shelf.close()


def test_vectors_that_fail_leave_the_words_and_go_on_at_the_next_chance(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One text.")
    (tmp_path / "b.txt").write_text("Another text.")
    shelf = Shelf(tmp_path / "history.db", with_embedder=True)
    shelf.client.embeds_at_once = False
    add(qtbot, shelf, tmp_path / "a.txt")
    qtbot.waitUntil(lambda: bool(shelf.client.embeddings))

    shelf.client.embeddings[0].fail("EngineStoppedError", "gone")
    shelf.client.embeds_at_once = True
    add(qtbot, shelf, tmp_path / "b.txt", count=2)
    qtbot.waitUntil(lambda: bool(shelf.embedded) and shelf.embedded[-1] == (2, 2))

    shelf.close()


def test_a_file_that_changes_whenever_it_is_read_is_given_up(
    qtbot: QtBot, shelf: Shelf, tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    path.write_text("0")
    versions = iter(range(1, 100))
    original = shelf.indexing._queue._parse

    def parse(*arguments: object) -> None:
        path.write_text(f"version {next(versions)}")
        original(*arguments)  # type: ignore[arg-type]

    shelf.indexing._queue._parse = parse  # type: ignore[method-assign]
    shelf.indexing.add([path])
    qtbot.waitUntil(
        lambda: bool(shelf.indexing.documents) and "each time" in shelf.indexing.documents[0].error,
        timeout=30_000,
    )

    assert shelf.statuses == ["failed"]
