"""A quantised folder: what changes and what stays, that every back end runs it, and what is refused."""

from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_checkpoints import Runner
from tiny_folders import write_tiny_folder
from tiny_gguf import write_tiny_gguf

from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.model_doctor.sequence import Sequence
from inglenook.engine.native_backend import refusal
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights import quantize
from inglenook.engine.weights.loader import open_model
from inglenook.engine.weights.quantize import Quantization, plan_quantization, quantize_folder
from inglenook.engine.weights.quantize_groups import WEIGHT_TYPES, Quanto, WeightType
from inglenook.kernels.dequantize import dequantize

IDS = [(7 * i) % 390 for i in range(40)]


@pytest.fixture(scope="module")
def quanto() -> Quanto:
    return Quanto()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny") / "model")


def quantized(quanto: Quanto, source: Path, target: Path, weights: WeightType, group: int = 128) -> Path:
    how = Quantization(weights, group)
    with open_model(source) as file:
        quantize_folder(
            file, target, how, plan_quantization("m", file, how), quanto, lambda done, total: None
        )
    return target


def logits(path: Path, backend: str) -> torch.Tensor:
    with open_model(path) as file:
        chosen = choose_backend(backend, file.spec, file, packed_folder=path.parent / "packed")
        model = chosen.load(file.spec, file, lambda done, total: None)
        found = Sequence(model, file.spec, len(chosen.kv_groups(file.spec)), len(IDS)).step(
            IDS, wants_all=True
        )
        model.close()
    return found


@pytest.mark.parametrize("weights", WEIGHT_TYPES)
def test_matrices_are_close_and_the_rest_is_the_same(
    quanto: Quanto, folder: Path, tmp_path: Path, weights: WeightType
) -> None:
    target = quantized(quanto, folder, tmp_path / "new", weights)

    with open_model(folder) as before, open_model(target) as after:
        assert dataclasses.replace(after.spec) == before.spec
        assert after.names == before.names
        for name in before.names:
            old, new = before.tensor(name), after.tensor(name)
            if len(old.shape) == 1:
                assert new.format.name == "BF16"
                assert (new.data == old.data).all()
                continue
            kind = "qint8" if weights == "qint4" and name in ("embedding", "head") else weights
            # 128 columns, of which 4 heads of 32 and 192 of the feed-forward network
            assert new.format.name == f"{kind.upper()}_G{64 if name.endswith('down') else 128}"
            error = (dequantize(new) - dequantize(old)).norm() / dequantize(old).norm()
            assert error < {"qint4": 0.13, "qint8": 0.01, "qfloat8": 0.04}[kind]
        with Tokenizer.from_model_file(after) as ours, Tokenizer.from_model_file(before) as theirs:
            assert ours.encode_text("the ferry").token_ids == theirs.encode_text("the ferry").token_ids


@pytest.mark.parametrize("weights", WEIGHT_TYPES)
@pytest.mark.parametrize("group", [32, 64, 128])
def test_every_back_end_runs_it_to_the_same_logits(
    quanto: Quanto, folder: Path, tmp_path: Path, weights: WeightType, group: int
) -> None:
    target = quantized(quanto, folder, tmp_path / "new", weights, group)

    want = logits(target, "reference")

    with open_model(target) as file:
        assert refusal(file.spec, file) is None
    for backend, bound in (("native-cpu", 1e-3), ("torch-cpu", 2e-2)):
        assert float((logits(target, backend) - want).norm() / want.norm()) < bound


def test_other_programs_are_told_by_the_settings(quanto: Quanto, folder: Path, tmp_path: Path) -> None:
    target = quantized(quanto, folder, tmp_path / "new", "qint8", 64)

    old, new = (json.loads((path / "config.json").read_text()) for path in (folder, target))
    marker = new.pop("quantization_config")
    assert marker == {"quant_method": "inglenook", "weights": "qint8", "group_size": 64}
    assert new == old


@pytest.mark.parametrize("name", ["phi3", "gemma3", "qwen3moe"])
@pytest.mark.slow
def test_fused_matrices_pre_norms_and_experts_find_their_rows(
    quanto: Quanto, tmp_path: Path, name: str
) -> None:
    from tiny_checkpoints import make_checkpoint

    make_checkpoint(tmp_path / "old", name)

    target = quantized(quanto, tmp_path / "old", tmp_path / "new", "qint8", 32)

    want, got = Runner(tmp_path / "old").step(IDS[:20]), Runner(target).step(IDS[:20])
    assert float((got - want).norm() / want.norm()) < 0.1


def test_matrices_that_no_group_divides_stay_and_are_named(quanto: Quanto, tmp_path: Path) -> None:
    source = write_tiny_folder(tmp_path / "old", intermediate_size=100)

    target = quantized(quanto, source, tmp_path / "new", "qint4")

    with open_model(source) as before, open_model(target) as after:
        plan = plan_quantization("m", before, Quantization("qint4"))
        assert plan.kept == ("model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight")
        assert plan.formats == {"QINT4_G128": 12, "QINT8_G128": 2, "BF16": 2}
        assert after.tensor("layers.1.down").format.name == "BF16"
    assert torch.isfinite(Runner(target).step(IDS)).all()


def test_a_large_matrix_is_quantised_piece_by_piece_to_the_same(
    quanto: Quanto, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = quantized(quanto, folder, tmp_path / "whole", "qint4")
    monkeypatch.setattr(quantize, "_PIECE_ELEMENTS", 128 * 7)

    pieces = quantized(quanto, folder, tmp_path / "pieces", "qint4")

    name = "model.safetensors"
    assert (whole / name).read_bytes() == (pieces / name).read_bytes()


def test_progress_rises_to_the_size_of_the_source(quanto: Quanto, folder: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    how = Quantization("qint8")
    with open_model(folder) as file:
        plan = plan_quantization("m", file, how)
        quantize_folder(file, tmp_path / "new", how, plan, quanto, lambda *now: seen.append(now))
        size = file.size_bytes

    assert seen[0] == (0, size)
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)


def test_a_full_disk_is_the_systems_error(
    quanto: Quanto, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("inglenook.engine.weights.safetensors_writer.os.fsync", full)

    with pytest.raises(OSError, match="No space left"):
        quantized(quanto, folder, tmp_path / "new", "qint8")


def test_a_gguf_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with (
        open_model(write_tiny_gguf(tmp_path / "tiny.gguf")) as file,
        pytest.raises(UnsupportedModelError, match=r"m is a GGUF file; .*fetch a smaller one"),
    ):
        plan_quantization("m", file, Quantization("qint8"))


def test_what_is_quantised_already_is_refused(quanto: Quanto, folder: Path, tmp_path: Path) -> None:
    target = quantized(quanto, folder, tmp_path / "new", "qint8")

    with (
        open_model(target) as file,
        pytest.raises(UnsupportedModelError, match=r"m is quantised already: .* is QINT8_G128"),
    ):
        plan_quantization("m", file, Quantization("qint4"))


def test_a_model_without_any_fitting_matrix_is_refused(tmp_path: Path) -> None:
    source = write_tiny_folder(
        tmp_path / "old", hidden_size=48, intermediate_size=100, num_attention_heads=3, num_key_value_heads=1
    )
    with (
        open_model(source) as file,
        pytest.raises(UnsupportedModelError, match=r"multiple of 32 elements, and model\.embed.* has 48"),
    ):
        plan_quantization("m", file, Quantization("qint8"))
