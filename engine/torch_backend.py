"""The two PyTorch back ends on the CPU: "reference" in float32 by the formulas, "torch-cpu" in bfloat16.

Both run the one decoder over weights that are dequantised once, at load: 4 bytes a parameter for the reference, 2
for torch-cpu. torch-cpu keeps the residual stream, norms and rotary arithmetic in float32, multiplies in bfloat16
(PyTorch accumulates in float32), and computes the logits from bfloat16 weights in float32, since rounding them to
bfloat16 would make ties of the best tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.batch import Batch
from inglenook.engine.kv_cache import KVDtype, KVGroup, KVTensors, allocate_kv, kv_groups
from inglenook.engine.models.decoder import Decoder, DecoderWeights, LayerWeights, Linear, MLPWeights
from inglenook.engine.models.spec import Activation, ModelSpec
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.expert_routing import route_to_experts
from inglenook.kernels.gelu_and_mul import gelu_and_mul
from inglenook.kernels.paged_attention import paged_attention, store_kv
from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.silu_and_mul import silu_and_mul
from inglenook.kernels.softcap import softcap

_HEAD_ROWS = 2048  # rows of the head made float32 at a time: 2048 x 4096 x 4 bytes stay near the cache


class TorchOperations:
    """The decoder's operations in PyTorch; `fused` chooses PyTorch's own attention over the formula."""

    rms_norm = staticmethod(rms_norm)
    rotary_embedding = staticmethod(rotary_embedding)
    store_kv = staticmethod(store_kv)
    route = staticmethod(route_to_experts)
    softcap = staticmethod(softcap)

    def __init__(self, *, fused: bool) -> None:
        self._fused = fused

    def embedding(self, table: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        """Look rows up."""
        return table[token_ids].float()

    def linear(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """Multiply in the weight's dtype; bias is added in float32."""
        y = torch.nn.functional.linear(x.to(linear.weight.dtype), linear.weight).float()
        return y if linear.bias is None else y + linear.bias

    def attention(
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        batch: Batch,
        group: int,
        scale: float,
        softcap: float,
    ) -> torch.Tensor:
        """Attend over the cache."""
        return paged_attention(
            q,
            kv.k[index],
            kv.v[index],
            batch.groups[group].block_tables,
            batch.query_starts,
            batch.context_lengths,
            scale=scale,
            window=kv.group.window,
            softcap=softcap,
            fused=self._fused,
        )

    def activate(self, gate_up: torch.Tensor, activation: Activation) -> torch.Tensor:
        """Apply the gate."""
        if activation == "silu":
            return silu_and_mul(gate_up)
        return gelu_and_mul(gate_up, by_tanh=activation == "gelu_tanh")

    def logits(self, x: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Multiply by the head in float32, a part of its rows at a time unless it is float32 already."""
        if head.dtype == torch.float32:
            return torch.nn.functional.linear(x, head)
        out = torch.empty((x.shape[0], head.shape[0]), dtype=torch.float32)
        if x.shape[0]:
            for start in range(0, head.shape[0], _HEAD_ROWS):
                part = head[start : start + _HEAD_ROWS].float()
                torch.matmul(x, part.T, out=out[:, start : start + part.shape[0]])
        return out


class TorchModel:
    """A model on a PyTorch CPU back end."""

    def __init__(self, decoder: Decoder, groups: tuple[KVGroup, ...], weight_bytes: int) -> None:
        self.spec = decoder.spec
        self.kv: tuple[KVTensors, ...] = ()
        self.weight_bytes = weight_bytes
        self._decoder: Decoder | None = decoder
        self._groups = groups

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors, in place of any earlier ones."""
        self.kv = ()
        self.kv = tuple(allocate_kv(g, n) for g, n in zip(self._groups, num_blocks, strict=True))

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run one step; see `BackendModel`."""
        assert self._decoder is not None, "the model is closed"
        return self._decoder.forward(batch, self.kv)

    def close(self) -> None:
        """Drop weights and KV tensors."""
        self._decoder = None
        self.kv = ()


class TorchBackend:
    """PyTorch on the CPU, in one dtype for weights, matrix products and the KV cache.

    `operations` are the decoder's, for those who look into it; by default the fused ones, except on "reference".
    """

    device = "cpu"
    rows_are_exact = False  # PyTorch sums in another order for other shapes

    def __init__(
        self, name: str, reason: str, dtype: KVDtype, operations: TorchOperations | None = None
    ) -> None:
        self.name = name
        self.reason = reason
        self.kv_dtype: KVDtype = dtype
        self._torch_dtype: torch.dtype = getattr(torch, dtype)
        self._operations = operations or TorchOperations(fused=name != "reference")

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups of a model here."""
        return kv_groups(spec, self.kv_dtype)

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """Every parameter in the compute dtype, whatever the file's format."""
        return spec.num_parameters * self._torch_dtype.itemsize

    def step_tokens(self, spec: ModelSpec) -> int:
        """A power of two from 16 to 512 that falls with the model's size."""
        tokens = 512
        while tokens > 16 and tokens * spec.num_parameters > 4e10:
            tokens //= 2
        return tokens

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> TorchModel:
        """Dequantise all weights; see `Backend`."""
        reader = _Reader(source, self._torch_dtype, progress)
        layers = tuple(_load_layer(spec, reader, f"layers.{i}.") for i in range(spec.num_layers))
        embedding = reader.matrix("embedding")
        head = embedding if spec.tied_head else reader.matrix("head")
        weights = DecoderWeights(embedding, layers, reader.vector("output_norm"), head)
        decoder = Decoder(spec, weights, self._operations)
        return TorchModel(decoder, self.kv_groups(spec), reader.loaded_bytes)


class _Reader:
    """Reads tensors of a source into the compute dtype and reports progress in bytes of the source."""

    def __init__(self, source: WeightSource, dtype: torch.dtype, progress: Progress) -> None:
        self._source = source
        self._dtype = dtype
        self._progress = progress
        self._done = 0
        self.loaded_bytes = 0

    def matrix(self, *names: str) -> torch.Tensor:
        """Read matrices of equal width into one tensor, one below the other."""
        tensors = [self._source.tensor(name) for name in names]
        rows, columns = sum(t.shape[0] for t in tensors), tensors[0].shape[1]
        out = torch.empty((rows, columns), dtype=self._dtype)
        start = 0
        for tensor in tensors:
            dequantize(tensor, self._dtype, out=out[start : start + tensor.shape[0]])
            start += tensor.shape[0]
            self._count(tensor.size_bytes)
        self.loaded_bytes += out.nbytes
        return out

    def vector(self, *names: str) -> torch.Tensor:
        """Read vectors into one float32 tensor, one after another."""
        tensors = [self._source.tensor(name) for name in names]
        out = torch.cat([dequantize(t, torch.float32).flatten() for t in tensors])
        self._count(sum(t.size_bytes for t in tensors))
        self.loaded_bytes += out.nbytes
        return out

    def _count(self, size_bytes: int) -> None:
        self._done += size_bytes
        self._progress(self._done, self._source.size_bytes)


def _load_layer(spec: ModelSpec, reader: _Reader, prefix: str) -> LayerWeights:
    def norm(name: str, is_there: bool) -> torch.Tensor | None:
        return reader.vector(prefix + name) if is_there else None

    def linear(*names: str, has_bias: bool, suffix: str = "") -> Linear:
        bias = reader.vector(*(f"{prefix}{n}_bias" for n in names)) if has_bias else None
        return Linear(reader.matrix(*(f"{prefix}{n}{suffix}" for n in names)), bias)

    def network(suffix: str) -> MLPWeights:
        return MLPWeights(
            linear("gate", "up", has_bias=spec.mlp_bias, suffix=suffix),
            linear("down", has_bias=spec.mlp_bias, suffix=suffix),
        )

    experts = spec.experts
    return LayerWeights(
        attention_norm=norm("attention_norm", spec.pre_norms),
        qkv=linear("q", "k", "v", has_bias=spec.qkv_bias),
        q_norm=norm("q_norm", spec.qk_norm != "none"),
        k_norm=norm("k_norm", spec.qk_norm != "none"),
        o=linear("o", has_bias=spec.o_bias),
        attention_post_norm=norm("attention_post_norm", spec.post_norms),
        mlp_norm=norm("mlp_norm", spec.pre_norms),
        router=None if experts is None else linear("router", has_bias=False),
        mlps=(network(""),) if experts is None else tuple(network(f".{e}") for e in range(experts.count)),
        mlp_post_norm=norm("mlp_post_norm", spec.post_norms),
    )


def _reference() -> TorchBackend:
    return TorchBackend(
        "reference", "asked for by name: slow float32 formulas, the oracle of the others", "float32"
    )


def _torch_cpu() -> TorchBackend:
    return TorchBackend("torch-cpu", "PyTorch's bfloat16 operations run on every CPU", "bfloat16")


TORCH_BACKENDS: dict[str, Callable[[], TorchBackend]] = {"torch-cpu": _torch_cpu, "reference": _reference}
