"""What is written for people agrees with what is there: the README's tree and commands, docstrings, sizes, names."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from inglenook.app.cli import build_parser

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PACKAGES = ("app", "engine", "kernels", "storage")
MAX_LINES = 400
# Test files mirror the modules, so one may be longer than the module itself.
MAX_TEST_LINES = 600
NO_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "manager", "misc", "shared", "lib"}
# The one that the design names: the thread that owns all mutable state of the engine.
ALLOWED_NAMES = {"engine/core.py"}
# Methods of Qt that our classes override and whose names have no capital letter to tell them by.
QT_NAMES = {"data", "event", "flags", "index", "paint", "parent"}
# Split, so that this file does not hold what it forbids.
FORBIDDEN = [
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "download.pytorch" + ".org",
    "huggingface" + ".co",
    "/" + "work/",
    "/" + "root/",
    "/" + "home/",
    "/" + "opt/wheels",
    "/" + "opt/pypi",
]

# Of the user whom packaging/linux/test.sh makes up to try the packages.
INVENTED_HOME = "/" + "home/ann"


@cache
def tracked() -> tuple[str, ...]:
    """The files of this checkout that are in version control."""
    command = ["git", "ls-files"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=True)
        names = done.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    return tuple(sorted(name for name in names if (REPOSITORY / name).is_file()))


def modules() -> Iterator[tuple[str, ast.Module]]:
    for name in tracked():
        if name.split("/")[0] in PACKAGES and name.endswith(".py"):
            yield name, ast.parse((REPOSITORY / name).read_text(encoding="utf-8"))


def tree_entries() -> dict[str, str]:
    """Path to phrase of the README's annotated tree, which is indented by two spaces a level."""
    block = re.search(r"## What lies where\n.*?```text\n(.*?)```", README, re.DOTALL)
    assert block is not None, "the README has no annotated tree"
    entries, parents = {}, [""]
    for line in block.group(1).splitlines():
        match = re.fullmatch(r"((?:  )*)(\S+)(?: +(\S.*))?", line)
        assert match is not None, f"cannot read the tree's line {line!r}"
        level, name = len(match.group(1)) // 2, match.group(2)
        path = parents[level] + name
        parents[level + 1 :] = [path]
        assert path not in entries, f"{path} is twice in the tree"
        entries[path] = match.group(3) or ""
    return entries


def expected_entries() -> set[str]:
    """Every top-level name, every folder of the packages and of the tests, and every module of the packages."""
    expected = set()
    for name in tracked():
        parts = name.split("/")
        expected.add(parts[0] + ("/" if len(parts) > 1 else ""))
        if parts[0] in PACKAGES:
            expected.update("/".join(parts[:depth]) + "/" for depth in range(2, len(parts)))
            if name.endswith(".py") and parts[-1] != "__init__.py":
                expected.add(name)
        elif parts[0] in ("tests", "packaging") and len(parts) > 2:
            expected.add("/".join(parts[:2]) + "/")
    return expected


def test_the_readme_s_tree_lists_what_is_there() -> None:
    listed = set(tree_entries())

    missing, stale = sorted(expected_entries() - listed), sorted(listed - expected_entries())
    assert (missing, stale) == ([], []), "the README's tree is not what lies there (missing, stale)"


def test_each_line_of_the_tree_has_a_phrase() -> None:
    assert [path for path, phrase in tree_entries().items() if len(phrase) < 8] == []


def test_the_commands_of_the_readme_can_be_given() -> None:
    # In a code block a command ends where three spaces begin its explanation; in a sentence it stands in backticks.
    lines = re.findall(r"^(?:\.venv/bin/)?inglenook (\S.*?)(?:   .*)?$", README, re.MULTILINE)
    inline = re.findall(r"`inglenook ([^`]+)`", README)
    assert len(lines) >= 5

    for command in lines + inline:
        words = shlex.split(command.replace(" --help", " QUESTION"))
        build_parser().parse_args(words)


def test_the_two_commands_stand_in_the_readme() -> None:
    lines = README.splitlines()

    assert "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/inglenook" in lines
    assert "python3 -m venv .venv && .venv/bin/pip install '.[dev]' && .venv/bin/pytest" in lines


def test_links_of_the_readme_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (REPOSITORY / target).exists(), target


def test_no_file_names_a_registry_or_a_folder_of_some_machine() -> None:
    found = []
    for name in tracked():
        if name == "LICENSE":
            continue
        text = (REPOSITORY / name).read_bytes().decode("utf-8", errors="replace").replace(INVENTED_HOME, "")
        found += [f"{name} holds {word}" for word in FORBIDDEN if word in text]

    assert found == []


def test_everything_public_has_a_docstring() -> None:
    found = []
    for name, tree in modules():
        if ast.get_docstring(tree) is None:
            found.append(name)
        found += [f"{name}: {path}" for path in _undocumented(tree, "")]

    assert found == []


def _undocumented(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(
            child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) or child.name.startswith("_"):
            continue
        # A method that overrides another's, most of all Qt's, is documented there.
        marked = any(ast.unparse(d).endswith("override") for d in child.decorator_list)
        overrides = isinstance(node, ast.ClassDef) and (
            marked or child.name in QT_NAMES or not child.name.islower()
        )
        if ast.get_docstring(child) is None and (isinstance(child, ast.ClassDef) or not overrides):
            yield prefix + child.name
        if isinstance(child, ast.ClassDef):
            yield from _undocumented(child, f"{prefix}{child.name}.")


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    found = []
    for name in tracked():
        if name.endswith((".py", ".cpp", ".h")):
            lines = len((REPOSITORY / name).read_text(encoding="utf-8").splitlines())
            if lines > (MAX_LINES if name.split("/")[0] in PACKAGES else MAX_TEST_LINES):
                found.append(f"{name}: {lines} lines")

    assert found == []


def test_no_file_is_named_after_everything() -> None:
    found = [
        name
        for name in tracked()
        if name.split("/")[0] in PACKAGES
        and name not in ALLOWED_NAMES
        and (Path(name).stem in NO_NAMES or NO_NAMES & set(Path(name).parts[:-1]))
    ]

    assert found == []
