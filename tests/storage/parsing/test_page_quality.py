"""Garbled pages are told from writing without a dictionary."""

from __future__ import annotations

import pytest

from inglenook.storage.parsing.page_quality import is_garbled


@pytest.mark.parametrize(
    "text",
    [
        "3HQČåQt SURVWĜHGN\\ QD ~þWHFK",
        "".join(
            chr((ord(c) - 29) % 128) if c.isalpha() else c
            for c in "The annual report of the company shows growth " * 3
        ),
        "H e r e i s s o m e t e x t s e t l e t t e r b y l e t t e r a n d n o m o r e " * 2,
        "тhе pаgе mіхеs scrірts іnsіdе оf еvеry wоrd аs nо оne wrіtеs іt аnd thеn sоmе mоrе",
        "\ue001\ue002\ue003 \ue004" * 30,
        "Wkh txlfn eurzq ira mxpsv ryhu wkh odcb grj dqg uxqv dzdb".replace("a", "x").replace("i", "z"),
    ],
)
def test_these_are_garbled(text: str) -> None:
    assert is_garbled(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iPhone",
        "The company’s NASDAQ-listed shares rose; its LLC, GmbH and S.p.A. subsidiaries did not, says the CFO.",
        "Strč prst skrz krk. Příští schůzka se koná ve čtvrtek, prosím potvrďte účast včas všem členům výboru.",
        "Der Vorstand hat beschlossen, die Dividende für das Geschäftsjahr nicht zu erhöhen.",
        "日本語の文章は漢字とひらがなとカタカナが混ざっていますが、これは普通の文章です。句読点もあります。"
        * 2,
        "Это обычный русский текст, в котором встречаются слова Windows и iPhone, но он вполне читается.",
        "1,234 5,678 9,012 $ 45.6 % 7.8 " * 20,
        "AAPL MSFT GOOG AMZN NVDA TSLA",
        "x = a + b; y = c - d; f(x) = g(y) where a, b, c and d are real numbers and f and g are functions of one of them",
        "getElementById createTextNode appendChild and many other words of a manual that explains what the functions do",
    ],
)
def test_these_are_writing(text: str) -> None:
    assert not is_garbled(text)
