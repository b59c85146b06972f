"""Notices of the Rust crates inside wheels: which licence is chosen, and that none which asks for a notice lacks one."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

LINUX = Path(__file__).parents[2] / "packaging" / "linux"


crates = SimpleNamespace(**run_path(str(LINUX / "crates.py")))


@pytest.mark.parametrize(
    ("offered", "chosen", "needs_notice"),
    [
        ("MIT OR Apache-2.0", "Apache-2.0", False),
        ("Apache-2.0  OR  MIT", "Apache-2.0", False),
        ("MIT/Apache-2.0", "Apache-2.0", False),
        ("Unlicense OR MIT", "Unlicense", False),
        ("MIT", "MIT", True),
        ("BSD-2-Clause", "BSD-2-Clause", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 AND Unicode-3.0", True),
        ("ISC AND (Apache-2.0 OR ISC)", "ISC AND Apache-2.0", True),
        ("MPL-2.0", "MPL-2.0", True),
    ],
)
def test_the_licence_that_asks_for_no_notice_is_chosen(offered: str, chosen: str, needs_notice: bool) -> None:
    crate = crates.Crate("x", "1", offered, crates.choose(offered), "pkg:cargo/x@1", "")

    assert crate.chosen == chosen
    assert crate.needs_notice is needs_notice


def wheel_info(folder: Path, *items: dict[str, object]) -> Path:
    """A `.dist-info` folder with a list of crates in it."""
    (folder / "sboms").mkdir()
    listed = {"components": [{"version": "1.0", "scope": "required", **item} for item in items]}
    (folder / "sboms" / "x.cyclonedx.json").write_text(json.dumps(listed), encoding="utf-8")
    return folder


def crate(name: str, licence: str, **more: object) -> dict[str, object]:
    """One entry of such a list."""
    return {"name": name, "licenses": [{"expression": licence}], "purl": f"pkg:cargo/{name}@1.0", **more}


def test_a_crate_without_the_notice_that_it_needs_stops_the_build(tmp_path: Path) -> None:
    info = wheel_info(tmp_path, crate("slab", "MIT"), crate("brand-new", "MIT"))

    with pytest.raises(
        SystemExit, match=r"tokenizers\.txt has no notice of the crates brand-new inside tokenizers"
    ):
        crates.crates_of(info, "tokenizers")


def test_a_wheel_without_notices_of_its_own_may_hold_only_crates_that_need_none(tmp_path: Path) -> None:
    info = wheel_info(tmp_path, crate("serde", "MIT OR Apache-2.0"), crate("cc", "MIT", scope="excluded"))

    found = crates.crates_of(info, "another-wheel")

    assert [one.name for one in found] == ["serde"]


def test_no_folder_of_the_machine_that_built_a_wheel_is_listed(tmp_path: Path) -> None:
    purl = "pkg:cargo/tokenizers@1.0?download_url=file:///somewhere/work"
    info = wheel_info(tmp_path, crate("tokenizers", "Apache-2.0", purl=purl))

    (found,) = crates.crates_of(info, "tokenizers")

    assert found.purl == "pkg:cargo/tokenizers@1.0"


def test_a_wheel_without_a_list_holds_no_crates(tmp_path: Path) -> None:
    assert crates.crates_of(tmp_path, "tokenizers") == []
