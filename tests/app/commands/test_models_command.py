"""`models list`, `get`, `import` and `remove`."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from inglenook.app.cli import run
from inglenook.engine.backend import Progress
from inglenook.engine.errors import FetchError
from inglenook.engine.library.model_catalogue import CATALOGUE
from inglenook.engine.library.model_import import ModelFacts
from inglenook.engine.model_library import InstalledModel, ModelLibrary


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a user of this test; every file counts as a model."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("COLUMNS", "400")  # no line is broken, however long the folder's name is
    facts = ModelFacts(
        title="A \x1b[1mmodel",
        kind="chat",
        licence="MIT",
        size_bytes=4_000_000,
        num_parameters=5 * 10**14,
        kv_bytes_per_token=250_000_000_000,
    )
    monkeypatch.setattr("inglenook.engine.model_library.inspect_model", lambda _path: facts)
    return tmp_path / "share"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF")
    return path


def test_the_list_shows_what_is_here_and_what_can_be_fetched(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["models", "import", str(file)])
    capsys.readouterr()

    assert run(["models", "list"]) == 0

    out = capsys.readouterr().out
    assert f"In the library, {share / 'inglenook' / 'models'}:" in out
    assert re.search(
        r"4 MB on disk, needs 10240\d\d\.\d GB of memory: does not fit in the", " ".join(out.split())
    )
    assert f"A \\x1b[1mmodel; chat; MIT; at {file}" in out
    assert all(entry.name in out and entry.licence in out for entry in CATALOGUE)
    assert "not an open-source licence" in out


def test_the_list_as_json_has_the_same_facts(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["models", "import", str(file)])
    capsys.readouterr()

    run(["models", "list", "--json"])

    facts = json.loads(capsys.readouterr().out)
    (model,) = facts["models"]
    assert (model["name"], model["path"], model["fits"], model["is_reference"]) == (
        "mine",
        str(file),
        False,
        True,
    )
    assert [entry["name"] for entry in facts["catalogue"]] == [entry.name for entry in CATALOGUE]


def test_a_fetched_model_is_announced_with_its_licence(
    share: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    def fetch(library: ModelLibrary, name: str, progress: Progress) -> InstalledModel:
        progress(1, 2)
        return library.add(file, name=name)

    monkeypatch.setattr(ModelLibrary, "fetch", fetch)

    assert run(["models", "get", "smollm2-135m"]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("smollm2-135m is in the library: 4 MB, MIT.\n")
    assert "for trying out" in out
    assert err == ""


def test_a_fetch_that_fails_is_one_sentence(
    share: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetch(*_: object) -> None:
        raise FetchError("No network.")

    monkeypatch.setattr(ModelLibrary, "fetch", fetch)

    assert run(["models", "get", "smollm2-135m"]) == 1
    assert capsys.readouterr() == ("", "inglenook: No network.\n")


def test_a_fetch_that_is_interrupted_ends_with_130(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ModelLibrary, "fetch", fetch)

    assert run(["models", "get", "smollm2-135m"]) == 130


@pytest.mark.parametrize("name", ["nope", "../x", "qwen2.5-0.5b"])
def test_only_models_of_the_catalogue_can_be_fetched(
    share: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["models", "get", name]) == 1
    assert f"There is no model '{name}' to fetch. The catalogue has: smollm2-135m" in capsys.readouterr().err


def test_an_import_says_where_the_model_is(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["models", "import", str(file)])
    run(["models", "import", str(file), "--copy", "--name", "kept"])

    out = capsys.readouterr().out
    assert f"mine is in the library, where it is, {file}" in out
    assert "kept is in the library, as a copy" in out


def test_removing_says_what_was_freed_and_what_stays(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["models", "import", str(file)])
    run(["models", "import", str(file), "--copy", "--name", "kept"])
    capsys.readouterr()

    run(["models", "remove", "mine"])
    run(["models", "remove", "kept"])

    out = capsys.readouterr().out
    assert f"mine is forgotten; its file stays at {file}.\n" in out
    assert "kept is removed; " in out
    assert file.exists()
    assert run(["models", "remove", "kept"]) == 1


def test_what_an_unfinished_download_left_can_be_removed(
    share: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = share / "inglenook" / "models" / ".partial" / "qwen2.5-7b" / "download"
    left.mkdir(parents=True)
    (left / f"{'0' * 64}.part").write_bytes(bytes(5_000_000))

    assert run(["models", "remove", "qwen2.5-7b"]) == 0

    assert "an unfinished download of qwen2.5-7b left is removed; 5 MB were freed" in capsys.readouterr().out
    assert not left.exists()
    assert run(["models", "remove", "qwen2.5-7b"]) == 1


def test_the_folder_of_a_user_is_closed_to_others(share: Path, file: Path) -> None:
    run(["models", "import", str(file)])

    assert (share / "inglenook").stat().st_mode & 0o077 == 0


def test_a_library_folder_that_is_a_file_is_a_sentence(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (share / "inglenook").mkdir(parents=True)
    shutil.copy(file, share / "inglenook" / "models")

    assert run(["models", "list"]) == 1
    assert "cannot be read: Not a directory" in capsys.readouterr().err


def test_an_empty_path_is_wrong_usage(share: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["models", "import", ""])

    assert ended.value.code == 2
    assert "argument PATH: it is empty" in capsys.readouterr().err


def test_a_newline_in_a_file_name_cannot_fake_a_line(
    share: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a\nfake: line.gguf"
    file.write_bytes(b"GGUF")

    run(["models", "import", str(file)])
    run(["models", "list"])
    run(["models", "remove", "a-fake-line"])
    run(["models", "import", str(tmp_path / "b\nfake: line.gguf"), "--name", "A\nfake: line"])

    out, err = capsys.readouterr()
    assert "\nfake" not in out + err
    assert out.count(r"a\nfake: line.gguf") == 3


def test_lines_of_the_list_are_as_wide_as_the_terminal(
    share: Path, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["models", "import", str(file)])
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "80")

    run(["models", "list"])

    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if str(share.parent) not in line)
    assert all(line.startswith("  ") for line in lines if "licence" in line)


def test_hints_name_the_command_as_it_was_started(
    share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = tmp_path / "bin" / "inglenook"
    monkeypatch.setattr("sys.argv", [str(started)])
    monkeypatch.setenv("PATH", str(tmp_path))

    run(["models", "list"])
    run(["ask", "Q"])
    run(["ask", "Q", "--model", "smollm2-135m"])

    out, err = capsys.readouterr()
    assert f"fetched with '{started} models get NAME'" in out
    assert err.count(f"'{started} models get smollm2-135m'") == 2
    assert "'inglenook " not in out + err
