"""Numbers as blobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.storage.errors import InvalidValueError
from inglenook.storage.packing import pack_rectangles, pack_token_ids, unpack_rectangles, unpack_token_ids
from inglenook.storage.parsing.document import Rect


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_token_ids_come_back(ids: list[int]) -> None:
    assert unpack_token_ids(pack_token_ids(ids)) == tuple(ids)


def test_token_ids_take_as_few_bytes_as_the_greatest_needs() -> None:
    assert [len(pack_token_ids([0] * 99 + [top])) for top in (255, 256, 65_535, 151_000)] == [
        101,
        201,
        201,
        301,
    ]


@pytest.mark.parametrize("ids", [[-1], [2**32], [1, -5]])
def test_impossible_token_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(InvalidValueError, match=r"from 0 to 2\^32 - 1"):
        pack_token_ids(ids)


@given(st.lists(st.builds(Rect, *[st.floats(width=32, allow_nan=False)] * 4)))
def test_rectangles_come_back(rectangles: list[Rect]) -> None:
    assert unpack_rectangles(pack_rectangles(rectangles)) == tuple(rectangles)


@given(st.binary(max_size=64))
def test_garbled_blobs_read_as_something(blob: bytes) -> None:
    unpack_token_ids(blob)
    unpack_rectangles(blob)
