"""Speeds on the card: copying and multiplying first, then the engine's steps as parts of those, plain torch beside."""

from __future__ import annotations

import torch
from check_models import load
from machine import Machine
from random_models import Steps

from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_operations import DeviceLinear
from inglenook.engine.cards.draw import Draw
from inglenook.engine.cards.plain_drawer import PlainDrawer
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.request import SamplingParams

Row = dict[str, float | str]
CONTEXT = 512
BATCHES = (1, 4, 16, 64)


def copy_gb_s(machine: Machine) -> float:
    """Bytes read and written a second by a copy that is far larger than the card's cache, in GB/s."""
    source = torch.zeros(
        (1 << 31) if machine.is_card else (1 << 20), dtype=torch.uint8, device=machine.device
    )
    target = torch.empty_like(source)
    return 2 * source.nbytes / machine.seconds(lambda: target.copy_(source), 10) / 1e9


def gemm_tflop_s(machine: Machine) -> float:
    """Rate of a large product of random numbers in the compute dtype."""
    size = 8192 if machine.is_card else 128
    a, b = (torch.randn(size, size, device=machine.device, dtype=machine.dtype) for _ in range(2))
    return 2 * size**3 / machine.seconds(lambda: a @ b, 20) / 1e12


def measure_model(
    machine: Machine, name: str, spec: ModelSpec, model: CudaModel, copy: float, gemm: float
) -> list[Row]:
    """Decode and prefill of one model, as a share of copying and multiplying."""
    rows = []
    batches = BATCHES if machine.is_card else (1, 4)
    context = CONTEXT if machine.is_card else 20
    steps = Steps(spec, 1, batches[-1])
    model.allocate_kv((steps.num_blocks,))
    steps.lengths = [context] * batches[-1]
    for batch in batches:
        step = steps.batch(dict.fromkeys(range(batch), 1))
        steps.lengths = [context] * batches[-1]
        seconds = machine.seconds(lambda step=step: model.forward(step), 30)
        graphs, model._graphs = model._graphs, None
        without = machine.seconds(lambda step=step: model.forward(step), 10)
        model._graphs = graphs
        read = bytes_a_step(model, batch, context)
        gb_s = read / seconds / 1e9
        rows.append(
            {
                "model": name, "what": f"decode, batch {batch}", "ms": seconds * 1e3, "tokens_s": batch / seconds,
                "gb_s": gb_s, "of_copy": gb_s / copy, "graph_gain": without / seconds,
            }
        )  # fmt: skip
    count = 2048 if machine.is_card else 40
    steps = Steps(spec, 1, 1)
    prompt = steps.batch({0: min(count, spec.context_length)})
    seconds = machine.seconds(lambda: model.forward(prompt), 5)
    tflop_s = prefill_flop(spec, count) / seconds / 1e12
    rows.append(
        {
            "model": name, "what": f"prefill, {count} tokens", "ms": seconds * 1e3, "tokens_s": count / seconds,
            "tflop_s": tflop_s, "of_gemm": tflop_s / gemm,
        }
    )  # fmt: skip
    return rows


def measure_deterministic(machine: Machine, name: str, spec: ModelSpec) -> list[Row]:
    """What one order of sums costs, at batch 1."""
    model = load(machine, spec, "Q4_0", is_deterministic=True)
    steps = Steps(spec, 1, 1)
    model.allocate_kv((steps.num_blocks,))
    steps.lengths = [CONTEXT if machine.is_card else 20]
    step = steps.batch({0: 1})
    seconds = machine.seconds(lambda: model.forward(step), 20)
    model.close()
    return [
        {
            "model": name,
            "what": "deterministic decode, batch 1",
            "ms": seconds * 1e3,
            "tokens_s": 1 / seconds,
        }
    ]


def measure_drawing(machine: Machine, name: str, spec: ModelSpec, model: CudaModel) -> list[Row]:
    """A decode step and its tokens: drawn on the card, and on the host from logits that travel there."""
    batches = (1, 16) if machine.is_card else (1,)
    rows: list[Row] = []
    context = CONTEXT if machine.is_card else 20
    steps = Steps(spec, 1, batches[-1])
    model.allocate_kv((steps.num_blocks,))
    for batch in batches:
        steps.lengths = [context] * batches[-1]
        step = steps.batch(dict.fromkeys(range(batch), 1))
        for params in (SamplingParams(temperature=0.7), SamplingParams(temperature=0.7, top_p=0.95)):
            draws = [Draw(params, 1, 0, row) for row in range(batch)]
            kind = f"top-p {params.top_p}" if params.top_p < 1 else "no filter"
            drawers = {"host": PlainDrawer()}
            if model.drawer.takes(draws[0]):
                drawers["card"] = model.drawer
            for where, drawer in drawers.items():

                def work(step=step, draws=draws, drawer=drawer, where=where) -> None:
                    logits = model.forward(step)
                    drawer.draw(logits.cpu() if where == "host" else logits, draws)

                seconds = machine.seconds(work, 5)
                what = f"decode and draw on the {where}, {kind}, batch {batch}"
                rows.append({"model": name, "what": what, "ms": seconds * 1e3, "tokens_s": batch / seconds})
    return rows


def measure_plain_torch(
    machine: Machine, name: str, spec: ModelSpec, model: CudaModel, copy: float
) -> list[Row]:
    """The same products and attention as PyTorch's own operations do them, eagerly, on unquantised weights."""
    assert model._decoder is not None
    weights = model._decoder.weights
    rows = []
    context = CONTEXT if machine.is_card else 20
    for batch in (1, 16) if machine.is_card else (1,):
        x = torch.randn(batch, spec.hidden_size, device=machine.device, dtype=machine.dtype)
        k, v = (
            torch.randn(
                batch, spec.num_kv_heads, context, spec.head_size, device=machine.device, dtype=machine.dtype
            )
            for _ in range(2)
        )

        def step(x: torch.Tensor = x, k: torch.Tensor = k, v: torch.Tensor = v) -> torch.Tensor:
            functional = torch.nn.functional
            for layer in weights.layers:
                qkv = functional.linear(functional.rms_norm(x, x.shape[-1:]), plain(layer.qkv))
                q = qkv[:, : spec.q_size].view(len(x), spec.num_heads, 1, spec.head_size)
                y = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
                x = x + functional.linear(y.reshape(len(x), -1), plain(layer.o))
                gate, up = functional.linear(
                    functional.rms_norm(x, x.shape[-1:]), plain(layer.gate_up)
                ).chunk(2, -1)
                x = x + functional.linear(functional.silu(gate) * up, plain(layer.down))
            return functional.linear(x, plain(weights.head))

        with torch.inference_mode():
            seconds = machine.seconds(step, 20)
        gb_s = bytes_a_step(model, batch, context) / seconds / 1e9
        rows.append(
            {
                "model": name, "what": f"plain torch decode, batch {batch}", "ms": seconds * 1e3,
                "tokens_s": batch / seconds, "gb_s": gb_s, "of_copy": gb_s / copy,
            }
        )  # fmt: skip
    return rows


def plain(linear: DeviceLinear) -> torch.Tensor:
    """The one unquantised matrix of a product."""
    return linear.parts[0].low


def bytes_a_step(model: CudaModel, batch: int, context: int) -> float:
    """Bytes of weights, keys and values that a decode step must read."""
    assert model._decoder is not None
    weights = model._decoder.weights
    linears = [weights.head]
    for layer in weights.layers:
        linears += [layer.qkv, layer.o, layer.gate_up, layer.down]
    read = sum(part.size_bytes for linear in linears for part in linear.parts)
    return read + sum(kv.group.block_bytes for kv in model.kv) / 16 * context * batch


def prefill_flop(spec: ModelSpec, tokens: int) -> float:
    """Operations of a prompt: two a weight and token, and attention over half of the square."""
    layers = spec.num_parameters - spec.vocab_size * spec.hidden_size * (1 if spec.tied_head else 2)
    return 2.0 * layers * tokens + 2.0 * spec.num_layers * spec.q_size * tokens**2
