"""Messages from the engine to the processes of other cards: a kind, a few numbers and lists of whole numbers, as bytes.

A frame is two 4-byte big-endian lengths, a JSON object, and int64 arrays in little-endian bytes one after another. Both
ends are this program and share a pipe that nobody else has.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import torch

from inglenook.engine.batch import Batch, GroupTables

Kind = Literal["load", "prepare", "allocate", "step", "copy", "blank"]
_LENGTHS = struct.Struct(">II")
_Arrays = tuple[npt.NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class RankMessage:
    """What a card's process is told to do: `facts` for "load", `arrays` for the others."""

    kind: Kind
    arrays: _Arrays = ()
    facts: dict[str, Any] = field(default_factory=dict)  # what JSON can hold

    def encode(self) -> bytes:
        """As a frame."""
        head = {"kind": self.kind, "facts": self.facts, "shapes": [a.shape for a in self.arrays]}
        text = json.dumps(head).encode()
        body = b"".join(np.ascontiguousarray(a, dtype="<i8").tobytes() for a in self.arrays)
        return _LENGTHS.pack(len(text), len(body)) + text + body


def read_message(stream: BinaryIO) -> RankMessage | None:
    """Wait for the next message; None when the stream has ended."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    text_size, body_size = _LENGTHS.unpack(lengths)
    text, body = stream.read(text_size), stream.read(body_size)
    if len(text) < text_size or len(body) < body_size:
        return None
    head = json.loads(text)
    numbers = np.frombuffer(body, dtype="<i8").astype(np.int64)
    edges = np.cumsum([int(np.prod(shape)) for shape in head["shapes"]])[:-1]
    parts = np.split(numbers, edges) if head["shapes"] else []
    arrays = tuple(p.reshape(shape) for p, shape in zip(parts, head["shapes"], strict=True))
    return RankMessage(head["kind"], arrays, head["facts"])


def step_message(batch: Batch) -> RankMessage:
    """A step for another card."""
    rows = (batch.token_ids, batch.positions, batch.query_starts, batch.context_lengths, batch.logits_rows)
    groups = [t for group in batch.groups for t in (group.block_tables, group.slots)]
    return RankMessage("step", tuple(t.numpy().astype(np.int64) for t in (*rows, *groups)))


def batch_of(message: RankMessage) -> Batch:
    """The step that `step_message` was made of."""
    ids, positions, starts, lengths, rows, *groups = (torch.from_numpy(a) for a in message.arrays)
    tables = zip(groups[::2], groups[1::2], strict=True)
    return Batch(
        ids,
        positions,
        starts.int(),
        lengths.int(),
        rows,
        tuple(GroupTables(table.int(), slots) for table, slots in tables),
    )
