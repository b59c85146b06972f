"""Requests that no single passage answers are recognised, and only those."""

from __future__ import annotations

import pytest

from inglenook.app.answers.whole_requests import whole_request


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Summarise this document.", "summary"),
        ("Can you give me a summary?", "summary"),
        ("summarize", "summary"),
        ("What is this paper about?", "summary"),
        ("what are the key points", "summary"),
        ("List the files.", "listing"),
        ("Show me all my documents", "listing"),
        ("Which documents do you have?", "listing"),
        ("How many files are there?", "listing"),
        ("How many pages does the document have?", "pages"),
        ("How many pages?", "pages"),
        ("How many invoices are there in total?", "counting"),
        ("How many people are named in this document?", "counting"),
        ("List all penalties.", "counting"),
    ],
)
def test_a_request_for_the_whole_is_recognised(question: str, kind: str) -> None:
    request = whole_request(question)

    assert request is not None
    assert request.kind == kind


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("How many times does the word “heron” appear?", "heron"),
        ("How often is heron mentioned in the report?", "heron"),
        ('How many times does "grey heron" occur?', "grey heron"),
        ("Count the occurrences of heron.", "heron"),
    ],
)
def test_what_is_to_be_counted_is_found(question: str, term: str) -> None:
    request = whole_request(question)

    assert request is not None
    assert (request.kind, request.term) == ("occurrences", term)


@pytest.mark.parametrize(
    "question",
    [
        "How many people look after the tower in Zorb?",
        "How high is the tower?",
        "How many pages did Mara Voss write about Zorb?",
        "Which documents mention herons?",
        "How many documents mention herons?",
        "What is the name of the mayor?",
        "What is the tower about to become?",
    ],
)
def test_a_question_that_a_passage_may_answer_is_left_to_search(question: str) -> None:
    assert whole_request(question) is None
