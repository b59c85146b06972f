"""What is written is what the safetensors package and our own reader read, in one file or in several."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch

from inglenook.engine.weights import safetensors_writer
from inglenook.engine.weights.safetensors_folder import SafetensorsFolder
from inglenook.engine.weights.safetensors_writer import Bytes, OutputTensor, write_folder
from inglenook.kernels.weight_tensor import FORMATS

TENSORS = (
    OutputTensor("a.weight", "QINT4_G128", (6, 256)),
    OutputTensor("b", "BF16", (7,)),
    OutputTensor("c.weight", "F32", (2, 3)),
    OutputTensor("d.weight", "QFLOAT8_G32", (3, 32)),
)


def data(tensor: OutputTensor) -> Bytes:
    rng = np.random.default_rng(len(tensor.name) + tensor.size_bytes)
    row = FORMATS[tensor.format].row_bytes(tensor.shape[-1])
    return rng.integers(0, 256, (tensor.num_rows, row), dtype=np.uint8)


def pieces(tensor: OutputTensor) -> list[Bytes]:
    return [data(tensor)[:1], data(tensor)[1:]]


def check(folder: Path) -> None:
    read = SafetensorsFolder(folder)
    assert set(read.tensors) == {t.name for t in TENSORS}
    for tensor in TENSORS:
        found = read.tensor(tensor.name)
        assert (found.format.name, found.shape) == (tensor.format, tensor.shape)
        np.testing.assert_array_equal(found.data, data(tensor))
    read.close()


def test_one_file_is_read_by_us_and_by_the_safetensors_package(tmp_path: Path) -> None:
    write_folder(tmp_path, TENSORS, pieces)

    check(tmp_path)
    theirs = safetensors.torch.load_file(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(theirs["a.weight"].numpy(), data(TENSORS[0]))
    np.testing.assert_array_equal(theirs["c.weight"].numpy().view(np.uint8), data(TENSORS[2]))
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("limit", "value", "files"), [("MAX_SHARD_TENSORS", 3, 2), ("MAX_SHARD_BYTES", 100, 3)]
)
def test_large_models_are_cut_into_files_with_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, files: int
) -> None:
    monkeypatch.setattr(safetensors_writer, limit, value)

    write_folder(tmp_path, TENSORS, pieces)

    check(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == {t.name for t in TENSORS}
    assert index["metadata"]["total_size"] == sum(t.size_bytes for t in TENSORS)
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) == files


def test_a_model_without_groups_has_no_notes_of_ours(tmp_path: Path) -> None:
    write_folder(tmp_path, TENSORS[1:3], pieces)

    head = (tmp_path / "model.safetensors").read_bytes()
    assert b"__metadata__" not in head
