"""The native kernels: exact packing, one arithmetic for every number of rows, threads and instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from native_fixtures import (
    PACKED_FORMATS,
    PackedMatrix,
    bare_engine,
    exact_product,
    product,
    quantized_parts,
    random_tensor,
    scale_places,
    usable_isas,
)

from inglenook.kernels import native
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.native import NativeUnavailableError, isa_statuses, load_native
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

ISAS = usable_isas()
pytestmark = pytest.mark.skipif(not ISAS, reason="the native kernels are not built on this machine")

# a whole number of chunks and super-blocks, one group, an odd number of groups, more than one chunk
COLUMNS = {
    1: (256, 32, 96, 288, 576),
    32: (256, 32, 96, 288, 576),
    64: (256, 64, 192, 576),
    128: (128, 384, 640),
}


def columns_of(name: str) -> tuple[int, ...]:
    return COLUMNS.get(FORMATS[name].block_size, (256, 512, 1024))


def random_rows(rows: int, columns: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(0, 1, (rows, columns)).astype(np.float32)
    x[0, :32] = 0
    x[-1, 5] = 40
    return x


@pytest.mark.parametrize("name", PACKED_FORMATS)
def test_a_packed_row_is_the_reference_bit_for_bit(name: str) -> None:
    library = load_native(ISAS[0])
    for columns in columns_of(name):
        tensor = random_tensor(name, 35, columns, seed=columns)
        matrix = PackedMatrix(library, tensor)

        rows = np.stack([library.dequantize_row(matrix.struct, row) for row in range(35)])

        np.testing.assert_array_equal(rows, dequantize(tensor).numpy())


@pytest.mark.parametrize("isa", ISAS)
def test_activations_quantise_by_the_formula(isa: str) -> None:
    library = load_native(isa)
    x = random_rows(3, 96, seed=1)
    x[1, 64:96] = 1e-35
    records = np.zeros((3, library.record_bytes(96)), dtype=np.uint8)

    library.quantize(x.ctypes.data, 3, 96, records.ctypes.data)

    high, low, scales = quantized_parts(x)
    codes, terms = records.reshape(3, 3, 2, 64)[:, :, 0], records.reshape(3, 3, 2, 64)[:, :, 1]
    starts = np.ascontiguousarray(terms[:, :, 8:48]).view(np.int32)
    for part, q in enumerate((high, low)):
        np.testing.assert_array_equal(codes[:, :, 32 * part : 32 * part + 32].view(np.int8), q)
        want = [-8 * q.sum(-1), -16 * q.sum(-1), -128 * q.sum(-1)]
        np.testing.assert_array_equal(starts[:, :, part:6:2], np.stack(want, axis=-1))
        want = [-32 * q[..., :16].sum(-1), -32 * q[..., 16:].sum(-1)]
        np.testing.assert_array_equal(starts[:, :, 6 + 2 * part : 8 + 2 * part], np.stack(want, axis=-1))
    got = np.ascontiguousarray(terms[:, :, :4]).view(np.float32)[..., 0]
    np.testing.assert_array_equal(got, scales)


@pytest.mark.parametrize("isa", ISAS)
def test_quantising_activations_costs_at_most_half_a_fine_step_each(isa: str) -> None:
    x = random_rows(4, 256, seed=4)
    engine = bare_engine(load_native(isa))
    tensor = random_tensor("Q8_0", 35, 256, seed=5)
    weights = dequantize(tensor).numpy().astype(np.float64)

    got = product(engine, tensor, x)

    steps = np.abs(x.reshape(4, 8, 32)).max(-1) / (127 * 254)
    bound = np.repeat(steps / 2, 32, axis=1) @ np.abs(weights).T
    want = x.astype(np.float64) @ weights.T
    assert (np.abs(got - want) <= 1.01 * bound + 3e-6 * np.abs(want).max()).all()
    engine.close()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", PACKED_FORMATS)
def test_a_product_is_close_to_float64(isa: str, name: str) -> None:
    library = load_native(isa)
    engine = bare_engine(library)
    for columns in columns_of(name):
        tensor = random_tensor(name, 35, columns, seed=columns)
        x = random_rows(3, columns, seed=7)

        got = product(engine, tensor, x)

        want = exact_product(tensor, x)
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
    engine.close()


@pytest.mark.parametrize("name", PACKED_FORMATS)
def test_every_instruction_set_gives_the_same_bits(name: str) -> None:
    columns = columns_of(name)[-1]
    tensor = random_tensor(name, 35, columns, seed=3)
    x = random_rows(5, columns, seed=4)

    results = []
    for isa in ISAS:
        library = load_native(isa)
        engine = bare_engine(library)
        results.append(product(engine, tensor, x))
        engine.close()

    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", PACKED_FORMATS)
@pytest.mark.slow
def test_a_row_does_not_depend_on_its_mates_or_on_threads(isa: str, name: str) -> None:
    library = load_native(isa)
    columns = columns_of(name)[-1]
    matrix = PackedMatrix(library, random_tensor(name, 200, columns, seed=5))
    x = random_rows(67, columns, seed=6)
    one, two = bare_engine(library, 1), bare_engine(library, 2)

    alone = np.concatenate([one.matmul(matrix.struct, x[i : i + 1].copy()) for i in range(67)])

    for rows in (2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 67):
        np.testing.assert_array_equal(one.matmul(matrix.struct, x[:rows].copy()), alone[:rows])
    np.testing.assert_array_equal(two.matmul(matrix.struct, x), alone)
    one.close()
    two.close()


@pytest.mark.parametrize("isa", ISAS)
def test_extreme_levels_do_not_overflow(isa: str) -> None:
    """All levels and activations at their largest: where 16-bit sums of pairs come closest to saturating."""
    library = load_native(isa)
    engine = bare_engine(library)
    for name in (n for n in PACKED_FORMATS if "F" not in n):
        tensor = random_tensor(name, 16, 256, seed=8)
        for fill in (0x00, 0x7F, 0x80, 0xFF):
            raw = tensor.data.copy()
            keep = raw.reshape(16, -1, tensor.format.block_bytes)
            scales = random_tensor(name, 16, 256, seed=8).data.reshape(keep.shape)
            keep[:] = fill
            for place in scale_places(name):
                keep[..., place : place + 2] = scales[..., place : place + 2]
            full = type(tensor)(tensor.format, tensor.shape, raw)
            for sign in (1, -1):
                x = np.full((1, 256), sign, dtype=np.float32)

                got = product(engine, full, x)

                want = exact_product(full, x)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    engine.close()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("code", [0x7F, 0xFF])
def test_a_float8_that_is_no_number_makes_its_outputs_none(isa: str, code: int) -> None:
    library = load_native(isa)
    engine = bare_engine(library)
    tensor = random_tensor("QFLOAT8_G64", 20, 128, seed=11)
    tensor.data[17, -1] = code
    x = random_rows(9, 128, seed=12)

    for rows in (1, 9):
        got = product(engine, tensor, x[:rows].copy())

        assert np.isnan(got[:, 17]).all()
        assert np.isfinite(np.delete(got, 17, axis=1)).all()
    assert np.isnan(library.dequantize_row(PackedMatrix(library, tensor).struct, 17)[-1])
    engine.close()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["F16", "BF16", "QFLOAT8_G32"])
def test_every_float_is_multiplied_as_the_number_that_it_is(isa: str, name: str) -> None:
    """All codes, subnormal ones too, each alone in its row beside zeros."""
    library = load_native(isa)
    engine = bare_engine(library)
    if name == "QFLOAT8_G32":
        codes = np.array([c for c in range(256) if c & 127 != 127], dtype=np.uint8)
        data = np.zeros((len(codes), 34), dtype=np.uint8)
        data[:, 1], data[:, 2 + 5] = 0x40, codes  # a scale of 2
    else:
        codes = np.random.default_rng(13).permutation(65536)[:2000].astype("<u2")
        largest = 0x7BFF if name == "F16" else 0x7B80  # times 127 is still a number
        codes = np.concatenate([codes[codes & 0x7FFF <= largest], np.arange(20, dtype="<u2")])
        data = np.zeros((len(codes), 32), dtype="<u2")
        data[:, 5] = codes
        data = data.view(np.uint8)
    tensor = WeightTensor(FORMATS[name], (len(codes), 32), data)
    x = np.zeros((10, 32), dtype=np.float32)
    x[:, 5] = 127.0  # quantised to itself

    for rows in (1, 10):
        got = product(engine, tensor, x[:rows].copy())

        want = dequantize(tensor).numpy()[:, 5] * np.float32(127)
        np.testing.assert_array_equal(got, np.broadcast_to(want, got.shape))
    engine.close()


@pytest.mark.parametrize("isa", ISAS)
def test_the_exponential_is_accurate_and_ends_in_zero(isa: str) -> None:
    library = load_native(isa)
    x = np.linspace(-90, 88, 1024, dtype=np.float32)
    x[:2] = [-np.inf, 0]
    out = np.empty_like(x)

    library.exp(x.ctypes.data, len(x), out.ctypes.data)

    want = np.where(x < -87, 0, np.exp(x.astype(np.float64)))
    np.testing.assert_allclose(out, want, rtol=2e-7)
    assert out[0] == 0
    assert out[1] == 1


def test_the_exponential_is_the_same_in_every_instruction_set() -> None:
    x = np.random.default_rng(9).uniform(-100, 88, 4096).astype(np.float32)

    results = []
    for isa in ISAS:
        results.append(np.empty_like(x))
        load_native(isa).exp(x.ctypes.data, len(x), results[-1].ctypes.data)

    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_an_unknown_instruction_set_is_refused_by_name() -> None:
    with pytest.raises(NativeUnavailableError, match=r"must be one of .*; got 'mmx'"):
        load_native("mmx")


def test_the_variable_forces_an_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ISA_VARIABLE, ISAS[-1])

    assert load_native().isa == ISAS[-1]


def test_the_scalar_twin_is_never_chosen_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(native.ISA_VARIABLE, raising=False)
    monkeypatch.setattr(
        native, "_path", lambda isa: (_ for _ in ()).throw(NativeUnavailableError(f"no {isa}"))
    )

    with pytest.raises(NativeUnavailableError, match=r"no amx; no avx512vnni; no avxvnni; no avx2$"):
        load_native()


def test_every_instruction_set_has_a_status_with_a_reason() -> None:
    statuses = isa_statuses()

    assert [s.isa for s in statuses] == list(native.ISAS)
    assert all(s.reason for s in statuses)
