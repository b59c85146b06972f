"""One open request, seen by those who wait for it and by its listener."""

import pytest

from inglenook.engine.handle import Handle
from inglenook.engine.request import Failed, Finished, TokenText

FINISHED = Finished(
    finish_reason="stop",
    prompt_tokens=3,
    cached_tokens=0,
    completion_tokens=1,
    ttft_s=0.1,
    tpot_s=None,
    seed=1,
)


@pytest.mark.parametrize("late", [TokenText("late", (2,)), FINISHED, Failed("InternalEngineError", "Late.")])
def test_nothing_that_comes_after_the_end_is_taken(late):
    heard = []
    handle = Handle(1, lambda _: None, heard.append)
    handle.deliver(TokenText("in time", (1,)))
    handle.deliver(FINISHED)

    handle.deliver(late)

    reply = handle.result(0)
    assert (reply.text, reply.token_ids, reply.finished) == ("in time", (1,), FINISHED)
    assert heard == [TokenText("in time", (1,)), FINISHED]
    assert list(handle.events(0)) == heard


def test_a_request_that_ended_is_not_cancelled_any_more():
    cancelled = []
    handle = Handle(7, cancelled.append)

    handle.cancel()
    handle.deliver(FINISHED)
    handle.cancel()

    assert cancelled == [7]


def test_a_listener_that_raises_does_not_take_the_reply_along(caplog):
    def listener(event):
        raise ValueError("secret")

    handle = Handle(1, lambda _: None, listener)
    handle.deliver(TokenText("a", (1,)))
    handle.deliver(FINISHED)

    assert handle.result(0).text == "a"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
