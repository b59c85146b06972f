"""The CUDA back end's control flow on computers without a card: its operations are plain PyTorch here."""

import importlib.util
import os
import sysconfig

import numpy as np
import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.backend_choice import backend_statuses, choose_backend
from inglenook.engine.batch import Batch
from inglenook.engine.cards.cuda_backend import (
    CudaBackend,
    check_float8,
    compiler_lack,
    cuda_status,
    keep_compiled_kernels,
)
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_operations import PlainOperations
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.models.spec import ExpertsSpec, ModelSpec, RopeSpec
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.kernels.weight_tensor import WeightTensor

MIXED = {"v": "Q6_K", "down": "Q6_K", "embedding": "Q8_0"}


def mixed_formats(name: str) -> str:
    return MIXED.get(name.rpartition(".")[2], "Q4_0")


def wide(**changes: object) -> ModelSpec:
    """Rows of whole 256s, as the K formats need them."""
    return small_spec(hidden_size=256, intermediate_size=256, **changes)


SPECS = {
    "llama": small_spec(),
    "qwen2": small_spec(qkv_bias=True, tied_head=False, rope=RopeSpec(theta=1e4, size=8)),
    "qwen3": small_spec(qk_norm="head"),
    "olmo2": small_spec(qk_norm="whole", pre_norms=False, post_norms=True),
    "gemma2": small_spec(
        post_norms=True, activation="gelu_tanh", attention_softcap=5.0, logit_softcap=3.0, embedding_scale=8.0,
        sliding_windows=(20, 0, 20), local_rope=RopeSpec(theta=500.0, size=16),
    ),
    "granite": small_spec(residual_scale=0.3, logit_scale=0.5, o_bias=True, mlp_bias=True, activation="gelu"),
    "smollm3": small_spec(unrotated_layers=(1,)),
}  # fmt: skip


def load(spec: ModelSpec, source: RandomModel, **options: object) -> CudaModel:
    backend = CudaBackend(
        device="cpu", dtype=torch.float32, make_operations=lambda spec: PlainOperations(), **options
    )
    return backend.load(spec, source, lambda done, total: None)


class WithKeyBiases(RandomModel):
    """The slowest pair of each key head has a bias of `size`."""

    size = 300.0

    def tensor(self, name: str) -> WeightTensor:
        tensor = super().tensor(name)
        if not name.endswith("k_bias"):
            return tensor
        values = tensor.data.view(np.float32).reshape(self.spec.num_kv_heads, -1).copy()
        values[:, self.spec.head_size // 2 - 1] = self.size
        return WeightTensor(tensor.format, tensor.shape, values.reshape(1, -1).view(np.uint8))


def both(spec: ModelSpec, format_of=lambda name: "Q8_0", make=RandomModel, **options: object):
    source = make(spec, format_of)
    ours = load(spec, source, **{"kv_dtype": "float32"} | options)
    reference = TORCH_BACKENDS["reference"]().load(spec, source, lambda done, total: None)
    return ours, reference


def start(models, spec: ModelSpec, sequences: int) -> Steps:
    steps = Steps(spec, len(set(spec.sliding_windows)), sequences)
    for model in models:
        model.allocate_kv((steps.num_blocks,) * len(set(spec.sliding_windows)))
    return steps


def assert_equal(ours, reference, batch: Batch) -> None:
    torch.testing.assert_close(ours.forward(batch), reference.forward(batch), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.slow
def test_prompts_decodes_and_mixed_steps_give_the_references_logits(name: str) -> None:
    spec = SPECS[name]
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 4)

    assert_equal(ours, reference, steps.batch({2: 33, 0: 5}, wants_all=True))
    assert_equal(ours, reference, steps.batch({2: 1, 0: 1}))
    assert_equal(ours, reference, steps.batch({0: 1, 2: 1, 1: 40}))
    assert_equal(ours, reference, steps.batch({1: 1, 0: 1, 2: 1}))


def test_parts_of_different_formats_are_multiplied_one_by_one() -> None:
    spec = wide()
    ours, reference = both(spec, mixed_formats)
    steps = start((ours, reference), spec, 1)

    assert_equal(ours, reference, steps.batch({0: 20}))


def test_spare_rows_of_a_graph_change_nothing() -> None:
    spec = small_spec()
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 5)
    first = steps.batch(dict.fromkeys(range(5), 3))
    assert_equal(ours, reference, first)

    for sequences in ((0, 1, 2, 3, 4), (0, 3), (4, 1, 2)):  # graphs of 8, 2 and 4 rows, one after another
        assert_equal(ours, reference, steps.batch(dict.fromkeys(sequences, 1)))

    stored = [kv.k.clone() for kv in ours.kv]
    assert torch.allclose(stored[0], reference.kv[0].k, atol=1e-4)


def test_more_rows_than_the_largest_graph_run_without_one() -> None:
    spec = small_spec(num_layers=1)
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 70)

    assert_equal(ours, reference, steps.batch(dict.fromkeys(range(70), 1)))


def test_a_step_beyond_the_buffers_makes_larger_ones() -> None:
    spec = small_spec(num_layers=1)
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 1)

    assert_equal(ours, reference, steps.batch({0: 150}))


def test_rows_without_wanted_logits_give_none() -> None:
    spec = small_spec()
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 2)
    batch = steps.batch({0: 1, 1: 1})
    only_second = Batch(
        batch.token_ids, batch.positions, batch.query_starts, batch.context_lengths, torch.tensor([1]), batch.groups
    )  # fmt: skip

    assert_equal(ours, reference, only_second)
    assert ours.forward(steps.batch({0: 4})).shape == (1, spec.vocab_size)


def test_logits_outlive_the_next_step() -> None:
    spec = small_spec()
    ours, reference = both(spec)
    steps = start((ours, reference), spec, 1)
    first = ours.forward(steps.batch({0: 1}))
    before = first.clone()

    ours.forward(steps.batch({0: 1}))

    assert torch.equal(first, before)


@pytest.mark.parametrize(("kv_dtype", "most"), [("int8", 0.05), ("float8_e4m3fn", 0.4)])
def test_a_cache_of_8_bits_costs_little(kv_dtype: str, most: float) -> None:
    spec = small_spec()
    ours, reference = both(spec, kv_dtype=kv_dtype)
    steps = start((ours, reference), spec, 1)

    batch = steps.batch({0: 40}, wants_all=True)

    difference = (ours.forward(batch) - reference.forward(batch)).abs().max()
    assert difference < most
    assert str(ours.kv[0].k.dtype) == f"torch.{kv_dtype}"
    ours.kv[0].copy_blocks([(int(steps.tables[0, 0]), int(steps.tables[0, 5]))])
    blocks = [ours.kv[0].k.float()[:, int(steps.tables[0, i])] for i in (0, 5)]
    assert torch.equal(*blocks)
    assert blocks[0].abs().sum() > 0
    ours.kv[0].blank([int(steps.tables[0, 0])])
    assert ours.kv[0].k.float()[:, int(steps.tables[0, 0])].abs().sum() == 0


@pytest.mark.parametrize(("kv_dtype", "most"), [("int8", 0.05), ("float8_e4m3fn", 0.4)])
def test_a_cache_of_8_bits_costs_little_where_keys_have_large_biases(kv_dtype: str, most: float) -> None:
    spec = small_spec(qkv_bias=True)
    ours, reference = both(spec, make=WithKeyBiases, kv_dtype=kv_dtype)
    steps = start((ours, reference), spec, 1)

    batch = steps.batch({0: 40}, wants_all=True)

    difference = (ours.forward(batch) - reference.forward(batch)).abs().max()
    assert difference < most


def test_preparing_reports_steps_leaves_no_cache_and_can_be_given_up() -> None:
    spec = small_spec(num_layers=1)
    model, reference = both(spec)
    reports = []

    model.prepare(lambda done, total: reports.append((done, total)))

    assert model.kv == ()
    assert reports == [(step, reports[-1][1]) for step in range(len(reports))]
    assert reports[-1][0] == reports[-1][1]

    def cancel(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.prepare(cancel)
    steps = start((model, reference), spec, 1)
    assert_equal(model, reference, steps.batch({0: 7}))


def test_compiled_kernels_are_kept_in_the_users_cache_unless_told_otherwise(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", "elsewhere")
    keep_compiled_kernels()
    assert os.environ["TRITON_CACHE_DIR"] == "elsewhere"
    monkeypatch.delenv("TRITON_CACHE_DIR")

    keep_compiled_kernels()

    folder = tmp_path / "inglenook" / "triton"
    assert os.environ["TRITON_CACHE_DIR"] == str(folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_mixture_of_experts_is_refused_by_name() -> None:
    spec = small_spec(experts=ExpertsSpec(count=4, used=2))

    with pytest.raises(UnsupportedModelError, match="mixture of experts"):
        load(spec, RandomModel(spec, lambda name: "Q8_0"))


def test_an_unknown_cache_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequestError, match="bfloat16, float16, int8"):
        CudaBackend(kv_dtype="float32")


def test_8_bit_floats_are_refused_where_the_card_does_not_know_them() -> None:
    check_float8((8, 9))
    check_float8((9, 0))

    with pytest.raises(
        InvalidRequestError, match=r"needs compute capability 8\.9, and this card has 8\.6\. Use int8"
    ):
        check_float8((8, 6))


@pytest.mark.parametrize("name", ["native-cpu", "auto"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has a card")
def test_8_bit_floats_are_refused_on_the_processor(name: str) -> None:
    spec = small_spec()

    with pytest.raises(InvalidRequestError, match=r"float8_e4m3fn is for NVIDIA cards.*int8 is as small"):
        choose_backend(name, spec, RandomModel(spec, lambda n: "Q8_0"), kv_dtype="float8_e4m3fn")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this computer has a card")
def test_without_a_card_the_reason_is_said_and_auto_takes_another_back_end() -> None:
    spec = small_spec()
    source = RandomModel(spec, lambda name: "Q8_0")
    usable, reason = cuda_status()

    status = next(s for s in backend_statuses() if s.name == "cuda")

    assert (status.usable, status.reason) == (usable, reason) == (False, reason)
    assert choose_backend("auto", spec, source).name != "cuda"
    with pytest.raises(UnsupportedModelError, match="CUDA"):
        choose_backend("cuda", spec, source)


def triton_that_compiles(folder, monkeypatch) -> None:
    """Put a Triton whose driver is compiled where it runs, as that of 3.6, in the place of the installed one."""
    driver = folder / "triton" / "backends" / "nvidia" / "driver.py"
    driver.parent.mkdir(parents=True)
    driver.write_text("compile_module_from_src()")
    (folder / "triton" / "__init__.py").touch()
    found = importlib.util.spec_from_file_location("triton", folder / "triton" / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)


def test_a_triton_that_needs_a_compiler_says_what_is_not_here(tmp_path, monkeypatch) -> None:
    triton_that_compiles(tmp_path, monkeypatch)
    headers, tools = tmp_path / "headers", tmp_path / "tools"
    for folder in (headers, tools):
        folder.mkdir()
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme: {"include": str(headers)})
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CC", raising=False)

    assert "gcc or clang is not here" in str(compiler_lack())
    (tools / "clang").touch(mode=0o755)
    assert "headers of Python" in str(compiler_lack())
    (headers / "Python.h").touch()
    assert compiler_lack() is None


def test_a_triton_that_brings_its_driver_needs_no_compiler(tmp_path, monkeypatch) -> None:
    triton_that_compiles(tmp_path, monkeypatch)
    (tmp_path / "triton" / "backends" / "nvidia" / "driver.py").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert compiler_lack() is None
