"""What the installers bring is what pyproject.toml asks for, so that a new dependency is not forgotten there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LINUX = ROOT / "packaging" / "linux"
LOCK = (LINUX / "requirements.lock").read_text(encoding="utf-8")
LOCKED = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.M)}
DEPENDENCIES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]


@pytest.mark.parametrize("line", DEPENDENCIES)
def test_each_dependency_is_locked_in_an_allowed_version(line: str) -> None:
    requirement = Requirement(line)

    version = LOCKED.get(canonicalize_name(requirement.name))

    assert version is not None, f"run packaging/linux/lock.sh: {requirement.name} is not in requirements.lock"
    assert requirement.specifier.contains(version), (
        f"run packaging/linux/lock.sh: {line}, locked is {version}"
    )


def test_each_locked_package_has_one_hash_and_no_place_on_the_network() -> None:
    entries = re.findall(r"^[\w.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}$", LOCK, re.M)

    assert len(entries) == len(LOCKED)
    assert "://" not in LOCK


def test_no_installer_of_packages_no_gpu_compiler_and_no_unused_transport_is_locked() -> None:
    assert not {"pip", "setuptools", "triton", "hf-xet"} & LOCKED.keys()
