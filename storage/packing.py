"""Numbers as compact blobs: the token ids of a reply, the rectangles of a passage.

Token ids are one byte that says how wide they are (1 to 4 bytes, as the greatest needs) and then the ids, little-
endian. Rectangles are float32, four a rectangle. A blob that does not fit this reads as empty: a garbled detail must
not keep a conversation from opening.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inglenook.storage.errors import InvalidValueError
from inglenook.storage.parsing.document import Rect


def pack_token_ids(token_ids: Sequence[int]) -> bytes:
    """Pack ids from 0 to 2^32 - 1.

    Raises:
        InvalidValueError: an id outside that range.
    """
    if not token_ids:
        return b""
    ids = np.asarray(token_ids, dtype=np.int64)
    if ids.min() < 0 or ids.max() >= 2**32:
        raise InvalidValueError(
            f"Token ids must be from 0 to 2^32 - 1, got {int(ids.min())} to {int(ids.max())}."
        )
    width = max(1, (int(ids.max()).bit_length() + 7) // 8)
    columns = ids.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width]
    return bytes([width]) + columns.tobytes()


def unpack_token_ids(blob: bytes) -> tuple[int, ...]:
    """Return the ids of `pack_token_ids`, or none where the blob is garbled."""
    if not blob or not 1 <= blob[0] <= 4 or (len(blob) - 1) % blob[0]:
        return ()
    width = blob[0]
    columns = np.frombuffer(blob, np.uint8, offset=1).reshape(-1, width)
    wide = np.zeros((len(columns), 4), np.uint8)
    wide[:, :width] = columns
    return tuple(wide.view("<u4").ravel().tolist())


def pack_rectangles(rectangles: Sequence[Rect]) -> bytes:
    """Pack rectangles of four numbers each."""
    return np.asarray(rectangles, dtype="<f4").tobytes() if rectangles else b""


def unpack_rectangles(blob: bytes) -> tuple[Rect, ...]:
    """Return the rectangles of `pack_rectangles`, or none where the blob is garbled."""
    if len(blob) % 16:
        return ()
    return tuple(Rect(*sides) for sides in np.frombuffer(blob, "<f4").reshape(-1, 4).tolist())
