"""The values of the settings as they are now; what they are is declared in settings_table.py.

Values are kept in the database's settings table. One that is missing, of another type or out of range reads as its
default, and the stored one stays; a key that this program does not know is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from inglenook.app.errors import AppError
from inglenook.app.settings_presets import OWN, PRESETS, PresetValues, preset_values, sampling_of
from inglenook.app.settings_table import MODEL_SETTINGS, OWN_STYLE_KEYS, SETTINGS, SettingSpec
from inglenook.engine.request import LoadOptions, SamplingParams

Save = Callable[[Mapping[str, object]], object]


class AppSettings(QObject):
    """The values of now. GUI thread only; `save` is given what changed.

    Signals:
        changed(str, object): key and new value.
    """

    changed = Signal(str, object)

    def __init__(self, save: Save = lambda _values: None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._save = save
        self._specs = {spec.key: spec for spec in SETTINGS}
        self._values: dict[str, Any] = {}
        self._kept: set[str] = set()

    def load(self, stored: Mapping[str, object]) -> str:
        """Take what was stored; return one sentence about values that cannot be used, or ""."""
        faults = []
        for key, spec in self._specs.items():
            if key in stored:
                fault = spec.fault(stored[key])
                if fault:
                    faults.append(fault)
                else:
                    self._kept.add(key)
                    self._take(key, stored[key])
        if not faults:
            return ""
        return f"{len(faults)} of the settings could not be used, and their defaults are: {faults[0]}"

    def value(self, key: str) -> Any:
        """Return a value, of its default's type. Raises: KeyError for a key that is not declared."""
        spec = self._specs[key]
        return self._values.get(key, spec.default)

    def is_kept(self, key: str) -> bool:
        """Return whether a value was stored, now or at an earlier time, be it the default."""
        return key in self._kept

    def spec(self, key: str) -> SettingSpec:
        """Return what a setting is. Raises: KeyError for a key that is not declared."""
        return self._specs[key]

    def is_default(self, key: str) -> bool:
        """Whether a value is the default one."""
        return bool(self.value(key) == self._specs[key].default)

    def set(self, key: str, value: object) -> None:
        """Change and save a value. A value of the own style makes that the style in force, beginning as the one before.

        Raises:
            AppError: it is of another type, or out of range; the sentence says which.
        """
        fault = self._specs[key].fault(value)
        if fault:
            raise AppError(fault)
        changes = {key: value}
        if key in OWN_STYLE_KEYS and self.value("chat.preset") != OWN:
            now = self.style()
            changes = {own: getattr(now, _field(own)) for own in OWN_STYLE_KEYS}
            changes |= {"chat.preset": OWN, key: value}
        self._change(changes)

    def reset(self, *keys: str) -> None:
        """Take settings back to their defaults."""
        self._change({key: self._specs[key].default for key in keys})

    def shown_keys(self) -> tuple[str, ...]:
        """The keys of all settings that people can set, in the order of the page."""
        return tuple(key for key, spec in self._specs.items() if spec.label)

    def style(self, preset: str = "", own: Mapping[str, Any] | None = None) -> PresetValues:
        """Return the values of a style, "" of the one in force; `own` are those of a persona's own style."""
        if preset in PRESETS:
            return PRESETS[preset]
        values = {_field(key): self.value(key) for key in OWN_STYLE_KEYS}
        if preset == OWN and own is not None:
            # A persona that was damaged or made by a newer program falls back on what is sound.
            specs = {_field(key): self._specs[key] for key in OWN_STYLE_KEYS}
            values |= {f: own[f] for f, spec in specs.items() if f in own and not spec.fault(own[f])}
            return preset_values(OWN, values)
        return preset_values(self.value("chat.preset"), values)

    def sampling(self, preset: str = "", own: Mapping[str, Any] | None = None) -> SamplingParams:
        """Return how replies are sampled, in the style in force or in a persona's."""
        return sampling_of(
            self.style(preset, own),
            max_tokens=self.value("chat.max_tokens"),
            seed=self.value("chat.seed"),
            stop_repetition=self.value("chat.stop_repetition"),
        )

    def model_options(self, name: str) -> dict[str, Any]:
        """Return what was set for one model alone, by the keys of `MODEL_SETTINGS`; what is not sound is left out."""
        stored = self.value("model.options").get(name)
        if not isinstance(stored, dict):
            return {}
        sound = ((spec.key, stored[spec.key]) for spec in MODEL_SETTINGS if spec.key in stored)
        specs = {spec.key: spec for spec in MODEL_SETTINGS}
        return {key: value for key, value in sound if not specs[key].fault(value)}

    def set_model_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Set what counts for one model alone, in place of what was; {} lets the settings of all count.

        Raises:
            AppError: a value is of another type, or out of range.
        """
        specs = {spec.key: spec for spec in MODEL_SETTINGS}
        for key, value in options.items():
            if fault := specs[key].fault(value):
                raise AppError(fault)
        others = {model: kept for model, kept in self.value("model.options").items() if model != name}
        self.set("model.options", others | ({name: dict(options)} if options else {}))

    def load_options(self, name: str = "") -> LoadOptions:
        """Return how the chat model of that name is loaded."""
        values = {spec.key: self._model_value(spec) for spec in MODEL_SETTINGS} | self.model_options(name)
        return LoadOptions(
            backend=values["backend"],
            context_length=values["context_length"] or None,
            num_threads=values["num_threads"] or None,
            kv_dtype=values["kv_type"] or None,
            chat_template=values["chat_template"],
        )

    def idle_s(self) -> float | None:
        """Return after how many seconds without a question all models are unloaded; None: never."""
        return 60.0 * self.value("model.idle_minutes") or None

    def _model_value(self, spec: SettingSpec) -> Any:
        key = f"model.{spec.key}"
        return self.value(key) if key in self._specs else spec.default

    def _change(self, values: Mapping[str, object]) -> None:
        changed = {key: value for key, value in values.items() if self.value(key) != value}
        if not changed:
            return
        self._kept |= changed.keys()
        for key, value in changed.items():
            self._take(key, value)
        self._save(changed)

    def _take(self, key: str, value: object) -> None:
        if self.value(key) != value:
            self._values[key] = float(value) if type(self._specs[key].default) is float else value  # type: ignore[arg-type]  # checked by `fault`
            self.changed.emit(key, self._values[key])


def _field(key: str) -> str:
    """The name of a style's value, from its setting's key."""
    return key.removeprefix("chat.")
