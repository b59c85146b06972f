"""Chunks fit the embedder, break at sentences, overlap a little and know their place."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from inglenook.storage.chunking import (
    ChunkLimits,
    TokenOffsets,
    approximate_tokens,
    chunk_page,
    join_context,
)
from inglenook.storage.parsing.document import ParsedPage, Rect
from inglenook.storage.sentences import split_sentences

SMALL = ChunkLimits(
    max_tokens=40, target_tokens=20, overlap_tokens=8, context_tokens=6, special_tokens=2, max_chars=200
)


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, 0, len(text))]


def _page(text: str) -> ParsedPage:
    return ParsedPage(index=3, label="iv", text=text)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four…", ["One.", "Two!", "Three?", "Four…"]),
        ("Dr. Smith paid J. R. Ray vs. Jones. Next.", ["Dr. Smith paid J. R. Ray vs. Jones.", "Next."]),
        ("It grew by 3.5 per cent.", ["It grew by 3.5 per cent."]),
        ("He said “yes.” Then he left.", ["He said “yes.”", "Then he left."]),
        (
            "A heading\n\nThe first\nsentence.  The second.",
            ["A heading", "The first\nsentence.", "The second."],
        ),
        ("这是一句。那是一句！还有", ["这是一句。", "那是一句！", "还有"]),
        ("هل هذا سؤال؟ نعم۔", ["هل هذا سؤال؟", "نعم۔"]),
        ("see e.g. the table", ["see e.g. the table"]),
        (" \n ", []),
    ],
)
def test_sentences_end_where_readers_see_it(text: str, sentences: list[str]) -> None:
    assert _sentences(text) == sentences


def test_a_chunk_is_a_range_of_its_page_and_knows_it() -> None:
    text = " ".join(f"This is sentence number {i} of the page." for i in range(30))

    chunks = chunk_page(
        _page(text), title="Title", limits=SMALL, locate=lambda start, end: (Rect(start, 0, end, 1),)
    )

    assert len(chunks) > 5
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert (chunk.page_index, chunk.page_label, chunk.context) == (3, "iv", "Title")
        assert chunk.rects == (Rect(chunk.start, 0, chunk.end, 1),)
        assert chunk.text.startswith("This is")
        assert chunk.text.endswith("page.")


def test_neighbours_share_a_sentence_or_two_and_none_is_lost() -> None:
    sentences = [f"Fact {i} is so." for i in range(50)]
    chunks = chunk_page(_page(" ".join(sentences)), limits=SMALL)

    for before, after in pairwise(chunks):
        assert before.start < after.start < before.end < after.end
        shared = before.text[after.start - before.start :]
        assert len(approximate_tokens(shared)) <= SMALL.overlap_tokens
    assert all(any(sentence in chunk.text for chunk in chunks) for sentence in sentences)


def test_a_table_is_cut_at_its_lines() -> None:
    rows = [f"Row {i} 1,234 5,678 9,012 3,456" for i in range(40)]

    chunks = chunk_page(_page("\n".join(rows)), limits=SMALL)

    assert all(line in rows for chunk in chunks for line in chunk.text.split("\n"))


def test_a_word_without_end_is_cut_by_characters() -> None:
    chunks = chunk_page(_page("x" * 5000), limits=SMALL, token_offsets=lambda text: [(0, len(text))])

    assert "".join(chunk.text for chunk in chunks) == "x" * 5000
    assert max(len(chunk.text) for chunk in chunks) <= SMALL.max_chars


def test_an_empty_page_has_no_chunks() -> None:
    assert chunk_page(_page("")) == []
    assert chunk_page(_page(" \n ")) == []


def test_a_chunk_never_spans_two_headings_and_carries_their_path() -> None:
    text = "# A\nFirst.\n## B\nSecond.\n"
    border = text.index("## B")

    chunks = chunk_page(
        _page(text),
        title="T",
        heading_at=lambda position: ("A", "B") if position >= border else ("A",),
        heading_starts=[0, border],
    )

    assert [(c.text, c.context) for c in chunks] == [
        ("# A\nFirst.", "T › A"),
        ("## B\nSecond.", "T › A › B"),
    ]


def test_a_heading_alone_is_no_chunk_as_it_is_context_of_what_follows() -> None:
    text = "# A\n## B\nSecond.\n"
    border = text.index("## B")

    chunks = chunk_page(
        _page(text),
        heading_at=lambda position: ("A", "B") if position >= border else ("A",),
        heading_starts=[border],
    )

    assert [chunk.text for chunk in chunks] == ["## B\nSecond."]


def test_a_long_context_loses_its_front() -> None:
    context = join_context("a long long title", ("chapter", "sec"), approximate_tokens, SMALL)

    assert context.endswith("chapter › sec")
    assert len(approximate_tokens(context)) <= SMALL.context_tokens


def test_limits_that_leave_no_room_are_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens"):
        ChunkLimits(max_tokens=50)
    with pytest.raises(ValueError, match="overlap_tokens"):
        ChunkLimits(overlap_tokens=200)


@given(st.text(st.sampled_from("ab .!?\n\t。中—1,é"), max_size=600))
def test_any_text_is_covered_by_chunks_within_the_limits(text: str) -> None:
    chunks = chunk_page(_page(text), limits=SMALL)

    covered = {i for chunk in chunks for i in range(chunk.start, chunk.end)}
    # A lone character is no passage.
    missing = "".join(c if i not in covered and not c.isspace() else " " for i, c in enumerate(text))
    assert max((len(word) for word in missing.split()), default=0) <= 1
    for chunk in chunks:
        assert chunk.text == chunk.text.strip() == text[chunk.start : chunk.end]
        assert len(approximate_tokens(chunk.text)) <= SMALL.target_tokens
        assert len(chunk.text) <= SMALL.max_chars


@pytest.mark.parametrize("unit", ["a", " ", ".", ". ", "\n", "a.", "。", "-", "1 ", "|", "“"])
def test_a_page_of_one_repeated_mark_takes_no_time(unit: str) -> None:
    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started_s = time.process_time()
    chunk_page(_page(unit * 100_000))

    assert time.process_time() - started_s < 5


def _offsets(tokenizer: Tokenizer) -> TokenOffsets:
    return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets


@pytest.mark.slow
def test_no_chunk_exceeds_what_the_real_embedder_reads(minilm: Path, shared: Path) -> None:
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for path in sorted((shared / "research").glob("*.md")):
        page = _page(path.read_text(encoding="utf-8"))
        chunks = chunk_page(page, title=path.stem * 20, token_offsets=_offsets(tokenizer))
        sizes = [len(tokenizer.encode(chunk.embedding_text).ids) for chunk in chunks]

        assert max(sizes) <= 256
        assert sum(sizes) / len(sizes) > 120
