"""Packed matrices unpacked in the interpreter."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import numpy as np
import pytest
import torch
from kernel_tolerances import assert_close
from random_weights import random_weight

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.packed_weight import PACKED_FORMATS, pack_weight, unpack_weight
from inglenook.kernels.packed_weight_triton import embedding, unpack
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

CPU = torch.device("cpu")
FILE_FORMAT = {name: name if name != "PLAIN" else "F32" for name in PACKED_FORMATS}


@pytest.mark.parametrize("name", PACKED_FORMATS)
def test_a_matrix_is_unpacked_to_the_last_column(name: str) -> None:
    # 96 ends in the middle of a unit
    columns = {64: 192, 128: 384, 256: 256}.get(FORMATS[FILE_FORMAT[name]].block_size, 96)
    weight = pack_weight(random_weight(FILE_FORMAT[name], rows=3, columns=columns), CPU, torch.float32)
    out = torch.full((3, columns), torch.nan)

    unpack(weight, out)

    assert_close("embedding", out, unpack_weight(weight), torch.float32)


@pytest.mark.parametrize("name", ["Q6_K", "Q5_0", "PLAIN", "QINT4_G64", "QFLOAT8_G32"])
def test_embedding_looks_rows_up_and_scales_them(name: str) -> None:
    columns = 512 if FORMATS[FILE_FORMAT[name]].block_size > 32 else 544
    weight = pack_weight(random_weight(FILE_FORMAT[name], rows=7, columns=columns), CPU, torch.float32)
    token_ids = torch.tensor([6, 0, 6, 3])
    out = torch.full((4, columns), torch.nan)

    embedding(weight, token_ids, out, factor=3.0)

    assert_close("embedding", out, unpack_weight(weight)[token_ids] * 3.0, torch.float32)


def test_every_float8_is_unpacked_to_the_number_that_it_is() -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(2, 128)
    scale = np.full((2, 1), 3.0, dtype=np.float16).view(np.uint8)
    tensor = WeightTensor(FORMATS["QFLOAT8_G128"], (2, 128), np.hstack([scale, codes]))
    out = torch.empty(2, 128)

    unpack(pack_weight(tensor, CPU, torch.float32), out)

    want = dequantize(tensor)
    assert torch.isnan(want).sum() == 2
    torch.testing.assert_close(out, want, rtol=0, atol=0, equal_nan=True)


def test_an_output_of_another_shape_is_refused_with_both_shapes() -> None:
    weight = pack_weight(random_weight("Q8_0", rows=3, columns=64), CPU, torch.float32)

    with pytest.raises(ValueError, match=r"\[3, 64\]"):
        unpack(weight, torch.empty(3, 32))
