"""The layout and size of keys and values."""

import mmap
from pathlib import Path

import pytest
import torch

from inglenook.engine.kv_cache import KVGroup, allocate_kv


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_blanked_blocks_are_zero_and_others_stay(dtype):
    kv = allocate_kv(KVGroup((0, 3), 0, num_kv_heads=3, head_size=64, dtype=dtype), 40)
    tensors = [t for t in (kv.k, kv.v, kv.k_scale, kv.v_scale) if t is not None]
    for tensor in tensors:
        tensor.fill_(1)

    gone = [0, 1, 2, 3, 4, 5, 6, 9, 20, 21, 39]
    kv.blank(gone)

    kept = [block for block in range(40) if block not in gone]
    for tensor in tensors:
        assert torch.count_nonzero(tensor[:, gone]) == 0
        assert torch.all(tensor[:, kept] == 1)


def test_blanked_memory_goes_back_to_the_system_and_can_be_used_again():
    kv = allocate_kv(KVGroup(tuple(range(8)), 0, num_kv_heads=4, head_size=64, dtype="float32"), 256)
    before = resident_bytes()
    kv.k.fill_(1)
    kv.v.fill_(1)
    filled = resident_bytes() - before

    kv.blank(list(range(256)))
    left = resident_bytes() - before
    kv.k[:, 7] = 2

    assert filled >= 60e6
    assert left < 0.1 * filled
    assert float(kv.k.sum()) == 2 * 8 * 4 * 16 * 64


def test_an_unused_cache_takes_no_memory():
    before = resident_bytes()

    kv = allocate_kv(KVGroup((0, 1), 0, num_kv_heads=8, head_size=128, dtype="float16"), 8192)

    assert kv.num_blocks * kv.group.block_bytes > 5e8
    assert resident_bytes() - before < 5e6
