"""What the engine process needs of a POSIX system: how it is started and what it does to itself first.

The counterpart `process_windows.py` says what is missing there. The channel is a socket pair inherited by number;
no name, port or file leads to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_NICENESS = 5
_OOM_SCORE = "600"


def spawn(command: tuple[str, ...]) -> tuple[subprocess.Popen[bytes], int]:
    """Start `command` with its channel's number and our process id added; return it and our end, not blocking.

    Must be called on a thread that outlives the process: on Linux the process is killed when that thread ends.

    Raises:
        OSError: the system cannot start it.
    """
    ours, theirs = socket.socketpair()
    with theirs, contextlib.ExitStack() as on_failure:
        on_failure.callback(ours.close)
        process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(theirs.fileno(),),
            # Ctrl+C in a terminal goes to the foreground group: to the client alone, which then closes the engine.
            process_group=0,
        )
        on_failure.pop_all()
    ours.setblocking(False)
    return process, ours.detach()


def settle(channel: int, parent_pid: int) -> None:
    """Make this process a modest child: lower priority, first to go when memory is short, gone with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(channel, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)
