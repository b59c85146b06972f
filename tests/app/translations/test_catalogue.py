"""The window in other languages: complete, with placeholders kept, mirrored where that is read, and nothing left out."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication
from source_texts import APP, calls, source_texts

from inglenook.app.translations.catalogue import LANGUAGES, Catalogue, catalogue_texts, chosen_language
from inglenook.app.translations.plurals import FORMS

OTHERS = [language for language in LANGUAGES if language != "en"]
# Shown as they are: names, and what the program is called.
_NAMES = {"Inglenook", "Inter", "Noto Sans"}
_SHOWING = {
    "setText", "setToolTip", "setAccessibleName", "setAccessibleDescription", "setWindowTitle",
    "setPlaceholderText", "setInformativeText", "addAction", "addMenu", "addSection", "PlainLabel", "ElidedLabel",
    "ElidedButton", "button", "BannerLine", "QCheckBox", "QRadioButton", "QPushButton", "QGroupBox", "addButton",
    "addTab", "setTitle", "setLabelText",
}  # fmt: skip


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_text_of_the_program(language: str) -> None:
    texts = catalogue_texts(language)

    missing = sorted(source_texts() - texts.keys())
    assert missing == [], f"{len(missing)} texts lack: python tests/bench/source_texts.py {language}"
    forms = [[w] if isinstance(w, str) else w.values() for w in texts.values()]
    assert all(text.strip() for wordings in forms for text in wordings)


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_keeps_placeholders_lines_and_the_space_around(language: str) -> None:
    for source, wording in catalogue_texts(language).items():
        if not isinstance(wording, str):
            assert tuple(wording) == FORMS[language], source
            for text in wording.values():
                assert set(re.findall(r"\{\w*\}", text)) <= set(re.findall(r"\{\w*\}", source)), source
        text = wording if isinstance(wording, str) else wording["other"]
        assert sorted(re.findall(r"\{\w*\}", source)) == sorted(re.findall(r"\{\w*\}", text)), source
        assert source.count("\n") == text.count("\n"), source
        assert source.startswith(" ") == text.startswith(" "), source
        assert source.endswith(" ") == text.endswith(" "), source
        assert ("…" in source) == ("…" in text), source


def test_what_is_translated_is_always_a_literal_that_can_be_found() -> None:
    faults = [
        f"{path.relative_to(APP)}:{call.lineno}"
        for path, call, place in calls()
        if not isinstance(call.args[place], ast.Constant) and not _is_of_a_table(path, call)
    ]

    assert faults == []


def _is_of_a_table(path: Path, call: ast.Call) -> bool:
    """Whether a call translates the text of a table, which `source_texts` reads from the table itself."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in ("translated", "translate")


def test_no_words_of_the_window_escape_translation() -> None:
    faults = []
    for path in sorted(APP.rglob("*.py")):
        if path.parent.name == "commands":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                arguments = [
                    *node.args,
                    *(k.value for k in node.keywords if k.arg in ("tip", "accessible_name")),
                ]
                for argument in arguments if name in _SHOWING else ():
                    words = _words(argument)
                    if words and words not in _NAMES and not _is_a_name(words):
                        faults.append(f"{path.relative_to(APP)}:{node.lineno} {words!r}")

    assert faults == []


def _words(node: ast.expr) -> str:
    """Return the words of a literal that is shown as it is, "" for none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.JoinedStr):
        text = " ".join(p.value for p in node.values if isinstance(p, ast.Constant))
    else:
        return ""
    return text if re.search(r"[^\W\d_]{3,}", text) else ""


def _is_a_name(text: str) -> bool:
    """Whether a text is the name of a style, an icon or a signal, and nothing that is read."""
    return re.fullmatch(r"[a-z_]+", text) is not None


@pytest.mark.parametrize(
    ("choice", "language"), [("de", "de"), ("ar", "ar"), ("en", "en"), ("tlh", None), ("system", None)]
)
def test_a_choice_is_a_language_that_there_is(choice: str, language: str | None) -> None:
    assert chosen_language(choice) == (language or chosen_language("system"))
    assert chosen_language(choice) in LANGUAGES


def test_what_a_catalogue_lacks_is_shown_in_english(qapp: QApplication) -> None:
    catalogue = Catalogue({"Save": "Sichern"})
    QCoreApplication.installTranslator(catalogue)
    try:
        assert QCoreApplication.translate("Any", "Save") == "Sichern"
        assert QCoreApplication.translate("Any", "Quit") == "Quit"
    finally:
        QCoreApplication.removeTranslator(catalogue)


_POSE = """
import sys
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from inglenook.app.translations.catalogue import speak
application = QApplication([])
print(speak(application, sys.argv[1]))
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.theme import Theme
window = MainWindow(Theme(application, scheme="light"))
window.resize(1100, 700)
window.show()
application.processEvents()
print(window.sidebar.new_button.text(), window.actions_by_name["settings"].text(), sep="|")
side = window.sidebar.mapToGlobal(window.sidebar.rect().center()).x()
print(side > window.mapToGlobal(window.rect().center()).x(), window.isRightToLeft())
"""


@pytest.mark.parametrize(
    ("language", "words", "mirrored"),
    [
        ("de", "Neues Gespräch|Einstellungen", "False False"),
        ("ar", None, "True True"),
    ],
)
def test_the_window_speaks_a_language_and_stands_the_way_it_is_read(
    language: str, words: str | None, mirrored: str
) -> None:
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    shown = subprocess.run(
        [sys.executable, "-c", _POSE, language], capture_output=True, text=True, check=True, env=environment
    ).stdout.splitlines()

    texts = catalogue_texts(language)
    assert shown == [language, words or f"{texts['New chat']}|{texts['Settings']}", mirrored]
    assert QLocale(language).language() != QLocale.Language.C
