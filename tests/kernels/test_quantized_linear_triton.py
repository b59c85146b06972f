"""Products with packed weights, interpreted, beside the reference."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close
from random_weights import random_weight

from inglenook.kernels.packed_weight import PACKED_FORMATS, PackedWeight, pack_weight, unpack_weight
from inglenook.kernels.quantized_linear_triton import quantized_linear, split_count

CPU = torch.device("cpu")


def matrix(name: str, rows: int, columns: int, dtype: torch.dtype = torch.float32) -> PackedWeight:
    file_format = "F32" if name == "PLAIN" else name
    return pack_weight(random_weight(file_format, rows=rows, columns=columns, std=columns**-0.5), CPU, dtype)


def inputs(rows: int, columns: int, dtype: torch.dtype, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, columns, generator=generator).to(dtype)
    return x, torch.randn(outputs, generator=generator)


def expected(x: torch.Tensor, weight: PackedWeight, bias: torch.Tensor | None) -> torch.Tensor:
    y = x.double() @ unpack_weight(weight).double().T
    return y if bias is None else y + bias.double()


CASES = [
    (name, rows, outputs, columns, dtype)
    for name in PACKED_FORMATS
    for rows, outputs, columns, dtype in [
        (1, 13, 1280, torch.float32),
        (1, 13, 1280, torch.float16),
        (2, 7, 768, torch.float16),
        (3, 70, 256, torch.float16),
        (5, 70, 512, torch.float16),
        (17, 5, 256, torch.float32),
        (130, 130, 256, torch.float16),
    ]
]
# one small case of each kernel is quick enough for every run
QUICK = [
    ("Q4_K", 1, 13, 1280, torch.float32),
    ("Q6_K", 5, 70, 512, torch.float16),
    ("QINT4_G128", 1, 13, 1280, torch.float32),
    ("Q4_0", 1, 5, 2304, torch.float16),
    ("Q4_K", 3, 5, 768, torch.float16),
    ("QINT8_G64", 5, 20, 320, torch.float16),
    ("QFLOAT8_G128", 5, 20, 384, torch.float32),
]


def check(name: str, rows: int, outputs: int, columns: int, dtype: torch.dtype) -> None:
    weight = matrix(name, outputs, columns, dtype)
    x, bias = inputs(rows, columns, dtype, outputs)
    out = torch.full((rows, outputs), torch.nan, dtype=dtype)

    quantized_linear(x, weight, bias, out)

    assert_close("linear", out, expected(x, weight, bias), dtype)


@pytest.mark.parametrize(("name", "rows", "outputs", "columns", "dtype"), QUICK)
def test_a_product_is_that_of_the_unpacked_weights(name, rows, outputs, columns, dtype) -> None:
    check(name, rows, outputs, columns, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows", "outputs", "columns", "dtype"), CASES)
def test_every_format_and_tile_gives_the_product(name, rows, outputs, columns, dtype) -> None:
    check(name, rows, outputs, columns, dtype)


@pytest.mark.parametrize("name", ["Q4_0", "PLAIN"])
def test_columns_that_end_within_a_unit_are_all_counted(name: str) -> None:
    check(name, 1, 3, 96, torch.float32)
    check(name, 6, 3, 96, torch.float32)
    check(name, 2, 3, 96, torch.float16)


@pytest.mark.parametrize("size", [2.0**-14, 2.0**40])
def test_four_bit_codes_that_are_read_as_tiny_floats_bear_small_and_large_inputs(size: float) -> None:
    weight = matrix("Q4_0", 5, 256, torch.bfloat16)
    x, _ = inputs(2, 256, torch.bfloat16, 5)
    out = torch.full((2, 5), torch.nan)

    quantized_linear(x * size, weight, None, out)

    assert_close("linear", out, expected(x * size, weight, None), torch.float32)


def test_split_columns_are_added_once_each() -> None:
    weight = matrix("Q5_1", 20, 1088)
    x, bias = inputs(5, 1088, torch.float32, 20)
    out = torch.full((5, 20), torch.nan)
    workspace = torch.full((3 * 5 * 20,), torch.nan)

    quantized_linear(x, weight, bias, out, splits=3, workspace=workspace)

    assert_close("linear", out, expected(x, weight, bias), torch.float32)


def test_a_row_is_the_same_bits_at_every_number_of_rows() -> None:
    weight = matrix("Q4_1", 20, 256)
    x, _ = inputs(9, 256, torch.float32, 20)
    together, alone = torch.empty(9, 20), torch.empty(1, 20)

    quantized_linear(x, weight, None, together, tile_rows=16)
    quantized_linear(x[4:5].contiguous(), weight, None, alone, tile_rows=16)

    assert torch.equal(together[4:5], alone)


def test_rows_of_the_output_may_be_slices_of_wider_ones() -> None:
    weight = matrix("Q8_0", 10, 64)
    x, _ = inputs(2, 64, torch.float32, 10)
    wide = torch.full((2, 30), 7.0)

    quantized_linear(x, weight, None, wide[:, 10:20])

    assert_close("linear", wide[:, 10:20], expected(x, weight, None), torch.float32)
    assert (wide[:, :10] == 7).all()
    assert (wide[:, 20:] == 7).all()


def test_a_small_matrix_is_split_and_a_large_one_is_not() -> None:
    assert split_count(8, 1024, 4096, num_sms=132) == 8
    assert split_count(64, 65536, 4096, num_sms=132) == 1
    assert split_count(8, 64, 64, num_sms=132) == 1
