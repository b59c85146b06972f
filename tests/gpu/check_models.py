"""The engine's steps on random-weight models: logits against the same weights in float32, and the engine's promises."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from check_operations import Outcome
from machine import Machine
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_decoder import DeviceDecoder, StepBuffers
from inglenook.engine.cards.device_operations import PlainOperations
from inglenook.engine.cards.ranks import ProcessRanks
from inglenook.engine.cards.triton_operations import TritonOperations
from inglenook.engine.models.spec import ModelSpec, RopeSpec

# logits may be off by twice what rounding every operation to the compute dtype costs
OWN_ERROR = 2.0


def shapes(machine: Machine) -> dict[str, ModelSpec]:
    """An 8B-shaped and a 1B-shaped model, as Llama 3 has them; tiny ones in a dry run."""
    if not machine.is_card:
        return {"tiny": small_spec(num_layers=1, context_length=64)}
    rope = RopeSpec(theta=5e5, size=128)
    large = ModelSpec(
        architecture="llama", vocab_size=128_256, hidden_size=4096, num_layers=32, num_heads=32, num_kv_heads=8,
        head_size=128, intermediate_size=14_336, context_length=4096, norm_eps=1e-5, rope=rope,
    )  # fmt: skip
    small = ModelSpec(
        architecture="llama", vocab_size=128_256, hidden_size=2048, num_layers=16, num_heads=32, num_kv_heads=8,
        head_size=64, intermediate_size=8192, context_length=4096, norm_eps=1e-5, rope=RopeSpec(theta=5e5, size=64),
        tied_head=True,
    )  # fmt: skip
    return {"1B": small, "8B": large}


def load(
    machine: Machine,
    spec: ModelSpec,
    form: str,
    *,
    is_deterministic: bool = False,
    uses_graphs: bool = True,
    ranks: ProcessRanks | None = None,
    takes_hidden: bool = False,
) -> CudaModel:
    """A model whose matrices are all of one format."""

    def operations(spec: ModelSpec) -> TritonOperations:
        return TritonOperations(spec, machine.device, machine.num_sms, is_deterministic=is_deterministic)

    backend = CudaBackend(
        device=machine.device.type,
        dtype=machine.dtype,
        kv_dtype="bfloat16" if machine.is_card else "float16",
        is_deterministic=is_deterministic,
        uses_graphs=uses_graphs,
        make_operations=operations,
        ranks=ranks,
        takes_hidden=takes_hidden,
    )
    model = backend.load(spec, RandomModel(spec, lambda name: form), lambda done, total: None)
    if machine.is_card:
        model.prepare(lambda done, total: None)
    return model


def compile_kernels(machine: Machine, shape: str, form: str) -> None:
    """Have Triton's cache hold what a model of this shape needs: two layers have all the kernels of many."""
    spec = dataclasses.replace(shapes(machine)[shape], num_layers=2, sliding_windows=(0, 0))
    for is_deterministic in (False, True) if form == "Q4_0" else (False,):
        load(machine, spec, form, is_deterministic=is_deterministic).close()


def teacher_forced(model: CudaModel, cuts: list[int]) -> torch.Tensor:
    """Logits of every token of one sequence, cut into steps as said: float32 [T, V] on the CPU."""
    steps = Steps(model.spec, 1, 1)
    rows = [model.forward(steps.batch({0: count}, wants_all=True)).cpu() for count in cuts]
    return torch.cat(rows)


def plain_twin(model: CudaModel, dtype: torch.dtype) -> CudaModel:
    """The same weights by the formulas of `PlainOperations`, rounded to `dtype` between operations."""
    assert model._decoder is not None
    decoder = DeviceDecoder(model.spec, model._decoder.weights, PlainOperations())
    name = str(dtype).removeprefix("torch.")
    backend = CudaBackend(
        device=model.device.type, kv_dtype=name, make_operations=lambda spec: PlainOperations()
    )
    buffers = StepBuffers(model.spec, 64, dtype, model.device)
    return CudaModel(decoder, backend.kv_groups(model.spec), buffers, 0, uses_graphs=False)


def check_model(machine: Machine, name: str, model: CudaModel) -> Iterator[Outcome]:
    """Logits of prompt and decoded tokens, against float32 and against the compute dtype's own error."""
    prompt, decoded = (96, 8) if machine.is_card else (9, 2)
    cuts = [prompt - 19, 19, *[1] * decoded] if machine.is_card else [prompt, *[1] * decoded]
    blocks = Steps(model.spec, 1, 1).num_blocks
    model.allocate_kv((blocks,))
    ours = teacher_forced(model, cuts)
    results = []
    for dtype in (torch.float32, machine.dtype):
        twin = plain_twin(model, dtype)
        twin.allocate_kv((blocks,))
        results.append(teacher_forced(twin, cuts))
    exact, rounded = results
    error, own = ((x - exact).square().mean().sqrt().item() for x in (ours, rounded))
    yield f"{name}: logits, error over the dtype's own {own:.4f}", error / own, OWN_ERROR
    # of the rows whose best token leads by more than the error can be, how many choose another
    top = exact.topk(2, dim=-1)
    leads = (top.values[:, 0] - top.values[:, 1]) > 2 * (ours - exact).abs().amax(-1)
    wrong = int((ours.argmax(-1) != top.indices[:, 0])[leads].sum())
    yield (
        f"{name}: tokens unlike float32's where the lead exceeds the error ({int(leads.sum())} rows)",
        wrong,
        0,
    )
    distance = torch.nn.functional.kl_div(
        ours.log_softmax(-1), exact.log_softmax(-1), log_target=True, reduction="batchmean"
    )
    yield f"{name}: KL divergence to float32", float(distance), 0.02


def check_promises(machine: Machine, spec: ModelSpec) -> Iterator[Outcome]:
    """Graphs change no bit; with one order of sums, neither do chunks and batch mates."""
    kinds = {"graphs": True, "no graphs": False}
    models = {
        kind: load(machine, spec, "Q4_0", uses_graphs=uses_graphs) for kind, uses_graphs in kinds.items()
    }
    results = {}
    for kind, model in models.items():
        steps = Steps(spec, 1, 3)
        model.allocate_kv((steps.num_blocks,))
        model.forward(steps.batch({0: 5, 1: 9, 2: 3}))
        # one, two and four rows: every size has the kernels it would have had without a graph
        results[kind] = [model.forward(steps.batch(dict.fromkeys(range(n), 1))).cpu() for n in (1, 2)]
    same = all(torch.equal(a, b) for a, b in zip(*results.values(), strict=True))
    yield "a captured step has the bits of a plain one", float(not same), 0
    for model in models.values():
        model.close()
    exact = load(machine, spec, "Q4_0", is_deterministic=True)
    exact.allocate_kv((Steps(spec, 1, 4).num_blocks,))
    length = 90 if machine.is_card else 12
    whole = teacher_forced(exact, [length])
    different = sum(
        not torch.equal(whole, teacher_forced(exact, cuts))
        for cuts in ([length // 3, length - length // 3], [length - 3, 1, 1, 1])
    )
    yield "deterministic: chunkings with another bit", different, 0
    steps = Steps(spec, 1, 4)
    mates = {0: length, 1: 3, 3: 1}
    together = exact.forward(steps.batch(mates, wants_all=True))[:length].cpu()
    yield "deterministic: batches with another bit", float(not torch.equal(whole, together)), 0
    exact.close()


def check_parts(machine: Machine, spec: ModelSpec) -> Iterator[Outcome]:
    """What shares of models need of a card: sums over cards inside graphs, and hidden states that come from elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = ProcessRanks(Path(folder) / "rendezvous", 0, 1, is_card=machine.is_card, timeout_s=60)
        alone, shared = load(machine, spec, "Q4_0"), load(machine, spec, "Q4_0", ranks=ranks)
        results = []
        for model in (alone, shared):
            model.allocate_kv((Steps(spec, 1, 1).num_blocks,))
            results.append(teacher_forced(model, [9, 1, 1] if machine.is_card else [3, 1]))
            model.close()
    yield "a card that adds up over itself alone: rows with another bit", float(not torch.equal(*results)), 0
    hidden = torch.randn(11, spec.hidden_size, generator=torch.Generator().manual_seed(3))
    results = []
    for uses_graphs in (True, False):
        model = load(machine, spec, "Q4_0", uses_graphs=uses_graphs, takes_hidden=True)
        steps = Steps(spec, 1, 1)
        model.allocate_kv((steps.num_blocks,))
        counts = [9, 1, 1] if machine.is_card else [3, 1]
        rows = []
        for count in counts:
            first = steps.lengths[0]
            rows.append(model.forward(steps.batch({0: count}), hidden[first : first + count]).cpu())
        results.append(torch.cat(rows))
        model.close()
    yield "hidden states by graphs and without: rows with another bit", float(not torch.equal(*results)), 0
    yield "hidden states: logits that are not numbers", float(not results[0].isfinite().all()), 0
