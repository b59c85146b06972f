"""Each sentence of a reply is held against its passages, while it streams and when it is shown again."""

from __future__ import annotations

import pytest
from passages import passage

from inglenook.app.answers.citations import attach
from inglenook.app.answers.sentence_checks import SentenceChecks, sentence_checks

ZORB = passage("The tower of Zorb is 34 metres high. It is closed.", page=3)
QUESTION = "How high is the tower of Zorb?"


def statuses(reply: str) -> list[str]:
    checks = SentenceChecks([ZORB], QUESTION)
    return [check.status for check in [*checks.take(reply), *checks.finish()]]


def test_a_sentence_is_checked_when_it_is_complete_and_once() -> None:
    checks = SentenceChecks([ZORB], QUESTION)

    first = checks.take("The tower of Zorb is 34 met")
    second = checks.take("res high. It has a")
    last = checks.finish()

    assert first == []
    assert [(c.start, c.end, c.status) for c in second] == [(0, 36, "supported")]
    assert [c.start for c in last] == [37]


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("The tower of Zorb is 34 metres high.", "supported"),
        ("The tower of Zorb is 35 metres high.", "not found"),
        ("The tower of Zorb was designed by Mara Voss.", "not found"),
        ("Its golden dome attracts thousands of visitors every summer.", "not found"),
        ("Sure!", "nothing"),
        ("The passages do not say how old it is.", "nothing"),
    ],
)
def test_what_a_sentence_claims_decides(sentence: str, status: str) -> None:
    assert statuses(sentence) == [status]


def test_a_wrong_number_is_not_excused_by_a_denial() -> None:
    assert statuses("The document does not say that the tower of Zorb is 99 metres high.") == ["not found"]


def test_a_stored_reply_has_the_same_checks_as_the_streamed_one() -> None:
    reply = "The tower of Zorb is 34 metres high. Its golden dome attracts thousands of visitors."
    streamed = SentenceChecks([ZORB], QUESTION)

    checks = [*streamed.take(reply), *streamed.finish()]

    assert sentence_checks(reply, attach(reply, [ZORB], QUESTION)) == checks
    assert [check.status for check in checks] == ["supported", "not found"]


def test_a_reply_without_documents_is_not_judged() -> None:
    assert sentence_checks("Paris is the capital of France.", []) == []
