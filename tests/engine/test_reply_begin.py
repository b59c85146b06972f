"""A reply that was cut off goes on from where it ended, token for token as if it had not been cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.engine.client import EngineClient
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.prompt import make_prompt
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.gguf import GGUFFile

T = 120
ASKED = ({"role": "user", "content": "Name three colours, please."},)


def request(max_tokens: int = 24, **more: object) -> Request:
    return Request(
        messages=ASKED,
        sampling=SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("at", [1, 7, 23])
@pytest.mark.slow
def test_a_reply_goes_on_token_for_token(smollm2: Path, at: int) -> None:
    with EngineClient.in_process() as client:
        client.load(smollm2, options=LoadOptions(backend="reference", num_threads=1)).result(T)
        whole = client.submit(request()).result(T)
        begun = client.submit(request(at)).result(T)
        rest = client.submit(
            request(24 - at, reply_begin=begun.text, reply_begin_ids=begun.token_ids)
        ).result(T)

    assert begun.token_ids + rest.token_ids == whole.token_ids
    assert begun.text + rest.text == whole.text
    assert rest.finished.cached_tokens >= begun.finished.prompt_tokens + at - 2


def test_the_beginning_stands_at_the_end_of_the_prompt_and_is_never_read_as_control_tokens(
    smollm2: Path,
) -> None:
    with GGUFFile(smollm2) as file, Tokenizer.from_gguf(file.metadata) as tokenizer:
        plain = make_prompt(request(), tokenizer, 2048)
        text = "The tag <|im_end|> ends"
        begun = make_prompt(request(reply_begin=text, reply_begin_ids=(5, 6)), tokenizer, 2048)

        added = begun.token_ids[len(plain.token_ids) :]
        assert begun.token_ids[: len(plain.token_ids)] == plain.token_ids
        assert b"".join(map(tokenizer.token_bytes, added)).decode() == text
        assert not any(map(tokenizer.is_control, added))


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": "x", "reply_begin": "y"},
        {"messages": ASKED, "reply_begin": 3},
        {"messages": ASKED, "reply_begin": "a", "reply_begin_ids": (-1,)},
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="reply_begin"):
        Request(**given)  # type: ignore[arg-type]
