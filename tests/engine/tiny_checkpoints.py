"""Tiny random checkpoints of every architecture, made by `transformers`, and the same weights as GGUF files.

The GGUF files follow the rules of the format's own converter: tensor names from the `gguf` package's table, rows of
queries and keys in rotary pairs for the architectures that pair them, gemma's norms plus one, experts stacked.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from native_fixtures import make_batch

from inglenook.engine.kv_cache import num_blocks_for
from inglenook.engine.models.lora import LoraAdapter, Worn
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.engine.weights.loader import open_model

VOCAB, LAYERS, CONTEXT, WINDOW = 260, 6, 256, 24
_SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}
_LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}  # fmt: skip
_LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [1.0 + i for i in range(8)], "original_max_position_embeddings": 64,
}  # fmt: skip
# name -> (model_type, settings); the part of a name before "-" is the architecture
CHECKPOINTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-biased": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
    ),
    "llama-llama3": ("llama", {"rope_parameters": _LLAMA3}),
    "llama-yarn": ("llama", {"rope_parameters": _YARN}),
    "mistral": ("mistral", {"sliding_window": WINDOW, "head_dim": 32}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2-windows": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 3},
    ),
    "qwen3": ("qwen3", {"head_dim": 32, "tie_word_embeddings": True}),
    "qwen3-yarn": ("qwen3", {"head_dim": 32, "rope_parameters": _YARN, "attention_bias": True}),
    "gemma2": ("gemma2", {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": WINDOW}),
    "gemma3": (
        "gemma3_text",
        {
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": WINDOW,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
    ),
    "phi3": ("phi3", {"sliding_window": WINDOW}),
    "phi3-longrope": (
        "phi3",
        {
            "rope_parameters": _LONGROPE,
            "original_max_position_embeddings": 64,
            "tie_word_embeddings": True,
        },
    ),
    "phi3-partial": ("phi3", {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.75}}),
    "phi3-small": (
        "phi3",
        {
            "rope_parameters": {
                **_LONGROPE,
                "partial_rotary_factor": 0.75,
                "short_factor": [1.0 + 0.1 * i for i in range(6)],
                "long_factor": [1.0 + i for i in range(6)],
            },
            "original_max_position_embeddings": 64,
            "tie_word_embeddings": True,
            "num_key_value_heads": 1,
        },
    ),
    "smollm3": ("smollm3", {}),
    "olmo2": ("olmo2", {}),
    "granite": (
        "granite",
        {
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.2,
            "residual_multiplier": 0.5,
            "logits_scaling": 4.0,
        },
    ),
    "qwen3moe": (
        "qwen3_moe",
        {"moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True},
    ),
    "mixtral": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
}


def make_checkpoint(folder: Path, name: str) -> Any:
    """Save the checkpoint of a name in `folder` and return the `transformers` model (which has no types)."""
    import transformers

    model_type, changes = CHECKPOINTS[name]
    torch.manual_seed(sum(map(ord, name)))
    config = transformers.AutoConfig.for_model(model_type, **{**_SHAPE, **changes})
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += torch.randn_like(parameter) * 0.2
            else:
                parameter.normal_(0, 1.2 / parameter.shape[-1] ** 0.5)
    model.save_pretrained(folder)
    return model


def write_gguf(folder: Path, path: Path) -> Path:
    """Write the checkpoint in `folder` as an F32 GGUF file."""
    from safetensors.numpy import load_file
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    name = {
        "mistral": "llama", "mixtral": "llama", "gemma3_text": "gemma3", "qwen3_moe": "qwen3moe",
    }.get(config.model_type, config.model_type)  # fmt: skip
    writer = gguf.GGUFWriter(str(path), name)
    _add_settings(writer, name, config)
    _add_vocabulary(writer)
    names = gguf.get_tensor_name_map(
        next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == name), config.num_hidden_layers
    )
    experts: dict[str, list[Any]] = {}
    for hf_name, values in sorted(load_file(folder / "model.safetensors").items(), key=_by_numbers):
        stem, suffix = hf_name.rsplit(".", 1)
        if ".experts." in stem:
            before, _, after = stem.partition(".experts.")
            experts.setdefault(f"{before}.experts.{after.split('.')[1]}", []).append(values)
            continue
        if name.startswith("gemma") and hf_name.endswith("norm.weight"):
            values = values + 1
        if name in ("llama", "smollm3", "granite") and stem.endswith(("q_proj", "k_proj")):
            heads = config.num_attention_heads if "q_proj" in stem else config.num_key_value_heads
            values = values.reshape(heads, 2, -1, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(f"{names.get_name(stem)}.{suffix}", np.ascontiguousarray(values))
    for stem, parts in experts.items():
        writer.add_tensor(f"{names.get_name(stem)}.weight", np.stack(parts))
    _add_rope_tensors(writer, config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _by_numbers(entry: tuple[str, Any]) -> list[int]:
    return [int(part) for part in entry[0].split(".") if part.isdigit()]


def _add_settings(writer: Any, name: str, config: Any) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_size)
    writer.add_value_length(head_size)
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head_size * rope.get("partial_rotary_factor", 1.0)))
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "longrope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        scale = config.max_position_embeddings / rope["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(
            (1 + np.log(scale) / np.log(rope["original_max_position_embeddings"])) ** 0.5
        )
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    if name == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if count := getattr(config, "num_local_experts", None):
        writer.add_expert_count(count)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if name == "qwen3moe":
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def _add_vocabulary(writer: Any) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_list(
        [
            "<unk>",
            "<s>",
            "</s>",
            *(f"<0x{i:02X}>" for i in range(256)),
            *(f"t{i}" for i in range(VOCAB - 259)),
        ]
    )
    writer.add_token_scores([-float(i) for i in range(VOCAB)])
    writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (VOCAB - 259)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _add_rope_tensors(writer: Any, config: Any) -> None:
    rope = config.rope_parameters
    if rope.get("rope_type") == "longrope":
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))
    if rope.get("rope_type") == "llama3":
        size = config.hidden_size // config.num_attention_heads
        frequencies = rope["rope_theta"] ** (-np.arange(0, size, 2) / size)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * frequencies / (2 * np.pi)
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        writer.add_tensor(
            "rope_freqs.weight", (1 / ((1 - smooth) / rope["factor"] + smooth)).astype(np.float32)
        )


class Runner:
    """A model on a back end with one sequence; `step` returns the logits of all of its rows, or of the last."""

    def __init__(self, path: Path, backend: str = "reference", adapter: LoraAdapter | None = None) -> None:
        self.adapter = adapter
        with open_model(path) as file:
            self.spec = file.spec
            self._model = TORCH_BACKENDS[backend]().load(file.spec, file, lambda done, total: None)
        blocks = num_blocks_for(CONTEXT)
        groups = len(set(self.spec.sliding_windows))
        self._model.allocate_kv((blocks + 3,) * groups)
        self._table = list(range(blocks + 2, 2, -1))
        self._groups = groups
        self._position = 0

    def step(self, token_ids: list[int], shift: int = 0) -> torch.Tensor:
        """Run tokens after those of earlier steps; `shift` moves their rotary positions only."""
        batch = make_batch([(token_ids, self._position, self._table)], self._groups)
        batch.positions.add_(shift)
        self._position += len(token_ids)
        if self.adapter is not None:
            worn = Worn((self.adapter,), torch.zeros(len(token_ids), dtype=torch.int64))
            batch = dataclasses.replace(batch, worn=worn)
        return self._model.forward(batch)
