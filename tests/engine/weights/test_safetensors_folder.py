"""A sharded folder: its index names files inside it, or is refused without opening anything else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from inglenook.engine.errors import ModelFileError
from inglenook.engine.weights.safetensors_folder import INDEX_NAME, SafetensorsFolder
from inglenook.kernels.dequantize import dequantize


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two shards: x and y in s1, z in s2."""
    made = tmp_path / "model"
    made.mkdir()
    safetensors.torch.save_file({"x": torch.ones(4), "y": torch.zeros(2)}, made / "s1.safetensors")
    safetensors.torch.save_file({"z": torch.full((3,), 2.0)}, made / "s2.safetensors")
    index(made, {"x": "s1.safetensors", "y": "s1.safetensors", "z": "s2.safetensors"})
    return made


def index(folder: Path, weight_map: Any) -> None:
    (folder / INDEX_NAME).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_tensors_are_found_in_their_shards(folder: Path) -> None:
    model = SafetensorsFolder(folder)

    assert set(model.tensors) == {"x", "y", "z"}
    assert torch.equal(dequantize(model.tensor("z")), torch.full((3,), 2.0))
    with pytest.raises(ModelFileError, match="has no tensor w"):
        model.tensor("w")
    model.close()
    model.close()


@pytest.mark.parametrize(
    "shard",
    ["../s.safetensors", "/etc/passwd", "/etc/x.safetensors", "a/../../s.safetensors", "..\\s.safetensors", "C:\\s.safetensors",
     "s\0.safetensors", ".safetensors", ".hidden.safetensors", "s1.bin", "", " s1.safetensors", "s1.safetensors\n",
     "n" * 300 + ".safetensors", 7, None, ["s1.safetensors"], {"a": 1}],
)  # fmt: skip
def test_a_shard_name_that_is_no_plain_file_name_is_refused(folder: Path, shard: Any) -> None:
    (folder.parent / "s.safetensors").write_bytes((folder / "s1.safetensors").read_bytes())
    index(folder, {"x": shard})

    with pytest.raises(ModelFileError, match="only the plain name of a "):
        SafetensorsFolder(folder)


def test_links_out_of_the_folder_circles_and_pipes_are_refused(folder: Path) -> None:
    shard = folder / "s2.safetensors"
    shard.rename(folder.parent / "outside.safetensors")
    shard.symlink_to(folder.parent / "outside.safetensors")
    with pytest.raises(ModelFileError, match=r"s2.safetensors is a link to a place outside"):
        SafetensorsFolder(folder)
    shard.unlink()
    shard.symlink_to("s2.safetensors")
    with pytest.raises(ModelFileError, match="cannot be opened"):
        SafetensorsFolder(folder)
    shard.unlink()
    os.mkfifo(shard)
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        SafetensorsFolder(folder)
    shard.unlink()
    with pytest.raises(ModelFileError, match=r"incomplete: s2.safetensors is missing"):
        SafetensorsFolder(folder)
    shard.symlink_to("s1.safetensors")
    with pytest.raises(ModelFileError, match=r"s2.safetensors holds the tensor x"):
        SafetensorsFolder(folder)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"x": "s1.safetensors", "z": "s2.safetensors"}, "s1.safetensors holds the tensor y"),
        ({"x": "s1.safetensors", "y": "s2.safetensors"}, "s1.safetensors holds the tensor y"),
        (
            {"x": "s1.safetensors", "y": "s1.safetensors", "z": "s2.safetensors", "w": "s2.safetensors"},
            "s2.safetensors lacks the tensor w",
        ),
        ({}, "has no weight_map"),
        ([], "has no weight_map"),
        ({"a/b": "s1.safetensors"}, "tensor name 'a/b' is not allowed"),
        ({f"t{i}": "s1.safetensors" for i in range(20_001)}, "has 20,001 tensors"),
        ({f"t{i}": f"s{i}.safetensors" for i in range(1_001)}, "names 1,001 files; at most 1,000"),
    ],
)
def test_an_index_that_disagrees_with_the_shards_is_refused(
    folder: Path, weight_map: Any, message: str
) -> None:
    index(folder, weight_map)

    with pytest.raises(ModelFileError, match=message):
        SafetensorsFolder(folder)


def test_an_index_that_is_no_sound_json_is_refused(folder: Path) -> None:
    for text, message in (
        ("[]", "holds a JSON list; it must be an object"),
        ('{"weight_map": {"x": "a", "x": "b"}}', "'x' stands there twice"),
        (" " * (5 << 20), "has 5.2 MB; at most 2.1 MB are allowed"),
    ):
        (folder / INDEX_NAME).write_text(text)
        with pytest.raises(ModelFileError, match=message):
            SafetensorsFolder(folder)
