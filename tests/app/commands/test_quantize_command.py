"""`models quantize`: what it prints, which texts it measures on, and what is refused."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inglenook.app.cli import run
from inglenook.engine.library.perplexity_text import TEXT

sys.path.insert(0, str(Path(__file__).parents[2] / "engine"))
from tiny_folders import write_tiny_folder


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny") / "My Model")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path / "share" / "inglenook" / "models"


def test_a_folder_becomes_a_model_and_the_cost_is_printed(
    folder: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", "quantize", str(folder), "--weights", "qint4"]) == 0

    out = capsys.readouterr().out
    assert "my-model-qint4 is in the library: " in out
    assert "Matrices: 12 as QINT4_G128, 2 as QINT4_G64, 2 as QINT8_G128." in out
    assert "Perplexity on a short English text of " in out
    assert " tokens, both on native-cpu: " in out
    assert "It says how well the next token of that text is guessed" in out
    assert (models / "my-model-qint4" / "model" / "config.json").is_file()


def test_a_model_of_the_library_is_named_and_its_title_goes_on(
    folder: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["models", "import", str(folder), "--name", "mine"])

    status = run(["models", "quantize", "mine", "--weights", "qfloat8", "--group", "32", "--no-perplexity"])

    assert status == 0
    assert "mine-qfloat8 is in the library" in capsys.readouterr().out
    run(["models", "list"])
    assert "My Model, qfloat8; chat; not stated; from mine" in capsys.readouterr().out
    assert run(["models", "quantize", "mine-qfloat8", "--weights", "qint4"]) == 1
    assert "mine-qfloat8 is quantised already" in capsys.readouterr().err


def test_the_users_own_text_is_measured_on(
    folder: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text(TEXT[100:800])

    run(["models", "quantize", str(folder), "--weights", "qint8", "--name", "q", "--text", str(text)])

    out = capsys.readouterr().out
    assert "q is in the library" in out
    assert "Perplexity on your text of " in out


def test_a_text_of_a_few_words_leaves_the_model_and_says_why_it_was_not_measured(
    folder: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("Too short.")

    status = run(["models", "quantize", str(folder), "--weights", "qint8", "--text", str(text)])

    assert status == 0
    assert "Perplexity was not measured: The text has " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"caf\xe9 and more", "is not UTF-8 text: byte 3"),
        (b"x" * 1_100_000, "has 1,100,000 bytes; at most 1,048,576 are measured on"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_before_anything_is_made(
    folder: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    text = tmp_path / "mine.txt"
    text.write_bytes(content)

    assert run(["models", "quantize", str(folder), "--weights", "qint8", "--text", str(text)]) == 1

    assert words in capsys.readouterr().err
    assert not models.exists() or list(models.iterdir()) == []


def test_what_is_not_there_is_said(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "quantize", "nothing", "--weights", "qint8"]) == 1

    assert "There is no model 'nothing' in the library" in capsys.readouterr().err
