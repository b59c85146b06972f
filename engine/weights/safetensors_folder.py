"""`SafetensorsFolder`: the tensors of a model folder, from model.safetensors or from the shards its index names.

An index may name only plain files in the same folder: no separators, no links out of it. Index and shards must agree
on every tensor. No file but those that are named here is opened.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.mapped_file import RISKY_SUFFIXES
from inglenook.engine.weights.metadata import describe
from inglenook.engine.weights.model_folder import inside
from inglenook.engine.weights.safetensors import MAX_TENSORS, SafetensorsFile, TensorInfo, check_tensor_name
from inglenook.kernels.weight_tensor import WeightTensor

MAX_INDEX_BYTES = 2 << 20
MAX_SHARDS = 1_000

SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"

_SHARD_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}\.safetensors")


class SafetensorsFolder:
    """All tensors of a model folder, from model.safetensors or from the shards that its index names.

    Raises:
        ModelFileError: neither is there, the index names files outside the folder, or index and shards disagree.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.files: list[SafetensorsFile] = []
        self._home: dict[str, SafetensorsFile] = {}
        try:
            if os.path.lexists(folder / INDEX_NAME):
                self._open_shards(folder)
            elif os.path.lexists(folder / SINGLE_NAME):
                file = self._open(folder, SINGLE_NAME)
                self._home = dict.fromkeys(file.tensors, file)
            else:
                raise _no_weights(folder)
        except BaseException:
            self.close()
            raise

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        """All tensors by name."""
        return {name: file.tensors[name] for name, file in self._home.items()}

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of that name, not copied; raises as `SafetensorsFile.tensor` does."""
        file = self._home.get(name)
        if file is None:
            raise ModelFileError(f"{self.name} has no tensor {name}.")
        return file.tensor(name)

    def close(self) -> None:
        """Unmap all files. Closing twice is fine."""
        for file in self.files:
            file.close()

    def _open_shards(self, folder: Path) -> None:
        index = read_json_file(inside(folder, INDEX_NAME), MAX_INDEX_BYTES)
        weight_map = index.get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ModelFileError(f"{INDEX_NAME} has no weight_map.")
        if len(weight_map) > MAX_TENSORS:
            raise ModelFileError(
                f"{INDEX_NAME} has {len(weight_map):,} tensors; at most {MAX_TENSORS:,} are allowed."
            )
        for name, shard in weight_map.items():
            check_tensor_name(name, INDEX_NAME)
            if not isinstance(shard, str) or not _SHARD_NAME.fullmatch(shard):
                raise ModelFileError(
                    f"{INDEX_NAME}: the tensor {name} is said to be in {describe(shard)}; "
                    "only the plain name of a .safetensors file in the same folder is allowed."
                )
        shards = sorted(set(weight_map.values()))
        if len(shards) > MAX_SHARDS:
            raise ModelFileError(
                f"{INDEX_NAME} names {len(shards):,} files; at most {MAX_SHARDS:,} are allowed."
            )
        for shard in shards:
            file = self._open(folder, shard)
            for name in file.tensors:
                if weight_map.get(name) != shard:
                    raise ModelFileError(
                        f"{shard} holds the tensor {name}, which {INDEX_NAME} does not place there."
                    )
                self._home[name] = file
        missing = weight_map.keys() - self._home.keys()
        if missing:
            raise ModelFileError(
                f"{weight_map[min(missing)]} lacks the tensor {min(missing)}, which {INDEX_NAME} names."
            )

    def _open(self, folder: Path, name: str) -> SafetensorsFile:
        try:
            file = SafetensorsFile(inside(folder, name))
        except ModelNotFoundError as error:
            raise ModelFileError(
                f"The folder {folder.name} is incomplete: {name} is missing. Fetch it again."
            ) from error
        self.files.append(file)
        return file


def _no_weights(folder: Path) -> ModelFileError:
    """The error for a folder without safetensors: says what is there instead."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return ModelFileError(f"The folder {folder.name} cannot be read: {error.strerror}.")
    for name in names:
        if name.lower().endswith(".gguf"):
            return ModelFileError(
                f"The folder {folder.name} is not a model itself. Open the file {name} in it."
            )
    for name in names:
        if Path(name).suffix.lower() in RISKY_SUFFIXES:
            return UnsupportedModelError(
                f"The folder {folder.name} has its weights in {name}, which is unsupported: this format can run "
                "code when it is opened. Use a safetensors or GGUF version of this model."
            )
    return ModelFileError(f"The folder {folder.name or folder} has neither {SINGLE_NAME} nor {INDEX_NAME}.")
