"""LoRA adapters: the same logits as weights with the adapter added, requests apart, and what is refused with numbers."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from native_fixtures import make_batch
from safetensors.torch import load_file, save_file
from tiny_adapters import ALPHA, RANK, merge, write_adapter
from tiny_checkpoints import Runner, make_checkpoint, write_gguf

from inglenook.engine.adapter_file import open_adapter
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import (
    InvalidRequestError,
    ModelFileError,
    ModelNotFoundError,
    UnsupportedModelError,
)
from inglenook.engine.models.lora import Worn
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.engine.weights.loader import open_model

IDS = [5, 9, 200, 17, 33, 64, 2, 7, 250, 101, 88, 3, 140, 54, 77, 12, 9, 9]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lora") / "llama"
    make_checkpoint(folder, "llama")
    return folder


@pytest.fixture(scope="module")
def spec(llama: Path) -> ModelSpec:
    with open_model(llama) as file:
        return file.spec


@pytest.fixture
def adapter(tmp_path: Path, llama: Path) -> Path:
    return write_adapter(tmp_path / "adapter", llama)


def change(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_logits_are_those_of_transformers_with_the_adapter_in_its_weights(
    llama: Path, spec: ModelSpec, adapter: Path, tmp_path: Path
) -> None:
    import transformers

    merged = merge(llama, adapter, tmp_path / "merged")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)

    got = Runner(llama, adapter=open_adapter(adapter, spec)).step(IDS)

    with torch.inference_mode():
        want = theirs(torch.tensor([IDS])).logits[0]
    assert (got - want).abs().max() < 1e-3
    assert (Runner(llama).step(IDS) - want).abs().max() > 0.1


@pytest.mark.parametrize("name", ["phi3", "mixtral", "qwen3moe", "gemma3", "olmo2"])
@pytest.mark.slow
def test_every_kind_of_matrix_can_be_adapted(tmp_path: Path, name: str) -> None:
    make_checkpoint(tmp_path / "model", name)
    adapter = write_adapter(tmp_path / "adapter", tmp_path / "model")
    merged = merge(tmp_path / "model", adapter, tmp_path / "merged")
    with open_model(tmp_path / "model") as file:
        ours = open_adapter(adapter, file.spec)
    runner = Runner(tmp_path / "model", adapter=ours)

    got = torch.cat([runner.step(IDS[:7]), runner.step(IDS[7:12]), runner.step(IDS[12:])])

    assert (got - Runner(merged).step(IDS)).abs().max() < 1e-3


def test_an_adapter_fits_the_gguf_of_its_model_and_root_scaling_is_known(
    tmp_path: Path, llama: Path, spec: ModelSpec
) -> None:
    adapter = write_adapter(tmp_path / "adapter", llama, use_rslora=True)
    merged = merge(llama, adapter, tmp_path / "merged", ALPHA / RANK**0.5)
    gguf = write_gguf(llama, tmp_path / "llama.gguf")

    got = Runner(gguf, adapter=open_adapter(adapter, spec)).step(IDS)

    assert (got - Runner(merged).step(IDS)).abs().max() < 1e-3


def test_rows_of_one_step_wear_different_adapters_or_none(
    tmp_path: Path, llama: Path, spec: ModelSpec
) -> None:
    one, two = (open_adapter(write_adapter(tmp_path / str(seed), llama, seed=seed), spec) for seed in (1, 2))
    with open_model(llama) as file:
        model = TORCH_BACKENDS["reference"]().load(file.spec, file, lambda done, total: None)
    model.allocate_kv((12,))
    batch = make_batch([(IDS, 0, [0, 1]), (IDS, 0, [2, 3]), (IDS, 0, [4, 5])], 1)
    numbers = torch.tensor([0, -1, 1]).repeat_interleave(len(IDS))

    got = model.forward(dataclasses.replace(batch, worn=Worn((one, two), numbers))).split(len(IDS))

    for logits, adapter in zip(got, (one, None, two), strict=True):
        torch.testing.assert_close(logits, Runner(llama, adapter=adapter).step(IDS), atol=1e-4, rtol=1e-4)


def test_a_request_wears_its_adapter_and_shares_no_cache_with_others(
    tmp_path: Path, llama: Path, adapter: Path
) -> None:
    gguf = write_gguf(llama, tmp_path / "llama.gguf")
    merged = write_gguf(merge(llama, adapter, tmp_path / "merged"), tmp_path / "merged.gguf")
    sampling = SamplingParams(max_tokens=8, temperature=0, ignore_eos=True)
    plain = Request(prompt_token_ids=tuple(IDS), sampling=sampling)
    worn = dataclasses.replace(plain, adapter=str(adapter))
    options = LoadOptions(backend="reference", num_threads=1)
    with EngineClient.in_process() as client:
        client.load(merged, options=options).result(60)
        want = client.submit(plain)
        want.result(60)
        client.load(gguf, options=options).result(60)
        asked = [client.submit(request) for request in (plain, worn, plain, worn)]
        replies = [handle.result(60) for handle in asked]
        again = client.submit(worn).result(60)

    tokens = [reply.token_ids for reply in replies]
    assert tokens[1] == tokens[3] == want.result(0).token_ids
    assert tokens[0] == tokens[2] != tokens[1]
    assert replies[1].finished.cached_tokens == 0
    assert again.finished.cached_tokens >= 16


def test_no_salt_reaches_the_cache_of_an_adapter(
    tmp_path: Path, llama: Path, adapter: Path, spec: ModelSpec
) -> None:
    gguf = write_gguf(llama, tmp_path / "llama.gguf")
    sampling = SamplingParams(max_tokens=8, temperature=0, ignore_eos=True)
    plain = Request(prompt_token_ids=tuple(IDS), sampling=sampling)
    content = open_adapter(adapter, spec).content_hash
    salts = [content, f"{content} ", f"adapter {content} ", f"adapter {content}"]
    with EngineClient.in_process() as client:
        client.load(gguf, options=LoadOptions(backend="reference", num_threads=1)).result(60)
        want = client.submit(plain).result(60).token_ids
        client.submit(dataclasses.replace(plain, adapter=str(adapter))).result(60)
        replies = [client.submit(dataclasses.replace(plain, cache_salt=s)).result(60) for s in salts]

    assert [reply.finished.cached_tokens for reply in replies] == [0] * len(salts)
    assert {reply.token_ids for reply in replies} == {want}


def test_an_adapter_that_changed_on_disk_is_read_again(tmp_path: Path, llama: Path, adapter: Path) -> None:
    gguf = write_gguf(llama, tmp_path / "llama.gguf")
    request = Request(
        prompt_token_ids=tuple(IDS),
        adapter=str(adapter),
        sampling=SamplingParams(max_tokens=8, temperature=0),
    )
    with EngineClient.in_process() as client:
        client.load(gguf, options=LoadOptions(backend="reference", num_threads=1)).result(60)
        before = client.submit(request).result(60)
        change(adapter, lora_alpha=3 * ALPHA)
        after = client.submit(request).result(60)

    assert after.finished.cached_tokens == 0
    assert before.token_ids != after.token_ids


def test_a_back_end_that_runs_no_adapters_says_which_does(tmp_path: Path, llama: Path, adapter: Path) -> None:
    from inglenook.engine.adapter_shelf import AdapterShelf

    with open_model(llama) as file:
        shelf = AdapterShelf(file.spec, "native-cpu")

    with pytest.raises(UnsupportedModelError, match=r"native-cpu runs no adapters.*torch-cpu"):
        shelf.get(str(adapter))
    with pytest.raises(InvalidRequestError, match="absolute path"):
        AdapterShelf(file.spec, "torch-cpu").get("adapter")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, "use_dora is True"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
        ({"bias": "all"}, "bias is 'all'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is a list of 1 entries"),
        ({"alpha_pattern": {"q_proj": 3}}, "alpha_pattern is a group of 1 settings"),
        ({"r": 8}, r"ranks 4 and 4; adapter_config.json says 8"),
        ({"r": None}, "r is missing"),
        ({"lora_alpha": "much"}, "lora_alpha is 'much'"),
    ],
)
def test_settings_that_change_the_arithmetic_are_refused_by_name(
    adapter: Path, spec: ModelSpec, settings: dict[str, Any], message: str
) -> None:
    change(adapter, **settings)

    with pytest.raises(ModelFileError, match=message):
        open_adapter(adapter, spec)


_Q = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({f"{_Q}.lora_A.weight": torch.zeros(4, 32)}, "takes 32 numbers and gives 64; this model's takes 64"),
        ({f"{_Q}.lora_B.weight": torch.zeros(48, 4)}, "gives 48; this model's takes 64 and gives 64"),
        ({f"{_Q}.lora_B.weight": torch.zeros(64, 2)}, "ranks 4 and 2"),
        ({f"{_Q}.lora_B.weight": torch.zeros(64)}, r"shape \(64,\); it must have two axes"),
        ({f"{_Q}.lora_B.weight": torch.full((64, 4), torch.nan)}, "infinite or none"),
        ({f"{_Q.replace('0', '9')}.lora_A.weight": torch.zeros(4, 64)}, "layers.9.self_attn.q_proj, which this"),
        ({"base_model.model.lm_head.lora_A.weight": torch.zeros(4, 64)}, "changes lm_head"),
        ({f"{_Q}.lora_magnitude_vector": torch.zeros(64)}, "lora_magnitude_vector is not supported"),
        ({f"{_Q.replace('q_', 'z_')}.lora_A.weight": torch.zeros(4, 64)}, "changes .*z_proj"),
    ],
)  # fmt: skip
def test_matrices_of_another_model_are_refused_with_both_numbers(
    adapter: Path, spec: ModelSpec, tensors: dict[str, torch.Tensor], message: str
) -> None:
    path = adapter / "adapter_model.safetensors"
    save_file({**load_file(path), **tensors}, path)

    with pytest.raises(ModelFileError, match=message):
        open_adapter(adapter, spec)


def test_half_a_pair_is_refused(adapter: Path, spec: ModelSpec) -> None:
    path = adapter / "adapter_model.safetensors"
    tensors = load_file(path)
    del tensors[f"{_Q}.lora_B.weight"]
    save_file(tensors, path)

    with pytest.raises(ModelFileError, match=r"lora_A of .* without its other half"):
        open_adapter(adapter, spec)


def test_what_is_no_adapter_is_refused_in_words(tmp_path: Path, adapter: Path, spec: ModelSpec) -> None:
    with pytest.raises(ModelNotFoundError, match="There is no adapter"):
        open_adapter(tmp_path / "none", spec)
    (tmp_path / "file.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelFileError, match=r"must be a folder with adapter_config.json"):
        open_adapter(tmp_path / "file.gguf", spec)
    shutil.move(adapter / "adapter_model.safetensors", tmp_path / "outside")
    with pytest.raises(ModelFileError, match=r"has no adapter_model.safetensors"):
        open_adapter(adapter, spec)
    (adapter / "adapter_model.bin").write_bytes(b"x")
    with pytest.raises(UnsupportedModelError, match="can run code"):
        open_adapter(adapter, spec)
    (adapter / "adapter_model.safetensors").symlink_to(tmp_path / "outside")
    with pytest.raises(ModelFileError, match="link to a place outside"):
        open_adapter(adapter, spec)


def test_the_hash_is_of_the_content(tmp_path: Path, llama: Path, adapter: Path, spec: ModelSpec) -> None:
    same = Path(shutil.copytree(adapter, tmp_path / "same"))
    other = write_adapter(tmp_path / "other", llama, seed=1)

    hashes = [
        open_adapter(path, spec).content_hash
        for path in (adapter, same, other, adapter / "adapter_config.json")
    ]

    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]
    assert len(hashes[0]) == 64
