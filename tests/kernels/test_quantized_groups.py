"""Our own formats against optimum-quanto: what its quantised tensors stand for, ours stand for, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from optimum.quanto.tensor import AbsmaxOptimizer, MaxOptimizer, qfloat8, qint4, qint8, quantize_weight

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

# format -> columns of a group; in groups of 32 ours are Q4_1 and Q8_0
INT4 = {"Q4_1": 32, "QINT4_G64": 64, "QINT4_G128": 128}
INT8 = {"Q8_0": 32, "QINT8_G64": 64, "QINT8_G128": 128}
FLOAT8 = {"QFLOAT8_G32": 32, "QFLOAT8_G64": 64, "QFLOAT8_G128": 128}


def weights(rows: int = 9, columns: int = 640) -> torch.Tensor:
    """Rows of very different sizes, so that scales reach into fp16's subnormal numbers."""
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns))
    return x * torch.logspace(1, -4, rows)[:, None]


def half(x: torch.Tensor) -> torch.Tensor:
    """Numbers that fp16 holds, none of them 0."""
    return x.half().float().clamp_min(2.0**-24)


def stored(name: str, shape: torch.Size, numbers: list[torch.Tensor], codes: torch.Tensor) -> WeightTensor:
    """Blocks of fp16 numbers [groups, 1] followed by codes [groups, bytes]."""
    parts = [n.half().view(torch.uint8).reshape(-1, 2) for n in numbers]
    blocks = torch.cat([*parts, codes.view(torch.uint8)], dim=1)
    return WeightTensor(FORMATS[name], tuple(shape), blocks.reshape(shape[0], -1).numpy())


@pytest.mark.parametrize("name", INT4)
def test_four_bits_are_what_quanto_dequantises(name: str) -> None:
    w, group = weights(), INT4[name]
    scale, shift = (n.half().float() for n in MaxOptimizer()(w, qint4, 0, group))
    scale = half(scale)
    theirs = quantize_weight(w, qint4, 0, scale, shift, group, optimized=False)
    # quanto's own function for this compiles a C++ extension here and now
    packed = theirs._data._data
    theirs._data = torch.cat((packed & 15, packed >> 4))[: w.numel() // group]

    q = theirs._data.view(-1, max(group // 64, 1), 2, min(group, 64) // 2)
    ours = stored(name, w.shape, [scale, -shift], (q[:, :, 0] | q[:, :, 1] << 4).flatten(1))

    assert torch.equal(dequantize(ours), theirs.dequantize())
    assert len(theirs._data.unique()) == 16


@pytest.mark.parametrize(("names", "kind"), [(INT8, qint8), (FLOAT8, qfloat8)], ids=["int8", "float8"])
def test_eight_bits_are_what_quanto_dequantises(names: dict[str, int], kind: object) -> None:
    for name, group in names.items():
        w = weights()
        groups = w.view(-1, group)  # quanto has one scale a row
        scale = half(AbsmaxOptimizer()(groups, kind, 0))
        theirs = quantize_weight(groups, kind, 0, scale, optimized=False)

        ours = stored(name, w.shape, [scale], theirs._data)

        assert torch.equal(dequantize(ours).view(-1, group), theirs.dequantize())


@pytest.mark.parametrize("name", FLOAT8)
def test_every_code_of_a_float8_is_the_standards_number(name: str) -> None:
    group = FLOAT8[name]
    codes = np.arange(256, dtype=np.uint8).reshape(-1, group)
    numbers = np.full((len(codes), 1), 3.0, dtype=np.float16).view(np.uint8)
    tensor = WeightTensor(FORMATS[name], (1, 256), np.hstack([numbers, codes]).reshape(1, -1))

    got = dequantize(tensor)[0].numpy()

    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent > 0, (8 + fraction) * 2.0 ** (exponent - 10), fraction * 2.0**-9)
    want = np.where(code & 127 == 127, np.nan, np.where(code < 128, size, -size)) * 3
    np.testing.assert_array_equal(got, want.astype(np.float32))
