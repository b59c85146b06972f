"""How full a window is, reckoned from the engine's own counts."""

from __future__ import annotations

import pytest

from inglenook.app.context.larger_window import kv_type_of, larger_window
from inglenook.app.context.window_fill import window_fill
from inglenook.engine.context_overflow import reply_reserve
from inglenook.engine.library.model_details import ModelDetails
from inglenook.engine.request import Loaded
from inglenook.storage.token_counts import TurnCount


def turn(number: int, prompt: int | None, reply: int, num_bytes: int = 800) -> TurnCount:
    return TurnCount(2 * number, f"Question {number}", 2 * number + 1, prompt, reply, num_bytes)


COUNTS = [turn(1, 40, 160), turn(2, 230, 270), turn(3, 520, 180)]  # 200, 300 and 200 tokens


def test_an_empty_chat_uses_nothing() -> None:
    fill = window_fill([], 2048, max_tokens=None)

    assert (fill.used, fill.limit, fill.reserve, fill.left_out) == (0, 2048, reply_reserve(None, 2048), ())
    assert fill.share == 0.0


def test_a_window_that_is_not_known_leaves_nothing_out() -> None:
    assert window_fill(COUNTS, 0, max_tokens=None).left_out == ()


def test_what_is_used_is_what_the_engine_counted_for_the_last_reply() -> None:
    fill = window_fill(COUNTS, 4096, max_tokens=None)

    assert (fill.used, fill.wanted, fill.num_turns) == (700, 700, 3)
    assert fill.is_exact
    assert not fill.left_out
    assert not fill.is_nearly_full


@pytest.mark.parametrize(
    ("room", "num_left_out"), [(700, 0), (699, 1), (500, 1), (499, 2), (200, 2), (199, 3)]
)
def test_the_fewest_oldest_turns_are_left_out_by_the_engines_own_reserve(
    room: int, num_left_out: int
) -> None:
    fill = window_fill(COUNTS, room + 100, max_tokens=100)

    assert list(fill.left_out) == COUNTS[:num_left_out]


def test_a_question_that_is_being_written_counts_too() -> None:
    fill = window_fill(COUNTS, 800, max_tokens=100, question_bytes=400)

    assert [count.question for count in fill.left_out] == ["Question 1"]
    assert not fill.is_exact


def test_turns_that_were_left_out_before_are_about_right() -> None:
    # The third prompt had lost the first two turns, so the difference says nothing.
    counts = [*COUNTS[:2], turn(3, 60, 150)]

    fill = window_fill(counts, 900, max_tokens=100)

    assert fill.used == 210
    assert not fill.is_exact
    assert 600 < fill.wanted < 800


def test_documents_in_a_prompt_do_not_count_for_the_turns_after() -> None:
    counts = [turn(1, 3_000, 100, 400), turn(2, 250, 100, 400)]

    fill = window_fill(counts, 4096, max_tokens=None)

    assert fill.used == 350
    assert fill.wanted < 600
    assert not fill.is_exact


def test_replies_that_no_engine_counted_are_set_from_their_size() -> None:
    fill = window_fill([turn(1, None, 0, 3_500)], 4096, max_tokens=None)

    assert 900 < fill.used < 1_200
    assert not fill.is_exact


def facts(context_length: int, backend: str = "native-cpu") -> Loaded:
    return Loaded(
        slot="chat", name="m", architecture="llama", backend=backend, backend_reason="", load_s=0.1,
        context_length=context_length, weight_bytes=1, kv_bytes=1,
    )  # fmt: skip


DETAILS = ModelDetails(32_768, {"float32": 40_000, "float16": 20_000, "bfloat16": 20_000, "int8": 11_000}, "")


def test_the_next_window_is_twice_as_long_with_its_cost() -> None:
    larger = larger_window(facts(8_192), DETAILS, None, 10**9)

    assert (larger.tokens, larger.cost, larger.refusal) == (16_384, "+164 MB, fits", "")
    assert larger_window(facts(8_192), DETAILS, "int8", 10**9).cost == "+90 MB, fits"
    assert larger_window(facts(20_000), DETAILS, None, 10**9).tokens == 32_768


def test_a_window_that_cannot_be_had_says_why_with_the_numbers() -> None:
    longest = larger_window(facts(32_768), DETAILS, None, 10**12)
    too_large = larger_window(facts(16_384), DETAILS, None, 10**8)

    assert longest.refusal == "32,768 tokens is the longest window that this model takes."
    assert too_large.refusal == "A window of 32,768 tokens needs 328 MB more; 100 MB are free."


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("native-cpu:avx2", "float16"),
        ("torch-cpu", "bfloat16"),
        ("reference", "float32"),
        ("cuda", "bfloat16"),
    ],
)
def test_each_back_end_has_its_own_type_of_keys_and_values(backend: str, kind: str) -> None:
    assert kv_type_of(backend) == kind
