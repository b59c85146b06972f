"""Every GPU operation against float64 on fresh random inputs; each function yields (what, error, allowed)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import torch
from kernel_tolerances import TOLERANCES, deviation
from machine import Machine
from random_weights import random_weight

from inglenook.engine.request import SamplingParams
from inglenook.engine.sampler import sample
from inglenook.kernels.gated_activation_triton import gated_activation
from inglenook.kernels.gelu_and_mul import gelu_and_mul
from inglenook.kernels.gumbel import noise_base
from inglenook.kernels.packed_weight import PACKED_FORMATS, pack_weight, unpack_weight
from inglenook.kernels.packed_weight_triton import embedding, unpack
from inglenook.kernels.paged_attention import paged_attention
from inglenook.kernels.paged_attention_triton import decode_attention, part_count
from inglenook.kernels.prefill_attention_triton import prefill_attention
from inglenook.kernels.quantized_linear_triton import quantized_linear, split_count
from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rms_norm_triton import add_rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.rotary_embedding_triton import rotate_and_store
from inglenook.kernels.sampling_triton import draw_parts, draw_rows, sample_rows
from inglenook.kernels.silu_and_mul import silu_and_mul

Outcome = tuple[str, float, float]
LINEAR_SHARES = 4  # that the formats are cut into, so that several processes compile
# heads, KV heads, size
ATTENTION_SHAPES = ((9, 3, 64), (14, 2, 96), (32, 8, 128), (8, 4, 256))


def check_operation(name: str, machine: Machine, seed: int) -> Iterator[Outcome]:
    """One of `OPERATIONS`; `seed` makes the inputs."""
    torch.manual_seed(seed)
    yield from OPERATIONS[name](machine, seed)


def _random(machine: Machine, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=machine.device)


def knows_float8(machine: Machine) -> bool:
    """Whether the card multiplies 8-bit floats; Triton's interpreter does not."""
    return machine.is_card and torch.cuda.get_device_capability() >= (8, 9)


def _outcome(operation: str, what: str, actual: torch.Tensor, expected: torch.Tensor, dtype) -> Outcome:
    return f"{operation} {what}", deviation(actual, expected), TOLERANCES[operation][dtype]


def _norms(machine: Machine, seed: int) -> Iterator[Outcome]:
    for columns in (4096, 5121) if machine.is_card else (33,):
        x, weight = _random(machine, 7, columns), _random(machine, columns)
        branch = _random(machine, 7, columns).to(machine.dtype)
        joined = x.double() + branch.double()
        out = torch.empty_like(branch)
        add_rms_norm(x, weight, 1e-5, out, branch=branch)
        yield _outcome("rms_norm", f"{columns}", out, rms_norm(joined, weight.double(), 1e-5), machine.dtype)


def _activations(machine: Machine, seed: int) -> Iterator[Outcome]:
    gate_up = _random(machine, 5, 2 * 1025).to(machine.dtype)
    for gate in ("silu", "gelu", "gelu_tanh"):
        out = torch.empty(5, 1025, dtype=machine.dtype, device=machine.device)
        gated_activation(gate_up, out, gate)
        wide = gate_up.float()
        expected = silu_and_mul(wide) if gate == "silu" else gelu_and_mul(wide, by_tanh=gate == "gelu_tanh")
        yield _outcome("gated_activation", gate, out, expected, machine.dtype)


def _linear(machine: Machine, seed: int, share: int) -> Iterator[Outcome]:
    # a multiple of 16, as models have it, and of no tile
    outputs, columns = (1008, 4096) if machine.is_card else (20, 256)
    for number, name in list(enumerate(PACKED_FORMATS))[share::LINEAR_SHARES]:
        form = "BF16" if name == "PLAIN" else name
        tensor = random_weight(form, rows=outputs, columns=columns, seed=seed + number, std=columns**-0.5)
        weight = pack_weight(tensor, machine.device, machine.dtype)
        exact = unpack_weight(weight).double()
        out = torch.empty(outputs, columns, dtype=machine.dtype, device=machine.device)
        unpack(weight, out)
        yield _outcome("embedding", f"whole {name}", out, exact, machine.dtype)
        ids = torch.tensor([outputs - 1, 0, 5], device=machine.device)
        rows = torch.empty(3, columns, device=machine.device)
        embedding(weight, ids, rows)
        yield _outcome("embedding", f"rows {name}", rows, exact[ids], torch.float32)
        bias = _random(machine, outputs)
        for count in (1, 2, 3, 5, 16, 17, 64, 100, 256) if machine.is_card else (1, 5):
            x = _random(machine, count, columns).to(machine.dtype)
            y = torch.empty(count, outputs, dtype=machine.dtype, device=machine.device)
            splits = split_count(count, outputs, columns, machine.num_sms)
            space = torch.empty(splits * count * outputs, device=machine.device)
            quantized_linear(x, weight, bias, y, splits=splits, workspace=space)
            expected = x.double() @ exact.T + bias.double()
            yield _outcome("linear", f"{name}, {count} rows", y, expected, machine.dtype)


def _rotary(machine: Machine, seed: int) -> Iterator[Outcome]:
    tokens, heads, kv_heads, size = (65, 32, 8, 128) if machine.is_card else (5, 4, 2, 16)
    qkv = _random(machine, tokens, (heads + 2 * kv_heads) * size).to(machine.dtype)
    angles = torch.rand(400, size // 2, device=machine.device) * 6
    tables = (angles.cos(), angles.sin())
    positions = torch.randint(0, 400, (tokens,), device=machine.device)
    slots = torch.randperm(tokens, device=machine.device)
    q = torch.empty(tokens, heads, size, dtype=machine.dtype, device=machine.device)
    at = [t[positions] for t in tables]
    parts = torch.split(qkv.float().view(tokens, -1, size), [heads, kv_heads, kv_heads], dim=1)
    kinds = [machine.dtype, torch.int8]
    if knows_float8(machine):
        kinds.append(torch.float8_e4m3fn)
    for kind in kinds:
        shape = (-(-tokens // 16), kv_heads, 16, size)
        k, v = (torch.zeros(shape, dtype=kind, device=machine.device) for _ in range(2))
        scales = [torch.zeros(shape[:3], device=machine.device) if kind == torch.int8 else None for _ in "kv"]
        rotate_and_store(qkv, tables, positions, slots, q, k, v, k_scales=scales[0], v_scales=scales[1])
        yield _outcome("rotary_embedding", "queries", q, rotary_embedding(parts[0], *at), machine.dtype)
        stored = k[slots // 16, :, slots % 16].double()
        if scales[0] is not None:
            stored *= scales[0][slots // 16, :, slots % 16].double()[..., None]
        allowed = {torch.int8: 0.03, torch.float8_e4m3fn: 0.3}.get(
            kind, TOLERANCES["rotary_embedding"][machine.dtype]
        )
        yield f"stored keys {kind}", deviation(stored, rotary_embedding(parts[1], *at)), allowed


def _attention(machine: Machine, seed: int, shape: tuple[int, int, int]) -> Iterator[Outcome]:
    lengths, counts = ([1, 130, 1500], [1, 77, 300]) if machine.is_card else ([1, 40], [1, 9])
    kinds = [machine.dtype, torch.int8, *([torch.float8_e4m3fn] if knows_float8(machine) else [])]
    heads, kv_heads, size = shape if machine.is_card else (4, 2, 16)
    for kind in kinds:
        blocks = [-(-n // 16) for n in lengths]
        order = torch.randperm(sum(blocks)).tolist()
        tables = torch.zeros(len(lengths), max(blocks), dtype=torch.int32)
        for row, count in enumerate(blocks):
            tables[row, :count] = torch.tensor([order.pop() for _ in range(count)])
        shape = (sum(blocks), kv_heads, 16, size)
        scales: dict[str, torch.Tensor] = {}
        if kind == torch.int8:
            k, v = (torch.randint(-127, 128, shape, dtype=torch.int8) for _ in range(2))
            scales = {n: torch.rand(shape[:3]) / 50 + 0.01 for n in ("k_scales", "v_scales")}
            wide = [c.double() * s.double()[..., None] for c, s in zip((k, v), scales.values(), strict=True)]
        else:
            k, v = (torch.randn(shape).to(kind) for _ in range(2))
            wide = [k.double(), v.double()]
        move = lambda x: x.to(machine.device)  # noqa: E731 - a word for the lines below
        lengths_on = move(torch.tensor(lengths, dtype=torch.int32))
        name = "attention_int8" if kind == torch.int8 else "attention"
        what = str(kind).removeprefix("torch.")
        on_card = {n: move(s) for n, s in scales.items()}
        for window, softcap in ((0, 0.0), (40, 5.0)):
            starts = torch.tensor([0, *itertools.accumulate(counts)], dtype=torch.int32)
            q = torch.randn(sum(counts), heads, size).to(machine.dtype)
            out = move(torch.full_like(q, torch.nan))
            options = {"scale": size**-0.5, "window": window, "softcap": softcap}
            prefill_attention(
                move(q), move(k), move(v), move(tables), move(starts), lengths_on, out, **options, **on_card
            )
            expected = paged_attention(q.double(), *wide, tables, starts, torch.tensor(lengths), **options)
            yield _outcome(name, f"{what}, prompt {size} {window}", out.cpu(), expected, machine.dtype)
            ones = torch.arange(len(lengths) + 1, dtype=torch.int32)
            q = torch.randn(len(lengths), heads, size).to(machine.dtype)
            out = move(torch.full_like(q, torch.nan))
            parts = part_count(len(lengths), kv_heads, 4096, machine.num_sms)
            space = move(torch.full((len(lengths) * heads * parts * (size + 2),), torch.nan))
            decode_attention(
                move(q), move(k), move(v), move(tables), lengths_on, out, **options, **on_card, parts=parts, workspace=space
            )  # fmt: skip
            expected = paged_attention(q.double(), *wide, tables, ones, torch.tensor(lengths), **options)
            yield _outcome(name, f"{what}, decode {size} {window}", out.cpu(), expected, machine.dtype)


def _sampling(machine: Machine, seed: int) -> Iterator[Outcome]:
    rows, size = (64, 128_256) if machine.is_card else (2, 500)
    logits = torch.randn(rows, size) * 3
    for params in (
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.7, top_k=40, top_p=0.9, min_p=0.01),
    ):
        full = lambda value, kind: torch.full((rows,), value, dtype=kind, device=machine.device)  # noqa: E731
        bases = torch.tensor([noise_base(seed, 0, row) for row in range(rows)], device=machine.device)
        out = full(-1, torch.int64)
        sample_rows(
            logits.to(machine.device), bases, full(params.temperature, torch.float64),
            full(params.top_k, torch.int32), full(params.top_p, torch.float64), full(params.min_p, torch.float64), out,
        )  # fmt: skip
        wanted = [sample(row, params, seed=seed, choice=0, position=i) for i, row in enumerate(logits)]
        wrong = sum(a != b for a, b in zip(out.tolist(), wanted, strict=True))
        yield f"sampling {params.temperature} {params.top_k}: tokens unlike the sampler's", wrong, 0
        if params.top_k:
            continue
        out = full(-1, torch.int64)
        parts = rows * draw_parts(size)
        space = torch.empty(parts, dtype=torch.float64, device=machine.device)
        ids = torch.empty(parts, dtype=torch.int32, device=machine.device)
        draw_rows(logits.to(machine.device), bases, full(params.temperature, torch.float64), out, space, ids)
        wrong = sum(a != b for a, b in zip(out.tolist(), wanted, strict=True))
        yield f"sampling {params.temperature}, shared rows: tokens unlike the sampler's", wrong, 0


OPERATIONS: dict[str, Callable[[Machine, int], Iterator[Outcome]]] = {
    "norms": _norms,
    "activations": _activations,
    **{f"linear {share}": functools.partial(_linear, share=share) for share in range(LINEAR_SHARES)},
    "rotary": _rotary,
    **{f"attention {shape[2]}": functools.partial(_attention, shape=shape) for shape in ATTENTION_SHAPES},
    "sampling": _sampling,
}
