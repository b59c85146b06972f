"""`inglenook bench`, on a tiny model of random weights."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.app.commands.bench_command import add_bench
from inglenook.app.errors import UsageError
from inglenook.engine.errors import InvalidRequestError, ModelNotFoundError


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def bench(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_bench(parser.add_subparsers())
    options = parser.parse_args(["bench", *arguments])
    status: int = options.run(options)
    return status


def test_the_figures_are_one_json_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")

    assert bench(str(path), "--threads", "1", "--rounds", "1", "--json") == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["model"] == "tiny.gguf"
    assert figures["threads"] == 1
    assert min(figures[f"{kind}_tok_s"] for kind in ("prefill", "decode", "batch8_decode")) > 0


def test_the_figures_are_lines_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf")

    assert bench(str(path), "--backend", "torch-cpu", "--threads", "1", "--rounds", "1") == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model        tiny.gguf"
    assert lines[1] == "back end     torch-cpu, threads: 1, KV cache: bfloat16"


def test_a_context_too_short_to_measure_is_refused_with_the_numbers(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", context=256)

    with pytest.raises(InvalidRequestError, match="512 tokens, the model has 256"):
        bench(str(path))


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        bench("no-such-model")


@pytest.mark.parametrize("arguments", [("--threads", "0"), ("--rounds", "0")])
def test_counts_out_of_range_are_refused(arguments: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="must be from 1 to 1024, got 0"):
        bench("model", *arguments)
