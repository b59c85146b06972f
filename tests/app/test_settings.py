"""Settings are declared once; what is stored is checked and never lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pytestqt.qtbot import QtBot

from inglenook.app.errors import AppError
from inglenook.app.settings import AppSettings
from inglenook.app.settings_presets import PRESETS, values_in_words
from inglenook.app.settings_table import GROUPS, MODEL_SETTINGS, OWN_STYLE_KEYS, SETTINGS


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
    assert saved == [{"chat.temperature": 1, "chat.preset": "own"}]
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


def test_every_setting_that_is_shown_has_its_place_and_words_for_its_choices() -> None:
    for spec in SETTINGS:
        assert not spec.label or spec.group in GROUPS, spec.key
        assert not spec.words or len(spec.words) == len(spec.choices), spec.key
    assert not [spec.key for spec in MODEL_SETTINGS if spec.fault(spec.default)]


def test_a_style_is_what_replies_are_sampled_with_and_seeds_are_passed_on(settings: AppSettings) -> None:
    settings.set("chat.preset", "creative")
    settings.set("chat.seed", 7)

    assert settings.sampling().temperature == PRESETS["creative"].temperature
    assert settings.sampling().seed == 7
    assert settings.sampling("precise").temperature == PRESETS["precise"].temperature


def test_changing_a_number_makes_the_style_ones_own_beginning_as_the_one_before(
    settings: AppSettings,
) -> None:
    settings.set("chat.preset", "precise")

    settings.set("chat.top_p", 0.5)

    assert settings.value("chat.preset") == "own"
    assert settings.sampling().top_p == 0.5
    assert settings.sampling().temperature == PRESETS["precise"].temperature
    assert settings.sampling().repetition_penalty == PRESETS["precise"].repetition_penalty


def test_a_personas_own_values_stand_in_and_unsound_ones_do_not(settings: AppSettings) -> None:
    sampling = settings.sampling("own", {"temperature": 0.1, "top_k": -3, "of_a_newer_program": 1})

    assert (sampling.temperature, sampling.top_k) == (0.1, 0)


def test_resetting_goes_back_to_the_defaults_and_saves_them(
    settings: AppSettings, saved: list[Mapping[str, object]]
) -> None:
    settings.set("model.idle_minutes", 3)
    settings.set("documents.ticked_when_added", False)
    saved.clear()

    settings.reset(*settings.shown_keys())

    assert all(settings.is_default(key) for key in settings.shown_keys())
    assert saved == [{"model.idle_minutes": 15, "documents.ticked_when_added": True}]


def test_one_models_settings_stand_in_for_those_of_all(settings: AppSettings) -> None:
    settings.set("model.context_length", 4096)
    settings.set("model.num_threads", 2)
    settings.set_model_options(
        "tiny", {"context_length": 1024, "kv_type": "int8", "chat_template": "{{ x }}"}
    )

    own, other = settings.load_options("tiny"), settings.load_options("big")

    assert (own.context_length, own.kv_dtype, own.num_threads) == (1024, "int8", 2)
    assert own.chat_template == "{{ x }}"
    assert (other.context_length, other.kv_dtype, other.chat_template) == (4096, None, "")
    settings.set_model_options("tiny", {})
    assert settings.load_options("tiny") == other


def test_a_models_settings_are_checked_when_set_and_when_read(settings: AppSettings) -> None:
    with pytest.raises(AppError, match=r"Threads must be from 0 to 256, got 999\."):
        settings.set_model_options("tiny", {"num_threads": 999})
    settings.load({"model.options": {"tiny": {"num_threads": 999, "context_length": 512}, "odd": 3}})

    assert settings.load_options("tiny").num_threads is None
    assert settings.load_options("tiny").context_length == 512
    assert settings.load_options("odd").context_length is None


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("chat.temperature", " 0,7 ", 0.7),
        ("chat.temperature", "1", 1.0),
        ("model.context_length", "16,384", 16_384),
        ("model.context_length", "16 384", 16_384),
        ("model.context_length", "1.048.576", 1_048_576),
        ("model.context_length", "Automatic", 0),
        ("model.idle_minutes", "", 0),
        ("chat.max_tokens", "no limit", 0),
        ("chat.system", " as it is ", " as it is "),
    ],
)
def test_what_a_person_types_is_read(settings: AppSettings, key: str, text: str, value: object) -> None:
    assert settings.spec(key).parsed(text) == (value, "")


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("chat.temperature", "hot", "Temperature must be a number, got “hot”."),
        ("chat.temperature", "", "Temperature must be a number, got nothing."),
        ("chat.temperature", "2.5", "Temperature must be from 0 to 2, got 2.5."),
        ("chat.temperature", "nan", "Temperature must be from 0 to 2, got nan."),
        ("model.num_threads", "2,5", "Threads must be a whole number, got “2,5”."),
        ("model.num_threads", "2.5", "Threads must be a whole number, got “2.5”."),
        ("model.context_length", "99999999", "Context window must be from 0 to 10,000,000, got 99,999,999."),
        ("chat.system", "x" * 100_001, "Instructions can have 100,000 characters at most, got 100,001."),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    settings: AppSettings, key: str, text: str, sentence: str
) -> None:
    assert settings.spec(key).parsed(text) == (None, sentence)


def test_what_is_written_is_read_back(settings: AppSettings) -> None:
    for key in settings.shown_keys():
        spec = settings.spec(key)
        if not isinstance(spec.default, bool):
            assert spec.parsed(spec.written(spec.default)) == (spec.default, ""), key


def test_the_values_of_a_style_are_one_line_without_what_is_off() -> None:
    assert values_in_words(PRESETS["balanced"]) == "temperature 0.7, top p 0.95, min p 0.05"
    assert len(OWN_STYLE_KEYS) == 5
