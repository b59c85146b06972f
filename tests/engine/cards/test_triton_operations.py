"""Whole steps in the GPU's kernels, interpreted, against the reference back end."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.triton_operations import TritonOperations
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.torch_backend import TORCH_BACKENDS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

CPU = torch.device("cpu")


def load(spec: ModelSpec, source: RandomModel, *, is_deterministic: bool = False):
    backend = CudaBackend(
        device="cpu",
        dtype=torch.float32,
        kv_dtype="float32",
        is_deterministic=is_deterministic,
        make_operations=lambda spec: TritonOperations(spec, CPU, 8, is_deterministic=is_deterministic),
    )
    return backend.load(spec, source, lambda done, total: None)


SPECS = {
    "llama": (small_spec(num_layers=2), "Q8_0"),
    "qwen2": (small_spec(num_layers=1, qkv_bias=True, tied_head=False), "Q4_0"),
    "gemma3": (
        small_spec(
            num_layers=2, post_norms=True, activation="gelu_tanh", qk_norm="head", embedding_scale=8.0,
            sliding_windows=(20, 0), local_rope=RopeSpec(theta=500.0, size=16), attention_softcap=5.0,
            logit_softcap=3.0,
        ),
        "Q5_1",
    ),
    "olmo2": (small_spec(num_layers=1, qk_norm="whole", pre_norms=False, post_norms=True), "F32"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_steps_give_the_references_logits(name: str) -> None:
    spec, form = SPECS[name]
    source = RandomModel(spec, lambda tensor: form)
    ours = load(spec, source)
    reference = TORCH_BACKENDS["reference"]().load(spec, source, lambda done, total: None)
    groups = len(set(spec.sliding_windows))
    steps = Steps(spec, groups, 3)
    for model in (ours, reference):
        model.allocate_kv((steps.num_blocks,) * groups)

    for counts in ({0: 30, 1: 6}, {0: 1, 1: 1}, {0: 1, 2: 9}):
        batch = steps.batch(counts, wants_all=True)
        torch.testing.assert_close(ours.forward(batch), reference.forward(batch), rtol=1e-3, atol=1e-3)


def test_deterministic_rows_have_the_same_bits_however_they_are_cut_and_with_whomever() -> None:
    spec = small_spec(num_layers=2)
    model = load(spec, RandomModel(spec, lambda tensor: "Q4_0"), is_deterministic=True)

    def logits(cuts: list[dict[int, int]]) -> torch.Tensor:
        steps = Steps(spec, 1, 2)
        model.allocate_kv((steps.num_blocks,))
        rows = [model.forward(steps.batch(counts, wants_all=True)) for counts in cuts]
        return torch.cat([r[: counts[0]] for r, counts in zip(rows, cuts, strict=True)])

    whole = logits([{0: 21}])

    assert torch.equal(whole, logits([{0: 16, 1: 3}, {0: 4, 1: 1}, {0: 1, 1: 1}]))
    assert torch.equal(whole, logits([{0: 20}, {0: 1}]))
