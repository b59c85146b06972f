"""The catalogue entry: pictures only where they lie on the web, and each picture and caption is there."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

PACKAGING = Path(__file__).parents[2] / "packaging"
TEMPLATE = (PACKAGING / "desktop" / "inglenook.metainfo.xml.in").read_text(encoding="utf-8")

metainfo = SimpleNamespace(**run_path(str(PACKAGING / "linux" / "metainfo.py")))


def test_without_an_address_no_picture_is_claimed() -> None:
    text = metainfo.metainfo(TEMPLATE, version="1.2.3", epoch=1_700_000_000)

    root = ElementTree.fromstring(text)
    release = root.find("releases/release")
    assert release is not None
    assert release.attrib == {"version": "1.2.3", "date": "2023-11-14"}
    assert root.find("screenshots") is None
    assert "@" not in text


def test_with_an_address_each_picture_is_under_it() -> None:
    text = metainfo.metainfo(TEMPLATE, version="1", epoch=0, screenshots_url="https://pictures.invalid/a&b/")

    shown = ElementTree.fromstring(text).findall("screenshots/screenshot")
    images = [shot.findtext("image") for shot in shown]
    assert images == [f"https://pictures.invalid/a&b/{name}" for name in metainfo.SCREENSHOTS]
    assert [shot.get("type") for shot in shown] == ["default"] + [None] * (len(images) - 1)
    assert all(shot.findtext("caption") for shot in shown)


def test_each_picture_that_can_be_shown_is_in_the_repository() -> None:
    for name in metainfo.SCREENSHOTS:
        assert (PACKAGING / "screenshots" / name).is_file(), name


def test_the_id_claims_no_domain() -> None:
    # RFC 9476 keeps "alt" for names outside the domain name system.
    assert ElementTree.fromstring(TEMPLATE).findtext("id") == "alt.inglenook.inglenook"
