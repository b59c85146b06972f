"""Faults of arithmetic and addresses that other engines had, on every back end of this processor (see `test_known_faults`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from native_fixtures import RandomSource, make_batch, tiny_spec, usable_isas

from inglenook.engine.backend import Backend, BackendModel
from inglenook.engine.kv_cache import KVDtype
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.native_backend import NativeBackend
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.native_interface import FORMAT_IDS
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

IDS = torch.randint(0, 75, (300,), generator=torch.Generator().manual_seed(0)).tolist()
CACHES: list[tuple[str, KVDtype]] = [
    *(("native-cpu", dtype) for dtype in ("float32", "float16", "bfloat16", "int8")),
    ("torch-cpu", "bfloat16"),
]


def make_backend(name: str, dtype: KVDtype | None, folder: Path) -> Backend:
    if name != "native-cpu":
        return TORCH_BACKENDS[name]()
    if not usable_isas():
        pytest.skip("the native kernels are not built on this machine")
    return NativeBackend(folder=folder, num_threads=1, kv_dtype=dtype or "float16")


def load(
    name: str,
    spec: ModelSpec,
    source: RandomSource,
    folder: Path,
    dtype: KVDtype | None = None,
    blocks: int = 20,
) -> BackendModel:
    model = make_backend(name, dtype, folder).load(spec, source, lambda done, total: None)
    model.allocate_kv((blocks,))
    return model


def relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float(((got - want).norm(dim=1) / want.norm(dim=1)).median())


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("native-cpu", form) for form in FORMAT_IDS),
        *(("torch-cpu", form) for form in (*FORMAT_IDS, "F16", "BF16", "F32")),
    ],
)
@pytest.mark.slow
def test_an_embedding_is_read_in_the_format_that_its_own_header_names(
    tmp_path: Path, name: str, form: str
) -> None:
    spec = tiny_spec(num_layers=1)
    source = RandomSource(spec, ("Q8_0",))
    embedding = RandomSource(spec, (form if form in FORMAT_IDS else "Q8_0",), seed=5).tensor("embedding")
    if form not in FORMAT_IDS:
        dtype = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}[form]
        data = dequantize(embedding).to(dtype).view(torch.uint8).numpy()
        embedding = WeightTensor(FORMATS[form], embedding.shape, data)
    source.replace("embedding", embedding)
    batch = make_batch([(IDS[:75], 0, list(range(5)))])

    got = load(name, spec, source, tmp_path).forward(batch)

    want = load("reference", spec, source, tmp_path).forward(batch)
    assert relative_error(got, want) < (2e-2 if name == "torch-cpu" else 3e-3)


@pytest.mark.parametrize(("name", "dtype"), CACHES)
def test_blocks_beyond_two_to_the_31_elements_are_found(tmp_path: Path, name: str, dtype: KVDtype) -> None:
    """The cache is address space: of its gigabytes only the pages of the named blocks are ever touched."""
    spec = tiny_spec(
        num_layers=1, num_heads=2, num_kv_heads=1, head_size=32, rope=RopeSpec(theta=1e4, size=32)
    )
    source = RandomSource(spec, ("Q8_0",))
    block_elements = 16 * spec.num_kv_heads * spec.head_size
    beyond = 2**31 // block_elements
    # The same places modulo 2^31 and 2^32 bytes or elements hold other keys, so an address that wraps reads those.
    far = [beyond + 1, beyond + 5, beyond + 3]
    near = [1, 5, 3]
    ids, others = IDS[:40], IDS[40:80]
    try:
        model = load(name, spec, source, tmp_path, dtype, blocks=beyond + 8)
    except OSError as error:
        pytest.skip(f"the system gives no address space for such a cache: {error}")

    got = model.forward(make_batch([(ids, 0, far)]))
    model.forward(make_batch([(others, 0, near)]))
    later = model.forward(make_batch([(IDS[80:84], 40, far)]))

    small = load(name, spec, source, tmp_path, dtype)
    assert torch.equal(got, small.forward(make_batch([(ids, 0, near)])))
    assert torch.equal(later, small.forward(make_batch([(IDS[80:84], 40, near)])))
    model.close()
    small.close()


@pytest.mark.parametrize(("name", "dtype"), [*CACHES, ("reference", "float32")])
@pytest.mark.parametrize("size", [6e4, 2e5], ids=["near the end of float16", "beyond float16"])
@pytest.mark.slow
def test_large_values_over_a_long_context_stay_numbers(
    tmp_path: Path, name: str, dtype: KVDtype, size: float
) -> None:
    spec = tiny_spec(num_layers=1, context_length=2048)
    source = RandomSource(spec, ("Q8_0",))
    bias = np.full(spec.num_kv_heads * spec.head_size, size, np.float32)
    source.replace(
        "layers.0.v_bias", WeightTensor(FORMATS["F32"], bias.shape, bias.view(np.uint8).reshape(1, -1))
    )
    ids = (IDS * 5)[:1200]
    batch = make_batch([(ids, 0, list(range(75)))], logits="last")

    got = load(name, spec, source, tmp_path, dtype, blocks=75).forward(batch)

    want = load("reference", spec, source, tmp_path, blocks=75).forward(batch)
    assert torch.isfinite(got).all()
    assert relative_error(got, want) < 2e-2
