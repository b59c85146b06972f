"""The safetensors reader: sound files agree with the safetensors package, all else is a sentence in time and memory."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.weights.safetensors import SafetensorsFile
from inglenook.kernels.dequantize import dequantize

# seconds of this process, so that a busy machine does not matter
MAX_SECONDS, MAX_BYTES = 1.0, 200e6


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(begin: int, end: int, shape: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_values_equal_those_of_the_safetensors_package(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tensors = {
        "a.weight": torch.randn(3, 5),
        "b.weight": torch.randn(2, 4, 6).bfloat16(),
        "c": torch.randn(7).half(),
    }
    safetensors.torch.save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "pt"})

    with SafetensorsFile(tmp_path / "m.safetensors") as file:
        assert set(file.tensors) == set(tensors)
        for name, values in tensors.items():
            assert torch.equal(dequantize(file.tensor(name), values.dtype), values)


def test_other_element_types_are_listed_but_refused_by_name(tmp_path: Path) -> None:
    safetensors.torch.save_file(
        {"ids": torch.arange(4), "e": torch.zeros(0, 4), "s": torch.tensor(1.0)}, tmp_path / "m.safetensors"
    )

    with SafetensorsFile(tmp_path / "m.safetensors") as file:
        assert set(file.tensors) == {"ids", "e", "s"}
        with pytest.raises(UnsupportedModelError, match="ids has the type I64, which is not supported"):
            file.tensor("ids")
        with pytest.raises(ModelFileError, match=r"the shape \(0, 4\)"):
            file.tensor("e")
        with pytest.raises(ModelFileError, match=r"the shape \(\)"):
            file.tensor("s")
        with pytest.raises(ModelFileError, match="has no tensor nothing"):
            file.tensor("nothing")


BIG = 2**63
OURS = {"inglenook.layout": "1"}
HOSTILE = {
    "length 2^63": (raw({}, length=BIG), "its header needs 9,223,372,036,854,775,808 bytes, 2 are left"),
    "length beyond the file": (raw({}, length=3), "its header needs 3 bytes, 2 are left"),
    "header of 5 MB": (raw(b"{" + b" " * (5 << 20) + b"}"), "header has 5,242,882 bytes; at most 2,097,152"),
    "overlap": (raw({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, bytes(12)), "b overlaps the one before"),
    "same place": (raw({"a": entry(0, 8, [2]), "b": entry(0, 8, [2])}, bytes(8)), "overlaps the one before"),
    "hole": (raw({"a": entry(0, 8, [2]), "b": entry(12, 20, [2])}, bytes(20)), "b leaves a gap"),
    "hole at the start": (raw({"a": entry(4, 12, [2])}, bytes(12)), "a leaves a gap"),
    "trailing bytes": (raw({"a": entry(0, 8, [2])}, bytes(9)), r"end at \d+, but it has \d+ bytes"),
    "shape overflow": (raw({"a": entry(0, 0, [2**32, 2**32])}), "needs 73,786,976,294,838,206,464 bytes"),
    "huge tensor": (raw({"a": entry(0, 2**64, [2**62])}), r"incomplete: it needs [\d,.]+ TB .* has \d+ bytes"),
    "cut data": (raw({"a": entry(0, 8, [2])}, bytes(7)), "incomplete: it needs .* has .* Fetch it again"),
    "backwards": (raw({"a": entry(8, 0, [2])}, bytes(8)), "lies from 8 to 0"),
    "shape and offsets differ": (raw({"a": entry(0, 8, [3])}, bytes(8)), "needs 12 bytes"),
    "duplicate tensor": (
        raw(b'{"a":%b,"a":%b}' % ((json.dumps(entry(0, 4, [1])).encode(),) * 2), bytes(4)),
        "'a' stands there twice",
    ),
    "duplicate inner key": (
        raw(b'{"a":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
        "'dtype' stands there twice",
    ),
    "20,001 tensors": (raw({f"t{i}": entry(0, 0, [0]) for i in range(20_001)}), "has 20,001 tensors; at most 20,000"),
    "slash in a name": (raw({"../../x": entry(0, 4, [1])}, bytes(4)), "tensor name '../../x' is not allowed"),
    "NUL in a name": (raw({"x\0y": entry(0, 4, [1])}, bytes(4)), "is not allowed"),
    "lone surrogate in a name": (raw(b'{"\\ud800":{}}'), "is not allowed"),
    "empty name": (raw({"": entry(0, 4, [1])}, bytes(4)), "is not allowed"),
    "long name": (raw({"n" * 256: entry(0, 4, [1])}, bytes(4)), "is not allowed"),
    "unknown dtype": (raw({"a": entry(0, 4, [1], "F33")}, bytes(4)), "element type 'F33', which is unknown"),
    "dtype that is no text": (raw({"a": entry(0, 4, [1], [[]])}, bytes(4)), "element type a list of 1 entries"),
    "negative axis": (raw({"a": entry(0, 4, [-1])}, bytes(4)), "must be at most 8 whole numbers"),
    "float axis": (raw({"a": entry(0, 4, [1.0])}, bytes(4)), "must be at most 8 whole numbers"),
    "bool axis": (raw({"a": entry(0, 4, [True])}, bytes(4)), "must be at most 8 whole numbers"),
    "nine axes": (raw({"a": entry(0, 4, [1] * 9)}, bytes(4)), "must be at most 8 whole numbers"),
    "one offset": (raw({"a": {**entry(0, 4, [1]), "data_offsets": [0]}}, bytes(4)), "must be two whole numbers"),
    "extra key": (raw({"a": {**entry(0, 4, [1]), "code": "x"}}, bytes(4)), "and nothing else"),
    "entry that is no object": (raw({"a": 1}), "and nothing else"),
    "metadata with numbers": (raw({"__metadata__": {"a": 1}}), "__metadata__ must be texts"),
    "a layout of the future": (raw({"__metadata__": {"inglenook.layout": "2"}}), "layout '2'; this program reads 1"),
    "unknown group format": (
        raw({"__metadata__": {**OURS, "a": "Q3_X"}, "a": entry(0, 8, [1, 8], "U8")}, bytes(8)),
        "format 'Q3_X', which is unknown",
    ),
    "a format of files of another kind": (
        raw({"__metadata__": {**OURS, "a": "Q4_K"}, "a": entry(0, 144, [1, 144], "U8")}, bytes(144)),
        "format 'Q4_K', which is unknown",
    ),
    "half a group": (
        raw({"__metadata__": {**OURS, "a": "QINT4_G128"}, "a": entry(0, 102, [1, 102], "U8")}, bytes(102)),
        r"a is U8 \[1, 102\], but QINT4_G128 needs U8 rows of a multiple of 68 bytes",
    ),
    "groups without columns": (
        raw({"__metadata__": {**OURS, "a": "Q8_0"}, "a": entry(0, 0, [3, 0], "U8")}), "a is U8 .*3, 0.* Q8_0 needs"
    ),
    "groups that are numbers": (
        raw({"__metadata__": {**OURS, "a": "QINT8_G64"}, "a": entry(0, 264, [1, 66], "F32")}, bytes(264)),
        "a is F32 .*, but QINT8_G64 needs U8",
    ),
    "groups of three axes": (
        raw({"__metadata__": {**OURS, "a": "QINT8_G64"}, "a": entry(0, 132, [2, 1, 66], "U8")}, bytes(132)),
        "a is U8 .*2, 1, 66.* needs U8 rows",
    ),
    "not UTF-8": (raw(b'{"\xff":1}'), "does not hold sound JSON"),
    "not JSON": (raw(b"{nope}"), "does not hold sound JSON"),
    "NaN": (raw(b'{"a":NaN}'), "NaN, which is no number"),
    "number of 5,000 digits": (raw(b'{"a":' + b"9" * 5000 + b"}"), "does not hold sound JSON"),
    "nested 100,000 deep": (raw(b'{"a":' + b"[" * 100_000), "does not hold sound JSON"),
    "many lists": (raw(b'{"a":[' + b"[]," * 650_000 + b"[]]}"), "and nothing else"),
    "many objects": (raw(b'{"a":[' + b"{}," * 650_000 + b"{}]}"), "and nothing else"),
    "no header": (b"\x02\0\0\0\0\0\0\0", "is not a safetensors file"),
    "GGUF": (b"GGUF\x03\0\0\0" + bytes(40), "is a GGUF file, not a safetensors file"),
    "pickle": (b"\x80\x04\x95" + bytes(40), "this format can run code"),
    "empty": (b"", "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence_in_time_and_memory(tmp_path: Path, case: str) -> None:
    content, message = HOSTILE[case]
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)

    started = time.process_time()
    with pytest.raises(ModelFileError, match=message):
        SafetensorsFile(path)
    assert time.process_time() - started < MAX_SECONDS
    if len(content) > 1 << 20:
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError):
                SafetensorsFile(path)
            assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
        finally:
            tracemalloc.stop()


def test_cuts_and_random_changes_only_ever_give_sentences(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "m.safetensors"
    safetensors.torch.save_file({"a.b": torch.ones(2, 3), "c": torch.ones(4).half()}, path)
    sound = path.read_bytes()
    mutants = [sound[:size] for size in range(len(sound))]
    for _ in range(1000):
        mutant = bytearray(sound)
        for _ in range(rng.choice((1, 1, 3))):
            mutant[rng.randrange(len(sound) - 32)] = rng.randrange(256)
        mutants.append(bytes(mutant))
    refused = 0
    for mutant in mutants:
        path.write_bytes(mutant)
        try:
            with SafetensorsFile(path) as file:
                for name in file.tensors:
                    file.tensor(name)
        except ModelFileError:
            refused += 1

    assert refused > 800


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        SafetensorsFile(tmp_path / "m.safetensors")


def test_a_tensor_outlives_its_file(tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": torch.ones(4)}, tmp_path / "m.safetensors")
    file = SafetensorsFile(tmp_path / "m.safetensors")
    tensor = file.tensor("a")

    file.close()
    file.close()

    assert np.all(tensor.data.view(np.float32) == 1)
