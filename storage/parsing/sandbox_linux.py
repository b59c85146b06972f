"""What the Linux kernel can take away from the parser process: new privileges, the file system, system calls.

Three restrictions, each for good and independent of the others, through ctypes as Python has no calls for them:
`end_with_parent` and no new privileges (prctl), Landlock (files may be read only below some folders; Linux 5.13), and
a seccomp filter (only the system calls of reading, computing and answering; opening only to read; nothing that makes
sockets, processes or signals). Counterparts elsewhere: App Sandbox profiles on macOS, AppContainer on Windows.
Must run while the process has one thread.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Iterable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# Rights that each version of Landlock's interface added: refer, truncate, (network), device control.
_FILE_RIGHTS_BY_ABI = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
_NETWORK_RIGHTS, _NETWORK_ABI = 0b11, 4
_SCOPES, _SCOPE_ABI = 0b11, 6

# Number of each permitted system call on x86_64 and aarch64; None where the machine has no such call.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "ioctl": (16, 29),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "dup": (32, 23),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "exit": (60, 93),
    "uname": (63, 160),
    "fcntl": (72, 25),
    "getcwd": (79, 17),
    "readlink": (89, None),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "ppoll": (271, 73),
    "getrandom": (318, 278),
    "statx": (332, 291),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}
# These two are permitted for some arguments only.
_OPENAT = (257, 56)
_TGKILL = (234, 131)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # EPERM
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_ARGUMENT_0, _OFFSET_ARGUMENT_2 = 0, 4, 16, 32
_TMPFILE = 0o20000000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | _TMPFILE

_libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent() -> bool:
    """Let the kernel kill this process when the thread that started it ends."""
    return bool(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)


def forbid_new_privileges() -> bool:
    """Make set-user-id programs powerless for this process; the two restrictions below need it."""
    return bool(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def restrict_files(readable: Iterable[Path]) -> int:
    """Forbid every use of files but reading below `readable`; give Landlock's version, 0 if it is not available."""
    abi = int(_libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if abi < 1:
        return 0
    handled = sum(rights for since, rights in _FILE_RIGHTS_BY_ABI if abi >= since)
    network = _NETWORK_RIGHTS if abi >= _NETWORK_ABI else 0
    scopes = _SCOPES if abi >= _SCOPE_ABI else 0
    # Older kernels accept a longer structure as long as what they do not know is 0.
    attributes = struct.pack("=QQQ", handled, network, scopes)
    ruleset = int(
        _libc.syscall(
            _LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
        )
    )
    if ruleset < 0:
        return 0
    try:
        for folder in readable:
            _allow_reading(ruleset, folder)
        restricted = _libc.syscall(_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)
    return abi if restricted else 0


def _allow_reading(ruleset: int, folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a folder that is not there needs no rule
    try:
        rule = struct.pack("=Qi", _READ_FILE | _READ_DIR, descriptor)
        _libc.syscall(
            _LANDLOCK_ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH),
            rule,
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict_system_calls() -> bool:
    """Permit only the system calls of a reader; all others fail with "operation not permitted"."""
    if platform.machine() not in _ARCHITECTURES:
        return False
    program = _filter_program(*_ARCHITECTURES[platform.machine()])
    wanted = _Filter(len(program) // 8, program)
    return bool(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(wanted), 0, 0) == 0)


def _filter_program(column: int, architecture: int) -> bytes:
    """Assemble the filter: check the architecture, then the call's number, then two calls' arguments."""
    code = [
        _instruction(_LOAD, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _OFFSET_NUMBER),
    ]
    for numbers in _ALLOWED.values():
        number = numbers[column]
        if number is not None:
            code += [_instruction(_JUMP_EQUAL, number, 0, 1), _instruction(_RETURN, _ALLOW)]
    code += [
        _instruction(_JUMP_EQUAL, _OPENAT[column], 0, 4),
        _instruction(_LOAD, _OFFSET_ARGUMENT_2),
        _instruction(_JUMP_SET, _WRITING, 1, 0),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _REFUSE),
        # abort() signals its own process; no other may be.
        _instruction(_JUMP_EQUAL, _TGKILL[column], 0, 4),
        _instruction(_LOAD, _OFFSET_ARGUMENT_0),
        _instruction(_JUMP_EQUAL, os.getpid(), 0, 1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _REFUSE),
        _instruction(_RETURN, _REFUSE),
    ]
    return b"".join(code)


def _instruction(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, if_true, if_false, value)
