"""The layout and size of keys and values."""

import mmap
from pathlib import Path

import pytest
import torch

from inglenook.engine.kv_cache import KVGroup, allocate_kv


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("by_block", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_blanked_blocks_are_zero_and_others_stay(dtype, by_block):
    group = KVGroup((0, 3), 0, num_kv_heads=3, head_size=64, dtype=dtype, by_block=by_block)
    kv = allocate_kv(group, 40)
    tensors = [t for t in (kv.k, kv.v, kv.k_scale, kv.v_scale) if t is not None]
    for tensor in tensors:
        tensor.fill_(1)

    gone = [0, 1, 2, 3, 4, 5, 6, 9, 20, 21, 39]
    kv.blank(gone)

    kept = [block for block in range(40) if block not in gone]
    for tensor in tensors:
        assert torch.count_nonzero(tensor[:, gone]) == 0
        assert torch.all(tensor[:, kept] == 1)


@pytest.mark.parametrize("by_block", [False, True])
def test_blanked_memory_goes_back_to_the_system_and_can_be_used_again(by_block):
    group = KVGroup(tuple(range(8)), 0, num_kv_heads=4, head_size=64, dtype="float32", by_block=by_block)
    kv = allocate_kv(group, 256)
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


@pytest.mark.parametrize("by_block", [False, True])
def test_an_unused_cache_takes_no_memory(by_block):
    before = resident_bytes()

    group = KVGroup((0, 1), 0, num_kv_heads=8, head_size=128, dtype="float16", by_block=by_block)
    kv = allocate_kv(group, 8192)

    assert kv.num_blocks * kv.group.block_bytes > 5e8
    assert resident_bytes() - before < 5e6


def test_the_order_of_the_native_kernels_takes_memory_block_by_block():
    group = KVGroup(tuple(range(30)), 0, num_kv_heads=3, head_size=64, dtype="float16", by_block=True)
    kv = allocate_kv(group, 512)
    before = resident_bytes()

    kv.k[:, :8] = 1
    kv.v[:, :8] = 1
    taken = resident_bytes() - before

    assert kv.k.shape == (30, 512, 3, 64, 16)
    assert kv.v.shape == (30, 512, 3, 16, 64)
    assert (
        taken < 8 * group.block_bytes + 2 * 2 * 2**21
    )  # at each end of both tensors at most a huge page more
    assert torch.all(kv.k[:, 8:] == 0)


@pytest.mark.parametrize("by_block", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_copied_block_is_equal_in_every_layer_and_others_stay(dtype, by_block):
    kv = allocate_kv(KVGroup((0, 1, 2), 0, 2, 32, dtype, by_block), 6)
    tensors = [t for t in (kv.k, kv.v, kv.k_scale, kv.v_scale) if t is not None]
    for number, tensor in enumerate(tensors):
        tensor[:] = torch.arange(tensor.numel()).reshape(tensor.shape) % (89 + number)
    before = [tensor.clone() for tensor in tensors]

    kv.copy_blocks([(1, 4)])

    for tensor, old in zip(tensors, before, strict=True):
        assert torch.equal(tensor[:, 4], old[:, 1])
        assert torch.equal(tensor[:, [0, 1, 2, 3, 5]], old[:, [0, 1, 2, 3, 5]])
