"""More faults that people reported of programs that answer from documents: of what is found, refused and cited.

As in test_document_faults.py, each is a case of its whole kind, over the real parser and the real database. Those of
parsing stand in tests/storage/parsing, of changing the encoder in tests/app/documents/test_embedder_swap.py.
"""

from __future__ import annotations

import pytest
from document_shelf import Shelf

from inglenook.app.answers.citations import attach
from inglenook.app.answers.turns import Ending, begin_turn, end_turn, open_conversation
from inglenook.storage.records import NewSource

FILLER = "Nothing of note is said on this page about anything that a person would ask for. " * 12
HERON = "The grey heron of Quorvale stands on one leg for 41 minutes."


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("这个用户的订单已经发货。", "用户"),
        ("请在itgc后检查所有记录。", "itgc是什么？"),
        ("東京都の人口は多い。", "東京"),
        ("서울은 대한민국의 수도이다.", "서울"),
        ("The db of the mill is small.", "db"),
    ],
)
def test_rag21_rag22_short_words_and_those_glued_to_other_scripts_are_found(
    shelf: Shelf, text: str, question: str
) -> None:
    shelf.add("other.txt", FILLER)
    shelf.add("note.txt", text)

    assert shelf.found(question)[0] == text


def test_rag23_text_of_an_old_chinese_encoding_is_answered_from(shelf: Shelf) -> None:
    shelf.add("note.txt", "苍鹭站在河边，等待小鱼游过。它可以一动不动地站立四十一分钟。".encode("gb2312"))

    assert "苍鹭" in shelf.found("苍鹭在哪里？")[0]


@pytest.mark.parametrize("reply", ["Herons eat fish and live near water.", "It is 97 minutes.", ""])
def test_rag33_what_was_found_is_not_cited_for_what_it_does_not_say(shelf: Shelf, reply: str) -> None:
    shelf.add("heron.txt", HERON)
    evidence = shelf.ask("How long does the heron of Quorvale stand on one leg?")

    sources = attach(reply, evidence.candidates, "How long does the heron of Quorvale stand on one leg?")

    assert [source.is_cited for source in sources] == [False]


@pytest.mark.parametrize(
    "question", ["Who was the first president of Tarvo?", "What is the capital of France?"]
)
def test_rag33_rag45_nothing_is_answered_from_memory_where_documents_do_not_say_it(
    shelf: Shelf, question: str
) -> None:
    shelf.add("heron.txt", HERON)
    shelf.add("long.txt", FILLER)

    evidence = shelf.ask(question)

    assert evidence.is_refusal
    assert evidence.answer


def test_rag34_rag35_no_threshold_on_scores_hides_the_only_passage_that_says_it(shelf: Shelf) -> None:
    for number in range(30):
        shelf.add(f"note {number}.txt", f"{FILLER} This is note {number}.")
    shelf.add("heron.txt", f"{FILLER}\n\n{HERON}")

    evidence = shelf.ask("How long does the heron of Quorvale stand?")

    assert not evidence.is_refusal
    assert "41 minutes" in evidence.candidates[0].chunk.text


def test_rag41_a_refusal_says_what_was_searched_and_never_that_it_is_not_there(shelf: Shelf) -> None:
    shelf.add("heron.txt", HERON)

    answer = shelf.ask("Which king founded the harbour of Tarvo?").answer

    assert "“heron.txt”" in answer
    assert "did not find" in answer
    assert not any(words in answer for words in ("does not mention", "do not mention", "is not in"))


def test_rag42_sources_of_an_answer_stay_its_own_after_later_answers(shelf: Shelf) -> None:
    shelf.add("heron.txt", HERON)
    shelf.add("mill.txt", "The mill of Mell was built in 1871.")
    quotes: dict[int, list[str]] = {}
    conversation_id = None
    for question, reply in (
        ("How long does the heron of Quorvale stand?", "The heron of Quorvale stands for 41 minutes."),
        ("When was the mill of Mell built?", "The mill of Mell was built in 1871."),
    ):
        turn = begin_turn(
            shelf.db, question, conversation_id=conversation_id, document_ids=(), model="m", sampling={}
        )
        conversation_id = turn.conversation.id
        sources: list[NewSource] = attach(reply, shelf.ask(question).candidates, question)
        end_turn(shelf.db, turn.reply.id, Ending(reply, ()), sources)
        quotes[turn.reply.id] = [source.quote for source in sources if source.is_cited]

    opened = open_conversation(shelf.db, conversation_id or 0)

    assert {id_: [s.quote for s in found if s.is_cited] for id_, found in opened.sources.items()} == quotes
    assert [len(each) for each in quotes.values()] == [1, 1]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("How long does the heron of Quorvale stand?", "And where?", "heron"),
        ("When was the mill of Mell built?", "Who built it?", "mill"),
        ("When was the mill of Mell built?", "Why?", "mill"),
    ],
)
def test_rag15_a_follow_up_is_never_refused_for_want_of_words(
    shelf: Shelf, first: str, second: str, expected: str
) -> None:
    shelf.add("heron.txt", f"{HERON} It stands there by the river. {FILLER}")
    shelf.add("mill.txt", f"The mill of Mell was built in 1871 by Mara Voss. {FILLER}")

    evidence = shelf.ask(second, previous=first)

    assert not evidence.is_refusal
    assert expected in evidence.candidates[0].chunk.text


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many files are there?", "There are 3 documents:"),
        ("Which documents do you have?", "There are 3 documents:"),
        ("List all the files", "There are 3 documents:"),
        ("How often does the word heron appear?", "“heron” stands 2 times in “b.txt”"),
        ("How many times is Quorvale mentioned?", "“Quorvale” stands once in “a.txt”"),
    ],
)
def test_b2_b3_what_can_be_counted_is_counted_over_all_of_the_documents(
    shelf: Shelf, question: str, expected: str
) -> None:
    shelf.add("a.txt", HERON)
    shelf.add("b.txt", f"A heron. {FILLER * 8} Another heron.")
    shelf.add("c.txt", FILLER)

    assert expected in shelf.ask(question).answer
