"""Random LoRA adapters laid out as PEFT saves them, and checkpoints with an adapter added into their weights."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

RANK, ALPHA = 4, 24
_MATRIX = re.compile(r"(.+(?:_proj|\.w[123]|\.gate))\.weight")


def write_adapter(folder: Path, checkpoint: Path, *, seed: int = 0, **changes: Any) -> Path:
    """Write an adapter of every matrix of a checkpoint's layers; keyword arguments replace settings."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, weight in load_file(checkpoint / "model.safetensors").items():
        match = _MATRIX.fullmatch(name)
        if match is None or weight.dim() != 2:
            continue
        key = f"base_model.model.{match[1]}"
        rows, columns = weight.shape
        tensors[f"{key}.lora_A.weight"] = torch.randn((RANK, columns), generator=generator) / columns**0.5
        tensors[f"{key}.lora_B.weight"] = torch.randn((rows, RANK), generator=generator) * 0.05
    config = {
        "peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "bias": "none", "target_modules": ["q_proj"],
        "use_dora": False, "use_rslora": False, "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({**config, **changes}))
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def merge(checkpoint: Path, adapter: Path, target: Path, scale: float = ALPHA / RANK) -> Path:
    """A copy of a checkpoint with an adapter added into its weights."""
    shutil.copytree(checkpoint, target)
    weights = load_file(checkpoint / "model.safetensors")
    pairs = load_file(adapter / "adapter_model.safetensors")
    for name in [name for name in pairs if ".lora_A." in name]:
        stem = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        weights[f"{stem}.weight"] += scale * pairs[name.replace("lora_A", "lora_B")] @ pairs[name]
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    return target
