"""Settings are declared once; what is stored is checked and never lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.errors import AppError
from inglenook.app.settings import SETTINGS, AppSettings


@pytest.fixture
def saved() -> list[Mapping[str, object]]:
    return []


@pytest.fixture
def settings(qtbot: QtBot, saved: list[Mapping[str, object]]) -> AppSettings:
    return AppSettings(saved.append)


def test_every_default_is_allowed_and_every_key_is_declared_once() -> None:
    assert not [spec.key for spec in SETTINGS if spec.fault(spec.default)]
    assert len({spec.key for spec in SETTINGS}) == len(SETTINGS)


def test_a_change_is_told_and_saved_once(
    qtbot: QtBot, settings: AppSettings, saved: list[Mapping[str, object]]
) -> None:
    with qtbot.waitSignal(settings.changed) as blocker:
        settings.set("chat.temperature", 1)
    settings.set("chat.temperature", 1.0)

    assert blocker.args == ["chat.temperature", 1.0]
    assert saved == [{"chat.temperature": 1}]
    assert settings.sampling().temperature == 1.0


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("chat.temperature", -1.0, "Temperature must be from 0 to 2, got -1."),
        ("chat.temperature", float("nan"), "Temperature must be from 0 to 2, got nan."),
        ("chat.temperature", "hot", "Temperature must be of the type float, got str."),
        ("chat.top_k", True, "Top k must be of the type int, got bool."),
        ("appearance.scheme", "pink", "Colours must be one of system, light, dark, got 'pink'."),
    ],
)
def test_a_value_out_of_range_is_refused_in_a_sentence(
    settings: AppSettings, key: str, value: object, sentence: str
) -> None:
    with pytest.raises(AppError) as caught:
        settings.set(key, value)

    assert str(caught.value) == sentence


def test_stored_values_that_cannot_be_used_read_as_defaults_with_one_notice(
    settings: AppSettings, saved: list[Mapping[str, object]]
) -> None:
    notice = settings.load(
        {"chat.temperature": "hot", "chat.top_k": -4, "chat.system": "Be brief.", "of.a.newer.program": 1}
    )

    assert notice.startswith("2 of the settings could not be used")
    assert settings.value("chat.temperature") == 0.7
    assert settings.value("chat.system") == "Be brief."
    assert not saved


def test_zero_means_the_engines_own_choice(settings: AppSettings) -> None:
    assert settings.sampling().max_tokens is None
    assert settings.load_options().context_length is None
    assert settings.load_options().num_threads is None
