"""`quantize_folder`: a safetensors model as a new folder with its matrices in 4 or 8 bits, of the same names.

Matrices of the layers get the type that is asked for; the embedding and the head never fewer than 8 bits, because every
token meets them and their errors are not averaged over layers. Norms, biases and the routers of mixtures stay as they are. The tokenizer and
the settings are copied; config.json says what was done, so that other programs refuse the folder by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from inglenook.engine.backend import Progress
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.library.model_import import model_files
from inglenook.engine.private_files import make_folder, open_file
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.loader import MAX_CONFIG_BYTES, ModelFile
from inglenook.engine.weights.model_folder import inside
from inglenook.engine.weights.quantize_groups import (
    GROUP_SIZES,
    WEIGHT_TYPES,
    Quanto,
    WeightType,
    format_of,
    widest_group,
)
from inglenook.engine.weights.safetensors_folder import INDEX_NAME
from inglenook.engine.weights.safetensors_writer import Bytes, OutputTensor, write_folder
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import WeightTensor

METHOD = "inglenook"  # quant_method of config.json

_PLAIN = ("F32", "F16", "BF16")
_LAYER_MATRICES = frozenset(("q", "k", "v", "o", "gate", "up", "down"))
_ENDS = frozenset(("embedding", "head"))
_PIECE_ELEMENTS = 1 << 23


@dataclass(frozen=True, slots=True)
class Quantization:
    """What matrices become; groups of `group` columns, or of fewer where that does not divide a matrix's width."""

    weights: WeightType
    group: int = 128


@dataclass(frozen=True, slots=True)
class QuantizationPlan:
    """What a model's folder will hold.

    formats: how many matrices get which format.      kept: names of matrices whose width no group divides.
    """

    tensors: tuple[OutputTensor, ...]
    formats: dict[str, int]
    kept: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.size_bytes for tensor in self.tensors)


def plan_quantization(name: str, source: ModelFile, how: Quantization) -> QuantizationPlan:
    """Choose the format of every tensor; `name` is what people call the model.

    Raises:
        UnsupportedModelError: the model is a GGUF or quantised already, or no group divides any of its matrices.
    """
    if source.kind != "safetensors":
        raise UnsupportedModelError(
            f"{name} is a GGUF file; a folder with safetensors is needed. GGUF files come in all sizes: fetch "
            "a smaller one of this model."
        )
    tensors = []
    kept: dict[str, int] = {}
    formats: Counter[str] = Counter()
    for stored, canonical in source.file_tensors().items():
        tensor = source.file_tensor(stored)
        form = tensor.format.name
        if form not in _PLAIN:
            raise UnsupportedModelError(
                f"{name} is quantised already: {stored} is {form}. Quantising twice adds up the errors; give "
                "the original."
            )
        weights = _weights_of(canonical, tensor.shape, how.weights)
        if weights is not None:
            group = widest_group(tensor.shape[1], how.group)
            if group:
                form = format_of(weights, group)
            else:
                kept[stored] = tensor.shape[1]
            formats[form] += 1
        tensors.append(OutputTensor(stored, form, tensor.shape))
    if len(kept) == sum(formats.values()):
        stored, columns = next(iter(kept.items()))
        raise UnsupportedModelError(
            f"No matrix of {name} can be quantised: groups need rows of a multiple of 32 elements, and {stored} "
            f"has {columns:,}."
        )
    return QuantizationPlan(tuple(tensors), dict(formats), tuple(kept))


def quantize_folder(
    source: ModelFile,
    target: Path,
    how: Quantization,
    plan: QuantizationPlan,
    quanto: Quanto,
    progress: Progress,
) -> None:
    """Write the quantised model to the folder `target`, which must not exist.

    progress: called with the bytes of the source that are done and all of them; cancels by raising.

    Raises:
        ModelFileError: a weight is infinite or none; a file of the folder cannot be read.
        OSError: the disk is full.
    """
    make_folder(target)
    total, done = source.size_bytes, 0

    def pieces(output: OutputTensor) -> Iterator[Bytes]:
        nonlocal done
        tensor = source.file_tensor(output.name)
        for piece in _row_pieces(tensor):
            if output.format == tensor.format.name:
                yield piece.data
            else:
                yield _quantized(quanto, piece, output)
            done += piece.size_bytes
            progress(min(done, total), total)

    progress(0, total)
    write_folder(target, plan.tensors, pieces)
    for file in model_files(source.path):
        name = file.relative_to(source.path).as_posix()
        if not name.lower().endswith(".safetensors") and name not in (INDEX_NAME, "config.json"):
            make_folder((target / name).parent)
            with open(file, "rb") as reader, open_file(target / name, "xb") as writer:
                writer.write(reader.read())
    config = read_json_file(inside(source.path, "config.json"), MAX_CONFIG_BYTES)
    config["quantization_config"] = {"quant_method": METHOD, "weights": how.weights, "group_size": how.group}
    with open_file(target / "config.json", "xb") as writer:
        writer.write(json.dumps(config, indent=2, ensure_ascii=False).encode())


def _weights_of(canonical: tuple[str, ...], shape: tuple[int, ...], asked: WeightType) -> WeightType | None:
    """The type that a tensor of the file gets; None where it stays."""
    if len(shape) != 2:
        return None
    if not _ENDS.isdisjoint(canonical):
        return "qint8" if asked == "qint4" else asked
    parts = {name.split(".")[2] for name in canonical if name.startswith("layers.")}
    return None if parts.isdisjoint(_LAYER_MATRICES) else asked


def _row_pieces(tensor: WeightTensor) -> Iterator[WeightTensor]:
    """A tensor in runs of rows, so that a large embedding is never in float32 whole."""
    if len(tensor.shape) != 2:
        yield tensor
        return
    step = max(1, _PIECE_ELEMENTS // tensor.shape[1])
    for start in range(0, tensor.shape[0], step):
        yield tensor.select_rows(slice(start, start + step))


def _quantized(quanto: Quanto, piece: WeightTensor, output: OutputTensor) -> Bytes:
    weights, group = _PARTS[output.format]
    return quanto.quantize(dequantize(piece, torch.float32), weights, group, output.name)


_PARTS: dict[str, tuple[WeightType, int]] = {
    format_of(weights, group): (weights, group) for weights in WEIGHT_TYPES for group in GROUP_SIZES
}
