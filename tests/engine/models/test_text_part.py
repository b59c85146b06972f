"""A folder whose model also looks at pictures: its language model runs as that model alone does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_checkpoints import CONTEXT, VOCAB, WINDOW, Runner, make_checkpoint

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.text_part import name_in_text_part
from inglenook.engine.weights.loader import open_model

IDS = [5, 9, 200, 17, 33, 64, 2, 7, 250, 101, 88, 3, 140, 54, 77, 12, 9, 9] * 3


@pytest.fixture(scope="module", params=["gemma3", "mistral"])
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / request.param
    make_checkpoint(folder, request.param)
    return folder


def with_pictures(alone: Path, target: Path, prefix: str) -> Path:
    """The same model as the language part of a larger one."""
    shutil.copytree(alone, target)
    config = json.loads((alone / "config.json").read_text())
    outer = {"gemma3_text": "gemma3", "mistral": "mistral3"}[config["model_type"]]
    config = {
        "model_type": outer,
        "text_config": config,
        "vision_config": {"model_type": "siglip_vision_model"},
    }
    (target / "config.json").write_text(json.dumps(config))
    tensors = {
        f"language_model.{name}" if name.startswith("lm_head") else prefix + name.removeprefix("model."): t
        for name, t in load_file(alone / "model.safetensors").items()
    }
    pictures = (
        "vision_tower.vision_model.embeddings.patch_embedding.weight",
        "multi_modal_projector.linear_1.weight",
    )
    tensors |= {name: torch.zeros(4, 4) for name in pictures}
    save_file(tensors, target / "model.safetensors")
    return target


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
@pytest.mark.slow
def test_the_language_part_gives_the_logits_of_the_model_alone(
    alone: Path, tmp_path: Path, prefix: str
) -> None:
    folder = with_pictures(alone, tmp_path / "whole", prefix)

    torch.testing.assert_close(Runner(folder).step(IDS), Runner(alone).step(IDS))


def test_a_tensor_that_belongs_to_neither_part_is_refused(alone: Path, tmp_path: Path) -> None:
    folder = with_pictures(alone, tmp_path / "whole", "language_model.model.")
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "audio_tower.weight": torch.zeros(4, 4)}, folder / "model.safetensors")

    with pytest.raises(UnsupportedModelError, match=r"a tensor audio_tower.weight is not supported"):
        open_model(folder)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "gemma3"}, "text_config is missing"),
        (
            {"model_type": "gemma3", "text_config": {"model_type": "llama"}},
            "model_type is 'llama'.*'gemma3_text'",
        ),
    ],
)
def test_a_wrong_text_part_is_named(
    alone: Path, tmp_path: Path, config: dict[str, object], message: str
) -> None:
    folder = with_pictures(alone, tmp_path / "whole", "language_model.model.")
    (folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(ModelFileError, match=message):
        open_model(folder)


def test_names_lose_what_the_larger_model_put_before_them() -> None:
    names = ["language_model.lm_head.weight", "lm_head.weight", "model.vision_tower.x", "vision_tower.x"]

    assert [name_in_text_part(n) for n in names] == ["lm_head.weight", "lm_head.weight", None, None]


@pytest.mark.slow
def test_a_gemma_3_of_transformers_gives_its_own_logits(tmp_path: Path) -> None:
    import transformers

    text = {
        "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 6, "head_dim": 32,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
        "sliding_window": WINDOW, "query_pre_attn_scalar": 32, "pad_token_id": 0,
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28,
        "patch_size": 14,
    }  # fmt: skip
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    torch.manual_seed(2)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 1.2 / parameter.shape[-1] ** 0.5) if parameter.dim() > 1 else None
    model.save_pretrained(tmp_path / "model")
    with torch.inference_mode():
        want = model(torch.tensor([IDS])).logits[0]

    torch.testing.assert_close(Runner(tmp_path / "model").step(IDS), want, atol=1e-3, rtol=0)
