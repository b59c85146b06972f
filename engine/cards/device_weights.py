"""Weights on their way from a file to the card: packed matrices, float32 vectors, rotary tables."""

from __future__ import annotations

import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.cards.device_decoder import DeviceLayer, DeviceWeights
from inglenook.engine.cards.device_operations import DeviceLinear, KeyRangeTensors, RopeTables
from inglenook.engine.key_range import key_range
from inglenook.engine.models.rope import rope_tables
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.packed_weight import PackedWeight, pack_weight, stack_rows

PART_BYTES = 1 << 25  # of a matrix in its file's format, packed at a time


def load_weights(
    spec: ModelSpec,
    source: WeightSource,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
    *,
    has_narrow_cache: bool = False,
    has_embedding: bool = True,
) -> tuple[DeviceWeights, int]:
    """Read all weights of a model, and the ranges of its keys for an 8-bit cache; returns the bytes they take too.

    Raises:
        ModelFileError: a tensor is missing.
    """
    reader = _Reader(source, device, dtype, progress)
    layers = tuple(
        _layer(spec, reader, f"layers.{i}.", _keys(spec, source, i, device) if has_narrow_cache else None)
        for i in range(spec.num_layers)
    )
    embedding = reader.matrix("embedding") if has_embedding or spec.tied_head else None
    head = embedding if spec.tied_head else reader.matrix("head")
    assert head is not None, "a tied head is the embedding, which was read"
    weights = DeviceWeights(
        embedding,
        layers,
        reader.vector("output_norm"),
        DeviceLinear((head,)),
        _tables(spec.rope, spec, device),
        None if spec.local_rope is None else _tables(spec.local_rope, spec, device),
    )
    return weights, reader.loaded_bytes


class _Reader:
    """Reads tensors one after another and reports progress in bytes of the source."""

    def __init__(
        self, source: WeightSource, device: torch.device, dtype: torch.dtype, progress: Progress
    ) -> None:
        self._source = source
        self._device, self._dtype = device, dtype
        self._progress = progress
        self._done = 0
        self.loaded_bytes = 0

    def matrix(self, name: str) -> PackedWeight:
        """A matrix, packed some rows at a time: packing takes several times what it packs, and may be given up."""
        tensor = self._source.tensor(name)
        rows, planes, out = tensor.shape[0], list[torch.Tensor | None](), None
        step = max(1, PART_BYTES * rows // max(1, tensor.size_bytes))
        for first in range(0, rows, step):
            part = tensor.select_rows(slice(first, first + step))
            packed = pack_weight(part, self._device, self._dtype)
            self._count(part.size_bytes, packed.size_bytes)
            if step >= rows:
                return packed
            if out is None:
                planes = [None if p is None else p.new_empty((rows, *p.shape[1:])) for p in packed.planes]
                assert planes[0] is not None
                out = PackedWeight(packed.format, rows, packed.columns, planes[0], *planes[1:])
            for whole, own in zip(planes, packed.planes, strict=True):
                if whole is not None and own is not None:
                    whole[first : first + packed.rows] = own
        assert out is not None, f"{name} has no rows"
        return out

    def vector(self, *names: str) -> torch.Tensor:
        tensors = [self._source.tensor(name) for name in names]
        out = torch.cat([dequantize(t, torch.float32).flatten() for t in tensors]).to(self._device)
        self._count(sum(t.size_bytes for t in tensors), out.nbytes)
        return out

    def _count(self, read: int, loaded: int) -> None:
        self._done += read
        self.loaded_bytes += loaded
        self._progress(self._done, self._source.size_bytes)


def _keys(spec: ModelSpec, source: WeightSource, layer: int, device: torch.device) -> KeyRangeTensors | None:
    keys = key_range(spec, source, layer)
    if keys is None:
        return None
    return torch.from_numpy(keys.offset).to(device), torch.from_numpy(keys.unit).to(device)


def _layer(spec: ModelSpec, reader: _Reader, prefix: str, keys: KeyRangeTensors | None) -> DeviceLayer:
    def norm(name: str, is_there: bool) -> torch.Tensor | None:
        return reader.vector(prefix + name) if is_there else None

    def linear(*names: str, has_bias: bool) -> DeviceLinear:
        parts = stack_rows([reader.matrix(prefix + name) for name in names])
        bias = reader.vector(*(f"{prefix}{name}_bias" for name in names)) if has_bias else None
        return DeviceLinear(parts, bias)

    return DeviceLayer(
        attention_norm=norm("attention_norm", spec.pre_norms),
        qkv=linear("q", "k", "v", has_bias=spec.qkv_bias),
        q_norm=norm("q_norm", spec.qk_norm != "none"),
        k_norm=norm("k_norm", spec.qk_norm != "none"),
        o=linear("o", has_bias=spec.o_bias),
        attention_post_norm=norm("attention_post_norm", spec.post_norms),
        mlp_norm=norm("mlp_norm", spec.pre_norms),
        gate_up=linear("gate", "up", has_bias=spec.mlp_bias),
        down=linear("down", has_bias=spec.mlp_bias),
        mlp_post_norm=norm("mlp_post_norm", spec.post_norms),
        keys=keys,
    )


def _tables(rope: RopeSpec, spec: ModelSpec, device: torch.device) -> RopeTables:
    cos, sin = rope_tables(rope, spec.context_length)
    return torch.from_numpy(cos).to(device), torch.from_numpy(sin).to(device)
