"""What the parser process cannot do, tried from inside of it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is of the Linux kernel")

_SCRIPT = """
import ctypes, os, signal, socket, subprocess, sys, threading
from inglenook.storage.parsing.restrictions import restrict
restrictions = restrict(memory_bytes=1 << 30, cpu_s=60)
assert not restrictions.missing, restrictions.missing
def attempt():
    {attempt}
try:
    attempt()
except (OSError, MemoryError, RuntimeError, ValueError) as error:
    print("refused", type(error).__name__)
else:
    print("succeeded")
"""


def _attempt(code: str) -> str:
    """Run code in a process under the parser's restrictions and give what became of it."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", _SCRIPT.format(attempt=code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip() or f"ended {done.returncode} {done.stderr[-500:]}"


def _lacks_restrictions() -> bool:
    with ParserClient() as client:
        return bool({"file access", "system calls"} & set(client.restrictions.missing))


@pytest.fixture(scope="module", autouse=True)
def _needs_the_sandbox() -> None:
    if _lacks_restrictions():
        pytest.skip("this kernel has no Landlock or no seccomp filter")


def test_the_client_reports_every_restriction_in_force(parser: ParserClient) -> None:
    assert not parser.restrictions.missing
    assert {"memory limit", "file access", "system calls", "no core file"} <= set(
        parser.restrictions.in_force
    )


def test_what_is_allowed_still_works() -> None:
    assert _attempt("import encodings.cp1006, decimal; bytearray(1 << 20)") == "succeeded"


def test_it_cannot_read_a_private_file(tmp_path: Path) -> None:
    secret = tmp_path / ".ssh" / "id"
    secret.parent.mkdir()
    secret.write_bytes(b"private")

    assert _attempt(f"open({os.fspath(secret)!r}, 'rb').read()") == "refused PermissionError"
    assert _attempt("open('/etc/passwd').read()") == "refused PermissionError"
    assert _attempt("open('/proc/self/environ').read()") == "refused PermissionError"
    assert _attempt(f"os.listdir({os.fspath(tmp_path)!r})") == "refused PermissionError"


def test_it_cannot_write_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")

    for code in (
        "open({}, 'wb')",
        "open({}, 'ab')",
        "os.truncate({}, 0)",
        "os.unlink({})",
        "os.rename({}, '/tmp/y')",
    ):
        assert _attempt(code.format(repr(os.fspath(path)))) == "refused PermissionError"
    assert _attempt(f"os.mkdir({os.fspath(tmp_path / 'new')!r})") == "refused PermissionError"
    assert _attempt("os.memfd_create('x')") == "refused PermissionError"
    assert path.read_bytes() == b"x"


def test_it_cannot_open_a_socket() -> None:
    assert _attempt("socket.create_connection(('127.0.0.1', 80), 2)") == "refused PermissionError"
    assert _attempt("socket.socket(socket.AF_UNIX)") == "refused PermissionError"
    assert _attempt("socket.socketpair()") == "refused PermissionError"


def test_it_cannot_start_processes_or_threads() -> None:
    assert _attempt("os.fork()") == "refused PermissionError"
    assert _attempt("os.execv('/bin/true', ['true'])") == "refused PermissionError"
    assert _attempt("subprocess.run(['/bin/true'])") == "refused PermissionError"
    assert _attempt("threading.Thread(target=print).start()") == "refused RuntimeError"


def test_it_cannot_signal_or_trace_others() -> None:
    assert _attempt(f"os.kill({os.getpid()}, 0)") == "refused PermissionError"
    code = "if ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) < 0: raise OSError"
    assert _attempt(code) == "refused OSError"


def test_it_cannot_raise_its_limits() -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)"

    assert _attempt(code).startswith("refused")
    assert _attempt("bytearray(2 << 30)") == "refused MemoryError"


def test_the_process_inherits_nothing_of_its_parent() -> None:
    with ParserClient() as client:
        assert client.restrictions.in_force
        pid = client.process_id
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        descriptors = os.listdir(f"/proc/{pid}/fd")

    assert b"HOME=" not in environment
    assert len(descriptors) == 4


def test_the_process_ends_with_the_program() -> None:
    code = (
        "import os, time\n"
        "from inglenook.storage.parsing.client import ParserClient\n"
        "client = ParserClient()\n"
        "client.restrictions\n"
        "print(client.process_id, flush=True)\n"
        "os._exit(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    try:
        process = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return
    has_ended, _, _ = select.select([process], [], [], 30)
    os.close(process)
    assert has_ended


def test_a_process_ends_when_its_owner_closes_it() -> None:
    with ParserClient() as client:
        assert client.restrictions
        pid = client.process_id
    client.close()

    assert pid is not None
    assert client.process_id is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
