"""Tiny random llama folders with a tokenizer, written without `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import tokenizers
import torch

from inglenook.engine.library.perplexity_text import TEXT
from inglenook.engine.models.config_spec import spec_from_config
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.names import hf_places


def write_tiny_folder(
    folder: Path, *, dtype: torch.dtype = torch.bfloat16, seed: int = 0, **changes: Any
) -> Path:
    """Write a model of two layers that knows the words of TEXT; `changes` are keys of its config.json."""
    folder.mkdir(parents=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<|end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
    config = {
        "model_type": "llama",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 192,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "eos_token_id": 0,
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    spec = spec_from_config(Metadata(config, "config.json"), ())
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for place in hf_places(spec).values():
        values = torch.randn(place.shape, generator=generator)
        scaled = 1 + values / 10 if len(place.shape) == 1 else values / place.shape[-1] ** 0.5
        tensors[place.name] = scaled.to(dtype)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
