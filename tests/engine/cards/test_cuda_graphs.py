"""Steps on a device whose numbers nobody can read: whatever waits for the device fails here."""

import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.models.spec import ModelSpec, RopeSpec

SPECS = {
    "llama": small_spec(),
    "gemma3": small_spec(
        post_norms=True, activation="gelu_tanh", qk_norm="head", embedding_scale=8.0, sliding_windows=(20, 0, 20),
        local_rope=RopeSpec(theta=500.0, size=16), logit_softcap=3.0, logit_scale=0.5, residual_scale=0.4,
    ),
    "olmo2": small_spec(qk_norm="whole", pre_norms=False, post_norms=True, tied_head=False),
}  # fmt: skip


class Launches:
    """Operations that only count: like a kernel's launch, they return before anything is computed."""

    def __init__(self) -> None:
        self.count = 0

    def __getattr__(self, name: str):
        def launch(*arguments: object) -> None:
            self.count += 1

        return launch


class Curious(Launches):
    """One that looks at a result, as a careless launcher would."""

    def linear(self, x, linear, out) -> None:
        assert int(out.argmax()) >= 0


def load(spec: ModelSpec, operations: Launches) -> tuple[CudaModel, Steps]:
    backend = CudaBackend(device="meta", dtype=torch.float32, make_operations=lambda spec: operations)
    model = backend.load(spec, RandomModel(spec, lambda name: "Q8_0"), lambda done, total: None)
    groups = len(set(spec.sliding_windows))
    steps = Steps(spec, groups, 3)
    model.allocate_kv((steps.num_blocks,) * groups)
    return model, steps


@pytest.mark.parametrize("name", SPECS)
def test_no_step_reads_a_number_from_the_device(name: str) -> None:
    operations = Launches()
    model, steps = load(SPECS[name], operations)

    for counts in ({0: 30, 1: 3}, {0: 1, 1: 1}, {0: 1, 2: 9}, {0: 1, 1: 1, 2: 1}):
        logits = model.forward(steps.batch(counts))
        assert logits.device.type == "meta"
        assert logits.shape == (len(counts), SPECS[name].vocab_size)
    assert operations.count > 4 * 8 * SPECS[name].num_layers


def test_a_decode_step_launches_the_same_whatever_its_rows_and_lengths() -> None:
    operations = Launches()
    model, steps = load(SPECS["llama"], operations)
    model.forward(steps.batch({0: 30, 1: 3}))
    counts = []

    for rows in ({0: 1}, {0: 1, 1: 1}, {0: 1, 1: 1, 2: 1}):
        before = operations.count
        model.forward(steps.batch(rows))
        counts.append(operations.count - before)

    assert len(set(counts)) == 1


def test_an_operation_that_waits_is_caught() -> None:
    model, steps = load(SPECS["llama"], Curious())

    with pytest.raises(RuntimeError, match="meta"):
        model.forward(steps.batch({0: 1}))
