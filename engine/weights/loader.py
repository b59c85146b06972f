"""`open_model`: a GGUF file or a safetensors folder as one `ModelFile`: spec, metadata and canonical tensors.

Opening reads headers only; tensors stay on disk, mapped, until someone reads them. Everything that can be wrong with
a file's structure is found here: each tensor of the spec is there and has the spec's shape, and none is left over.
The decoder knows one layout: rows of queries and keys that some GGUF files keep in rotary pairs are put back into
halves as they are read, matrices that files keep as one are handed out apart, and the norms of gemma's checkpoints,
which are meant plus one, have it added.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.models.config_spec import spec_from_config
from inglenook.engine.models.gguf_rope import RopeFactors
from inglenook.engine.models.gguf_spec import check_vocabulary, spec_from_gguf
from inglenook.engine.models.registry import ARCHITECTURES
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.models.text_part import name_in_text_part, text_part
from inglenook.engine.weights.gguf import GGUFFile
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.model_folder import inside
from inglenook.engine.weights.names import Place, gguf_places, hf_places, tensor_shapes
from inglenook.engine.weights.safetensors import SafetensorsFile
from inglenook.engine.weights.safetensors_folder import SafetensorsFolder
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

MAX_CONFIG_BYTES = 1 << 20

_ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")
# old HF checkpoints saved this buffer, which rope_theta says anyway
_DERIVED = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
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
        places: Mapping[str, Place],
        parts: list[GGUFFile] | list[SafetensorsFile],
    ) -> None:
        self.path = path
        self.name = path.name
        self.kind = kind
        self.metadata = metadata
        self.spec = spec
        self._container = container
        self._places = places
        self._architecture = ARCHITECTURES[spec.architecture]
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
        place = self._places[name]
        tensor = self._container.tensor(place.name)
        if place.shape != self._shapes[name]:
            tensor = _rows(tensor, place.first_row, self._shapes[name])
        if self.kind == "gguf":
            return self._in_halves(name, tensor) if self._architecture.paired_in_gguf else tensor
        if self._architecture.norms_from_zero and name.endswith("_norm"):
            return _plus_one(tensor)
        return tensor

    def file_tensors(self) -> dict[str, tuple[str, ...]]:
        """The names that the file itself gives its tensors, each with the canonical ones that lie in it."""
        found: dict[str, tuple[str, ...]] = {}
        for canonical, place in self._places.items():
            found[place.name] = (*found.get(place.name, ()), canonical)
        return found

    def file_tensor(self, name: str) -> WeightTensor:
        """A tensor of the file by the file's own name, exactly as it lies there."""
        return self._container.tensor(name)

    def _in_halves(self, name: str, tensor: WeightTensor) -> WeightTensor:
        """Queries and keys, their biases too, with the rows of each rotary pair apart."""
        part = name.rpartition(".")[2].removesuffix("_bias")
        if part not in ("q", "k"):
            return tensor
        heads = self.spec.num_heads if part == "q" else self.spec.num_kv_heads
        rows = rows_in_halves(heads, self.spec.head_size, self.spec.rope.size)
        if len(tensor.shape) == 2:
            return tensor.select_rows(rows)
        numbers = tensor.data.reshape(tensor.shape[0], -1)[rows]
        return WeightTensor(tensor.format, tensor.shape, numbers.reshape(1, -1))

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
        spec = spec_from_gguf(file.metadata, shapes, _rope_factors(file))
        places = gguf_places(spec)
        _check_tensors(file.name, spec, places, shapes, ignored=_ROPE_FACTORS)
        check_vocabulary(file.metadata, spec.vocab_size)
    except BaseException:
        file.close()
        raise
    return ModelFile(path, "gguf", file.metadata, spec, file, places, [file])


def _open_folder(folder: Path) -> ModelFile:
    weights = SafetensorsFolder(folder)
    try:
        try:
            config = Metadata(read_json_file(inside(folder, "config.json"), MAX_CONFIG_BYTES), "config.json")
        except ModelNotFoundError as error:
            raise ModelFileError(f"The folder {folder.name} has no config.json.") from error
        part = text_part(config)
        names = {
            own: name
            for name in weights.tensors
            if (own := name if part is config else name_in_text_part(name)) and not _DERIVED.fullmatch(own)
        }
        config = part
        shapes = {own: weights.tensors[name].shape for own, name in names.items()}
        spec = spec_from_config(config, shapes.keys())
        # a tied head may be stored a second time
        ignored = {"lm_head.weight"} if spec.tied_head else set[str]()
        places = hf_places(spec)
        _check_tensors(folder.name, spec, places, shapes, ignored=ignored)
        places = {canonical: replace(place, name=names[place.name]) for canonical, place in places.items()}
        for name in {place.name for place in places.values()}:
            # refuses element types that we cannot run
            weights.tensor(name)
    except BaseException:
        weights.close()
        raise
    return ModelFile(folder, "safetensors", config, spec, weights, places, weights.files)


def _rope_factors(file: GGUFFile) -> RopeFactors:
    return RopeFactors(*(_numbers(file, name) for name in _ROPE_FACTORS))


def _numbers(file: GGUFFile, name: str) -> tuple[float, ...]:
    """The numbers of a short F32 list; none if the tensor is absent."""
    info = file.tensors.get(name)
    if info is None:
        return ()
    if info.format.name != "F32" or len(info.shape) != 1 or info.size_bytes > _PAGE_BYTES:
        raise ModelFileError(
            f"{file.name}: the tensor {name} is {info.format.name} {info.shape}; "
            f"it must be a list of at most {_PAGE_BYTES // 4:,} F32 numbers."
        )
    values = file.tensor(name).data.copy().view("<f4")
    return tuple(float(value) for value in values.reshape(-1))


def _rows(tensor: WeightTensor, first: int, shape: tuple[int, ...]) -> WeightTensor:
    """Rows of a tensor, counted over all axes but the last, as a tensor of `shape`; a view."""
    return WeightTensor(tensor.format, shape, tensor.data[first : first + shape[0]])


def _plus_one(tensor: WeightTensor) -> WeightTensor:
    # Opening a model imports no torch; only a back end reads tensors.
    from inglenook.kernels.dequantize import dequantize

    values = (dequantize(tensor) + 1).numpy()
    return WeightTensor(FORMATS["F32"], tensor.shape, values.view(np.uint8).reshape(1, -1))


def _check_tensors(
    source: str,
    spec: ModelSpec,
    places: Mapping[str, Place],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    ignored: Collection[str],
) -> None:
    """Compare the tensors of a file with those of its spec."""
    wanted = {place.name: place.shape for place in places.values()}
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
