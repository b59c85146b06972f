"""How this program was started, for hints that a person can copy: `inglenook` is not always on the PATH.

Everywhere a hint says 'inglenook ...'; `with_command` puts in what to type instead.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys

_NAME = "inglenook"


def command_name() -> str:
    """What to type to start this program again: "inglenook", ".venv/bin/inglenook" or "python -m inglenook.app"."""
    # The installed start script says how it was called; the module that it starts could not be started by hand.
    started = os.environ.get("INGLENOOK_COMMAND") or sys.argv[0]
    found = shutil.which(_NAME)
    if os.path.basename(started) == _NAME:
        is_found = found is not None and os.path.exists(started) and os.path.samefile(found, started)
        return _NAME if is_found else shlex.quote(started)
    if os.path.basename(started) == "__main__.py" and found is None:
        return f"{shlex.quote(sys.orig_argv[0])} -m inglenook.app"
    return _NAME


def with_command(text: str) -> str:
    """Put the command as it was started into the hints of a text."""
    return text.replace(f"'{_NAME} ", f"'{command_name()} ")
