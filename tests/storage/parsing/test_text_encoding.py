"""Text files of all encodings, told apart by what their bytes prove and otherwise by a guess that is reported."""

from __future__ import annotations

import contextlib
import random
import time

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


@pytest.mark.parametrize("data", [b"a,b\n1,\0\n", b"a\0\0\0b,c\n1"])
def test_a_stray_nul_among_a_few_letters_makes_no_chinese_of_them(data: bytes) -> None:
    with pytest.raises(UnsupportedTypeError, match="binary"):
        decode_text(data)
    assert decode_text("中文\n文\n".encode("utf-16-be")).encoding == "utf-16-be"


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
        (GERMAN, "cp850"),
        (GERMAN, "mac_roman"),
        ("Le café était très près de la forêt, où l’on voit des crêpes.", "mac_roman"),
        ("Mañana por la mañana la niña comerá piñones.", "cp1252"),
        ("Það er gott veður í dag, sagði þýski maðurinn og fór út í garðinn.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859_2"),
        (POLISH, "iso8859_2"),
        ("Az őszi eső után a hűvös szél fújt, és a tűz kialudt.", "iso8859_2"),
        ("İstanbul şehri çok güzel, ığdır değil. Öğrenci şarkı söylüyor.", "cp1254"),
        ("Ąžuolas ėjo į mišką, šalia upės, kur žydi gėlės.", "cp1257"),
        ("Rīgā šodien līst, bet jūrā ir mierīgs un ļoti skaisti.", "cp1257"),
        ("กรุงเทพเป็นเมืองหลวงของประเทศไทยและมีประชากรมากที่สุด", "cp874"),
        ("HELLO WORLD THIS IS A TEST OF EBCDIC, WITH 34 NUMBERS.", "cp500"),
    ],
)
def test_other_encodings_are_guessed_and_said_to_be(text: str, encoding: str) -> None:
    decoded = decode_text(text.encode(encoding))

    assert (decoded.text, decoded.is_guess) == (text, True)


def test_utf8_with_a_few_damaged_bytes_stays_utf8() -> None:
    decoded = decode_text(f"{GERMAN} {FRENCH}".encode() + b" \xff end")

    assert (decoded.encoding, decoded.is_guess) == ("utf-8", True)
    assert decoded.text == f"{GERMAN} {FRENCH} \ufffd end"


def test_guess_at_a_large_file_takes_no_longer_than_reading_it() -> None:
    data = (RUSSIAN * 20_000).encode("cp1251")
    started = time.process_time()

    assert decode_text(data).encoding == "cp1251"

    assert time.process_time() - started < 3


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
            text = decode_text(data).text
            assert text.encode().decode() == text
