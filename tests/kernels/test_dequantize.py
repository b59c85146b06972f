"""Dequantisation against the `gguf` package's, bit for bit."""

from __future__ import annotations

import gguf
import numpy as np
import numpy.typing as npt
import pytest
import torch

from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

OF_GGUF = [name for name in FORMATS if "_G" not in name]  # the others are our own: test_quantized_groups.py
# bytes at which each format keeps its fp16 scales
SCALES = {
    "Q8_0": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "F32": (), "F16": (), "BF16": (),
}  # fmt: skip


def random_weight(name: str, *shape: int, seed: int = 0) -> WeightTensor:
    """Random bytes with finite scales, all the other bits at random."""
    form = FORMATS[name]
    rng = np.random.default_rng(seed)
    rows = int(np.prod(shape[:-1]))
    if not SCALES[name]:
        values = rng.standard_normal((rows, shape[-1]), dtype=np.float32)
        return WeightTensor(form, shape, as_bytes(values, name))
    blocks = rng.integers(0, 256, (rows * shape[-1] // form.block_size, form.block_bytes), dtype=np.uint8)
    for at in SCALES[name]:
        half = rng.standard_normal((len(blocks), 1)).astype(np.float16)
        blocks[:, at : at + 2] = half.view(np.uint8)
    return WeightTensor(form, shape, blocks.reshape(rows, -1))


def as_bytes(values: npt.NDArray[np.float32], name: str) -> npt.NDArray[np.uint8]:
    if name == "BF16":
        return np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
    return values.astype({"F32": np.float32, "F16": np.float16}[name]).view(np.uint8)


def oracle(tensor: WeightTensor) -> npt.NDArray[np.float32]:
    kind = gguf.GGMLQuantizationType[tensor.format.name]
    return gguf.quants.dequantize(tensor.data.copy(), kind).reshape(tensor.shape)


@pytest.mark.parametrize("name", OF_GGUF)
def test_every_format_equals_the_gguf_package_bit_for_bit(name: str) -> None:
    tensor = random_weight(name, 67, 512)

    ours = dequantize(tensor)

    assert ours.dtype == torch.float32
    np.testing.assert_array_equal(ours.numpy().view(np.uint32), oracle(tensor).view(np.uint32))


@pytest.mark.parametrize("name", OF_GGUF)
def test_entirely_random_bytes_give_the_same_numbers_nans_and_infinities(name: str) -> None:
    form = FORMATS[name]
    data = np.random.default_rng(1).integers(0, 256, (3000, form.row_bytes(256)), dtype=np.uint8)
    tensor = WeightTensor(form, (3000, 256), data)

    with np.errstate(all="ignore"):
        expected = oracle(tensor)

    np.testing.assert_array_equal(dequantize(tensor).numpy(), expected)


@pytest.mark.parametrize("name", OF_GGUF)
def test_chunks_join_without_a_seam_in_bfloat16(name: str) -> None:
    tensor = random_weight(name, 1201, 768)

    ours = dequantize(tensor, torch.bfloat16)

    assert torch.equal(ours, torch.from_numpy(oracle(tensor)).to(torch.bfloat16))


def test_a_vector_and_a_single_block_keep_their_shape() -> None:
    assert dequantize(random_weight("F32", 5)).shape == (5,)
    assert dequantize(random_weight("Q8_0", 1, 32)).shape == (1, 32)


def test_a_read_only_mapped_weight_is_read_without_a_warning() -> None:
    tensor = random_weight("Q4_1", 4, 64)
    tensor.data.flags.writeable = False

    np.testing.assert_array_equal(dequantize(tensor).numpy(), oracle(tensor))


def test_out_is_written_in_place_and_its_shape_is_checked() -> None:
    tensor = random_weight("Q6_K", 4, 256)
    out = torch.full((4, 256), torch.nan, dtype=torch.float16)

    assert dequantize(tensor, out=out) is out
    assert torch.equal(out, torch.from_numpy(oracle(tensor)).half())
    with pytest.raises(ValueError, match="of shape"):
        dequantize(tensor, out=torch.empty(4, 128))
    with pytest.raises(ValueError, match="not contiguous"):
        dequantize(tensor, out=torch.empty(256, 4).t())
