"""The sentence encoder: a BERT that turns texts' token ids into normalised vectors. Plain PyTorch.

In float32, or with the layers' matrices, products and attention in bfloat16; embeddings, norms, the residual stream and
pooling are float32 in both.

Post-norm layers as in Devlin et al., 2018: x = norm(x + attention(x)), x = norm(x + down(gelu(up(x)))), gelu by the
error function. A sentence's vector is the mean of its tokens' last states, or the state of its first token,
divided by its length (Reimers and Gurevych, "Sentence-BERT", 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import gelu, layer_norm, linear, normalize, scaled_dot_product_attention

from inglenook.engine.models.encoder_spec import DISTANCE_BIAS, WORDS, EncoderSpec
from inglenook.engine.models.word_table import WordTable

_FARTHEST = 128  # from here on, all distances share a row of MPNet's bias


class Encoder:
    """An encoder with its weights; `read` gives the float32 tensor of a checkpoint's name, all but the table of words.

    dtype: of the layers' matrices and products: float32 or bfloat16.
    """

    def __init__(
        self,
        spec: EncoderSpec,
        words: WordTable,
        read: Callable[[str], torch.Tensor],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.spec = spec
        self._words = words
        self._dtype = dtype
        self._tensors = {
            name: read(name).to(
                dtype if name.startswith("encoder.layer.") and "LayerNorm" not in name else torch.float32
            )
            for name in spec.tensor_shapes()
            if name != WORDS
        }

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self._words.nbytes + sum(tensor.nbytes for tensor in self._tensors.values())

    @torch.inference_mode()
    def embed(self, sequences: list[list[int]]) -> torch.Tensor:
        """Encode sequences of token ids (special tokens included, 1 to `max_tokens` each) together.

        Returns float32 [N, hidden_size], each row of length 1.
        """
        lengths = torch.tensor([len(s) for s in sequences])
        longest = int(lengths.max())
        ids = torch.zeros((len(sequences), longest), dtype=torch.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
        valid = torch.arange(longest)[None] < lengths[:, None]
        t, first = self._tensors, self.spec.first_position
        x = self._words.lookup(ids)
        x = x + t["embeddings.position_embeddings.weight"][first : first + longest]
        if self.spec.num_types:
            x = x + t["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        mask = valid[:, None, None, :]
        if self.spec.distance_buckets:
            bias = t[DISTANCE_BIAS][self._buckets(longest)].permute(2, 0, 1)[None]
            mask = bias.masked_fill(~mask, -math.inf).to(self._dtype)
        for i in range(self.spec.num_layers):
            x = self._layer(x, mask, f"encoder.layer.{i}.")
        if self.spec.pooling == "first":
            return normalize(x[:, 0], dim=-1)
        weights = valid[..., None].float()
        mean: torch.Tensor = (x * weights).sum(1) / weights.sum(1)
        return normalize(mean, dim=-1)

    def _layer(self, x: torch.Tensor, mask: torch.Tensor, prefix: str) -> torch.Tensor:
        inputs = x.to(self._dtype)

        def heads(part: str) -> torch.Tensor:
            y = self._linear(inputs, f"{prefix}attention.self.{part}")
            return y.view(*y.shape[:2], self.spec.num_heads, -1).transpose(1, 2)

        attended = scaled_dot_product_attention(heads("query"), heads("key"), heads("value"), attn_mask=mask)
        attended = self._linear(attended.transpose(1, 2).flatten(2), prefix + "attention.output.dense")
        x = self._norm(x + attended, prefix + "attention.output.LayerNorm")
        up = gelu(self._linear(x.to(self._dtype), prefix + "intermediate.dense"))
        return self._norm(x + self._linear(up, prefix + "output.dense"), prefix + "output.LayerNorm")

    def _buckets(self, length: int) -> torch.Tensor:
        """Which row of the bias holds for each query and key, int64 [L, L].

        Half of the rows are for keys to the right; of each half, the first are for single distances and the others
        for ranges that grow up to 128 (Raffel et al., "T5", 2020).
        """
        half = self.spec.distance_buckets // 2
        single = half // 2
        places = torch.arange(length)
        offset = places[None, :] - places[:, None]
        distance = offset.abs()
        growth = torch.log(distance.clamp(min=1).float() / single) / math.log(_FARTHEST / single)
        far = (single + (growth * (half - single)).long()).clamp(max=half - 1)
        return torch.where(distance < single, distance, far) + half * (offset > 0)

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self._tensors[name + ".weight"], self._tensors[name + ".bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        size = (self.spec.hidden_size,)
        return layer_norm(
            x, size, self._tensors[name + ".weight"], self._tensors[name + ".bias"], self.spec.norm_eps
        )
