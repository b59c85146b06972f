"""Text files of all encodings, told apart by what their bytes prove and otherwise by a guess that is reported."""

from __future__ import annotations

import contextlib
import random

import pytest

from inglenook.storage.parsing.errors import DamagedDocumentError, UnsupportedTypeError
from inglenook.storage.parsing.text_encoding import decode_text

RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему."
GERMAN = "Größere Häuser können im Frühling schön aussehen, müssen aber nicht."
FRENCH = "L’été dernier, nous avons mangé des crêpes à la forêt près du château."
POLISH = "Zażółć gęślą jaźń, rzekł łabędź, i ślimak poszedł śpiąc w świat."
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια."
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם."
ARABIC = "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا."
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
TRADITIONAL = "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。"
JAPANESE = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("naïve 中文".encode(), "utf-8"),
        (b"plain", "utf-8"),
        ("naïve".encode("utf-8-sig"), "utf-8-sig"),
        (RUSSIAN.encode("utf-16"), "utf-16"),
        (RUSSIAN.encode("utf-32"), "utf-32"),
        ("plain words".encode("utf-16-le"), "utf-16-le"),
        ("plain words".encode("utf-16-be"), "utf-16-be"),
        ("plain words".encode("utf-32-le"), "utf-32-le"),
        ("plain words".encode("utf-32-be"), "utf-32-be"),
    ],
)
def test_what_the_bytes_prove_is_no_guess(data: bytes, encoding: str) -> None:
    decoded = decode_text(data)

    assert (decoded.encoding, decoded.is_guess) == (encoding, False)
    assert decoded.text in ("naïve 中文", "plain", "naïve", RUSSIAN, "plain words")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "cp866"),
        (RUSSIAN.upper(), "cp1251"),
        (GERMAN, "cp1252"),
        (FRENCH, "cp1252"),
        (POLISH, "cp1250"),
        (GREEK, "cp1253"),
        (HEBREW, "cp1255"),
        (ARABIC, "cp1256"),
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
    ],
)
def test_other_encodings_are_guessed_and_said_to_be(text: str, encoding: str) -> None:
    decoded = decode_text(text.encode(encoding))

    assert (decoded.text, decoded.is_guess) == (text, True)


def test_mostly_ascii_japanese_is_not_taken_for_western() -> None:
    text = "Release notes of the program, version 2.\n" * 20 + "変更点：日本語の表示を改善しました。"

    assert decode_text(text.encode("cp932")).text == text


def test_letters_that_stand_only_at_the_end_of_a_long_file_are_found() -> None:
    text = "plain ascii line\n" * 20_000 + RUSSIAN

    assert decode_text(text.encode("koi8_r")).text == text


def test_text_that_lies_about_its_mark_is_damaged() -> None:
    with pytest.raises(DamagedDocumentError, match="utf-8-sig"):
        decode_text(b"\xef\xbb\xbfabc\xff\xfe")


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x00" * 100, random.Random(5).randbytes(5000)])
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(UnsupportedTypeError, match="binary"):
        decode_text(data)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_any_few_bytes_are_decoded_or_refused(size: int) -> None:
    for seed in range(200):
        data = random.Random(seed).randbytes(size)
        with contextlib.suppress(UnsupportedTypeError, DamagedDocumentError):
            decode_text(data).text.encode()
