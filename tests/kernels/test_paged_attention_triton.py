"""Both attention kernels of the GPU against the formula, over shuffled pages of a cache filled with NaN."""

import itertools

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close

from inglenook.kernels.paged_attention import paged_attention
from inglenook.kernels.paged_attention_triton import decode_attention, part_count
from inglenook.kernels.prefill_attention_triton import prefill_attention

PAGE = 16


class Pages:
    """Sequences of some lengths whose last `queries` tokens ask; what no sequence owns is NaN."""

    def __init__(self, lengths, queries, *, heads=4, kv_heads=2, size=16, dtype=torch.float32, is_int8=False):
        generator = torch.Generator().manual_seed(sum(lengths) + heads)
        counts = [-(-n // PAGE) for n in lengths]
        ids = torch.randperm(sum(counts) + 2, generator=generator).tolist()
        tables = [[ids.pop() for _ in range(c)] for c in counts]
        self.tables = torch.tensor([t + [-1] * (max(counts) - len(t)) for t in tables], dtype=torch.int32)
        self.q = torch.randn(sum(queries), heads, size, generator=generator).to(dtype)
        self.starts = torch.tensor([0, *itertools.accumulate(queries)], dtype=torch.int32)
        self.lengths = torch.tensor(lengths, dtype=torch.int32)
        shape = (sum(counts) + 2, kv_heads, PAGE, size)
        self.scales = {}
        self.k, self.v = (torch.randn(shape, generator=generator) for _ in range(2))
        owned = torch.zeros(shape[0], PAGE, dtype=torch.bool)
        for n, table in zip(lengths, tables, strict=True):
            for p in range(n):
                owned[table[p // PAGE], p % PAGE] = True
        hidden = ~owned[:, None, :, None]
        if is_int8:
            for name in ("k", "v"):
                scale = torch.rand(shape[:3], generator=generator) / 50 + 0.01
                codes = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
                setattr(self, f"{name}_cache", codes)
                setattr(self, name, codes.double() * scale.double()[..., None])
                self.scales[f"{name}_scales"] = scale.masked_fill(hidden[..., 0], torch.nan)
        else:
            self.k, self.v = self.k.to(dtype), self.v.to(dtype)
            self.k_cache, self.v_cache = (x.masked_fill(hidden, torch.nan) for x in (self.k, self.v))
        # whole tiles are gathered by the reference, masked by their weight of 0: so its copies hold no NaN

    def expected(self, **options):
        return paged_attention(
            self.q.double(), self.k.double(), self.v.double(), self.tables, self.starts, self.lengths,
            scale=0.25, **options,
        )  # fmt: skip

    def decode(self, **options):
        out = torch.full_like(self.q, torch.nan)
        decode_attention(
            self.q, self.k_cache, self.v_cache, self.tables, self.lengths, out, scale=0.25, **self.scales,
            **options,
        )  # fmt: skip
        return out

    def prefill(self, **options):
        out = torch.full_like(self.q, torch.nan)
        prefill_attention(
            self.q, self.k_cache, self.v_cache, self.tables, self.starts, self.lengths, out, scale=0.25,
            **self.scales, **options,
        )  # fmt: skip
        return out


DECODES = [
    ([1, 15, 16, 17], {}),
    ([63, 64, 65], {"heads": 9, "kv_heads": 3, "size": 24}),
    ([200], {"heads": 7, "kv_heads": 1}),
]


@pytest.mark.parametrize(("lengths", "shape"), DECODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_decode_attends_to_the_whole_context(lengths, shape, dtype) -> None:
    pages = Pages(lengths, [1] * len(lengths), dtype=dtype, **shape)

    assert_close("attention", pages.decode(), pages.expected(), dtype)


@pytest.mark.parametrize("parts", [2, 8])
def test_decode_in_parts_is_the_same_also_where_parts_are_empty(parts: int) -> None:
    pages = Pages([1, 70, 200], [1, 1, 1])
    workspace = torch.full((3 * 4 * parts * 18,), torch.nan)

    out = pages.decode(parts=parts, workspace=workspace)

    assert_close("attention", out, pages.expected(), torch.float32)


@pytest.mark.parametrize("window", [1, 16, 50])
def test_windows_and_soft_caps_hold_in_decode(window: int) -> None:
    pages = Pages([5, 130], [1, 1])
    pages.tables[1, : max(0, (130 - window) // PAGE)] = -1  # pages left of the window may be gone

    out = pages.decode(window=window, softcap=2.0, parts=2, workspace=torch.empty(2 * 4 * 2 * 18))

    whole = Pages([5, 130], [1, 1])
    assert_close("attention", out, whole.expected(window=window, softcap=2.0), torch.float32)


def test_a_padded_row_of_a_graph_gives_zeros_and_reads_nothing() -> None:
    pages = Pages([20, 5], [1, 1])
    pages.lengths[1] = 0
    pages.tables[1] = -1

    out = pages.decode(parts=2, workspace=torch.empty(2 * 4 * 2 * 18))

    assert (out[1] == 0).all()
    assert not out.isnan().any()


PREFILLS = [
    ([1], [1], {}),
    ([40, 5, 64], [7, 5, 1], {}),
    ([100, 31], [1, 31], {"heads": 3, "kv_heads": 3, "size": 20}),
    ([129], [129], {"heads": 7, "kv_heads": 1}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("lengths", "queries", "shape"), PREFILLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_prefill_is_the_formula_for_every_cut(lengths, queries, shape, dtype) -> None:
    pages = Pages(lengths, queries, dtype=dtype, **shape)

    assert_close("attention", pages.prefill(), pages.expected(), dtype)


def test_prefill_of_a_ragged_batch_is_the_formula() -> None:
    pages = Pages([40, 5, 64], [7, 5, 1], dtype=torch.float16)

    assert_close("attention", pages.prefill(), pages.expected(), torch.float16)


@pytest.mark.parametrize("window", [1, 20])
def test_windows_and_soft_caps_hold_in_prefill(window: int) -> None:
    pages = Pages([90, 9], [80, 9])

    out = pages.prefill(window=window, softcap=2.0)

    assert_close("attention", out, pages.expected(window=window, softcap=2.0), torch.float32)


def test_a_row_is_the_same_bits_however_its_prompt_was_cut() -> None:
    whole, last = Pages([100], [100]), Pages([100], [100])
    last.q, last.starts = last.q[97:].contiguous(), torch.tensor([0, 3], dtype=torch.int32)

    assert torch.equal(whole.prefill()[97:], last.prefill())
    windowed = last.prefill(window=30)
    assert torch.equal(whole.prefill(window=30)[97:], windowed)


def test_prefill_leaves_rows_before_its_first_sequence_alone() -> None:
    pages = Pages([30, 40], [1, 8])
    expected = pages.expected()
    out = torch.full_like(pages.q, 7.0)

    prefill_attention(
        pages.q, pages.k_cache, pages.v_cache, pages.tables[1:], pages.starts[1:], pages.lengths[1:], out,
        scale=0.25,
    )  # fmt: skip

    assert (out[0] == 7).all()
    assert_close("attention", out[1:], expected[1:], torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_int8_cache_is_read_with_its_scales(dtype: torch.dtype) -> None:
    decode = Pages([70, 3], [1, 1], is_int8=True, dtype=dtype)
    prefill = Pages([70, 3], [20, 3], is_int8=True, dtype=dtype)

    assert_close("attention_int8", decode.decode(), decode.expected(), dtype)
    assert_close("attention_int8", prefill.prefill(), prefill.expected(), dtype)


def test_a_long_context_of_one_sequence_is_cut_and_many_sequences_are_not() -> None:
    assert part_count(1, 8, 8192, num_sms=132) == 32
    assert part_count(64, 8, 8192, num_sms=132) == 1
    assert part_count(1, 8, 100, num_sms=132) == 1
