"""What is a loop that nobody wants, and what only looks like one."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_gguf import write_tiny_gguf

from inglenook.engine.client import EngineClient
from inglenook.engine.repetition import LEAST_TIMES, LEAST_TOKENS, RepetitionWatch
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.gguf import GGUFFile

ASKED = ({"role": "user", "content": "hello there"},)


def stopped_after(tokens: Iterable[int]) -> int | None:
    """After how many tokens the watch speaks; None: never."""
    watch = RepetitionWatch()
    return next((count for count, token in enumerate(tokens, 1) if watch.feed(token)), None)


def needed(period: int) -> int:
    times = next(times for longest, times in LEAST_TIMES if period <= longest)
    return max(LEAST_TOKENS, period * times)


def words(text: str) -> list[int]:
    """Tokens as a large vocabulary makes them: one a word and one a line's end."""
    known: dict[str, int] = {}
    return [known.setdefault(word, len(known)) for word in text.replace("\n", " \n ").split(" ") if word]


@pytest.mark.parametrize("period", [1, 2, 3, 7, 16, 17, 40, 64, 65, 200, 512])
@pytest.mark.parametrize("num_before", [0, 3_000])
def test_every_period_is_found_after_its_stretch_whatever_came_before(period: int, num_before: int) -> None:
    loop = range(10_000, 10_000 + period)

    assert stopped_after(itertools.chain(range(num_before), itertools.cycle(loop))) == num_before + needed(
        period
    )


def test_a_multiple_of_a_short_period_does_not_make_it_a_long_one() -> None:
    sentence = list(range(13))
    assert needed(5 * 13) < needed(13)

    assert stopped_after(sentence * 149) is None
    assert stopped_after(sentence * 150) == needed(13)


@settings(deadline=None, max_examples=12)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
    st.lists(st.integers(0, 60_000), max_size=80),
)
def test_a_loop_is_always_found_and_never_too_soon(loop: list[int], begin: list[int]) -> None:
    count = stopped_after(itertools.islice(itertools.chain(begin, itertools.cycle(loop)), 8_000))

    assert count is not None
    assert count >= LEAST_TOKENS


def test_one_token_out_of_place_begins_the_count_anew() -> None:
    stretch = [1, 2, 3] * (needed(3) // 3 - 1)

    assert stopped_after([*stretch, 9, *stretch]) is None
    assert stopped_after([*stretch, *stretch]) == needed(3)


NOT_ENDLESS = {
    "a word a hundred times": "Severin " * 100,
    "a sentence a hundred times": "I will not talk in class.\n" * 100,
    "a longer one a hundred times": "All work and no play makes Jack a dull boy.\n" * 100,
    "laughter": "ha " * 200,
    "a rule of dashes": ("-" * 120 + "\n") * 8,
    "a frame": "+" + "-" * 78 + "+\n" + ("|" + " " * 78 + "|\n") * 24 + "+" + "-" * 78 + "+\n",
    "a table of zeros": "| 0 | 0 | 0 | 0 |\n" * 30,
    "256 zeros in C": "{\n" + ("    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n" * 16) + "};\n",
    "a long markdown rule": "|" + "---|" * 60 + "\n",
    "blank lines": "\n" * 300,
    "a song": "Row, row, row your boat,\ngently down the stream.\nMerrily, merrily,\nlife is but a dream.\n\n"
    * 8,
    "counting": "".join(f"{n}, " for n in range(2_000)),
    "bottles": "".join(
        f"{n} bottles of beer on the wall, {n} bottles of beer.\nTake one down, pass it around.\n"
        for n in range(99, 0, -1)
    ),
    "a hex dump of zeros": "".join(f"{n:08x}: {'00 ' * 16}\n" for n in range(0, 4_096, 16)),
    "a list": "".join(f"- item {n} of the list\n" for n in range(400)),
    "code": "".join(f"    case {n}:\n        return handle(event);\n" for n in range(200)),
}


@pytest.mark.parametrize("name", NOT_ENDLESS)
def test_what_people_want_is_let_through(name: str) -> None:
    assert stopped_after(words(NOT_ENDLESS[name])) is None


@pytest.mark.parametrize("name", [name for name in NOT_ENDLESS if "hundred" not in name])
def test_drawings_tables_and_code_are_let_through_letter_by_letter(name: str) -> None:
    assert stopped_after(map(ord, NOT_ENDLESS[name])) is None


@pytest.mark.slow
def test_what_people_want_is_let_through_in_the_tokens_of_real_vocabularies(
    smollm2: Path, qwen2: Path
) -> None:
    for model in (smollm2, qwen2):
        with GGUFFile(model) as file, Tokenizer.from_gguf(file.metadata) as tokenizer:
            for name, text in NOT_ENDLESS.items():
                assert stopped_after(tokenizer.encode_text(text).token_ids) is None, (model.name, name)


def test_chance_is_no_loop() -> None:
    random.seed(7)

    assert stopped_after(random.randrange(3) for _ in range(6_000)) is None


def test_watching_costs_a_small_part_of_a_millisecond() -> None:
    watch = RepetitionWatch()
    began = time.process_time()
    for token in range(5_000):
        watch.feed(token)

    assert (time.process_time() - began) / 5_000 < 200e-6


@pytest.mark.parametrize(
    ("watches", "ignore_eos", "reason"),
    [(True, False, "repetition"), (False, False, "length"), (True, True, "length")],
)
def test_a_loop_ends_with_its_own_reason_where_that_is_wanted(
    tmp_path: Path, watches: bool, ignore_eos: bool, reason: str
) -> None:
    model = write_tiny_gguf(tmp_path / "tiny.gguf", context=1_024)
    asked = SamplingParams(
        temperature=0, max_tokens=645, logit_bias={77: 100.0}, stop_repetition=watches, ignore_eos=ignore_eos
    )
    with EngineClient.in_process() as client:
        client.load(model, options=LoadOptions(backend="reference", num_threads=1)).result(30)
        reply = client.submit(Request(messages=ASKED, sampling=asked)).result(60)
        values = client.stats().values

    assert reply.finished.finish_reason == reason
    assert len(reply.token_ids) == (LEAST_TOKENS if reason == "repetition" else 645)
    assert values[f"chat.request_success.{reason}"] == 1


@pytest.mark.slow
def test_a_real_model_that_says_one_word_for_ever_is_stopped_and_can_go_on(smollm2: Path) -> None:
    asked = SamplingParams(temperature=0, max_tokens=1_500, stop_repetition=True)
    with EngineClient.in_process() as client:
        client.load(smollm2, options=LoadOptions(num_threads=2)).result(60)
        reply = client.submit(Request(messages=ASKED, reply_begin="Severin " * 60, sampling=asked)).result(
            300
        )
        rest = client.submit(
            Request(
                messages=ASKED,
                reply_begin="Severin " * 60 + reply.text,
                sampling=SamplingParams(temperature=0, max_tokens=4, stop_repetition=True),
            )
        ).result(300)

    assert reply.finished.finish_reason == "repetition"
    assert LEAST_TOKENS <= len(reply.token_ids) < 900
    assert rest.finished.finish_reason == "length"
