"""Numbers that are infinite or none are found wherever they lie in a tensor, in every format."""

from __future__ import annotations

import time
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.engine.model_doctor.file import file_findings
from inglenook.engine.model_doctor.numbers import can_look_through, has_broken_numbers
from inglenook.engine.weights.loader import open_model
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor


def random_tensor(name: str) -> WeightTensor:
    """Finite numbers of a format, 5 rows of 512."""
    form = FORMATS[name]
    values = np.random.default_rng(3).standard_normal((5, 512)).astype(np.float32)
    if "_G" in name or name.endswith("_K"):  # our own, and those that the package only reads
        rng = np.random.default_rng(4)
        blocks = rng.integers(0, 256, (5, 512 // form.block_size, form.block_bytes), dtype=np.uint8)
        if name.startswith("QFLOAT8"):
            blocks[(blocks & 0x7F) == 0x7F] = 0
        half = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
        one = name == "Q6_K" or name.startswith(("QINT8", "QFLOAT8"))
        for start in (form.block_bytes - 2 if name == "Q6_K" else 0,) if one else (0, 2):
            blocks[:, :, start : start + 2] = half
        return WeightTensor(form, (5, 512), blocks.reshape(5, -1))
    data = gguf.quants.quantize(values, gguf.GGMLQuantizationType[name])
    return WeightTensor(form, (5, 512), np.ascontiguousarray(data).view(np.uint8).reshape(5, -1).copy())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_place_that_makes_a_broken_number_is_looked_at(name: str) -> None:
    tensor = random_tensor(name)
    assert can_look_through(tensor)
    assert not has_broken_numbers(tensor)
    width = tensor.format.block_bytes

    found = 0
    for place in range(0, width - 1):
        spoiled = WeightTensor(tensor.format, tensor.shape, tensor.data.copy())
        spoiled.data[3, -width + place : tensor.data.shape[1] - width + place + 2] = (0x00, 0x7C)
        is_finite = np.isfinite(dequantize(spoiled).numpy()).all()
        assert has_broken_numbers(spoiled) == (not is_finite), place
        found += not is_finite
    assert found >= 1 or name in ("F32", "BF16")


@pytest.mark.parametrize(("name", "bits"), [("F32", 0x7F800001), ("BF16", 0xFF81), ("F16", 0x7E00)])
def test_elements_of_plain_formats_are_looked_at(name: str, bits: int) -> None:
    tensor = random_tensor(name)
    kind = "<u4" if name == "F32" else "<u2"
    tensor.data.view(kind)[4, 511] = bits

    assert has_broken_numbers(tensor)


@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_a_float8_that_is_no_number_is_found(code: int) -> None:
    tensor = random_tensor("QFLOAT8_G64")
    tensor.data[4, -1] = code

    assert has_broken_numbers(tensor)


def test_one_broken_scale_among_all_turns_the_finding_red_and_names_its_tensor(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantize="Q8_0")
    with open_model(path) as file:
        (sound, _) = file_findings(file, time.perf_counter() + 60)
    (place,) = [t.data_offset for t in gguf.GGUFReader(path).tensors if t.name == "blk.1.ffn_down.weight"]
    data = bytearray(path.read_bytes())
    data[place + 38 * 3 * 34 : place + 38 * 3 * 34 + 2] = b"\x00\x7e"

    path.write_bytes(data)

    with open_model(path) as file:
        (broken, _) = file_findings(file, time.perf_counter() + 60)
        (late, _) = file_findings(file, time.perf_counter() - 1)
    assert sound.light == "green"
    assert "none is empty or broken." in sound.sentence
    assert broken.light == "red"
    assert broken.sentence.startswith("layers.1.down of the file")
    assert "only some rows were looked at" in late.sentence
