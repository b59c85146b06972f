"""Which keys do what: the table's, or those that the user chose instead, with what stands in the way of a choice.

A key belongs to one action: giving it to another takes it from the first. Keys that writing needs, or that the system
keeps for itself, are not to be had. Esc, F1 and F10 always work, also when all others are switched off. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QKeyCombination, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence

from inglenook.app.window.actions import ACTIONS, ActionSpec, translated

FIXED = "stop"
_ALWAYS = (FIXED, "shortcuts", "menu")
_MOST_KEYS = 4
_EDITING = (
    "Ctrl+C", "Ctrl+X", "Ctrl+V", "Ctrl+A", "Ctrl+Z", "Ctrl+Y", "Ctrl+Shift+Z", "Ctrl+Left", "Ctrl+Right",
    "Ctrl+Home", "Ctrl+End", "Ctrl+Backspace", "Ctrl+Del", "Ctrl+Ins", "Shift+Ins", "Shift+Del", "Ctrl+Return",
    "Ctrl+Tab", "Shift+F10", "Menu",
)  # fmt: skip
_OF_THE_SYSTEM = (
    "Alt+F4", "Alt+Tab", "Alt+Shift+Tab", "Alt+Space", "Alt+Esc", "Ctrl+Alt+Del", "Ctrl+Esc", "Print", "Alt+Print",
)  # fmt: skip
_FIRST_FUNCTION_KEY, _LAST_FUNCTION_KEY = Qt.Key.Key_F1, Qt.Key.Key_F35


def portable(keys: str) -> str:
    """Return a key sequence as it is compared and kept; "" for what is none."""
    sequence = QKeySequence(keys)
    text = sequence.toString(QKeySequence.SequenceFormat.PortableText)
    return text if sequence.count() == 1 and _combination(sequence).key() != Qt.Key.Key_unknown else ""


def native(keys: Sequence[str]) -> list[str]:
    """Return keys as this system writes them."""
    return [QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys]


def with_keys(words: str, keys: str) -> str:
    """Return a tooltip's words with the keys that do the same; "" is no keys."""
    return f"{words} ({keys})" if keys else words


class Shortcuts(QObject):
    """The keys of `actions`. Signals: `changed()` after any of them changed; keep `kept()` then."""

    changed = Signal()

    def __init__(
        self,
        actions: Mapping[str, QAction],
        specs: Sequence[ActionSpec] = ACTIONS,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._actions, self._specs = actions, {spec.name: spec for spec in specs}
        self._chosen: dict[str, tuple[str, ...]] = {}
        self.is_on = True

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of an action, whether or not shortcuts are switched on."""
        usual = tuple(portable(key) for key in self._specs[name].keys)
        return self._chosen.get(name, usual)

    def shown(self, name: str) -> str:
        """Return the first key that works now, as the system writes it; "" without one."""
        keys = self.keys(name) if self._works(name) else ()
        return native(keys)[0] if keys else ""

    def is_chosen(self, name: str) -> bool:
        """Whether the user changed the keys of an action."""
        return name in self._chosen

    def owner(self, key: str) -> str:
        """Return the name of the action that has a key, or ""."""
        key = portable(key)
        return next((name for name in self._specs if key in self.keys(name)), "")

    def fault(self, key: str) -> str:
        """Say why a key cannot be given to any action; "" where it can."""
        text = portable(key)
        shown = (native([text]) or [""])[0]
        if not text:
            return self.tr("This is no key that can be used here.")
        combination = _combination(QKeySequence(text))
        modifiers = combination.keyboardModifiers()
        typing = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
        is_function = _FIRST_FUNCTION_KEY <= combination.key() <= _LAST_FUNCTION_KEY
        if combination.key() == Qt.Key.Key_Escape and not modifiers:
            return self.tr("Esc always stops or closes, and cannot be given to anything else.")
        if modifiers & Qt.KeyboardModifier.MetaModifier or text in _OF_THE_SYSTEM:
            return self.tr("{0} belongs to the system.").format(shown)
        if text in _EDITING:
            return self.tr("{0} is needed for writing and editing.").format(shown)
        if not modifiers & ~typing and not is_function:
            return self.tr("{0} alone is needed for writing. Hold Ctrl or Alt with it.").format(shown)
        return ""

    def rebind(self, name: str, keys: Sequence[str]) -> None:
        """Give an action these keys and no others; whoever had them loses them.

        Raises:
            ValueError: one of the keys cannot be had, or the action's are fixed.
        """
        wanted = tuple(dict.fromkeys(portable(key) for key in keys if key))
        fault = next((fault for key in wanted if (fault := self.fault(key))), "")
        if fault or name == FIXED:
            raise ValueError(fault or f"the keys of {name} are fixed")
        for other in self._specs:
            left = tuple(key for key in self.keys(other) if key not in wanted)
            if other not in (name, FIXED) and left != self.keys(other):
                self._chosen[other] = left
        self._chosen[name] = wanted
        if wanted == tuple(portable(key) for key in self._specs[name].keys):
            del self._chosen[name]
        self._apply()

    def reset(self, name: str) -> None:
        """Give an action its usual keys again; whoever has them now loses them."""
        self.rebind(name, self._specs[name].keys)

    def reset_all(self) -> None:
        """Give all actions their usual keys again."""
        self._chosen.clear()
        self._apply()

    def set_on(self, is_on: bool) -> None:
        """Switch all keys on or off, but for Esc, F1 and F10."""
        if is_on != self.is_on:
            self.is_on = is_on
            self._apply()

    def kept(self) -> dict[str, list[str]]:
        """Return what the user chose, for `take`."""
        return {name: list(keys) for name, keys in self._chosen.items()}

    def take(self, kept: Mapping[str, object]) -> None:
        """Take what was kept; what is damaged, unknown or no longer to be had is left out."""
        self._chosen.clear()
        for name, keys in kept.items():
            if name in self._specs and name != FIXED and isinstance(keys, list):
                texts = [portable(key) for key in keys[:_MOST_KEYS] if isinstance(key, str)]
                self._chosen[name] = tuple(key for key in dict.fromkeys(texts) if key and not self.fault(key))
        seen: set[str] = set()
        for name in [*self._chosen, *(name for name in self._specs if name not in self._chosen)]:
            free = tuple(key for key in self.keys(name) if key not in seen)
            if free != self.keys(name):
                self._chosen[name] = free
            seen.update(free)
        self._apply()

    def text(self, name: str) -> str:
        """Return what an action does, in the user's language."""
        return translated(self._specs[name].text).rstrip("…")

    def _works(self, name: str) -> bool:
        return self.is_on or name in _ALWAYS

    def _apply(self) -> None:
        for name, action in self._actions.items():
            keys = self.keys(name) if self._works(name) else ()
            action.setShortcuts([QKeySequence(key) for key in keys])
        self.changed.emit()


def _combination(sequence: QKeySequence) -> QKeyCombination:
    first: QKeyCombination = sequence[0]  # type: ignore[index]  # the stubs of PySide6 6.11 lack it
    return first
