"""Messages between two processes, and what is no message."""

from __future__ import annotations

import struct
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inglenook.engine.homes.frames import (
    MAX_FRAME_BYTES,
    FrameError,
    answer_reader,
    command_reader,
    encode,
    encode_command,
)
from inglenook.engine.homes.messages import (
    Cancel,
    GetStats,
    Heartbeat,
    LoadModel,
    Shutdown,
    Stats,
    Submit,
    UnloadModel,
)
from inglenook.engine.request import (
    Failed,
    Finished,
    Loaded,
    LoadOptions,
    LoadProgress,
    Request,
    SamplingParams,
    TokenText,
    Unloaded,
)

COMMANDS = [
    LoadModel(1, "chat", "/models/a.gguf", LoadOptions(context_length=512)),
    UnloadModel(2, "chat"),
    Submit(
        3, Request(messages=({"role": "user", "content": "Grüße 🌍"},), sampling=SamplingParams(stop=("\n",)))
    ),
    Submit(4, Request(prompt_token_ids=(1, 2, 3), sampling=SamplingParams(temperature=0, seed=2**63 - 1))),
    Submit(5, Request(prompt="")),
    Cancel(6, 3),
    GetStats(7),
    Shutdown(8),
]
ANSWERS = [
    (1, LoadProgress("reading", 5, 10)),
    (
        1,
        Loaded(
            slot="chat",
            name="a",
            architecture="llama",
            backend="torch-cpu",
            backend_reason="no card",
            context_length=2048,
            weight_bytes=2**40,
            kv_bytes=1,
            load_s=0.5,
            notices=("The context is shortened.",),
        ),
    ),
    (3, TokenText("é🌍", (1, 2))),
    (
        3,
        Finished(
            finish_reason="stop",
            prompt_tokens=1,
            cached_tokens=0,
            completion_tokens=2,
            ttft_s=0.1,
            tpot_s=None,
            seed=2**63 - 1,
        ),
    ),
    (4, Failed("InvalidRequestError", "top_k must be a whole number.")),
    (2, Unloaded("chat")),
    (7, Stats({"blocks": 3.0}, {"chat": "a"})),
    (0, Heartbeat(12)),
]


def test_every_command_comes_back_as_it_was() -> None:
    stream = b"".join(encode_command(command) for command in COMMANDS)

    received = list(command_reader().feed(stream))

    assert received == [(command.id, command) for command in COMMANDS]


def test_every_answer_comes_back_as_it_was() -> None:
    stream = b"".join(encode(id_, answer) for id_, answer in ANSWERS)

    received = list(answer_reader().feed(stream))

    assert received == ANSWERS


@given(st.lists(st.integers(1, 400)))
@settings(max_examples=50, deadline=None)
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    stream = b"".join(encode(id_, answer) for id_, answer in ANSWERS)
    reader, received = answer_reader(), []

    for cut in [*cuts, len(stream)]:
        received += reader.feed(stream[:cut])
        stream = stream[cut:]

    reader.finish()
    assert received == ANSWERS


def test_a_stream_that_ends_inside_a_frame_is_an_error() -> None:
    reader = answer_reader()
    assert list(reader.feed(encode(0, Heartbeat(1)) + b"\x00\x00\x00\x09abc")) == [(0, Heartbeat(1))]

    with pytest.raises(FrameError, match="7 bytes into a frame"):
        reader.finish()


def test_a_huge_length_is_refused_without_allocating() -> None:
    tracemalloc.start()

    with pytest.raises(FrameError, match="1073741824 bytes, at most 67108864"):
        list(answer_reader().feed(b"\x40\x00\x00\x00"))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_length_under_the_cap_allocates_only_what_arrives() -> None:
    tracemalloc.start()

    assert list(answer_reader().feed(struct.pack(">I", MAX_FRAME_BYTES) + b"x")) == []

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def frame(value: object) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x08garbage!",
        b"\x00\x00\x00\x00",
        frame(["Heartbeat", 0]),
        frame(["Heartbeat", "0", {"progress": 1}]),
        frame(["Heartbeat", 0, {}]),
        frame(["Heartbeat", 0, {"progress": "1"}]),
        frame(["Heartbeat", 0, {"progress": 1.5}]),
        frame(["Heartbeat", 0, None]),
        frame(["Submit", 0, {"id": 1}]),
        frame(["x" * 10_000, 0, {}]),
        frame(["Failed", 1, {"kind": "A", "message": b"\xff"}]),
        b"\x00\x00\x00\x12" + b"\x93\xa8Unloaded\x01\x81\xa4slot\xa1\xff",
        b"\x00\x01\x00\x00" + b"\x91" * 65536,
    ],
)
def test_garbage_is_a_frame_error_after_the_good_frames(data: bytes) -> None:
    received = []

    with pytest.raises(FrameError) as caught:  # noqa: PT012 - the good frame before the bad one counts
        for item in answer_reader().feed(encode(0, Heartbeat(7)) + data):
            received.append(item)

    assert received == [(0, Heartbeat(7))]
    assert len(str(caught.value)) < 300


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes_raise_nothing_but_frame_errors(data: bytes) -> None:
    for reader in (answer_reader(), command_reader()):
        try:
            list(reader.feed(struct.pack(">I", len(data)) + data))
            reader.finish()
        except FrameError:
            pass


def test_a_value_out_of_range_is_refused_by_the_receiver() -> None:
    good = encode_command(Submit(1, Request(prompt="a", sampling=SamplingParams(top_k=7))))
    bad = good.replace(b"\xa5top_k\x07", b"\xa5top_k\xff")
    assert bad != good

    with pytest.raises(FrameError, match="top_k"):
        list(command_reader().feed(bad))


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Request(prompt="half a pair: \ud83d"), "surrogate"),
        (Request(prompt="x" * (MAX_FRAME_BYTES + 1)), "at most 67108864"),
        (Request(prompt_token_ids=("one",)), "int"),  # type: ignore[arg-type]
        (Request(prompt_token_ids=(2**70,)), "cannot be sent"),
        (Request(prompt=3), "str"),  # type: ignore[arg-type]
        (Request(prompt="a", slot=None), "slot"),  # type: ignore[arg-type]
    ],
)
def test_a_command_that_the_engine_would_not_accept_fails_at_the_sender(
    request_: Request, sentence: str
) -> None:
    with pytest.raises(FrameError, match=sentence):
        encode_command(Submit(1, request_))
