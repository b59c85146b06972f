"""From the bytes of a text file to its text, with the encoding used and whether it was a guess.

In this order: a byte order mark; strict UTF-8; UTF-16 and UTF-32 by where the NUL bytes stand. Then the bytes prove
nothing more, and the candidates below are compared: each must decode without error, and is scored by the share of its
letters beyond ASCII that are common in the languages it is used for, minus those that are out of place. The highest
score wins, cp1252 (Western Europe) if none is convincing. The user is told that it was a guess.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

from inglenook.storage.parsing.errors import DamagedDocumentError, UnsupportedTypeError

_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

# The most frequent letters of each script. A wrong single-byte table gives rare ones and capitals inside words.
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"
_GREEK = "αοιετσνηυρπκμλςήίόάέύώθγδβχφωξζψ"
_HEBREW = "יוהלאתרמבשנדעחקםפגכןזסטצץךף"
_ARABIC = "اليمونرتبةعدسفهكقحجشطصخضذثزغءئظأإىآ"
_LATIN_WEST = "éèêëàâäáãåæçñóòôöõøœúùûüíìîïßýÿ€£§°«»–—‘’“”…·©®™"
_LATIN_CENTRAL = "áéíóöőúüűčďěňřšťůžýąćęłńśźżäôĺľŕîâășțăđ„”–"
_HAN = (
    "的一是不了人我在有他这這中大来來上国國个個到说說们們为為子和你地出道也时時年得就那要下以生会會自着去之过過家学學对對可她里"
    "后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手十用主行方又如前所本见見经經头頭面公同三已老"
    "从從动動两兩长長現情定法京新電話語"
)


class _Candidate(NamedTuple):
    encoding: str
    common: frozenset[str]
    is_multibyte: bool = False


_CANDIDATES: tuple[_Candidate, ...] = (
    _Candidate("cp1252", frozenset(_LATIN_WEST)),
    _Candidate("cp1251", frozenset(_CYRILLIC)),
    _Candidate("koi8_r", frozenset(_CYRILLIC)),
    _Candidate("cp866", frozenset(_CYRILLIC)),
    _Candidate("cp1250", frozenset(_LATIN_CENTRAL)),
    _Candidate("cp1253", frozenset(_GREEK)),
    _Candidate("cp1255", frozenset(_HEBREW)),
    _Candidate("cp1256", frozenset(_ARABIC)),
    _Candidate("gb18030", frozenset(_HAN + "，。、：；！？（）“”"), True),
    _Candidate("big5", frozenset(_HAN + "，。、：；！？（）「」"), True),
    _Candidate("cp932", frozenset(_HAN + "、。「」（）ー"), True),
    _Candidate("euc_jp", frozenset(_HAN + "、。「」（）ー"), True),
    _Candidate("euc_kr", frozenset(), True),
)

_SAMPLE_CHARS = 100_000
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.01


class DecodedText(NamedTuple):
    """A text, the Python name of its encoding, and whether the bytes left room for doubt."""

    text: str
    encoding: str
    is_guess: bool


def load_codecs() -> None:
    """Import the tables of all encodings now, for a process that may soon no longer load them."""
    for candidate in _CANDIDATES:
        codecs.lookup(candidate.encoding)


def decode_text(data: bytes) -> DecodedText:
    """Decode a text file.

    Raises:
        UnsupportedTypeError: the content is not text.
        DamagedDocumentError: a byte order mark names an encoding that the rest is not in.
    """
    decoded = _decode(data)
    sample = decoded.text[:_SAMPLE_CHARS]
    if len(_CONTROLS.findall(sample)) > _MAX_CONTROL_SHARE * len(sample):
        raise UnsupportedTypeError(
            "This file holds binary data, not text. Only PDF, Markdown and plain text files can be added."
        )
    return decoded


def _decode(data: bytes) -> DecodedText:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return DecodedText(data.decode(encoding), encoding, False)
            except UnicodeDecodeError as error:
                raise DamagedDocumentError(
                    f"This file says it is {encoding}, but byte {error.start} of {len(data)} is not. "
                    "Save it again as UTF-8."
                ) from error
    wide = _wide_encoding(data)
    if wide is not None:
        try:
            return DecodedText(data.decode(wide), wide, False)
        except UnicodeDecodeError:
            pass  # NUL bytes by chance: the other ways are tried, and binary data is refused
    try:
        return DecodedText(data.decode("utf-8"), "utf-8", False)
    except UnicodeDecodeError:
        return _guess(data)


def _wide_encoding(data: bytes) -> str | None:
    """Name UTF-16 or UTF-32 from the places of NUL bytes, which other text never has."""
    sample = data[:4096]
    if b"\x00" not in sample or len(sample) < 4:
        return None
    shares = [sample[i::4].count(0) / max(1, len(sample[i::4])) for i in range(4)]
    if len(data) % 4 == 0 and min(shares[2:]) > 0.9 and shares[0] < 0.1:
        return "utf-32-le"
    if len(data) % 4 == 0 and min(shares[:2]) > 0.9 and shares[3] < 0.1:
        return "utf-32-be"
    low, high = (shares[0] + shares[2]) / 2, (shares[1] + shares[3]) / 2
    if len(data) % 2 == 0 and high > 0.2 and low < high / 10:
        return "utf-16-le"
    if len(data) % 2 == 0 and low > 0.2 and high < low / 10:
        return "utf-16-be"
    return None


def _guess(data: bytes) -> DecodedText:
    best, best_score = "cp1252", 0.0
    for candidate in _CANDIDATES:
        score = _score(data, candidate)
        if score is not None and score > best_score:
            best, best_score = candidate.encoding, score
    # Five bytes have no character in cp1252; a text that uses them is damaged, and shows it.
    return DecodedText(data.decode(best, "replace"), best, True)


def _score(data: bytes, candidate: _Candidate) -> float | None:
    try:
        text = data.decode(candidate.encoding)
    except UnicodeDecodeError:
        return None
    if len(text) > _SAMPLE_CHARS:
        # Letters beyond ASCII may stand only at the end: the sample is taken from the whole.
        text = re.sub(r"[\x00-\x7f]{100,}", " ", text)[:_SAMPLE_CHARS]
    beyond = [character for character in text if character > "\x7f"]
    if not beyond:
        return None
    good = sum(_is_common(character, candidate) for character in beyond)
    bad = sum(_is_out_of_place(character) for character in beyond) + _case_breaks(text)
    return (good - bad) / len(beyond)


def _is_common(character: str, candidate: _Candidate) -> bool:
    if character in candidate.common:
        return True
    if candidate.encoding in ("cp932", "euc_jp"):
        return "\u3041" <= character <= "\u30fa"
    if candidate.encoding == "euc_kr":
        return "\uac00" <= character <= "\ud7a3"
    return not candidate.is_multibyte and character.lower() in candidate.common and character.isupper()


def _is_out_of_place(character: str) -> bool:
    """Say whether a character is rare in prose: box drawing, private use, half-width kana, controls."""
    return (
        "\u2500" <= character <= "\u259f"
        or "\uff61" <= character <= "\uff9f"
        or unicodedata.category(character) in ("Cc", "Co", "Cn")
    )


def _case_breaks(text: str) -> int:
    """Count capitals that directly follow a small letter beyond ASCII, the mark of a wrong Cyrillic table."""
    return sum(
        1
        for before, after in pairwise(text)
        if after > "\x7f" and after.isupper() and before > "\x7f" and before.islower()
    )
