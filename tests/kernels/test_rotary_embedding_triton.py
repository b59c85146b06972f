"""Rotation and KV stores, interpreted, beside the reference."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close

from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.rotary_embedding_triton import rotate_and_store

# infinities that NumPy warns of in the interpreter are meant
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PAGE = 16


class Step:
    """Five tokens at odd positions into shuffled slots, one of them not stored, and what must come of them."""

    def __init__(self, dtype, cache_dtype, *, heads=3, kv_heads=1, size=24, pairs=8, has_norm=False):
        generator = torch.Generator().manual_seed(size + heads)
        tokens = 5
        self.qkv = torch.randn(tokens, (heads + 2 * kv_heads) * size, generator=generator).to(dtype)
        angles = torch.rand(40, pairs, generator=generator) * 6
        self.tables = (torch.cos(angles), torch.sin(angles)) if pairs else None
        self.positions = torch.tensor([0, 39, 7, 8, 1])
        self.slots = torch.tensor([33, 0, -1, 15, 47])
        self.q_out = torch.full((tokens, heads, size), torch.nan, dtype=dtype)
        shape = (3, kv_heads, PAGE, size)
        fill = 77 if cache_dtype == torch.int8 else 7.0
        self.k_cache = torch.full(shape, fill).to(cache_dtype)
        self.v_cache = self.k_cache.clone()
        is_int8 = cache_dtype == torch.int8
        self.scales = [torch.full(shape[:3], 7.0) if is_int8 else None for _ in range(2)]
        self.keys = None
        self.norms = tuple(torch.randn(size, generator=generator) for _ in range(2)) if has_norm else None
        q, k, self.v = torch.split(
            self.qkv.double().view(tokens, -1, size), [heads, kv_heads, kv_heads], dim=1
        )
        if self.norms:
            q, k = (rms_norm(x, w.double(), 1e-6) for x, w in zip((q, k), self.norms, strict=True))
        if self.tables:
            # the reference rotates in float32, which is exact enough for what is asked here
            at = [t[self.positions] for t in self.tables]
            q, k = rotary_embedding(q.float(), *at), rotary_embedding(k.float(), *at)
        self.q, self.k = q, k

    def run(self):
        rotate_and_store(
            self.qkv, self.tables, self.positions, self.slots, self.q_out, self.k_cache, self.v_cache,
            k_scales=self.scales[0], v_scales=self.scales[1], norms=self.norms, eps=1e-6, keys=self.keys,
        )  # fmt: skip

    def stored(self, cache, scales=None):
        kept = self.slots[self.slots >= 0]
        values = cache[kept // PAGE, :, kept % PAGE].double()
        if scales is not None:
            values *= scales[kept // PAGE, :, kept % PAGE].double()[..., None]
        return values

    def untouched(self, cache):
        mask = torch.ones(cache.shape[0] * PAGE, dtype=torch.bool)
        mask[self.slots[self.slots >= 0]] = False
        return cache.transpose(1, 2).flatten(0, 1)[mask].float()


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {}),
        (torch.float32, {"has_norm": True, "kv_heads": 3}),
        (torch.float32, {"pairs": 0}),
        (torch.float16, {"heads": 4, "kv_heads": 2, "size": 80, "pairs": 40, "has_norm": True}),
    ],
)
def test_queries_are_rotated_and_keys_and_values_stored(dtype, options) -> None:
    step = Step(dtype, dtype, **options)

    step.run()

    kept = step.slots >= 0
    assert_close("rotary_embedding", step.q_out, step.q, dtype)
    assert_close("rotary_embedding", step.stored(step.k_cache), step.k[kept], dtype)
    assert torch.equal(step.stored(step.v_cache), step.v[kept])
    assert (step.untouched(step.k_cache) == 7).all()
    assert (step.untouched(step.v_cache) == 7).all()


def test_an_int8_cache_is_within_half_a_step_of_every_value() -> None:
    step = Step(torch.float32, torch.int8)

    step.run()

    for cache, scales, values in [
        (step.k_cache, step.scales[0], step.k),
        (step.v_cache, step.scales[1], step.v),
    ]:
        values = values[step.slots >= 0].double()
        scale = values.abs().amax(-1, keepdim=True) / 127
        assert ((step.stored(cache, scales) - values).abs() <= 0.501 * scale).all()
        assert (step.untouched(cache) == 77).all()


@pytest.mark.parametrize("options", [{}, {"heads": 6, "kv_heads": 2, "size": 16, "has_norm": True}])
def test_keys_are_brought_into_their_range_and_queries_the_other_way(options) -> None:
    step = Step(torch.float32, torch.int8, **options)
    generator = torch.Generator().manual_seed(3)
    heads, size = step.k.shape[1:]
    offset = torch.randn(heads, size, generator=generator) * 4
    unit = torch.exp2(torch.randint(-3, 4, (heads, size), generator=generator))
    step.keys = (offset, unit)

    step.run()

    want = ((step.k - offset) / unit)[step.slots >= 0].double()
    scale = want.abs().amax(-1, keepdim=True) / 127
    assert ((step.stored(step.k_cache, step.scales[0]) - want).abs() <= 0.501 * scale).all()
    queries = step.q * unit.repeat_interleave(step.q.shape[1] // heads, 0)
    torch.testing.assert_close(step.q_out.double(), queries.double(), rtol=1e-5, atol=1e-5)
    values = step.v[step.slots >= 0].double()
    scale = values.abs().amax(-1, keepdim=True) / 127
    assert ((step.stored(step.v_cache, step.scales[1]) - values).abs() <= 0.501 * scale).all()


def test_zeros_in_an_int8_cache_stay_zeros() -> None:
    step = Step(torch.float32, torch.int8)
    step.qkv.zero_()

    step.run()

    assert (step.stored(step.k_cache, step.scales[0]) == 0).all()


def test_an_fp8_cache_rounds_and_holds_its_largest_value() -> None:
    step = Step(torch.float32, torch.float8_e4m3fn)
    step.qkv *= 300

    step.run()

    values = (step.v[step.slots >= 0].double() * 300).clamp(-448, 448)
    # Triton's interpreter loses the carry of a value that rounds up to the next power of two; cards do not.
    mantissa, _ = torch.frexp(values)
    kept = (mantissa.abs() < 1 - 1 / 32) | (values.abs() == 448)
    assert kept.sum() > kept.numel() * 0.8
    error = (step.stored(step.v_cache) - values).abs()
    assert (error <= values.abs() / 16 + 0.001)[kept].all()


def test_an_int8_cache_without_scales_is_refused() -> None:
    step = Step(torch.float32, torch.int8)
    step.scales = [None, None]

    with pytest.raises(ValueError, match="scales"):
        step.run()
