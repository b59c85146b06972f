"""No chip without its ground: what a passage does not say is not cited from it, however like it sounds.

Each case is an invented passage, a question, and a reply of the kind that small models write.
"""

from __future__ import annotations

import pytest
from passages import passage

from inglenook.app.answers.citations import attach
from inglenook.app.answers.sentence_checks import SentenceChecks, sentence_checks
from inglenook.app.answers.units import contradicts

TOWERS = (
    "A note on two towers. The tower of Zorb is 34 metres high. It was built of grey stone by Mara Voss in 1871. "
    "The tower of Mell is 57 metres high and is not open on Sundays. Its bell weighs 3.5 tonnes."
)
ACCOUNTS = "Item | 2022 | 2023\nRevenue | 412 | 508\nOperating costs | 377 | 391\nNet income | 35 | 117"
HEIGHT = "How high is the tower of Zorb?"


def chips(reply: str, question: str, *texts: str) -> list[str]:
    hits = [passage(text, page=page) for page, text in enumerate(texts)]
    return [source.quote for source in attach(reply, hits, question) if source.is_cited]


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (HEIGHT, "The tower of Zorb is 35 metres high."),
        (HEIGHT, "The tower of Zorb is 57 metres high."),
        (HEIGHT, "57 metres."),
        (HEIGHT, "The tower of Zorb is 34 feet high."),
        (HEIGHT, "It is 34%."),
        (HEIGHT, "The passages do not say how high the tower of Zorb is."),
        (HEIGHT, "How high is the tower of Zorb?"),
        (HEIGHT, "The height of the tower of Zorb is as follows:"),
        (HEIGHT, "Towers of this kind are landmarks that attract many visitors."),
        (HEIGHT, "The tower of Tarvo is 34 metres high."),
        (HEIGHT, 'The note says "the tower of Zorb is the highest of all".'),
        ("What is the tower of Zorb built of?", "The tower of Zorb is built of gold."),
        ("What is the tower of Zorb built of?", "Gold."),
        ("Who built the tower of Zorb?", "Ilya built the tower of Zorb."),
        ("Who built the tower of Zorb?", "Paris was built of grey stone."),
        ("When was the tower of Zorb built?", "It was built in 1817."),
        ("How much does the bell weigh?", "The bell weighs 35 tonnes."),
        ("How much does the bell weigh?", "The bell weighs three tonnes."),
        ("Is the tower of Mell open on Sundays?", "Yes, the tower of Mell is open on Sundays."),
        ("Was the tower of Zorb built of stone?", "The tower of Zorb was not built of stone."),
        ("Which river flows through Zorb?", "1871"),
        ("Who is the mayor of Tarvo?", "Mara Voss"),
    ],
)
def test_what_the_passage_does_not_say_has_no_chip(question: str, reply: str) -> None:
    assert chips(reply, question, TOWERS) == []


@pytest.mark.parametrize(
    ("question", "reply", "quoted"),
    [
        (HEIGHT, "34 metres", "34 metres"),
        (HEIGHT, "According to the passage, the tower of Zorb is 34 m high.", "34 metres"),
        (HEIGHT, "The tower of Zorb has a height of 34 metres.", "34 metres"),
        ("How high is the tower of Mell?", "57 metres.", "57 metres"),
        ("What is the tower of Zorb built of?", "Grey stone.", "grey stone"),
        ("Who built the tower of Zorb?", "Mara Voss built it in 1871.", "Mara Voss"),
        ("Who built the tower of Zorb?", "Mara Voss", "Mara Voss"),
        ("When was Zorb's tower built?", "Zorb's tower was built in 1871.", "1871"),
        ("How much does the bell of Mell weigh?", "It weighs 3.5 tonnes.", "3.5 tonnes"),
        ("Is Mell's tower open on Sundays?", "No, the tower of Mell is not open on Sundays.", "not open"),
        ("Tell me about it", "The tower of Zorb was built in 1871 and that of Mell is 57 metres high.", "57"),
    ],
)
def test_what_the_passage_says_has_a_chip_where_it_stands(question: str, reply: str, quoted: str) -> None:
    assert quoted in " ".join(chips(reply, question, TOWERS))


@pytest.mark.parametrize("reply", ["Revenue was 391 in 2023.", "391", "The revenue of 2023 was 391."])
def test_a_number_of_another_row_is_no_ground(reply: str) -> None:
    assert chips(reply, "What was the revenue in 2023?", ACCOUNTS) == []


def test_a_number_of_its_own_row_is_a_ground() -> None:
    assert chips("Revenue was 508 in 2023.", "What was the revenue in 2023?", ACCOUNTS) != []


MANUAL = "| Model | Flow (l/min) | Weight |\n|---|---|---|\n| V100 | 45 | 3.2 kg |\n| V200 | 90 | 5.8 kg |"


@pytest.mark.parametrize(
    ("reply", "quote"),
    [
        ("The V200 weighs 5.8 kg.", "| V200 | 90 | 5.8 kg |"),
        ("5.8 kg", "| V200 | 90 | 5.8 kg |"),
        ("The V200 weighs 3.2 kg.", None),
        ("The V200 weighs 90 kg.", None),
        ("3.2 kg", None),
    ],
)
def test_a_cell_is_read_with_the_head_of_its_table_and_its_own_row(reply: str, quote: str | None) -> None:
    assert chips(reply, "How heavy is the V200?", MANUAL) == ([quote] if quote else [])


def test_each_chip_of_a_sentence_is_needed() -> None:
    other = "In Pell, 34 metres of rope are kept in the tower of the old harbour, which is high."

    assert chips("The tower of Zorb is 34 metres high.", HEIGHT, other, TOWERS) == [
        "The tower of Zorb is 34 metres high."
    ]


def test_the_quote_is_the_sentence_that_says_it_and_not_another_with_the_same_name() -> None:
    text = (
        "Orlo wrote three books in Zorb. In the summer of 1521 Orlo widened his aim. In one of the books he rejected "
        "forced vows and praised private silence."
    )

    (quote,) = chips("Orlo praised private silence.", "What did Orlo praise?", text)

    assert "praised private silence" in quote


@pytest.mark.parametrize(
    ("question", "text", "right", "wrong"),
    [
        ("Wie hoch ist der Turm?", "Der Turm von Zorb ist 34 Meter hoch.", "Der Turm ist 34 Meter hoch.", "Der Turm ist aus Gold."),
        ("Was kostet es?", "Die Fähre kostet 3,50 Euro.", "Die Fähre kostet 3,50 Euro.", "Die Fähre kostet 350 Euro."),
        ("¿De qué es la torre?", "La torre de Zorb es de piedra gris.", "La torre es de piedra gris.", "La torre no es de piedra gris."),
        ("Какой высоты башня?", "Башня Зорба имеет высоту 34 метра.", "Высота башни 34 метра.", "Башня построена из золота."),
        ("塔有多高？", "佐布塔高三十四米，由灰石建成。", "佐布塔高三十四米。", "这座大桥由黄金铸造而成。"),
        ("كم ارتفاع البرج؟", "يبلغ ارتفاع برج زورب 34 مترا.", "يبلغ ارتفاع البرج 34 مترا.", "بني القصر من الذهب الخالص."),
    ],
)  # fmt: skip
def test_other_languages_are_held_to_the_same(question: str, text: str, right: str, wrong: str) -> None:
    assert chips(right, question, text) == [text]
    assert chips(wrong, question, text) == []


def test_a_sentence_without_ground_is_not_found_while_written_and_when_shown_again() -> None:
    reply = "The tower of Zorb is 35 metres high. It was built of grey stone."
    hits = [passage(TOWERS)]
    streamed = SentenceChecks(hits, HEIGHT)

    checks = [*streamed.take(reply), *streamed.finish()]

    assert [check.status for check in checks] == ["not found", "supported"]
    assert sentence_checks(reply, attach(reply, hits, HEIGHT)) == checks


@pytest.mark.parametrize(
    ("sentence", "text", "is_other"),
    [
        ("It is 34 feet.", "It is 34 metres.", True),
        ("It is 34 meters.", "It is 34 metres.", False),
        ("It is 34%.", "34 percent of it", False),
        ("It cost $34 million.", "It cost 34 billion dollars.", False),
        ("It cost 34 million.", "It cost 34 billion.", True),
        ("It cost $508.", "Revenue | 412 | 508", False),
        ("It took 34 days.", "34 days and 34 hours", False),
        ("34", "34 metres", False),
        ("It is 34 feet.", "It is 34\nmetres.", True),
        ("It has 90 kg.", "V200 | 90 | 5.8 kg", True),
        ("From 34 kg on.", "It has 34 to 57 kg.", False),
        ("", "", False),
    ],
)
def test_units_contradict_where_the_number_has_only_others(sentence: str, text: str, is_other: bool) -> None:
    assert contradicts(sentence, [text]) == is_other
