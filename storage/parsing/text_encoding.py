"""From the bytes of a text file to its text, with the encoding used and whether it was a guess.

In this order: a byte order mark; strict UTF-8; UTF-16 and UTF-32 by where the NUL bytes stand. Then the bytes prove
nothing more, and the candidates below are compared: each must decode without error, and is scored by how common its
letters beyond ASCII are in the languages it is used for, less those that are out of place. The highest
score wins, cp1252 (Western Europe) if none is convincing. The user is told that it was a guess.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from inglenook.storage.parsing.errors import DamagedDocumentError, UnsupportedTypeError

_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

# The letters of each script, the most frequent first. A wrong table gives rare ones and capitals inside words.
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъіїєў"
_GREEK = "αοιετσνηυρπκμλςήίόάέύώθγδβχφωξζψϊϋ"
_HEBREW = "יוהלאתרמבשנדעחקםפגכןזסטצץךף"
_ARABIC = "اليمونرتبةعدسفهكقحجشطصخضذثزغءئظأإىآؤ"
# Of languages that share a table each alone, since a wrong table mixes their letters.
_LATIN_WEST = ("éèêëàâçîïôùûüœæ", "äöüßåøæéèà", "áéíóúüñçãõâêôàèìòùï", "áðéíóúýþæö")
_LATIN_CENTRAL = ("áčďéěíňóřšťúůýžĺľŕäô", "ąćęłńóśźż", "áéíóöőúüű", "ăâîșțşţ", "čćđšž")
_TURKISH = "ıüğşçöâîİ"
_BALTIC = ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")
_THAI = "านร่อกเ้งมยลวดทสิตะป็บัคีหแจพชขใไโุผู์ืถซธึภศญำฟฉษฐณฝฎฏฒฆฮฌฬ๊๋ๆฯ"
_MARKS_OF_PROSE = "«»–—‘’‚“”„…·°§€£©®™ºª¿¡№"
# The most frequent characters, and the lead bytes of the first level: the common half of each table.
_HAN = (
    "的一是不了人我在有他这這中大来來上国國个個到说說们們为為子和你地出道也时時年得就那要下以生会會自着去之过過家学學对對可她里"
    "后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手十用主行方又如前所本见見经經头頭面公同三已老"
    "从從动動两兩长長現情定法京新電話語"
)
_HANGUL = "이다는을가의에하고지를은로한서도사기인자대어그시나리해아있라일수부"
_CJK_MARKS = "，。、：；！？（）「」『』《》“”・"


class _Candidate(NamedTuple):
    """An encoding and the letters of its languages; `lead_bytes` makes it one of several bytes a character."""

    encoding: str
    letters: str
    is_latin: bool = False
    lead_bytes: tuple[int, int] | None = None


_CANDIDATES: tuple[_Candidate, ...] = (
    *(_Candidate("cp1252", letters, is_latin=True) for letters in _LATIN_WEST),
    _Candidate("cp1251", _CYRILLIC),
    _Candidate("koi8_r", _CYRILLIC),
    _Candidate("cp866", _CYRILLIC),
    *(_Candidate("cp1250", letters, is_latin=True) for letters in _LATIN_CENTRAL),
    *(_Candidate("iso8859_2", letters, is_latin=True) for letters in _LATIN_CENTRAL),
    _Candidate("cp1254", _TURKISH, is_latin=True),
    *(_Candidate("cp1257", letters, is_latin=True) for letters in _BALTIC),
    *(_Candidate("cp850", letters, is_latin=True) for letters in _LATIN_WEST),
    *(_Candidate("mac_roman", letters, is_latin=True) for letters in _LATIN_WEST),
    _Candidate("cp874", _THAI),
    _Candidate("cp1253", _GREEK),
    _Candidate("cp1255", _HEBREW),
    _Candidate("cp1256", _ARABIC),
    _Candidate("gb18030", _HAN, lead_bytes=(0xB0, 0xD7)),
    _Candidate("big5", _HAN, lead_bytes=(0xA4, 0xC6)),
    _Candidate("cp932", _HAN, lead_bytes=(0x88, 0x97)),
    _Candidate("euc_jp", _HAN, lead_bytes=(0xB0, 0xCF)),
    _Candidate("euc_kr", _HANGUL, lead_bytes=(0xB0, 0xC8)),
)

_SAMPLE_CHARS = 100_000
_SCORED_CHARS = 20_000
_GOOD_FOR_EACH_BAD = 4
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_DECLARED_WITHIN = 4096
# How much better a guess must be before it is believed rather than what the file says of itself.
_DECLARED_BONUS = 1.5
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.01
# of ASCII letters and NUL bytes, the letters in UTF-16 are a half
_MOST_ASCII = 0.6


ENCODINGS: tuple[str, ...] = (
    "utf-8",
    "utf-16",
    *dict.fromkeys(candidate.encoding for candidate in _CANDIDATES),
    "cp437",
    "cp500",
)
"""What a user may choose from, in Python's names; any other that Python knows is accepted too."""


class DecodedText(NamedTuple):
    """A text, the Python name of its encoding, and whether the bytes left room for doubt."""

    text: str
    encoding: str
    is_guess: bool


def load_codecs() -> None:
    """Import the tables of all encodings now, for a process that may soon no longer load them."""
    for encoding in ENCODINGS:
        codecs.lookup(encoding)


def decode_text(data: bytes, *, encoding: str | None = None, declared: str | None = None) -> DecodedText:
    """Decode a text file; in `encoding` where the user chose one. `declared` is what the file says of itself.

    Raises:
        UnsupportedTypeError: the content is not text, or there is no such encoding.
        DamagedDocumentError: a byte order mark names an encoding that the rest is not in.
    """
    decoded = _decode(data, declared) if encoding is None else _decode_as(data, encoding)
    sample = decoded.text[:_SAMPLE_CHARS]
    if len(_CONTROLS.findall(sample)) > _MAX_CONTROL_SHARE * len(sample):
        raise UnsupportedTypeError(
            "This file holds binary data, not text. PDF, Word (DOCX), HTML, CSV, Markdown and plain text can be added."
        )
    return decoded


def declared_encoding(data: bytes) -> str | None:
    """Return the encoding that a web page or XML file says it is in, if Python knows it."""
    found = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    return _known(found.group(1).decode("ascii")) if found else None


def _known(name: str) -> str | None:
    """Return Python's name of a text encoding, None for what is none."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    is_text = getattr(codec, "_is_text_encoding", True)
    return (
        codec.name
        if is_text and codec.name not in ("idna", "punycode", "unicode_escape", "raw_unicode_escape")
        else None
    )


def _decode_as(data: bytes, encoding: str) -> DecodedText:
    name = _known(encoding)
    if name is None:
        raise UnsupportedTypeError(f"There is no text encoding {encoding[:40]!r}. Choose another.")
    text = data.decode(name, "replace")
    return DecodedText(text.removeprefix("\ufeff"), name, False)


def _decode(data: bytes, declared: str | None) -> DecodedText:
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
        return _guess(data, declared)


def _wide_encoding(data: bytes) -> str | None:
    """Name UTF-16 or UTF-32 from the places of NUL bytes, which other text never has."""
    sample = data[:4096]
    if b"\x00" not in sample or len(sample) < 4:
        return None
    others = sample.replace(b"\x00", b"")
    if others.isascii() and len(others) > _MOST_ASCII * len(sample):
        return None  # a stray NUL in a few letters; Latin text has one for each
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


def _guess(data: bytes, declared: str | None = None) -> DecodedText:
    if declared is not None and all(candidate.encoding != declared for candidate in _CANDIDATES):
        try:
            return DecodedText(data.decode(declared), declared, False)
        except UnicodeDecodeError:
            pass  # it is not what it says
    known = _damaged_utf8(data) or _ebcdic(data)
    if known is not None:
        return known
    best, best_score = "cp1252", 0.0
    for candidate in _CANDIDATES:
        score = _score(data, candidate)
        if score is not None and candidate.encoding == declared:
            score *= _DECLARED_BONUS
        if score is not None and score > best_score:
            best, best_score = candidate.encoding, score
    # Five bytes have no character in cp1252; a text that uses them is damaged, and shows it.
    return DecodedText(data.decode(best, "replace"), best, True)


def _damaged_utf8(data: bytes) -> DecodedText | None:
    """Decode what is UTF-8 but for a few bytes, which no other table would give so many whole characters."""
    text = data.decode("utf-8", "replace")
    num_bad = text.count("\ufffd")
    num_good = sum(character > "\x7f" for character in text[:_SAMPLE_CHARS]) - num_bad
    return DecodedText(text, "utf-8", True) if num_good >= _GOOD_FOR_EACH_BAD * num_bad else None


def _ebcdic(data: bytes) -> DecodedText | None:
    """Decode text of a mainframe: its space is "@" elsewhere, and it has none of ours."""
    if len(data) < 16 or b" " in data or data.count(b"@") < 0.08 * len(data):
        return None
    text = data.decode("cp500")
    is_writing = sum(c.isascii() and (c.isalnum() or c == " ") for c in text) > 0.8 * len(text)
    return DecodedText(text.replace("\x85", "\n"), "cp500", True) if is_writing else None


def _score(data: bytes, candidate: _Candidate) -> float | None:
    try:
        text = data.decode(candidate.encoding)
    except UnicodeDecodeError:
        return None
    if len(text) > _SCORED_CHARS:
        # Letters beyond ASCII may stand only at the end: the sample is taken from the whole.
        text = re.sub(r"[\x00-\x7f]{100,}", " ", text)[:_SCORED_CHARS]
    weights = _weights(candidate)
    good = bad = count = 0.0
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if character <= "\x7f":
            continue
        count += 1
        if candidate.lead_bytes:
            good += _multibyte_weight(character, candidate, weights)
        elif not candidate.is_latin or character in _MARKS_OF_PROSE or _is_ascii_letter(before, after):
            good += weights.get(character, 0.0)
        if _is_out_of_place(character) or (character.isupper() and before.islower() and before > "\x7f"):
            bad += 1
    return (good - bad) / count if count else None


def _weights(candidate: _Candidate) -> dict[str, float]:
    """Weigh letters: by frequency where the order is known, capitals less as they are rarer."""
    weights = dict.fromkeys(_CJK_MARKS if candidate.lead_bytes else _MARKS_OF_PROSE, 0.7)
    for rank, letter in enumerate(candidate.letters):
        is_flat = candidate.is_latin or candidate.lead_bytes
        weights[letter] = 1.0 if is_flat else 1.0 - 0.9 * rank / len(candidate.letters)
        weights.setdefault(letter.upper(), 0.85 * weights[letter])
    return weights


def _multibyte_weight(character: str, candidate: _Candidate, weights: dict[str, float]) -> float:
    if character in weights:
        return weights[character]
    if "\u3041" <= character <= "\u30ff":
        return 1.0 if candidate.encoding in ("cp932", "euc_jp") else 0.0
    first, last = candidate.lead_bytes or (0, 0)
    return 0.6 if first <= character.encode(candidate.encoding)[0] <= last else 0.0


def _is_ascii_letter(*neighbours: str) -> bool:
    """Say whether one is: a letter with an accent stands among others without."""
    return any(each.isascii() and each.isalpha() for each in neighbours)


def _is_out_of_place(character: str) -> bool:
    """Say whether a character is rare in prose: box drawing, private use, half-width kana, controls."""
    return (
        "\u2500" <= character <= "\u259f"
        or "\uff61" <= character <= "\uff9f"
        or unicodedata.category(character) in ("Cc", "Co", "Cn")
    )
