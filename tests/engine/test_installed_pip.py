"""Asking for pip must leave the process as it was."""

from __future__ import annotations

import subprocess
import sys


def test_setuptools_can_still_be_imported_after_asking_for_pip() -> None:
    script = (
        "from inglenook.engine.installed_pip import pip_is_installed\n"
        "print(pip_is_installed())\n"
        "import setuptools"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
