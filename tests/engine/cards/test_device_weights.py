"""Weights on their way to a card: in parts, with progress, and the same as in one piece."""

import pytest
import torch
from random_models import RandomModel, small_spec

from inglenook.engine.cards import device_weights
from inglenook.engine.cards.device_weights import load_weights
from inglenook.kernels.packed_weight import PackedWeight

CPU = torch.device("cpu")


def load(spec, form: str, progress=lambda done, total: None):
    return load_weights(spec, RandomModel(spec, lambda name: form), CPU, torch.float32, progress)


def assert_equal(a: PackedWeight, b: PackedWeight) -> None:
    assert (a.format, a.rows, a.columns) == (b.format, b.rows, b.columns)
    for own, other in zip(a.planes, b.planes, strict=True):
        assert (own is None) == (other is None)
        assert own is None or torch.equal(own, other)


@pytest.mark.parametrize("form", ["Q4_0", "Q5_K", "Q6_K", "Q8_0", "F16"])
def test_a_matrix_packed_in_parts_is_the_one_packed_whole(monkeypatch, form: str) -> None:
    spec = small_spec(
        hidden_size=256, intermediate_size=256, num_layers=1, tied_head=False, num_heads=16, num_kv_heads=16
    )
    whole, whole_bytes = load(spec, form)
    monkeypatch.setattr(device_weights, "PART_BYTES", 1000)

    parts, parts_bytes = load(spec, form)

    assert parts_bytes == whole_bytes
    assert_equal(parts.embedding, whole.embedding)
    for mine, other in zip(parts.layers[0].qkv.parts, whole.layers[0].qkv.parts, strict=True):
        assert_equal(mine, other)


def test_progress_comes_with_every_part_and_reaches_the_whole(monkeypatch) -> None:
    spec = small_spec(num_layers=1)
    monkeypatch.setattr(device_weights, "PART_BYTES", 500)
    reports: list[tuple[int, int]] = []

    load(spec, "Q8_0", lambda done, total: reports.append((done, total)))

    total = RandomModel(spec, lambda name: "Q8_0").size_bytes
    steps = [b[0] - a[0] for a, b in zip([(0, 0), *reports], reports, strict=False)]
    assert max(steps) <= 500
    assert reports[-1] == (total, total)


def test_a_load_is_given_up_between_parts(monkeypatch) -> None:
    monkeypatch.setattr(device_weights, "PART_BYTES", 500)

    def cancel(done: int, total: int) -> None:
        if done > 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(small_spec(), "Q8_0", cancel)
