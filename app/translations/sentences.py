"""Say a sentence of the engine or of storage in the window's language.

Errors, notices and findings come as English sentences, over frames, out of a database and from the command line's own
code, and an English sentence is their whole form: it holds its template and its values. So a catalogue has each
template ("{0} is empty (0 bytes).", gathered from the sources by `tests/bench/source_sentences.py`, which a test
compares), and a sentence is taken apart again by the template it was made from. Its values are written anew: numbers
and sizes as the language does, pieces and whole sentences from the catalogue, names as they are, isolated. Of several
readings the one counts that leaves fewest words in English; what no template says stays English. Old rows of the
history are translated like new ones, and engine and storage know of no language. GUI thread; `say` is pure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QCoreApplication

from inglenook.app.translations import figures
from inglenook.app.translations.plurals import chosen_form

CONTEXT = "a sentence of the engine"
_MOST_CHARACTERS = 4_000
_MOST_SENTENCES = 20
_MOST_PASSES = 200  # over the templates for one sentence and its parts; real ones need about ten
_PLACE = re.compile(r"\{(\d+)\}")
_FILLED = re.compile(r"\{(\d+)(?::(\w+))?\}")  # {0:role} says "role: user" for "user"
_END = re.compile(r"(?<=[.!?:])['”’)]* +(?=\S)|\n")

Wording = str | Mapping[str, Any]
"""A translation: a text, or its forms by plural with the place of the number under "by"."""


def said(sentence: str) -> str:
    """Return a sentence of the engine or storage in the window's language; itself where that is English."""
    return QCoreApplication.translate(CONTEXT, sentence) if sentence else sentence


def said_list(pieces: str) -> str:
    """Return pieces that commas join, such as "temperature 0.7, top k 40", each in the window's language."""
    return figures.listed([said(piece) for piece in pieces.split(", ")]) if pieces else ""


@dataclass(frozen=True, slots=True)
class _Template:
    """A sentence with places between its own stretches `parts`, the longest of which is its `anchor`."""

    parts: tuple[str, ...]
    wording: Wording
    anchor: str

    def values(self, text: str) -> tuple[str, ...] | None:
        """Return what stands in a text at the places, None where it is no such sentence; linear in its length."""
        first, last = self.parts[0], self.parts[-1]
        if self.anchor not in text or not (text.startswith(first) and text.endswith(last)):
            return None
        place, end = len(first), len(text) - len(last)
        values = []
        for part in self.parts[1:-1]:
            at = text.find(part, place, end)
            if at < 0:
                return None
            values.append(text[place:at])
            place = at + len(part)
        return None if place > end else (*values, text[place:end])


@dataclass(slots=True)
class _Work:
    """What was found while one sentence is taken apart: each part's reading, and how often all templates were tried."""

    known: dict[str, tuple[str, int]] = field(default_factory=dict)
    passes: int = 0


class Sentences:
    """The templates of one language, ready to take sentences apart; `window` has the window's own texts."""

    def __init__(
        self, language: str, texts: Mapping[str, Wording], window: Mapping[str, Wording] | None = None
    ) -> None:
        self._language = language
        self._window = window or {}
        self._whole = {text: wording for text, wording in texts.items() if not _PLACE.search(text)}
        self._templates = [_template(text, w) for text, w in texts.items() if _PLACE.search(text)]
        self._templates.sort(key=lambda template: -sum(map(len, template.parts)))

    def say(self, sentence: str) -> str:
        """Return a sentence, or several one after the other, in the language; what is not known stays."""
        if len(sentence) > _MOST_CHARACTERS:
            return sentence
        return self._said(sentence, _Work())[0]

    def _said(self, text: str, work: _Work) -> tuple[str, int]:
        """Return a text in the language, with the number of words that stayed English."""
        if text not in work.known and work.passes > _MOST_PASSES:
            return figures.isolated(text), len(text.split())
        if text not in work.known:
            work.known[text] = figures.isolated(text), len(text.split())  # also for a text that holds itself
            readings = [*self._readings(text, work), work.known[text]]
            work.known[text] = min(readings, key=lambda reading: reading[1])
        return work.known[text]

    def _readings(self, text: str, work: _Work) -> Iterator[tuple[str, int]]:
        """Yield what a text can mean: those first that have more words of their own."""
        wording = self._whole.get(text)
        if wording is not None:
            yield str(wording), 0
            return
        written = figures.rewritten(text)
        if written is not None:
            yield written, 0
            return
        yield from self._whole_readings(text, work)
        if text.endswith(".") and text[:-1] in self._whole:
            yield f"{self._whole[text[:-1]]}.", 0
        elif text.endswith("."):
            yield from ((f"{reading}.", words) for reading, words in self._whole_readings(text[:-1], work))
        for end in itertools.islice(_END.finditer(text), _MOST_SENTENCES):
            left = list(self._whole_readings(text[: end.start()].rstrip(), work))
            left += [(str(w), 0) for w in [self._whole.get(text[: end.start()])] if w is not None]
            if left:
                first, left_words = min(left, key=lambda reading: reading[1])
                rest, rest_words = self._said(text[end.end() :], work)
                yield f"{first}{end[0]}{rest}", left_words + rest_words
        for end in itertools.islice(_END.finditer(text), 1):
            first = text[: end.start()]
            rest, rest_words = self._said(text[end.end() :], work)
            yield f"{figures.isolated(first)}{end[0]}{rest}", len(first.split()) + rest_words

    def _whole_readings(self, text: str, work: _Work) -> Iterator[tuple[str, int]]:
        work.passes += 1
        for template in self._templates if work.passes <= _MOST_PASSES else ():
            values = template.values(text)
            if values is not None:
                wording = self._form(template.wording, values)
                words = 0
                parts = _FILLED.split(wording)
                for i in range(1, len(parts), 3):
                    parts[i], cost = self._value(values[int(parts[i])], parts[i + 1], work)
                    parts[i + 1] = ""
                    words += cost
                yield "".join(parts), words

    def _value(self, value: str, kind: str | None, work: _Work) -> tuple[str, int]:
        """Return a value in the language. One word alone is a name, unless its place says what kind of word it is."""
        bare = value.strip()
        if not bare:
            return value, 0
        of_kind = self._window.get(bare) if kind == "window" else self._whole.get(f"{kind}: {bare}")
        if of_kind is not None:
            said, words = str(of_kind), 0
        elif " " in bare or bare[0] in "“'":
            said, words = self._said(bare, work)
        else:
            written = figures.rewritten(bare)
            said, words = (figures.isolated(bare), 1) if written is None else (written, 0)
        return value.replace(bare, said), words

    def _form(self, wording: Wording, values: tuple[str, ...]) -> str:
        if isinstance(wording, str):
            return wording
        number = figures.number_in(values[int(wording["by"])])
        return str(wording["other"] if number is None else chosen_form(self._language, wording, number))


def _template(source: str, wording: Wording) -> _Template:
    parts = tuple(_PLACE.split(source)[::2])
    return _Template(parts, wording, max(parts, key=len))
