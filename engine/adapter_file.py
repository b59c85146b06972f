"""`open_adapter`: a LoRA adapter in PEFT's layout, adapter_config.json and adapter_model.safetensors, for one model.

Tensors are found by the names of the model's Hugging Face checkpoint, also for a GGUF of the same model. What changes
the arithmetic and is not run here is refused by name, as are matrices that the model does not have or that are of
another size.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.memory import check_fit, memory_state
from inglenook.engine.models.lora import LoraAdapter, LoraPart
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.metadata import Metadata, describe
from inglenook.engine.weights.model_folder import holds, inside
from inglenook.engine.weights.names import Place, hf_places
from inglenook.engine.weights.safetensors import SafetensorsFile
from inglenook.kernels.dequantize import dequantize

CONFIG_NAME, WEIGHTS_NAME = "adapter_config.json", "adapter_model.safetensors"
MAX_CONFIG_BYTES = 1 << 20
MAX_RANK = 4096

_TENSOR = re.compile(r"base_model\.model\.(?P<stem>.+)\.lora_(?P<side>[AB])(?:\.default)?\.weight")
# settings that change the arithmetic, with the value that does not
_PLAIN = {
    "peft_type": "LORA", "bias": "none", "use_dora": False, "fan_in_fan_out": False, "lora_bias": False,
    "use_qalora": False,
}  # fmt: skip
_EMPTY = (
    "modules_to_save",
    "alpha_pattern",
    "target_parameters",
    "layer_replication",
    "trainable_token_indices",
)


def open_adapter(path: Path, spec: ModelSpec) -> LoraAdapter:
    """Read the adapter in the folder `path` (or in the folder of the file `path`) for a model.

    Raises:
        ModelNotFoundError: there is nothing at `path`.
        UnsupportedModelError: a sound adapter that we do not run; the message names what is not supported.
        ModelFileError: it is damaged, incomplete or for another model; the message has both numbers.
    """
    folder = path.parent if path.name in (CONFIG_NAME, WEIGHTS_NAME) else path
    if not path.exists():
        raise ModelNotFoundError(f"There is no adapter {path}.")
    if not folder.is_dir():
        raise ModelFileError(
            f"{path.name} is no adapter: it must be a folder with {CONFIG_NAME} and {WEIGHTS_NAME}, as PEFT saves it."
        )
    for name in (CONFIG_NAME, WEIGHTS_NAME):
        if not holds(folder, name):
            raise _incomplete(folder, name)
    config = Metadata(
        read_json_file(inside(folder, CONFIG_NAME), MAX_CONFIG_BYTES), f"{folder.name}/{CONFIG_NAME}"
    )
    _refuse(config)
    with SafetensorsFile(inside(folder, WEIGHTS_NAME)) as file:
        check_fit(folder.name, 2 * file.size_bytes, memory_state().free_bytes)
        digest = hashlib.sha256((folder / CONFIG_NAME).read_bytes())
        for start in range(0, file.size_bytes, 1 << 20):
            digest.update(file.bytes_at(start, 1 << 20))
        parts = _Reader(folder.name, file, config, spec).parts()
    return LoraAdapter(folder.name, digest.hexdigest(), parts)


class _Reader:
    """The tensors of one adapter while they are read."""

    def __init__(self, name: str, file: SafetensorsFile, config: Metadata, spec: ModelSpec) -> None:
        self._name = name
        self._file = file
        self._config = config
        self._spec = spec
        self._places: dict[str, list[tuple[str, Place, int]]] = defaultdict(list)
        for canonical, place in hf_places(spec).items():
            part = canonical.split(".", 2)[2].partition(".")[0] if canonical.startswith("layers.") else ""
            if part in ("q", "k", "v", "o", "gate", "up", "down", "router"):
                self._places[place.name.removesuffix(".weight")].append((canonical, place, _rows(spec, part)))

    def parts(self) -> dict[str, tuple[LoraPart, ...]]:
        """All pairs by the decoder's products."""
        found: dict[str, list[LoraPart]] = defaultdict(list)
        for stem in self._stems():
            down, up = self._pair(stem)
            for canonical, place, count in self._places[stem]:
                product, first = _product(canonical, self._spec)
                rows = up[place.first_row : place.first_row + count]
                found[product].append(LoraPart(first, down, rows.contiguous()))
        return {product: tuple(parts) for product, parts in found.items()}

    def _stems(self) -> Iterator[str]:
        sides: dict[str, set[str]] = defaultdict(set)
        for name in self._file.tensors:
            match = _TENSOR.fullmatch(name)
            if match is None:
                raise UnsupportedModelError(
                    f"{self._name}: the tensor {name} is not supported; an adapter's are lora_A and lora_B of matrices."
                )
            sides[match["stem"]].add(match["side"])
        if not sides:
            raise ModelFileError(f"{self._name} has no tensors.")
        for stem, found in sides.items():
            if stem not in self._places:
                raise ModelFileError(
                    f"{self._name} changes {stem}, which this {self._spec.architecture} model of "
                    f"{self._spec.num_layers} layers does not have, or which cannot be adapted here. "
                    "Use an adapter that was made for this very model."
                )
            if len(found) < 2:
                raise ModelFileError(f"{self._name} has lora_{found.pop()} of {stem} without its other half.")
            yield stem

    def _pair(self, stem: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Float32 [r, K] and [N, r], the scale in the second."""
        down, up = (self._matrix(stem, side) for side in "AB")
        rows, columns = self._places[stem][0][1].shape
        if (up.shape[0], down.shape[1]) != (rows, columns):
            raise ModelFileError(
                f"{self._name}: {stem} takes {down.shape[1]:,} numbers and gives {up.shape[0]:,}; this model's takes "
                f"{columns:,} and gives {rows:,}. Use an adapter that was made for this very model."
            )
        rank = down.shape[0]
        asked = self._config.integer("r", 1, MAX_RANK)
        if up.shape[1] != rank or (rank != asked and not self._config.get("rank_pattern")):
            raise ModelFileError(
                f"{self._name}: {stem} has the ranks {rank:,} and {up.shape[1]:,}; {CONFIG_NAME} says {asked:,}."
            )
        root = self._config.flag("use_rslora", default=False)
        alpha = self._config.number("lora_alpha", 1e-6, 1e6)
        return down, up * (alpha / (math.sqrt(rank) if root else rank))

    def _matrix(self, stem: str, side: str) -> torch.Tensor:
        names = (f"base_model.model.{stem}.lora_{side}{middle}.weight" for middle in ("", ".default"))
        name = next(name for name in names if name in self._file.tensors)
        shape = self._file.tensors[name].shape
        if len(shape) != 2:
            raise ModelFileError(f"{self._name}: {name} has the shape {shape}; it must have two axes.")
        values = dequantize(self._file.tensor(name), torch.float32)
        if not torch.isfinite(values).all():
            raise ModelFileError(f"{self._name}: {name} holds numbers that are infinite or none.")
        return values


def _rows(spec: ModelSpec, part: str) -> int:
    """How many outputs a product's part has."""
    return {
        "q": spec.q_size, "k": spec.kv_size, "v": spec.kv_size, "o": spec.hidden_size, "down": spec.hidden_size,
        "gate": spec.intermediate_size, "up": spec.intermediate_size,
        "router": spec.experts.count if spec.experts is not None else 0,
    }[part]  # fmt: skip


def _product(canonical: str, spec: ModelSpec) -> tuple[str, int]:
    """The decoder's product of a canonical matrix, and where its outputs begin in it."""
    layers, number, name = canonical.split(".", 2)
    part, _, expert = name.partition(".")
    product, first = {
        "q": ("qkv", 0), "k": ("qkv", spec.q_size), "v": ("qkv", spec.q_size + spec.kv_size),
        "gate": ("gate_up", 0), "up": ("gate_up", spec.intermediate_size),
    }.get(part, (part, 0))  # fmt: skip
    return f"{layers}.{number}.{product}{f'.{expert}' if expert else ''}", first


def _refuse(config: Metadata) -> None:
    """Refuse settings that change the arithmetic in a way that is not run here."""
    for key, plain in _PLAIN.items():
        value = config.get(key)
        if value is not None and value != plain:
            raise UnsupportedModelError(
                f"{config.source}: {key} is {describe(value)}; only {plain!r} is supported."
            )
    for key in _EMPTY:
        if config.get(key):
            raise UnsupportedModelError(
                f"{config.source}: {key} is {describe(config.get(key))}, which is not supported."
            )


def _incomplete(folder: Path, name: str) -> ModelFileError:
    if name == WEIGHTS_NAME and (folder / "adapter_model.bin").exists():
        return UnsupportedModelError(
            f"{folder.name} has its weights in adapter_model.bin, which is unsupported: this format can run code when "
            "it is opened. Use a safetensors version of this adapter."
        )
    return ModelFileError(f"The adapter {folder.name} has no {name}.")
