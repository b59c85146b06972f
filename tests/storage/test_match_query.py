"""Questions never reach the syntax of the full-text index."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inglenook.storage.database import Database
from inglenook.storage.match_query import MAX_TERMS, any_of, trigrams_terms, words_terms
from inglenook.storage.search import Search


def test_words_are_quoted_and_joined() -> None:
    assert (
        any_of(words_terms("What is the multi-agent C++ “price”?")) == '"multi" OR "agent" OR "c" OR "price"'
    )


def test_question_of_common_words_alone_keeps_them() -> None:
    assert any_of(words_terms("Who is it?")) == '"who" OR "is" OR "it"'


def test_lone_character_is_looked_for_as_the_beginning_of_a_pair() -> None:
    assert any_of(words_terms("猫")) == '"猫"*'


def test_very_long_question_is_cut_to_its_longest_words() -> None:
    query = any_of(words_terms(" ".join(f"w{'x' * (n % 50)}{n}" for n in range(10_000))))

    assert query.count(" OR ") == MAX_TERMS - 1


@pytest.mark.parametrize("question", ["", "   ", "!?.", '"""', "***", "😀", "\0"])
def test_question_without_a_word_asks_nothing(question: str) -> None:
    assert words_terms(question) == []
    assert trigrams_terms(question) == []


_AWKWARD = [
    "multi-agent", "don't", "C++", '"', "*", "AND", "NEAR(", "()", "^", "-x", "title:secret", "{title} : secret",
    "body : secret", "NEAR(a b, 2)", "a OR", "NOT a", '"unclosed', "a*", "(((", "secret)", "{", "}", ":", "a AND b OR",
    "\ud800", "\0a\0", "😀 emoji", "用户 user", "heading: \"x\"", "'; DROP TABLE chunks; --", "%", "_", "\\", "\u202e",
    "x" * 100_000, "( " * 5000, "word " * 10_000, "中" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("question", _AWKWARD, ids=lambda q: ascii(q[:12]))
def test_awkward_question_finds_something_or_nothing(db: Database, question: str) -> None:
    Search(db).search(question, limit=5)


def test_column_names_are_words_like_others(db: Database, add_document) -> None:  # type: ignore[no-untyped-def]
    add_document("nothing of interest", title="secret", path="/a", sha256="1" * 64)
    add_document("the heading of the body", title="open", path="/b", sha256="2" * 64)

    hits = Search(db).search("body : harmless", limit=5)

    assert [hit.chunk.text for hit in hits] == ["the heading of the body"]


def test_no_question_is_an_error(db: Database) -> None:
    search = Search(db)

    @settings(max_examples=200, deadline=None)
    @given(st.text(max_size=40), st.sampled_from(["", '"', "*", "^", ":", "(", " OR ", "\0"]))
    def ask(text: str, mark: str) -> None:
        search.search(mark.join([text, "a", text]), limit=3)

    ask()
