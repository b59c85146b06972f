"""Whether passages can hold an answer is judged without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from passages import passage

from inglenook.app.answers.sufficiency import WORDS_ONLY_BAR, Sufficiency, is_question, refusal, sufficiency
from inglenook.storage.content_words import content_words
from inglenook.storage.records import Hit

ZORB = passage("The tower of Zorb is 34 metres high. Mara Voss built it in 1871.", page=3)
MELL = passage("The mill of Mell grinds rye.", page=5)


def judged(question: str, *hits: Hit, embedder: str = "", num_passages: int = 100) -> Sufficiency:
    def count_with(word: str) -> int:
        return sum(word in hit.chunk.text.lower() for hit in hits)

    return sufficiency(
        question,
        hits,
        num_passages=num_passages,
        count_with=count_with,
        count_with_piece=count_with,
        embedder=embedder,
    )


def near(hit: Hit, cosine: float) -> Hit:
    return replace(hit, cosine=cosine)


def test_a_passage_that_says_the_question_is_enough() -> None:
    assert judged("How high is the tower of Zorb?", ZORB, MELL).is_enough


def test_a_passage_about_something_else_is_not() -> None:
    assert not judged("How deep is the harbour of Tarvo?", ZORB, MELL).is_enough


def test_the_right_place_without_what_is_asked_is_not_enough() -> None:
    assert not judged("Which architect painted the ceiling murals in Zorb?", ZORB, MELL).is_enough


def test_nearness_of_meaning_counts_where_words_differ() -> None:
    asked = "What stature does the Zorb spire reach?"

    assert judged(asked, near(ZORB, 0.75), embedder="all-MiniLM-L6-v2").is_enough
    assert not judged(asked, near(ZORB, 0.2), embedder="all-MiniLM-L6-v2").is_enough


STATEMENT = "Item 2021 2022\nNet sales 412 508\nCost of sales 377 391\nOperating income 35 117"


def of_file(name: str, text: str = STATEMENT) -> Hit:
    hit = passage(text)
    return replace(hit, chunk=replace(hit.chunk, document_name=name))


def test_a_document_that_is_named_in_the_question_need_not_name_itself_on_every_page() -> None:
    asked = "What are the net sales of Quorvale in 2022?"

    own, other = (judged(asked, of_file(name)) for name in ("QUORVALE_2022_10K.pdf", "thistle-2022.pdf"))

    assert own.is_enough
    assert own.figure > other.figure


@pytest.mark.parametrize(
    ("plain", "asked"),
    [
        ("What are the net sales in 2022?", "What are the net sales in FY2022?"),
        ("What are the net sales in 2022?", "What are the net sales in FY 2022?"),
        (
            "What are the net sales in 2022?",
            "What are the net sales in 2022? If that cannot be told, explain why and round to two decimal places.",
        ),
    ],
)
def test_fiscal_years_are_years_and_how_to_answer_is_not_asked_for(plain: str, asked: str) -> None:
    assert judged(asked, of_file("a.pdf")) == judged(plain, of_file("a.pdf"))


def test_what_is_said_before_a_question_belongs_to_it() -> None:
    asked = "In Tarvo a harbour was dug in 1312. Which architect planned it?"

    assert not judged(asked, ZORB, MELL).is_enough


def test_what_is_worked_out_of_figures_need_not_stand_beside_them() -> None:
    assert judged("Did operating income decrease in 2022 compared with 2021?", of_file("a.pdf")).is_enough
    assert not judged(
        "Did headcount decrease in 2022 compared with 2021?", of_file("a.pdf", ZORB.chunk.text)
    ).is_enough


def test_cosines_of_an_unknown_embedder_are_not_trusted() -> None:
    """E5 puts unrelated texts at .8."""
    asked = "How deep is the harbour of Tarvo?"

    assert not judged(asked, near(ZORB, 0.82), embedder="multilingual-e5-small").is_enough


@pytest.mark.parametrize(
    ("text", "answerable", "unanswerable"),
    [
        (
            "Der Turm von Zorb ist 34 Meter hoch. Mara Voss erbaute ihn 1871.",
            "Wie hoch ist der Turm von Zorb?",
            "Wann wurde der Hafen eingeweiht und wem gehört er?",
        ),
        (
            "Высота башни Зорб составляет 34 метра.",
            "Какова высота башни Зорб?",
            "Кому принадлежит гавань Тарво?",
        ),
        (
            "يبلغ ارتفاع برج زورب أربعة وثلاثين مترا.",
            "كم يبلغ ارتفاع برج زورب؟",
            "من يملك ميناء تارفو الجديد؟",
        ),
        ("佐布塔的高度是三十四米。", "佐布塔的高度是多少？", "谁拥有塔沃港口的船只？"),
    ],
)
@pytest.mark.parametrize("num_passages", [3, 5000])
def test_other_languages_are_judged_by_parts_of_their_words(
    text: str, answerable: str, unanswerable: str, num_passages: int
) -> None:
    hit = passage(text)

    assert judged(answerable, hit, num_passages=num_passages).is_enough
    assert not judged(unanswerable, hit, num_passages=num_passages).is_enough


def test_few_passages_are_judged_kindly() -> None:
    turm = passage("Der Turm von Zorb ist 34 Meter hoch.")

    assert judged("Wie hoch sind die Türme von Zorb?", turm, num_passages=3).is_enough


def test_what_a_multilingual_embedder_found_in_another_language_is_enough() -> None:
    asked = "How high is the tower?"
    turm = passage("Der Turm von Zorb ist 34 Meter hoch.")

    assert judged(asked, turm, embedder="multilingual-e5-small").is_enough
    assert not judged(asked, turm, embedder="all-MiniLM-L6-v2").is_enough
    assert not judged("How deep is the harbour of Tarvo?", ZORB, embedder="multilingual-e5-small").is_enough


def test_typographic_marks_do_not_make_a_question_foreign() -> None:
    assert judged("How high is “the tower of Zorb” – in metres?", ZORB).bar == WORDS_ONLY_BAR
    assert judged("What is the height of the Müller tower?", ZORB).bar == WORDS_ONLY_BAR


def test_nothing_found_is_not_enough_and_a_question_without_words_is_not_judged() -> None:
    assert not judged("How high is it then?").is_enough
    assert judged("What is it?").is_enough


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How high is the tower?", True),
        ("who built it", True),
        ("塔有多高？", True),
        ("Write a letter to the mayor of Zorb.", False),
        ("Translate the second paragraph", False),
        ("thanks", False),
    ],
)
def test_only_questions_can_be_refused(text: str, expected: bool) -> None:
    assert is_question(text) is expected


def test_a_refusal_says_what_was_searched_and_where_the_nearest_passages_are() -> None:
    text = refusal([ZORB, MELL], ["survey.pdf"])

    assert "“survey.pdf”" in text
    assert "document1.pdf, p. 4 of 9" in text


def test_a_refusal_claims_nothing_about_what_was_not_read() -> None:
    names: Sequence[str] = ["a.pdf", "b.pdf"]

    assert "2 documents" in refusal([], names)
    assert "does not" not in refusal([], names)


def test_content_words_are_compared_by_stem() -> None:
    assert content_words("The towers climbed") == content_words("tower climbing")
