"""Matrices packed for the GPU kernels."""

import numpy as np
import pytest
import torch
from random_weights import random_weight

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.packed_weight import PACKED_FORMATS, pack_weight, stack_rows, unpack_weight
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

CPU = torch.device("cpu")
QUANTISED = [name for name in PACKED_FORMATS if name != "PLAIN"]


@pytest.mark.parametrize("name", QUANTISED)
@pytest.mark.parametrize("blocks", [1, 3, 9])
def test_packing_keeps_every_weight(name: str, blocks: int) -> None:
    tensor = random_weight(name, rows=5, columns=blocks * FORMATS[name].block_size, seed=blocks)

    packed = pack_weight(tensor, CPU, torch.float32)

    torch.testing.assert_close(unpack_weight(packed), dequantize(tensor), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", QUANTISED)
def test_packed_weights_keep_their_own_width(name: str) -> None:
    tensor = random_weight(name, rows=8, columns=2048)

    packed = pack_weight(tensor, CPU, torch.float32)

    spare_bits = 0.125 if name in ("Q4_K", "Q5_K") else 0.0
    assert packed.size_bytes == tensor.size_bytes + spare_bits * 8 * 2048 / 8


def test_plain_weights_become_the_compute_dtype() -> None:
    values = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
    tensor = WeightTensor(FORMATS["F32"], (3, 7), values.view(np.uint8))

    packed = pack_weight(tensor, CPU, torch.bfloat16)

    assert packed.low.dtype == torch.bfloat16
    assert torch.equal(unpack_weight(packed), torch.from_numpy(values).bfloat16().float())


def test_neighbours_of_one_format_are_stacked_and_others_are_not() -> None:
    tensors = [
        random_weight(name, rows=rows, columns=256, seed=rows)
        for name, rows in [("Q5_K", 3), ("Q5_K", 2), ("Q6_K", 4)]
    ]

    stacked = stack_rows([pack_weight(t, CPU, torch.float32) for t in tensors])

    assert [(w.format.name, w.rows) for w in stacked] == [("Q5_K", 5), ("Q6_K", 4)]
    torch.testing.assert_close(
        torch.cat([unpack_weight(w) for w in stacked]),
        torch.cat([dequantize(t) for t in tensors]),
        rtol=1e-6,
        atol=1e-7,
    )
