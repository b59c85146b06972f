"""Attention over paged keys and values."""

import itertools

import pytest
import torch

from inglenook.kernels.paged_attention import paged_attention, store_kv

S = 16


class Pages:
    """Sequences of given lengths, their last tokens as queries, in shuffled blocks of a NaN-filled cache."""

    def __init__(self, lengths, queries, *, heads=4, kv_heads=2, size=8, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.k = [torch.randn(n, kv_heads, size, generator=generator) for n in lengths]
        self.v = [torch.randn(n, kv_heads, size, generator=generator) for n in lengths]
        self.q = torch.randn(sum(queries), heads, size, generator=generator)
        counts = [-(-n // S) for n in lengths]
        ids = torch.randperm(sum(counts) + 3, generator=generator).tolist()
        tables = [[ids.pop() for _ in range(c)] for c in counts]
        self.tables = torch.tensor([t + [-1] * (max(counts) - len(t)) for t in tables], dtype=torch.int32)
        shape = (sum(counts) + 3, kv_heads, S, size)
        self.k_cache, self.v_cache = torch.full(shape, torch.nan), torch.full(shape, torch.nan)
        for k, v, table in zip(self.k, self.v, tables, strict=True):
            slots = torch.tensor([table[p // S] * S + p % S for p in range(len(k))])
            store_kv(k, v, self.k_cache, self.v_cache, slots)
        self.starts = torch.tensor([0, *itertools.accumulate(queries)], dtype=torch.int32)
        self.lengths = torch.tensor(lengths, dtype=torch.int32)

    def attend(self, **options):
        return paged_attention(
            self.q, self.k_cache, self.v_cache, self.tables, self.starts, self.lengths, scale=0.3, **options
        )

    def by_the_formula(self, window=0):
        """One query row at a time, in float64, from the unpaged keys."""
        rows = []
        for b, (k, v) in enumerate(zip(self.k, self.v, strict=True)):
            begin, end = int(self.starts[b]), int(self.starts[b + 1])
            for t in range(begin, end):
                p = len(k) - (end - t)
                first = max(0, p - window + 1) if window else 0
                heads = []
                for h in range(self.q.shape[1]):
                    g = h // (self.q.shape[1] // k.shape[1])
                    scores = k[first : p + 1, g].double() @ self.q[t, h].double() * 0.3
                    heads.append(torch.softmax(scores, 0) @ v[first : p + 1, g].double())
                rows.append(torch.stack(heads))
        return torch.stack(rows).float()


CASES = [
    ([1], [1]),
    ([15, 16, 17], [1, 1, 1]),
    ([16], [16]),
    ([33], [33]),
    ([40, 5, 64], [7, 5, 1]),
    ([100, 31], [1, 31]),
]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("lengths", "queries"), CASES)
def test_attention_equals_the_formula_row_by_row(lengths, queries, fused):
    pages = Pages(lengths, queries)

    got = pages.attend(fused=fused)

    torch.testing.assert_close(got, pages.by_the_formula(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("window", [1, 5, 16, 17, 200])
def test_a_window_counts_the_current_token(window, fused):
    pages = Pages([40, 5, 64], [7, 5, 1])

    got = pages.attend(window=window, fused=fused)

    torch.testing.assert_close(got, pages.by_the_formula(window), atol=1e-5, rtol=1e-5)


def test_blocks_left_of_the_window_are_never_read():
    pages = Pages([64], [3])
    want = pages.attend(window=8)
    pages.tables[0, :3] = -1

    got = pages.attend(window=8)

    assert torch.equal(got, want)


def test_a_large_logit_does_not_overflow():
    pages = Pages([20], [20])
    pages.k_cache *= 1e5
    pages.q *= 1e3

    got = pages.attend()

    assert torch.isfinite(got).all()


def test_rows_without_a_slot_are_not_stored():
    cache = torch.full((2, 1, S, 4), torch.nan)
    k = torch.ones(3, 1, 4)

    store_kv(k, k, cache, cache.clone(), torch.tensor([-1, 17, -1]))

    assert torch.isfinite(cache).sum() == 4
    assert torch.equal(cache[1, 0, 1], torch.ones(4))
