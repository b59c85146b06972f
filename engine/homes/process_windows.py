"""The Windows counterpart of `process_posix.py`. The engine process does not run there yet; `in_process()` does.

Missing: an inherited duplex pipe read by overlapped I/O (a `selectors` loop takes only sockets there), a job object
with kill-on-close in place of the parent-death signal, CREATE_NEW_PROCESS_GROUP in place of a process group, and
BELOW_NORMAL_PRIORITY_CLASS in place of niceness. There are no core files or out-of-memory scores to set.
"""

from __future__ import annotations

import subprocess


def spawn(command: tuple[str, ...]) -> tuple[subprocess.Popen[bytes], int]:
    """Refuse.

    Raises:
        OSError: always, with the way out.
    """
    raise OSError("a separate engine process needs Linux or macOS; run the engine in this process instead")


def settle(channel: int, parent_pid: int) -> None:
    """Do nothing: no engine process is started here."""
