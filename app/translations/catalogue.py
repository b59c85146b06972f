"""Translations without tools: a catalogue is a JSON object from each English text of the program to its translation.

Qt asks the translator for every text that goes through `tr` or `translate`; what a catalogue lacks is shown in
English. Placeholders such as {0} stand in both. A text that counts has its plural forms in place of one text, and is
asked for with its number: `tr("{0} tokens", "", number)`. Sentences of the engine and of storage have a catalogue of
their own (`sentences.py`). The widgets are made once, so another language counts from the next start. GUI thread only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, Qt, QTranslator
from PySide6.QtWidgets import QApplication

from inglenook.app.translations.plurals import chosen_form
from inglenook.app.translations.sentences import CONTEXT, Sentences, Wording

LANGUAGES = {"en": "English", "de": "Deutsch", "ar": "العربية"}
"""What can be chosen, each in its own words."""
SYSTEM = "system"


class Catalogue(QTranslator):
    """A translator over the texts of a language; of the contexts that Qt names, only that of sentences matters."""

    def __init__(
        self,
        texts: Mapping[str, Wording],
        parent: QObject | None = None,
        *,
        language: str = "en",
        sentences: Sentences | None = None,
    ) -> None:
        super().__init__(parent)
        self._texts = texts
        self._language = language
        self._sentences = sentences

    def isEmpty(self) -> bool:
        """Whether there is no text; Qt then does not ask."""
        return not self._texts

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, number: int = -1
    ) -> str | None:
        """Return the translation of a text, None where there is none."""
        if context == CONTEXT:
            if self._sentences is None:
                self._sentences = Sentences(self._language, sentence_texts(self._language), self._texts)
            return self._sentences.say(source)
        wording = self._texts.get(source)
        if wording is None or isinstance(wording, str):
            return wording
        return str(wording["other"]) if number < 0 else chosen_form(self._language, wording, number)


def catalogue_texts(language: str) -> dict[str, Wording]:
    """Return the texts of a language; {} for English and for one that there is not."""
    return _read(language, f"{language}.json")


def sentence_texts(language: str) -> dict[str, Wording]:
    """Return the sentences of a language by their templates; {} for English and for one that there is not."""
    return _read(language, f"sentences_{language}.json")


def _read(language: str, name: str) -> dict[str, Wording]:
    if language not in LANGUAGES or language == "en":
        return {}
    return dict(json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8")))


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
        texts = catalogue_texts(language)
        QCoreApplication.installTranslator(Catalogue(texts, application, language=language))
    QLocale.setDefault(number_locale(language))
    is_mirrored = QLocale(language).textDirection() == Qt.LayoutDirection.RightToLeft
    application.setLayoutDirection(
        Qt.LayoutDirection.RightToLeft if is_mirrored else Qt.LayoutDirection.LeftToRight
    )
    return language


def number_locale(language: str) -> QLocale:
    """Return the locale that writes numbers and dates: the system's where it has the language, so that Swiss German
    stays Swiss; else the language's own. Arabic has the digits 0 to 9, which its texts, versions and pages have too.
    """
    system = QLocale.system()
    if system.language() == QLocale(language).language() and system.zeroDigit() == "0":
        return QLocale(system.name())
    if language == "ar":
        return QLocale(QLocale.Language.Arabic, QLocale.Country.UnitedArabEmirates)
    return QLocale(language)
