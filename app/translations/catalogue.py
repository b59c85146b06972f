"""Translations without tools: a catalogue is a JSON object from each English text of the program to its translation.

Qt asks the translator for every text that goes through `tr` or `translate`; what a catalogue lacks is shown in
English. Placeholders such as {0} stand in both. The widgets are made once, so another language counts from the next
start. GUI thread only.
"""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, Qt, QTranslator
from PySide6.QtWidgets import QApplication

LANGUAGES = {"en": "English", "de": "Deutsch", "ar": "العربية"}
"""What can be chosen, each in its own words."""
SYSTEM = "system"


class Catalogue(QTranslator):
    """A translator over a dictionary; the context that Qt names does not matter."""

    def __init__(self, texts: dict[str, str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._texts = texts

    def isEmpty(self) -> bool:
        """Whether there is no text; Qt then does not ask."""
        return not self._texts

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, number: int = -1
    ) -> str | None:
        """Return the translation of a text, None where there is none."""
        return self._texts.get(source)


def catalogue_texts(language: str) -> dict[str, str]:
    """Return the texts of a language; {} for English and for one that there is not."""
    if language not in LANGUAGES or language == "en":
        return {}
    texts = json.loads(Path(__file__).with_name(f"{language}.json").read_text(encoding="utf-8"))
    return {str(source): str(text) for source, text in texts.items()}


def chosen_language(choice: str) -> str:
    """Return the language that a choice means: "system" is the first of the user's that there is, or English."""
    if choice in LANGUAGES:
        return choice
    wanted = (name.replace("_", "-").split("-")[0] for name in QLocale.system().uiLanguages())
    return next((name for name in wanted if name in LANGUAGES), "en")


def speak(application: QApplication, choice: str) -> str:
    """Let the program speak the language of a choice, from right to left where it is written so; return which it is.

    To be called before the first widget is made.
    """
    language = chosen_language(choice)
    if language != "en":
        own = QTranslator(application)
        if own.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
            QCoreApplication.installTranslator(own)
        QCoreApplication.installTranslator(Catalogue(catalogue_texts(language), application))
        QLocale.setDefault(QLocale(language))
    is_mirrored = QLocale(language).textDirection() == Qt.LayoutDirection.RightToLeft
    application.setLayoutDirection(
        Qt.LayoutDirection.RightToLeft if is_mirrored else Qt.LayoutDirection.LeftToRight
    )
    return language
