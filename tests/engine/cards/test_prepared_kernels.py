"""Whatever a step launches, `prepare` has launched before: a card would else compile in the middle of an answer.

Kernels are replaced by recorders, which note what Triton compiles a kernel for: its arguments' types, which of its
numbers are 1 or multiples of 16, which pointers are aligned, and its compile-time arguments. Nothing is computed.
"""

import importlib
import random

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from random_models import RandomModel, Steps, small_spec

from inglenook.engine.cards.cuda_backend import CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_decoder import StepBuffers
from inglenook.engine.cards.draw import Draw
from inglenook.engine.cards.triton_drawer import TritonDrawer
from inglenook.engine.cards.triton_operations import TritonOperations
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.request import SamplingParams
from inglenook.kernels import aot

CPU = torch.device("cpu")
KERNELS = aot.kernels()
LAUNCHED_MODULES = [importlib.import_module(f"inglenook.kernels.{name}_triton") for name in aot._MODULES]


class Recorder:
    """In a kernel's place: what it would be compiled for goes into `seen`."""

    def __init__(self, kernel, seen: set) -> None:
        options = kernel.kwargs  # as of every kernel that is to be interpreted
        self.name, self._names, self._seen = kernel.__name__, kernel.arg_names, seen
        self._free = set(options.get("do_not_specialize") or ())
        self._unaligned = self._free | set(options.get("do_not_specialize_on_alignment") or ())

    def __getitem__(self, grid):
        assert all(0 < n <= limit for n, limit in zip(grid, (2**31 - 1, 65535, 65535), strict=False)), grid
        return self._launch

    def _launch(self, *arguments, **constants) -> None:
        kinds = [self._kind(name, value) for name, value in zip(self._names, arguments, strict=False)]
        self._seen.add((self.name, *kinds, *sorted((n, str(c)) for n, c in constants.items())))

    def _kind(self, name: str, value) -> tuple:
        if value is None:
            return (name, None)
        if isinstance(value, torch.Tensor):
            return (name, value.dtype, name in self._unaligned or value.data_ptr() % 16 == 0)
        if isinstance(value, float):
            return (name, float)
        is_wide = not -(2**31) <= value < 2**31
        return (name, is_wide, name not in self._free and (value == 1, value % 16 == 0))


@pytest.fixture
def seen(monkeypatch) -> set:
    """What was launched."""
    launched: set = set()
    for module in LAUNCHED_MODULES:
        for name, value in vars(module).items():
            if any(value is kernel for kernel in KERNELS):
                monkeypatch.setattr(module, name, Recorder(value, launched))
    return launched


def load(spec: ModelSpec, form: str, kv_dtype: str) -> CudaModel:
    backend = CudaBackend(
        device="cpu", dtype=torch.bfloat16, kv_dtype=kv_dtype,
        make_operations=lambda spec: TritonOperations(spec, CPU, 132, is_deterministic=False),
    )  # fmt: skip
    model = backend.load(spec, RandomModel(spec, lambda name: form), lambda done, total: None)
    model._buffers = StepBuffers(spec, 512, torch.bfloat16, CPU)  # as many rows as a card's steps have
    model.drawer = TritonDrawer(CPU, takes_filters=True)
    return model


SPECS = {
    "llama": (small_spec(num_layers=2, vocab_size=9001), "Q4_0", "bfloat16"),
    # its matrices are split at 128 rows and not at 256
    "wide": (small_spec(num_layers=2, intermediate_size=4640, vocab_size=500), "Q8_0", "int8"),
    "gemma3": (
        small_spec(
            num_layers=3, num_heads=6, num_kv_heads=3, context_length=700, post_norms=True, qk_norm="head",
            sliding_windows=(20, 0, 20), local_rope=RopeSpec(theta=500.0, size=16), attention_softcap=5.0, tied_head=False,
        ),
        "Q5_1", "bfloat16",
    ),
    "olmo2": (small_spec(num_layers=2, qk_norm="whole", pre_norms=False, post_norms=True), "BF16", "bfloat16"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_no_step_launches_a_kernel_that_was_not_prepared(name: str, seen: set) -> None:
    spec, form, kv_dtype = SPECS[name]
    model = load(spec, form, kv_dtype)
    model.prepare(lambda done, total: None)
    prepared = set(seen)
    groups, generator = len(set(spec.sliding_windows)), random.Random(3)
    width = Steps(spec, groups, 1).num_blocks
    model.allocate_kv((240 * width,) * groups)

    for _ in range(60):
        steps = Steps(spec, groups, 240)
        decoding = generator.choice([0, 1, 3, 7, 20, 70, 200])
        prompts = generator.choice([[], [1], [5], [19, 60], [100], [150, 3], [30] * 8])
        lengths = [*[1] * decoding, *prompts]
        if lengths:
            steps.lengths[:decoding] = [generator.randrange(1, 190) for _ in range(decoding)]
            model.forward(steps.batch(dict(enumerate(lengths)), wants_all=generator.random() < 0.3))

    assert not seen - prepared, sorted(str(key) for key in seen - prepared)
    assert len(prepared) > 15


def test_the_first_draw_finds_its_kernels(seen: set) -> None:
    spec, form, kv_dtype = SPECS["llama"]
    model = load(spec, form, kv_dtype)
    model.prepare(lambda done, total: None)
    prepared = set(seen)

    for params in (SamplingParams(temperature=0.7), SamplingParams(temperature=0.7, top_k=5)):
        for rows in (1, 3, 16):
            model.drawer.draw(torch.zeros(rows, spec.vocab_size), [Draw(params, 1, 0, 7)] * rows)

    assert {key[0] for key in prepared} >= {"_draw_kernel", "_pick_kernel"}
    assert not seen - prepared


def test_a_recorder_tells_apart_what_triton_compiles_anew(seen: set) -> None:
    activation = importlib.import_module("inglenook.kernels.gated_activation_triton")

    for columns in (1, 16, 32, 40):
        activation.gated_activation(torch.empty(1, 2 * columns), torch.empty(1, columns), "silu")

    assert len(seen) == 3
