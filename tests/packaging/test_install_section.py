"""The commands to install with are the same wherever they are written, and `packaging/linux/test.sh` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "packaging/linux").glob("*.sh")))


def commands(page: str) -> list[str]:
    """What is typed in the section "Install" of a page, without the remarks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = re.search(r"^## Install[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    blocks = re.findall(r"^```sh\n(.*?)^```", section[1] if section else "", re.M | re.S)
    return [re.sub(r"\s+# .*", "", line).strip() for block in blocks for line in block.splitlines()]


# `inglenook` is what the checks of the window start; the second is the same by its full name.
@pytest.mark.parametrize("command", commands("packaging/README.md"))
def test_each_command_of_the_section_is_run_by_the_packages_test(command: str) -> None:
    run = re.findall(r"readme '([^']+)'|for line in ('.+'); do", CHECKS)
    patterns = {part for one, many in run for part in ([one] if one else re.findall(r"'([^']+)'", many))}

    assert command in ("inglenook", "~/.local/bin/inglenook") or any(
        re.match(pattern, command) for pattern in patterns
    )


def test_the_readme_at_the_top_has_no_other_commands_to_install_with() -> None:
    known = [*commands("packaging/README.md"), "packaging/linux/build.sh", "cd dist"]

    assert [line for line in commands("README.md") if line not in known] == []
