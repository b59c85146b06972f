"""Engine processes whose parent ends, in whatever way: none is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from engine_processes import FAKE_CORE, TIMEOUT_S, is_gone, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the engine process needs POSIX")

PARENT = """
import functools, os, signal, sys, time
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.client import EngineClient
from inglenook.engine.request import Request
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
client = EngineClient(functools.partial(ChildHome, command=(sys.executable, "-I", sys.argv[1]), stop_timeout_s=0.3))
client.load("model.gguf")
print(client.submit(Request(prompt="pid")).result(20).text, flush=True)
handle = client.submit(Request(prompt=sys.argv[2]))
next(handle.events(20))
"""


@pytest.mark.parametrize("prompt", ["endless", "hang"])
@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os._exit(0)",
        "os.kill(os.getpid(), signal.SIGINT)",
        "sys.exit()",
        "raise ValueError",
        "",
    ],
)
@pytest.mark.slow
def test_a_parent_that_ends_in_any_way_leaves_no_orphan(end: str, prompt: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", PARENT + end, FAKE_CORE, prompt],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert wait_until(lambda: is_gone(int(shown.stdout.split()[0])), timeout_s=2)
    assert "Warning" not in shown.stderr


def test_ctrl_c_in_a_terminal_reaches_the_parent_only_and_leaves_no_orphan() -> None:
    code = PARENT + (
        "try:\n    print('streaming', flush=True); handle.result(20)\n"
        "except KeyboardInterrupt:\n    handle.cancel(); print(handle.result(20).finished.finish_reason)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, FAKE_CORE, "endless"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "streaming\n"

        os.killpg(parent.pid, signal.SIGINT)

        assert parent.stdout.read().strip() == "cancelled"
        assert parent.wait(TIMEOUT_S) == 0
    assert wait_until(lambda: is_gone(pid), timeout_s=2)


@pytest.mark.slow
def test_ctrl_c_at_any_moment_leaves_no_orphan(tmp_path: Path) -> None:
    own_copy = tmp_path / "fake_core.py"
    own_copy.write_text(Path(FAKE_CORE).read_text(encoding="utf-8"), encoding="utf-8")
    code = PARENT + "with client:\n    handle.cancel(); handle.result(20); client.unload().result(20)\n"

    for step in range(40):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(own_copy), "endless"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as parent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                parent.wait(step * 0.012)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGINT)
            parent.wait(TIMEOUT_S)

        assert wait_until(lambda: not _commands_with(own_copy), timeout_s=2)


def _commands_with(path: Path) -> list[list[str]]:
    commands = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            commands.append(process.cmdline())
    return [command for command in commands if str(path) in command]
