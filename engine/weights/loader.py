"""`open_model`: a GGUF file or a safetensors folder as one `ModelFile`: spec, metadata and canonical tensors.

Opening reads headers only; tensors stay on disk, mapped, until someone reads them. Everything that can be wrong with
a file's structure is found here: each tensor of the spec is there and has the spec's shape, and none is left over.
The decoder knows one rotary layout: rows of queries and keys that llama's GGUF files keep in pairs are put back into
halves as they are read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.models.registry import check_vocabulary, spec_from_config, spec_from_gguf
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.weights.gguf import GGUFFile
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.names import gguf_name, hf_name, tensor_shapes
from inglenook.engine.weights.safetensors import SafetensorsFile
from inglenook.engine.weights.safetensors_folder import SafetensorsFolder, inside
from inglenook.kernels.weight_tensor import WeightTensor

MAX_CONFIG_BYTES = 1 << 20

_ROPE_FREQUENCIES = "rope_freqs.weight"
# old HF checkpoints saved this buffer, which rope_theta says anyway
_DERIVED = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
# architectures whose GGUF files pair the rows (2i, 2i + 1) of a head
_PAIRED_IN_GGUF = ("llama",)
_SAMPLE_PAGES = 64
_PAGE_BYTES = 4096


class _Container(Protocol):
    def tensor(self, name: str) -> WeightTensor: ...

    def close(self) -> None: ...


class ModelFile:
    """A model on disk. Implements `WeightSource` under the canonical names of `models/spec.py`.

    kind: "gguf" or "safetensors".      name: of the file or folder, for people.
    path: the GGUF file or the folder; a folder's tokenizer files lie beside the weights.
    metadata: the keys of the GGUF header, or those of config.json.
    """

    def __init__(
        self,
        path: Path,
        kind: Literal["gguf", "safetensors"],
        metadata: Metadata,
        spec: ModelSpec,
        container: _Container,
        file_name: Callable[[str], str],
        parts: list[GGUFFile] | list[SafetensorsFile],
    ) -> None:
        self.path = path
        self.name = path.name
        self.kind = kind
        self.metadata = metadata
        self.spec = spec
        self._container = container
        self._file_name = file_name
        self._parts = parts
        self._shapes = tensor_shapes(spec)
        self._fingerprint = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names, in the order in which a step uses them."""
        return tuple(self._shapes)

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors in their file formats."""
        return sum(info.size_bytes for part in self._parts for info in part.tensors.values())

    @property
    def fingerprint(self) -> str:
        """A hash of the content: 64 hexadecimal digits, the same wherever the model lies.

        SHA-256 over each file's size, its whole header, and 64 pages of 4 KB spread evenly over the rest. Two
        models, quantisations or trainings differ in it; a change that misses every page does not show, so this
        names cached work and is no proof against tampering.
        """
        if not self._fingerprint:
            digest = hashlib.sha256()
            for part in self._parts:
                digest.update(part.size_bytes.to_bytes(8, "little"))
                digest.update(part.bytes_at(0, part.header_bytes))
                step = max((part.size_bytes - part.header_bytes) // _SAMPLE_PAGES, _PAGE_BYTES)
                for start in range(part.header_bytes, part.size_bytes, step):
                    digest.update(part.bytes_at(start, _PAGE_BYTES))
            if self.kind == "safetensors":
                digest.update(repr(self.spec).encode())
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of a canonical name, in its file's format; a view of the map unless its rows were reordered.

        Raises:
            ModelFileError: there is none of that name.
        """
        if name not in self._shapes:
            raise ModelFileError(f"{self.name} has no tensor {name}.")
        tensor = self._container.tensor(self._file_name(name))
        if self.kind == "gguf" and self.spec.architecture in _PAIRED_IN_GGUF and name.endswith((".q", ".k")):
            heads = self.spec.num_heads if name.endswith(".q") else self.spec.num_kv_heads
            return tensor.select_rows(rows_in_halves(heads, self.spec.head_size, self.spec.rope.size))
        return tensor

    def close(self) -> None:
        """Unmap the files; tensors handed out must no longer be used. Closing twice is fine."""
        self._container.close()

    def __enter__(self) -> ModelFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_model(path: Path) -> ModelFile:
    """Open the GGUF file or safetensors folder at `path`.

    Raises:
        ModelNotFoundError: there is nothing at that path.
        UnsupportedModelError: a sound model that we do not run; the message names what is not supported.
        ModelFileError: the file is damaged, incomplete, contradicts itself or is no model.
    """
    if os.path.isdir(path):
        return _open_folder(path)
    return _open_gguf(path)


def rows_in_halves(num_heads: int, head_size: int, rope_size: int) -> npt.NDArray[np.int64]:
    """The row order that turns rotary pairs (2i, 2i + 1) of each head into pairs (i, i + rope_size / 2)."""
    head = np.arange(head_size)
    head[:rope_size] = np.arange(rope_size).reshape(-1, 2).T.reshape(-1)
    return (np.arange(num_heads)[:, None] * head_size + head).reshape(-1)


def _open_gguf(path: Path) -> ModelFile:
    file = GGUFFile(path)
    try:
        shapes = {name: info.shape for name, info in file.tensors.items()}
        spec = spec_from_gguf(file.metadata, shapes, _frequency_factors(file))
        _check_tensors(file.name, spec, gguf_name, shapes, ignored={_ROPE_FREQUENCIES})
        check_vocabulary(file.metadata, spec.vocab_size)
    except BaseException:
        file.close()
        raise
    return ModelFile(path, "gguf", file.metadata, spec, file, gguf_name, [file])


def _open_folder(folder: Path) -> ModelFile:
    weights = SafetensorsFolder(folder)
    try:
        try:
            config = Metadata(read_json_file(inside(folder, "config.json"), MAX_CONFIG_BYTES), "config.json")
        except ModelNotFoundError as error:
            raise ModelFileError(f"The folder {folder.name} has no config.json.") from error
        shapes = {name: info.shape for name, info in weights.tensors.items() if not _DERIVED.fullmatch(name)}
        spec = spec_from_config(config, shapes.keys())
        # a tied head may be stored a second time
        ignored = {"lm_head.weight"} if spec.tied_head else set[str]()
        _check_tensors(folder.name, spec, hf_name, shapes, ignored=ignored)
        for name in tensor_shapes(spec):
            # refuses element types that we cannot run
            weights.tensor(hf_name(name))
    except BaseException:
        weights.close()
        raise
    return ModelFile(folder, "safetensors", config, spec, weights, hf_name, weights.files)


def _frequency_factors(file: GGUFFile) -> tuple[float, ...]:
    info = file.tensors.get(_ROPE_FREQUENCIES)
    if info is None:
        return ()
    if info.format.name != "F32" or len(info.shape) != 1 or info.size_bytes > _PAGE_BYTES:
        raise ModelFileError(
            f"{file.name}: the tensor {_ROPE_FREQUENCIES} is {info.format.name} {info.shape}; "
            f"it must be a list of at most {_PAGE_BYTES // 4:,} F32 numbers."
        )
    values = file.tensor(_ROPE_FREQUENCIES).data.copy().view("<f4")
    return tuple(float(value) for value in values.reshape(-1))


def _check_tensors(
    source: str,
    spec: ModelSpec,
    file_name: Callable[[str], str],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    ignored: Collection[str],
) -> None:
    """Compare the tensors of a file with those of its spec."""
    wanted = {file_name(name): shape for name, shape in tensor_shapes(spec).items()}
    for name, shape in wanted.items():
        if name not in shapes:
            raise ModelFileError(f"{source}: the tensor {name} is missing.")
        if shapes[name] != shape:
            raise ModelFileError(
                f"{source}: the tensor {name} has the shape {shapes[name]}; the model's settings need {shape}."
            )
    for name in shapes:
        if name not in wanted and name not in ignored:
            raise UnsupportedModelError(
                f"{source}: a {spec.architecture} model with a tensor {name} is not supported."
            )
