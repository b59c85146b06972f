"""The control of one setting, chosen by what the table says of it: a check box, a list, or a field to write in.

A change that is sound is told at once (a written one with Enter or when the field is left); what is not is said in a
sentence and changes nothing. GUI thread only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QWidget,
)

from inglenook.app.settings_page.form_controls import Choices, TickBox
from inglenook.app.settings_table import SettingSpec
from inglenook.app.window.theme import Theme

_LINES = 5


class SettingField(QWidget):
    """Shows and changes one value.

    Signals: `edited(value)`, sound and another than before; `faulted(sentence)` when what is written is not, "" when it
    is again. `control` is what the keyboard reaches.
    """

    edited = Signal(object)
    faulted = Signal(str)

    def __init__(self, spec: SettingSpec, theme: Theme) -> None:
        super().__init__()
        # What 0 is called is written and read in the user's language.
        self._spec = (
            replace(spec, zero=QCoreApplication.translate("settings", spec.zero)) if spec.zero else spec
        )
        self._theme = theme
        self._value: Any = spec.default
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.control: QWidget = self._make()
        translate = QCoreApplication.translate
        self.control.setAccessibleName(translate("settings", spec.label))
        hints = (translate("settings", text) for text in (spec.hint, spec.unit) if text)
        self.control.setAccessibleDescription(" ".join(hints))
        self._line.addWidget(self.control)
        if spec.unit:
            unit = QLabel(QCoreApplication.translate("settings", spec.unit))
            unit.setObjectName("unit")
            unit.setTextFormat(Qt.TextFormat.PlainText)
            self._line.addWidget(unit)
        self.setFocusProxy(self.control)
        self.restyle()
        self.show_value(spec.default)

    @property
    def is_wide(self) -> bool:
        """Whether it needs a line of its own."""
        return self._spec.is_long

    def show_value(self, value: Any) -> None:
        """Show a value without telling it; what was being written is given up."""
        self._value = value
        with QSignalBlocker(self.control):
            if isinstance(self.control, QCheckBox):
                self.control.setChecked(value)
                self._name_box()
            elif isinstance(self.control, QComboBox):
                self.control.setCurrentIndex(self._spec.choices.index(value))
            elif isinstance(self.control, QPlainTextEdit):
                if self.control.toPlainText() != value:
                    self.control.setPlainText(value)
            elif isinstance(self.control, QLineEdit):
                self.control.setText(_written(self._spec, value))
        self._mark("")

    def commit(self) -> None:
        """Take what is written, if it is sound."""
        if isinstance(self.control, QLineEdit):
            self._take(self.control.text())
        elif isinstance(self.control, QPlainTextEdit):
            self._take(self.control.toPlainText())

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._line.setSpacing(px(8))
        if isinstance(self.control, QLineEdit):
            self.control.setFixedWidth(px(150))
        elif isinstance(self.control, QComboBox):
            self.control.setMinimumWidth(px(150))
        elif isinstance(self.control, QPlainTextEdit):
            margin = 2 * px(8)
            self.control.setFixedHeight(self.control.fontMetrics().lineSpacing() * _LINES + margin)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Step a number by the arrow keys, and take a text when it is left."""
        if event.type() == QEvent.Type.FocusOut:
            self.commit()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
            if step is not None and isinstance(self.control, QLineEdit):
                self._step(step)
                return True
        return super().eventFilter(watched, event)

    def _make(self) -> QWidget:
        spec = self._spec
        if isinstance(spec.default, bool):
            box = TickBox()
            box.toggled.connect(self._on_toggled)
            return box
        if spec.choices:
            choices = Choices()
            words = [QCoreApplication.translate("settings", word) for word in spec.words]
            choices.addItems(words or spec.choices)
            choices.currentIndexChanged.connect(lambda index: self._tell(spec.choices[index]))
            return choices
        if spec.is_long:
            text = QPlainTextEdit()
            text.setObjectName("long_field")
            text.setTabChangesFocus(True)
            text.textChanged.connect(lambda: self._mark(spec.parsed(text.toPlainText())[1]))
            text.installEventFilter(self)
            return text
        field = QLineEdit()
        field.textEdited.connect(lambda words: self._mark(spec.parsed(words)[1]))
        field.returnPressed.connect(self.commit)
        field.installEventFilter(self)
        return field

    def _on_toggled(self, is_on: bool) -> None:
        self._name_box()
        self._tell(is_on)

    def _name_box(self) -> None:
        if isinstance(self.control, QCheckBox):
            self.control.setText(self.tr("On") if self.control.isChecked() else self.tr("Off"))

    def _step(self, direction: int) -> None:
        spec = self._spec
        value, fault = spec.parsed(self.control.text()) if isinstance(self.control, QLineEdit) else (0, "")
        if fault:
            value = self._value
        stepped = round(value + direction * spec.step, 6)
        if spec.minimum is not None and spec.maximum is not None:
            stepped = min(spec.maximum, max(spec.minimum, stepped))
        if isinstance(self.control, QLineEdit):
            self.control.setText(_written(spec, type(spec.default)(stepped)))
            self.commit()

    def _take(self, text: str) -> None:
        value, fault = self._spec.parsed(text)
        self._mark(fault)
        if not fault:
            if isinstance(self.control, QLineEdit):
                self.control.setText(_written(self._spec, value))
            self._tell(value)

    def _tell(self, value: Any) -> None:
        if value != self._value:
            self._value = value
            self.edited.emit(value)

    def _mark(self, fault: str) -> None:
        is_faulty = "true" if fault else "false"
        if self.control.property("is_faulty") != is_faulty:
            self.control.setProperty("is_faulty", is_faulty)
            self.control.style().unpolish(self.control)
            self.control.style().polish(self.control)
        self.faulted.emit(fault)


def _written(spec: SettingSpec, value: Any) -> str:
    """Write a value as a person types it here: a fraction with the language's own point, which `parsed` reads."""
    text = spec.written(value)
    return text.replace(".", QLocale().decimalPoint()) if isinstance(value, float) else text
