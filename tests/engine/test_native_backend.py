"""Whole steps of the native back end: close to the reference, and one result whatever the batch around a row."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from native_fixtures import PACKED_FORMATS, RandomSource, make_batch, tiny_spec, usable_isas

from inglenook.engine.errors import InternalEngineError, UnsupportedModelError
from inglenook.engine.kv_cache import KVDtype, allocate_kv
from inglenook.engine.models.spec import ExpertsSpec, ModelSpec, RopeSpec
from inglenook.engine.native_backend import (
    NativeBackend,
    NativeModel,
    StepCancelledError,
    has_floats,
    refusal,
)
from inglenook.engine.torch_backend import TORCH_BACKENDS
from inglenook.engine.weights.loader import open_model
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

ISAS = usable_isas()
pytestmark = pytest.mark.skipif(not ISAS, reason="the native kernels are not built on this machine")

IDS = torch.randint(0, 75, (300,), generator=torch.Generator().manual_seed(0)).tolist()
# blocks in an order of their own, so that a table that is not followed shows
TABLE = np.random.default_rng(0).permutation(40)[:20].tolist()
OTHER_TABLE = np.random.default_rng(0).permutation(40)[20:].tolist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "packed"


def load(
    folder: Path, spec: ModelSpec | None = None, source: RandomSource | None = None, **options: Any
) -> NativeModel:
    spec = spec or tiny_spec()
    source = source or RandomSource(spec, PACKED_FORMATS)
    options = {"num_threads": 1, "isa": ISAS[0], **options}
    model = NativeBackend(folder=folder, **options).load(spec, source, lambda done, total: None)
    forget(model)
    return model


def forget(model: NativeModel) -> None:
    """Fresh KV tensors full of NaN, so that reading what was not stored shows."""
    model.allocate_kv((40,) * len(model._groups))
    model.kv = tuple(allocate_kv(group, 40, poison=True) for group in model._groups)


@pytest.fixture
def model(folder: Path) -> Iterator[NativeModel]:
    model = load(folder)
    yield model
    model.close()


def run(model: NativeModel, ids: list[int], sizes: list[int], table: list[int] = TABLE) -> torch.Tensor:
    """Logits of all rows, in chunks of the given sizes."""
    outputs, start = [], 0
    for size in sizes:
        chunk = (ids[start : start + size], start, table)
        outputs.append(model.forward(make_batch([chunk], len(model.kv))))
        start += size
    return torch.cat(outputs)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sliding_windows": (0, 40, 0)},
        {"sliding_windows": (24, 24, 24)},
        {"num_heads": 4, "num_kv_heads": 4, "head_size": 64, "qkv_bias": False, "tied_head": True},
        {"num_heads": 8, "num_kv_heads": 1, "head_size": 32, "rope": RopeSpec(theta=500.0, size=32)},
        {"attention_scale": 0.2},
    ],
)
@pytest.mark.slow
def test_logits_are_those_of_the_reference(folder: Path, isa: str, changes: dict[str, Any]) -> None:
    assert_like_the_reference(folder, isa, tiny_spec(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"qk_norm": "head"},
        {"qk_norm": "whole", "pre_norms": False, "post_norms": True},
        {"post_norms": True, "activation": "gelu_tanh", "embedding_scale": 16.0},
        {"attention_softcap": 5.0, "logit_softcap": 3.0, "qkv_bias": False, "tied_head": True},
        {"residual_scale": 0.3, "logit_scale": 0.125, "embedding_scale": 2.0},
        {"o_bias": True, "mlp_bias": True},
        {"rope": RopeSpec(theta=10000.0, size=32, attention_factor=1.2), "unrotated_layers": (1,)},
        {"sliding_windows": (0, 40, 40), "local_rope": RopeSpec(theta=100.0, size=16)},
    ],
)
def test_features_of_architectures_are_those_of_the_reference(folder: Path, changes: dict[str, Any]) -> None:
    assert_like_the_reference(folder, ISAS[0], tiny_spec(**changes))


def assert_like_the_reference(folder: Path, isa: str, spec: ModelSpec) -> None:
    source = RandomSource(spec, PACKED_FORMATS)
    native = load(folder, spec, source, isa=isa, kv_dtype="float32")
    oracle = TORCH_BACKENDS["reference"]().load(spec, source, lambda done, total: None)
    oracle.allocate_kv((40,) * len(native.kv))
    batch = make_batch([(IDS[:90], 0, TABLE), (IDS[90:120], 0, OTHER_TABLE)], len(native.kv))

    got, want = native.forward(batch), oracle.forward(batch)

    errors = (got - want).norm(dim=1) / want.norm(dim=1)
    assert errors.median() < 3e-4
    assert errors.mean() < 3e-3
    native.close()


EVERY_FEATURE: dict[str, Any] = {
    "qk_norm": "whole",
    "post_norms": True,
    "o_bias": True,
    "mlp_bias": True,
    "activation": "gelu_tanh",
    "attention_softcap": 5.0,
    "logit_softcap": 3.0,
    "embedding_scale": 2.0,
    "residual_scale": 0.5,
    "logit_scale": 0.25,
    "sliding_windows": (0, 40, 40),
    "local_rope": RopeSpec(theta=100.0, size=16, attention_factor=1.1),
    "unrotated_layers": (2,),
}


@pytest.mark.parametrize("isa", ISAS)
def test_features_of_architectures_keep_rows_exact(folder: Path, isa: str) -> None:
    first = load(folder, tiny_spec(**EVERY_FEATURE))
    second = load(folder, tiny_spec(**EVERY_FEATURE), isa=isa, num_threads=2)

    expected = run(first, IDS, [70])

    assert torch.equal(run(second, IDS, [33, 8, 1, 2, 19, 7]), expected)
    first.close()
    second.close()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("name", "bad", "kv_dtype"),
    [
        ("layers.1.v", np.nan, "float16"),
        ("layers.1.v", -np.inf, "float16"),
        ("layers.1.v", np.inf, "int8"),
        ("layers.1.k", np.nan, "int8"),
        ("layers.1.k", np.inf, "float16"),
        ("layers.0.up", np.nan, "float16"),
        ("head", np.inf, "float16"),
    ],
)
@pytest.mark.slow
def test_a_bad_number_in_a_weight_shows_in_the_logits(
    folder: Path, isa: str, name: str, bad: float, kv_dtype: KVDtype
) -> None:
    spec = tiny_spec()
    source = RandomSource(spec, ["Q8_0"])
    tensor = source.tensor(name)
    data = tensor.data.copy()
    data[3, :2] = np.array([bad], dtype="<f2").view(np.uint8)
    source.replace(name, WeightTensor(tensor.format, tensor.shape, data))
    model = load(folder, spec, source, isa=isa, kv_dtype=kv_dtype)

    logits = run(model, IDS, [12, 1])

    seen = logits[:, 3] if name == "head" else logits
    assert not seen.isfinite().any()
    model.close()


@pytest.mark.parametrize("isa", ISAS[1:])
@pytest.mark.parametrize("kv_dtype", ["float32", "float16", "bfloat16", "int8"])
def test_every_instruction_set_gives_the_same_logits(folder: Path, isa: str, kv_dtype: str) -> None:
    spec = tiny_spec(sliding_windows=(0, 40, 0))
    first = load(folder, spec, kv_dtype=kv_dtype)
    second = load(folder, spec, kv_dtype=kv_dtype, isa=isa)

    expected = run(first, IDS, [70])

    assert torch.equal(run(second, IDS, [70]), expected)
    first.close()
    second.close()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv_dtype", ["float16", "int8"])
@pytest.mark.slow
def test_chunking_changes_nothing(folder: Path, isa: str, kv_dtype: str) -> None:
    total = 80 if isa == "scalar" else 280
    spec = tiny_spec(sliding_windows=(0, 40, 100))
    model = load(folder, spec, isa=isa, kv_dtype=kv_dtype)
    whole = run(model, IDS, [total])

    for size in (1, 2, 5, 8, 16, 33, 257):
        sizes = [size] * (total // size) + ([total % size] if total % size else [])
        forget(model)
        assert torch.equal(run(model, IDS, sizes), whole), f"chunks of {size}"
    model.close()


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_batch_mates_and_threads_change_nothing(folder: Path, num_threads: int) -> None:
    alone = load(folder)
    expected = run(alone, IDS, [30, 1, 1])
    alone.close()
    model = load(folder, num_threads=num_threads)

    mixed = [
        model.forward(make_batch([(IDS[50:117], 0, OTHER_TABLE), (IDS[:30], 0, TABLE)]))[67:],
        model.forward(make_batch([(IDS[30:31], 30, TABLE), (IDS[117:118], 67, OTHER_TABLE)]))[:1],
        model.forward(make_batch([(IDS[118:140], 68, OTHER_TABLE), (IDS[31:32], 31, TABLE)]))[22:],
    ]

    assert torch.equal(torch.cat(mixed), expected)
    model.close()


def test_logits_are_computed_only_for_the_rows_asked_for(model: NativeModel) -> None:
    every = run(model, IDS, [40])
    forget(model)

    last = model.forward(make_batch([(IDS[:40], 0, TABLE)], logits="last"))

    assert last.shape == (1, 75)
    assert torch.equal(last[0], every[-1])


def test_a_step_without_logits_stores_keys_and_values_all_the_same(model: NativeModel) -> None:
    expected = run(model, IDS, [20, 1])[-1]
    forget(model)
    batch = make_batch([(IDS[:20], 0, TABLE)])
    silent = type(batch)(
        *(getattr(batch, f) for f in batch.__slots__[:4]), torch.empty(0, dtype=torch.int64), batch.groups
    )

    assert model.forward(silent).shape == (0, 75)
    assert torch.equal(model.forward(make_batch([(IDS[20:21], 20, TABLE)]))[0], expected)


def test_blocks_left_of_the_window_need_not_exist(folder: Path) -> None:
    spec = tiny_spec(sliding_windows=(20, 20, 20))
    model = load(folder, spec)
    expected = run(model, IDS, [70, 1])[-1]

    forgotten = [-1, -1, -1, *TABLE[3:]]

    assert torch.equal(model.forward(make_batch([(IDS[70:71], 70, forgotten)]))[0], expected)
    model.close()


def test_no_block_is_written_that_no_slot_names(model: NativeModel) -> None:
    run(model, IDS, [33])

    untouched = [b for b in range(40) if b not in TABLE[:3]]
    assert model.kv[0].k[:, untouched].isnan().all()
    assert model.kv[0].v[:, untouched].isnan().all()
    assert model.kv[0].k[:, TABLE[2], :, :, 1:].isnan().all()
    assert model.kv[0].v[:, TABLE[2], :, 1:].isnan().all()
    assert not model.kv[0].k[:, TABLE[2], :, :, 0].isnan().any()


@pytest.mark.parametrize(
    "chunk",
    [([75], 0, TABLE), ([-1], 0, TABLE), ([3], 0, [-1]), ([3], 16, [2, 40]), ([3] * 17, 0, [0, -1])],
)
def test_a_step_that_names_what_does_not_exist_is_refused(model: NativeModel, chunk: Any) -> None:
    ids, start, table = chunk
    batch = make_batch([(ids, start, [max(t, 0) for t in table])])
    batch.groups[0].block_tables[:] = torch.tensor(table, dtype=torch.int32)

    with pytest.raises(InternalEngineError):
        model.forward(batch)


def test_a_cancelled_step_raises_and_the_next_one_runs(model: NativeModel) -> None:
    expected = run(model, IDS, [10])

    model.cancel()
    with pytest.raises(StepCancelledError):
        run(model, IDS, [10])

    assert torch.equal(run(model, IDS, [10]), expected)


def test_the_second_load_reads_the_packed_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(folder)
    expected = run(first, IDS, [9])
    first.close()
    monkeypatch.setattr("inglenook.kernels.native_weights._pack", lambda *a: pytest.fail("packed again"))

    second = load(folder)

    assert torch.equal(run(second, IDS, [9]), expected)
    assert len(list(folder.iterdir())) == 1
    second.close()


@pytest.mark.parametrize("place", [0, 9, 5000, -1, -300])
def test_a_damaged_packed_file_is_packed_anew(folder: Path, place: int) -> None:
    first = load(folder)
    expected = run(first, IDS, [9])
    first.close()
    (path,) = folder.iterdir()
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[place] ^= 0x40
    path.write_bytes(damaged)

    second = load(folder)

    assert torch.equal(run(second, IDS, [9]), expected)
    assert path.read_bytes() == sound
    second.close()


@pytest.mark.parametrize("size", [0, 100, 4096, 20000])
def test_a_cut_off_packed_file_is_packed_anew(folder: Path, size: int) -> None:
    load(folder).close()
    (path,) = folder.iterdir()
    sound = path.read_bytes()
    path.write_bytes(sound[:size])

    load(folder).close()

    assert path.read_bytes() == sound


def test_another_source_gets_another_packed_file(folder: Path) -> None:
    spec = tiny_spec()
    load(folder, spec).close()
    source = RandomSource(spec, PACKED_FORMATS)
    changed = source.tensor("layers.1.up")
    data = changed.data.copy()
    data[77, 3] ^= 1
    source.replace("layers.1.up", WeightTensor(changed.format, changed.shape, data))

    load(folder, spec, source).close()

    assert len(list(folder.iterdir())) == 2


def test_the_packed_weights_and_every_folder_made_for_them_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        load(tmp_path / "cache" / "inglenook" / "packed").close()
    finally:
        os.umask(before)

    made = list((tmp_path / "cache").rglob("*.packed"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o600]
    folders = [tmp_path / "cache", *(path for path in (tmp_path / "cache").rglob("*") if path.is_dir())]
    assert [stat.S_IMODE(path.stat().st_mode) for path in folders] == [0o700] * 3


def test_weights_are_packed_in_memory_where_the_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    model = load(tmp_path / "file" / "packed")

    assert run(model, IDS, [5]).isfinite().all()
    model.close()


def test_a_cancelled_load_leaves_no_file(folder: Path) -> None:
    spec = tiny_spec()
    calls: list[int] = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NativeBackend(folder=folder, isa=ISAS[0]).load(spec, RandomSource(spec, PACKED_FORMATS), stop)

    assert not folder.exists()


def test_a_matrix_in_a_float_format_is_refused_by_name(folder: Path) -> None:
    spec = tiny_spec()
    source = RandomSource(spec, PACKED_FORMATS)
    data = np.zeros((256, 288 * 4), dtype=np.uint8)
    source.replace("layers.2.down", WeightTensor(FORMATS["F32"], (256, 288), data))

    with pytest.raises(UnsupportedModelError, match=r"layers\.2\.down is F32"):
        load(folder, spec, source)


def test_an_odd_shape_is_refused_with_its_numbers() -> None:
    spec = tiny_spec(head_size=40)

    why = refusal(spec, RandomSource(tiny_spec(), PACKED_FORMATS))

    assert why is not None
    assert "head size 40" in why


def test_a_step_stays_small_for_a_large_model(folder: Path) -> None:
    backend = NativeBackend(folder=folder, isa=ISAS[0], num_threads=2)

    small = backend.step_tokens(tiny_spec())
    large = backend.step_tokens(tiny_spec(num_layers=32, hidden_size=4096, intermediate_size=14336))

    assert small == 512
    assert large == 16


@pytest.mark.parametrize("form", ["BF16", "F16", "QFLOAT8_G32"])
def test_a_step_is_smaller_for_floats_and_their_logits_are_the_references(folder: Path, form: str) -> None:
    spec = tiny_spec()
    source = RandomSource(spec, (form,))
    assert has_floats(source)
    assert not has_floats(RandomSource(spec, ("Q8_0",)))
    large = tiny_spec(num_layers=8, hidden_size=2048, intermediate_size=4096)
    steps = [
        NativeBackend(folder=folder, isa=i, num_threads=2, has_floats=f) for i in ISAS for f in (True, False)
    ]
    tokens = [b.step_tokens(large) for b in steps]
    assert all(a <= b for a, b in zip(tokens[::2], tokens[1::2], strict=True))
    assert sum(tokens[::2]) < sum(tokens[1::2])

    got = load(folder, spec, source, kv_dtype="float32").forward(make_batch([(IDS[:20], 0, [0, 1])]))

    reference = TORCH_BACKENDS["reference"]().load(spec, source, lambda done, total: None)
    reference.allocate_kv((4,))
    want = reference.forward(make_batch([(IDS[:20], 0, [0, 1])]))
    assert float((got - want).norm() / want.norm()) < 1e-3


def test_closing_twice_is_fine(folder: Path) -> None:
    model = load(folder)

    model.close()
    model.close()

    assert model.kv == ()


def test_what_the_kernels_do_not_know_is_refused_by_name() -> None:
    spec = tiny_spec(activation="gelu", experts=ExpertsSpec(count=4, used=2))

    why = refusal(spec, RandomSource(spec, PACKED_FORMATS))

    assert why == "it has the activation gelu, a mixture of experts"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2", "qwen2"])
@pytest.mark.parametrize("kv_dtype", ["float16", "int8"])
def test_real_models_give_the_same_logits_in_every_chunking(
    folder: Path, request: pytest.FixtureRequest, name: str, kv_dtype: KVDtype
) -> None:
    with open_model(request.getfixturevalue(name)) as file:
        ids = torch.randint(
            0, file.spec.vocab_size, (300,), generator=torch.Generator().manual_seed(1)
        ).tolist()
        results = []
        for num_threads, sizes in ((2, [300]), (1, [257, 43]), (2, [16] * 18 + [8, 2, 1, 1])):
            backend = NativeBackend(folder=folder, num_threads=num_threads, kv_dtype=kv_dtype)
            model = backend.load(file.spec, file, lambda done, total: None)
            model.allocate_kv((40,))
            results.append(run(model, ids, sizes))
            model.close()

    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
