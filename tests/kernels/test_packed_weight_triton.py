"""Packed matrices unpacked in the interpreter."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close
from random_weights import random_weight

from inglenook.kernels.packed_weight import PACKED_FORMATS, pack_weight, unpack_weight
from inglenook.kernels.packed_weight_triton import embedding, unpack

CPU = torch.device("cpu")
FILE_FORMAT = {name: name if name != "PLAIN" else "F32" for name in PACKED_FORMATS}


@pytest.mark.parametrize("name", PACKED_FORMATS)
def test_a_matrix_is_unpacked_to_the_last_column(name: str) -> None:
    columns = 256 if "K" in name else 96  # 96 ends in the middle of a unit
    weight = pack_weight(random_weight(FILE_FORMAT[name], rows=3, columns=columns), CPU, torch.float32)
    out = torch.full((3, columns), torch.nan)

    unpack(weight, out)

    assert_close("embedding", out, unpack_weight(weight), torch.float32)


@pytest.mark.parametrize("name", ["Q6_K", "Q5_0", "PLAIN"])
def test_embedding_looks_rows_up_and_scales_them(name: str) -> None:
    columns = 512 if "K" in name else 544
    weight = pack_weight(random_weight(FILE_FORMAT[name], rows=7, columns=columns), CPU, torch.float32)
    token_ids = torch.tensor([6, 0, 6, 3])
    out = torch.full((4, columns), torch.nan)

    embedding(weight, token_ids, out, factor=3.0)

    assert_close("embedding", out, unpack_weight(weight)[token_ids] * 3.0, torch.float32)


def test_an_output_of_another_shape_is_refused_with_both_shapes() -> None:
    weight = pack_weight(random_weight("Q8_0", rows=3, columns=64), CPU, torch.float32)

    with pytest.raises(ValueError, match=r"\[3, 64\]"):
        unpack(weight, torch.empty(3, 32))
