"""What is left out of a chat that does not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.engine.context_overflow import fit_conversation, reply_reserve
from inglenook.engine.errors import ContextLengthError
from inglenook.engine.request import Request, SamplingParams
from inglenook.engine.tokenizer.tokenizer import EncodedPrompt

T = 30.0


def encoded(messages):
    return EncodedPrompt(tuple(range(sum(len(m["content"]) + 2 for m in messages))), "")


def fit(messages, pinned, limit):
    return fit_conversation(messages, pinned, lambda kept: encoded([messages[i] for i in kept]), limit)


def conversation(*lengths, system=0):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": "x" * n} for i, n in enumerate(lengths)]
    return ([{"role": "system", "content": "s" * system}] if system else []) + messages


def test_a_conversation_that_fits_stays_whole():
    assert fit(conversation(5, 5, 5), (), 21)[1] == ()


def test_whole_turns_go_oldest_first_and_no_more_than_needed():
    prompt, left_out = fit(conversation(8, 8, 8, 8, 8), (), 30)

    assert left_out == (0, 1)
    assert len(prompt.token_ids) == 30


def test_system_and_pinned_turns_and_the_last_turn_stay():
    messages = conversation(8, 8, 8, 8, 8, system=8)

    assert fit(messages, {2}, 30)[1] == (3, 4)
    assert fit(messages, {2}, 1)[1] == (3, 4)


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=15),
    system=st.integers(0, 10),
    limit=st.integers(1, 300),
)
def test_the_fewest_oldest_turns_are_left_out(lengths, system, limit):
    messages = conversation(*lengths, system=system)

    prompt, left_out = fit(messages, (), limit)

    kept = [m for i, m in enumerate(messages) if i not in left_out]
    assert prompt == encoded(kept)
    assert messages[-1] in kept
    assert list(left_out) == sorted(left_out)
    if left_out:
        last_turn = max(i for i in left_out if messages[i]["role"] == "user" or i == left_out[0])
        one_more = [m for i, m in enumerate(messages) if i not in left_out or i >= last_turn]
        assert len(encoded(one_more).token_ids) > limit


def test_a_reply_without_a_limit_gets_a_quarter_of_the_context_up_to_1024():
    assert (reply_reserve(None, 512), reply_reserve(None, 100_000), reply_reserve(7, 512)) == (128, 1024, 7)


@pytest.fixture
def client(tiny_client):
    return tiny_client


def long_chat(**options):
    messages = conversation(100, 100, 100, 100, 100, 20)[:-1]
    return Request(messages=tuple(messages), sampling=SamplingParams(max_tokens=5), **options)


def test_the_engine_names_what_it_left_out(client):
    finished = client.submit(long_chat(overflow="drop_oldest")).result(T).finished

    assert finished.left_out == (0, 1)


def test_the_engine_refuses_by_default_and_loses_nothing(client):
    with pytest.raises(ContextLengthError, match=r"prompt has 5\d\d tokens .* take 5 tokens.* holds 512"):
        client.submit(long_chat()).result(T)
