"""The best hits are looked at sentence by sentence."""

from __future__ import annotations

from inglenook.storage.records import Hit, IndexedChunk, Place
from inglenook.storage.rescoring import DEPTH, best_sentence, rescored


def hit(id_: int, text: str, score: float) -> Hit:
    chunk = IndexedChunk(id_, 1, 1, "a", 1, text, Place(0, None, 0, len(text)), (), "")
    return Hit(chunk, score, 0, 0)


def test_one_sentence_that_says_it_all_comes_before_words_strewn_about() -> None:
    strewn = hit(1, "The tower is old. Herons nest nearby. It is closed in winter.", 0.61)
    whole = hit(2, "The rye is cut in May. In winter herons nest on the tower.", 0.6)

    assert [h.chunk.id for h in rescored("Do herons nest on the tower in winter?", [strewn, whole])] == [2, 1]


def test_a_clear_lead_stands() -> None:
    first, second = hit(1, "Towers.", 0.9), hit(2, "In winter herons nest on the tower.", 0.2)

    assert rescored("Do herons nest on the tower in winter?", [first, second])[0].chunk.id == 1


def test_only_the_first_hits_are_looked_at() -> None:
    hits = [hit(i, "Nothing.", 1 - i / 1000) for i in range(DEPTH)] + [hit(99, "A heron.", 0.1)]

    result = rescored("heron?", hits)

    assert [h.chunk.id for h in result] == [h.chunk.id for h in hits]


def test_a_question_without_words_changes_nothing() -> None:
    hits = [hit(1, "One.", 0.2), hit(2, "Two.", 0.1)]

    assert rescored("what is it", hits) == hits
    assert best_sentence("One.", {}) == 0.0
