"""Sentences of the engine and of storage in the window's language: all of them, with values, plurals and directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, Qt
from PySide6.QtWidgets import QApplication
from source_sentences import ROOT, UNSEEN, sentences, unsaid

from inglenook.app.translations import figures
from inglenook.app.translations.catalogue import (
    LANGUAGES,
    Catalogue,
    catalogue_texts,
    number_locale,
    sentence_texts,
)
from inglenook.app.translations.plurals import FORMS, plural_form
from inglenook.app.translations.sentences import Sentences, said

OTHERS = [language for language in LANGUAGES if language != "en"]
_VALUE = "Zwölf-{}.gguf"


@pytest.fixture
def speaking(qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[str]:
    """The program in the language of the test's parameter, as `speak` sets it."""
    language = request.param
    catalogue = Catalogue(catalogue_texts(language), language=language)
    before, direction = QLocale(), qapp.layoutDirection()
    QCoreApplication.installTranslator(catalogue)
    QLocale.setDefault(number_locale(language))
    if language == "ar":
        qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    yield language
    QCoreApplication.removeTranslator(catalogue)
    QLocale.setDefault(before)
    qapp.setLayoutDirection(direction)


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_sentence_that_engine_storage_and_app_say(language: str) -> None:
    known = sentence_texts(language)

    missing = {text: place for text, place in sentences().items() if text not in known}
    assert missing == {}, f"{len(missing)} lack: python tests/bench/source_sentences.py {language}"
    assert unsaid(known) == []


def test_every_error_class_of_engine_and_storage_has_a_sentence_that_is_gathered() -> None:
    gathered = {place.rsplit(":", 1)[0] for place in sentences().values()}
    places: dict[str, set[str]] = {}
    for place, name in _raised_errors():
        places.setdefault(name, set()).add(place)

    assert len(places) > 30
    for name, raised in places.items():
        assert raised & gathered or all(place.startswith(tuple(UNSEEN)) for place in raised), name


def _raised_errors() -> Iterator[tuple[str, str]]:
    """Yield each place in engine and storage that makes one of its own errors with a text, and the error's name."""
    sources = [p for package in ("engine", "storage") for p in sorted((ROOT / package).rglob("*.py"))]
    trees = {p.relative_to(ROOT).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in sources}
    errors = [tree for place, tree in trees.items() if place.endswith("errors.py")]
    ours = {node.name for tree in errors for node in tree.body if isinstance(node, ast.ClassDef)}
    for place, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
                yield place, node.func.id


@pytest.mark.parametrize("language", OTHERS)
def test_wordings_have_the_places_of_their_sentence_and_every_plural_form(language: str) -> None:
    for source, wording in sentence_texts(language).items():
        places = set(re.findall(r"\{(\d)", source))
        if isinstance(wording, str):
            assert set(re.findall(r"\{(\d)", wording)) == places, source
            continue
        assert set(wording) == {"by", *FORMS[language]}, source
        assert str(wording["by"]) in places, source
        for form in FORMS[language]:
            assert set(re.findall(r"\{(\d)", wording[form])) <= places, source
        assert set(re.findall(r"\{(\d)", wording["other"])) == places, source


@pytest.mark.parametrize("speaking", OTHERS, indirect=True)
def test_every_sentence_is_taken_apart_again_and_said_without_a_word_of_english(speaking: str) -> None:
    texts = sentence_texts(speaking)
    for source in sentences():
        values = [_VALUE.format(place) for place in range(source.count("{"))]
        sentence = source.replace("{", "{0[").replace("}", "]}").format(values)

        told = said(sentence)

        assert told != sentence, source
        assert not re.search(r"\b(the|is|are|has|cannot|this|and|of)\b", _own(told)), (source, told)
        if isinstance(texts[source], str):
            assert all(value in told for value in values), (source, told)


def _own(told: str) -> str:
    """Return what a sentence says of itself: without what it quotes, and without commands to be typed."""
    return re.sub(r"[„«'\"“].*?[“»'\"”]|Zwölf-\d\.gguf", "", told)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", {0: "other", 1: "one", 2: "other", 1.5: "other", 101: "other"}),
        (
            "ar",
            {0: "zero", 1: "one", 2: "two", 3: "few", 10: "few", 11: "many", 99: "many", 100: "other"}
            | {102: "other", 103: "few", 111: "many", 1_000: "other", 2.5: "other"},
        ),
        ("en", {0: "other", 1: "one", 2: "other"}),
    ],
)
def test_a_plural_follows_the_rules_of_its_language(language: str, forms: dict[float, str]) -> None:
    assert {number: plural_form(language, number) for number in forms} == forms
    assert set(forms.values()) == set(FORMS[language])


@pytest.mark.parametrize(
    ("speaking", "sentence", "told"),
    [
        (
            "de",
            "Qwen 7B needs 14.2 GB, 900 MB are free. Close other programs, ask for a shorter context, "
            "or use a smaller model.",
            "Qwen 7B braucht 14,2 GB, 900 MB sind frei. Schließen Sie andere Programme, verlangen Sie ein kürzeres "
            "Kontextfenster, oder verwenden Sie ein kleineres Modell.",
        ),
        ("de", "m.gguf: llama.head is missing.", "m.gguf: llama.head fehlt."),
        (
            "de",
            "a b.pdf was not searched. This PDF is encrypted. Enter its password to read it.",
            "a b.pdf wurde nicht durchsucht. Dieses PDF ist verschlüsselt. Geben Sie sein Passwort ein, um es zu lesen.",
        ),
        ("de", "Hidden text (12,345 characters) was left out.", "Verborgener Text (12.345 Zeichen) wurde weggelassen."),
        ("de", "Something nobody knows. This was cancelled.", "Something nobody knows. Dies wurde abgebrochen."),
        ("de", "There is no folder “Sound”; it may have been deleted.", "Es gibt keinen Ordner „Sound“; vielleicht wurde er gelöscht."),
        ("de", "Good · file: All 290 tensors are there, and none is empty or broken.", "Gut · Datei: Alle 290 Tensoren sind da, und keiner ist leer oder kaputt."),
        ("ar", "x.gguf cannot be opened: Permission denied.", "لا يمكن فتح \u2068x.gguf\u2069: لا إذن بذلك."),
        ("ar", "2 of 12 pages are damaged and were left out.", "2 من 12 صفحة تالفة فتُركت."),
        ("ar", "2 attached files were not read. Save them from the PDF and add them.", "لم يُقرأ ملفان مرفقان. احفظهما من ملف PDF وأضفهما."),
        ("ar", "5 attached files were not read. Save them from the PDF and add them.", "لم تُقرأ 5 ملفات مرفقة. احفظها من ملف PDF وأضفها."),
    ],
    indirect=["speaking"],
)  # fmt: skip
def test_a_sentence_is_said_with_its_values_as_the_language_writes_them(
    speaking: str, sentence: str, told: str
) -> None:
    assert said(sentence) == told


def test_a_sentence_stays_english_where_the_window_is(qapp: QApplication) -> None:
    assert said("The engine was closed.") == "The engine was closed."
    assert said("") == ""


def test_a_long_text_that_is_no_sentence_is_left_alone_at_once() -> None:
    sentences_de = Sentences("de", sentence_texts("de"))
    for text in ("{0} {1}: . " * 300, "is " * 1_300, "a: " * 500 + ".", "x" * 100_000):
        assert sentences_de.say(text).strip() == text.strip()


@pytest.mark.parametrize("speaking", ["en", "de", "ar"], indirect=True)
def test_numbers_sizes_and_shares_are_written_as_the_language_does(speaking: str) -> None:
    figures_of = {
        "en": ("1,234,567", "3.20", "14.2 GB", "98 MB", "0 bytes", "12 bytes", "3%", "a, b"),
        "de": ("1.234.567", "3,20", "14,2 GB", "98 MB", "0 Byte", "12 Byte", "3\u00a0%", "a, b"),
        "ar": ("1,234,567", "3.20", "14.2 ج.بايت", "98 م.بايت", "0 بايت", "12 بايت", "3%", "a، b"),
    }

    sizes = [figures.size(n) for n in (14_200_000_000, 98_400_000, 0, 12)]
    shown = (figures.count(1_234_567), figures.decimal(3.2, 2), *sizes, figures.percent(0.03))

    assert (*shown, figures.listed(["a", "b"])) == figures_of[speaking]


@pytest.mark.parametrize("size", [0, 999, 1_000, 999_499, 999_500, 98_400_000, 999_600_000, 14_240_000_000])
@pytest.mark.parametrize("speaking", ["en"], indirect=True)
def test_a_size_in_english_is_the_engine_s_own(speaking: str, size: int) -> None:
    from inglenook.engine.memory import format_bytes

    assert figures.size(size) == format_bytes(size)


@pytest.mark.parametrize("speaking", ["de"], indirect=True)
@pytest.mark.parametrize(
    ("text", "written"),
    [("2024", "2024"), ("12345", None), ("1,234", "1.234"), ("0.25", "0,25"), ("+3.1%", "+3,1\u00a0%"), ("1.2.3", None), ("v1", None), ("", None)],
)  # fmt: skip
def test_only_what_is_a_number_is_written_anew(speaking: str, text: str, written: str | None) -> None:
    assert figures.rewritten(text) == written


def test_the_catalogues_lie_beside_the_code() -> None:
    folder = Path(str(ROOT / "app" / "translations"))
    assert {p.name for p in folder.glob("sentences_*.json")} == {
        f"sentences_{language}.json" for language in OTHERS
    }
