"""The package map, what is installed, and the promises that packaging rests on."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("app", "engine", "kernels", "storage")


def package_folders() -> list[Path]:
    """Every folder of our packages that holds Python modules."""
    folders = {file.parent for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")}
    return sorted(folders)


def test_the_package_list_equals_the_folders() -> None:
    folders = {"inglenook." + ".".join(f.relative_to(REPOSITORY).parts) for f in package_folders()}

    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == folders


def test_the_package_folders_are_where_the_list_says() -> None:
    assert PYPROJECT["tool"]["setuptools"]["package-dir"] == {f"inglenook.{p}": p for p in PACKAGES}


@pytest.mark.parametrize("folder", package_folders(), ids=lambda f: f.relative_to(REPOSITORY).as_posix())
def test_each_package_is_typed_and_has_a_docstring_of_its_own(folder: Path) -> None:
    assert (folder / "py.typed").is_file()
    assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')


@pytest.mark.parametrize("folder", ["tests", "packaging"])
def test_tests_and_packaging_are_no_packages(folder: str) -> None:
    assert not list((REPOSITORY / folder).rglob("__init__.py"))


def test_nothing_installs_a_package_named_inglenook_itself() -> None:
    # It is a namespace, so that the four folders keep their plain names.
    assert not (REPOSITORY / "inglenook").exists()
    assert not any(name == "inglenook" for name in PYPROJECT["tool"]["setuptools"]["packages"])


def test_each_dependency_says_what_it_is_for() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    project = PYPROJECT["project"]
    required = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]

    for dependency in required:
        assert re.search(rf'^\s*"{re.escape(dependency)}",\s*# .{{5,}}$', text, re.MULTILINE), dependency


def test_triton_is_no_runtime_dependency() -> None:
    # The CUDA build of torch brings its own.
    assert not any(d.startswith("triton") for d in PYPROJECT["project"]["dependencies"])
    assert "torch==2.13.0" in PYPROJECT["project"]["dependencies"]


def test_each_script_names_a_function_that_exists() -> None:
    for target in PYPROJECT["project"]["scripts"].values():
        module, function = target.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_installed_package_is_what_the_tests_import() -> None:
    installed = distribution("inglenook")

    assert installed.version == PYPROJECT["project"]["version"]
    assert {e.name for e in installed.entry_points} == set(PYPROJECT["project"]["scripts"])


@pytest.mark.parametrize("script", [".ci/run"])
def test_scripts_can_be_run(script: str) -> None:
    path = REPOSITORY / script

    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)], timeout=10).returncode == 0
