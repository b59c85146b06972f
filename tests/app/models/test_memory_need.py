"""What a model needs with a window and a type of keys and values."""

from __future__ import annotations

import pytest

from inglenook.app.models.memory_need import fit_of, memory_need
from inglenook.engine.memory import LISTED_CONTEXT
from inglenook.engine.model_library import ModelRecord

RECORD = ModelRecord(
    title="M", kind="chat", licence="MIT", origin="", size_bytes=10**9, num_parameters=10**9, kv_bytes_per_token=64_000
)  # fmt: skip


def test_without_settings_it_is_what_the_list_says() -> None:
    assert memory_need(RECORD, {}) == RECORD.memory_bytes
    assert memory_need(RECORD, {"context_length": 0, "kv_type": ""}) == RECORD.memory_bytes


def test_a_longer_window_costs_its_tokens_and_narrow_values_half() -> None:
    longer = memory_need(RECORD, {"context_length": LISTED_CONTEXT + 1_000})
    narrow = memory_need(RECORD, {"context_length": 10_000, "kv_type": "int8"})
    wide = memory_need(RECORD, {"context_length": 10_000, "kv_type": "float32"})

    assert longer - RECORD.memory_bytes == 64_000_000
    assert wide - narrow == round(640_000_000 * (2 - 17 / 32))


@pytest.mark.parametrize(("need", "fit"), [(80, "yes"), (81, "maybe"), (100, "maybe"), (101, "no")])
def test_nearly_all_that_is_free_may_be_slow(need: int, fit: str) -> None:
    assert fit_of(need, 100) == fit
