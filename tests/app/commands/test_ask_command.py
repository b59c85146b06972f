"""`ask` against a fake engine that answers with known events, and once against the real one."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from inglenook.app.cli import run
from inglenook.app.commands import ask_command
from inglenook.engine.handle import Handle
from inglenook.engine.library.model_import import ModelFacts
from inglenook.engine.model_doctor.records import DoctorRecords, records_folder
from inglenook.engine.model_doctor.report import DoctorReport, Finding
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.request import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Loaded,
    LoadOptions,
    LoadProgress,
    Request,
    TokenText,
)
from inglenook.storage.parsing.document import READABLE_FORMATS


def finished(reason: FinishReason = "stop") -> Finished:
    return Finished(
        finish_reason=reason,
        prompt_tokens=9,
        cached_tokens=0,
        completion_tokens=2,
        ttft_s=0.5,
        tpot_s=0.1,
        seed=7,
    )


LOADED = Loaded(
    slot="chat",
    name="x",
    architecture="llama",
    backend="fake",
    backend_reason="",
    context_length=512,
    weight_bytes=1,
    kv_bytes=1,
    load_s=0.1,
    notices=("A notice.",),
)


class FakeEngine:
    """Answers a load and a request with the events it was given; an exception among them is raised by the reader."""

    def __init__(self) -> None:
        self.load_events: list[Event] = [LoadProgress("weights", 1, 2), LOADED]
        self.reply_events: list[Event] = [TokenText("Par", (1,)), TokenText("is.", (2,)), finished()]
        self.interrupt: BaseException | None = None
        self.path: Path | None = None
        self.options: LoadOptions | None = None
        self.request: Request | None = None
        self.is_closed = False
        self.cancelled: list[int] = []

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def load(self, path: Path, options: LoadOptions) -> Handle[Any]:
        self.path, self.options = path, options
        return self._handle(1, self.load_events)

    def submit(self, request: Request) -> Handle[Any]:
        self.request = request
        handle = self._handle(2, self.reply_events)
        if self.interrupt is not None:
            handle.events = self._interrupted  # type: ignore[method-assign]
        return handle

    def _interrupted(self, timeout_s: float | None = None) -> Iterator[Event]:
        yield self.reply_events[0]
        assert self.interrupt is not None
        raise self.interrupt

    def _handle(self, id_: int, events: list[Event]) -> Handle[Any]:
        handle: Handle[Any] = Handle(id_, self.cancelled.append)
        for event in events:
            handle.deliver(event)
        return handle


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Put the signal handlers back that `run` sets."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelLibrary:
    """An empty library of a user of this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return ModelLibrary(tmp_path / "share" / "inglenook" / "models")


@pytest.fixture
def engine(models: ModelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """A fake engine, and a library that holds the model "small"."""
    facts = ModelFacts(
        title="Small", kind="chat", licence="MIT", size_bytes=10, num_parameters=1, kv_bytes_per_token=1
    )
    monkeypatch.setattr("inglenook.engine.model_library.inspect_model", lambda _path: facts)
    file = tmp_path / "small.gguf"
    file.write_bytes(b"GGUF")
    models.add(file)
    fake = FakeEngine()
    monkeypatch.setattr(ask_command.EngineClient, "child", lambda: fake)
    monkeypatch.setattr(ask_command.EngineClient, "in_process", lambda: fake)
    return fake


@pytest.mark.parametrize(("light", "num_lines"), [("green", 0), ("amber", 0), ("red", 1)])
def test_a_model_that_the_doctor_found_red_is_warned_of_in_one_line(
    engine: FakeEngine,
    models: ModelLibrary,
    capsys: pytest.CaptureFixture[str],
    light: Literal["green", "amber", "red"],
    num_lines: int,
) -> None:
    findings = (Finding("file", "green", "Fine."), Finding("numbers", light, "Layer 3\ngives no numbers."))
    DoctorRecords(records_folder()).keep(models.get("small").path, DoctorReport("small", findings, 1.0))

    assert run(["ask", "Capital of France?", "--json"]) == 0

    out, err = capsys.readouterr()
    assert json.loads(out)["text"] == "Paris."
    assert err.splitlines() == ["Warning: small was found unsound: Layer 3\\ngives no numbers."] * num_lines


def test_asking_never_examines_a_model_that_was_not_examined(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", "Capital of France?"]) == 0

    assert capsys.readouterr().err == ""
    assert not records_folder().exists()


def test_the_help_names_every_format_that_a_document_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["ask", "--help"])

    assert READABLE_FORMATS in " ".join(capsys.readouterr().out.split())


def test_the_answer_goes_to_stdout_and_nothing_else_does(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = run(["ask", "What is the capital of France?"])

    assert status == 0
    assert capsys.readouterr() == ("Paris.\n", "")
    assert engine.path == tmp_path / "small.gguf"
    assert engine.request is not None
    assert engine.request.messages == ({"role": "user", "content": "What is the capital of France?"},)
    assert engine.is_closed


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_an_answer_that_repeats_itself_says_so(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    engine.reply_events = [TokenText("Severin " * 200, (1,)), finished("repetition")]

    assert run(["ask", "hi", *form]) == 0

    out, err = capsys.readouterr()
    assert engine.request is not None
    assert engine.request.sampling.stop_repetition
    if form:
        assert json.loads(out)["finish_reason"] == "repetition"
        assert err == ""
    else:
        sentence = (
            "It began to repeat itself and was stopped after 200 words. --allow-repetition lets it go on.\n"
        )
        assert (out, err) == ("Severin " * 200 + "\n", sentence)


def test_every_option_reaches_the_engine(engine: FakeEngine) -> None:
    options = "--temperature 0 --top-k 5 --top-p 0.9 --min-p 0.1 --seed 3 --max-tokens 8 --stop a --stop b --system S --allow-repetition"
    home = "--backend reference --context 99 --threads 2 --home here"

    assert run(["ask", "Q", *options.split(), *home.split()]) == 0

    assert engine.request is not None
    sampling = engine.request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (0, 5, 0.9, 0.1)
    assert (sampling.seed, sampling.max_tokens, sampling.stop) == (3, 8, ("a", "b"))
    assert not sampling.stop_repetition
    assert engine.request.messages == ({"role": "system", "content": "S"}, {"role": "user", "content": "Q"})
    assert engine.options == LoadOptions(backend="reference", context_length=99, num_threads=2)


def test_json_is_one_object_with_the_promised_keys(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["ask", "Q", "--json"])

    assert json.loads(capsys.readouterr().out) == {
        "text": "Paris.",
        "finish_reason": "stop",
        "prompt_tokens": 9,
        "cached_tokens": 0,
        "completion_tokens": 2,
        "ttft_s": 0.5,
        "tpot_s": 0.1,
        "sources": [],
        "model": "small",
        "backend": "fake",
        "seed": 7,
        "notices": ["A notice."],
    }


def test_escape_sequences_of_a_model_are_shown_not_obeyed(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.reply_events = [TokenText("\x1b]0;title\x07", (1,)), finished()]

    run(["ask", "Q"])

    assert capsys.readouterr().out == "\\x1b]0;title\\x07\n"


def test_text_so_far_stands_when_the_engine_dies(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.reply_events = [TokenText("Par", (1,)), Failed("EngineStoppedError", "The engine was killed.")]

    status = run(["ask", "Q"])

    assert status == 1
    assert capsys.readouterr() == ("Par\n", "inglenook: The engine was killed.\n")


def error_record(sentence: str, text: str = "") -> dict[str, object]:
    counts = dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens"), 0)
    unknown = dict.fromkeys(("ttft_s", "tpot_s", "model", "backend", "seed"))
    return {
        "text": text, "finish_reason": "error", "error": sentence, "sources": [], **counts, **unknown
    }  # fmt: skip


def test_json_says_that_there_is_no_model(models: ModelLibrary, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "Q", "--json", "--model", "nope"]) == 1

    out, err = capsys.readouterr()
    assert err.startswith("inglenook: There is no model 'nope'")
    assert json.loads(out) == error_record(err.removeprefix("inglenook: ").rstrip())


def test_json_says_that_a_model_cannot_be_loaded(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.load_events = [Failed("NotEnoughMemoryError", "small needs 14.2 GB, 9.1 GB are free.")]

    assert run(["ask", "Q", "--json"]) == 1

    out = capsys.readouterr().out
    assert json.loads(out) == error_record("small needs 14.2 GB, 9.1 GB are free.")


@pytest.mark.parametrize("option", ["--model", "--document"])
def test_an_empty_name_is_wrong_usage_and_not_the_current_folder(
    engine: FakeEngine, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = run(["ask", "Q", option, ""])
    except SystemExit as ended:
        status = int(ended.code or 0)

    assert status == 2
    assert "is empty" in capsys.readouterr().err


def test_the_type_of_the_kv_cache_reaches_the_engine(engine: FakeEngine) -> None:
    run(["ask", "Q", "--kv", "int8"])

    assert engine.options is not None
    assert engine.options.kv_dtype == "int8"


def test_an_adapter_reaches_the_engine_by_its_whole_path_on_a_back_end_that_runs_it(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)

    assert run(["ask", "Hi", "--adapter", "mine"]) == 0
    asked, options = engine.request, engine.options
    assert run(["ask", "Hi", "--adapter", "mine", "--backend", "reference"]) == 0

    assert (asked and asked.adapter, options and options.backend) == (str(tmp_path / "mine"), "torch-cpu")
    assert engine.options == LoadOptions(backend="reference")


def test_json_keeps_the_text_so_far_when_the_engine_dies(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.reply_events = [TokenText("Par", (1,)), Failed("EngineStoppedError", "The engine was killed.")]

    status = run(["ask", "Q", "--json"])

    out, err = capsys.readouterr()
    assert status == 1
    assert json.loads(out) == error_record("The engine was killed.", text="Par")
    assert err == "inglenook: The engine was killed.\n"


def test_a_model_that_cannot_be_loaded_is_one_sentence(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.load_events = [Failed("NotEnoughMemoryError", "small needs 14.2 GB, 9.1 GB are free.")]

    assert run(["ask", "Q"]) == 1
    assert capsys.readouterr() == ("", "inglenook: small needs 14.2 GB, 9.1 GB are free.\n")


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_an_interrupt_cancels_closes_and_says_nothing(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    engine.reply_events = [TokenText("Par", (1,))]
    engine.interrupt = KeyboardInterrupt()

    status = run(["ask", "Q", *arguments])

    assert status == 130
    assert engine.cancelled == [2]
    assert engine.is_closed
    assert capsys.readouterr() == ("" if arguments else "Par\n", "")


def test_sigterm_does_the_same(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.reply_events = [TokenText("Par", (1,))]
    monkeypatch.setattr(
        ask_command, "harmless", lambda text: os.kill(os.getpid(), signal.SIGTERM) or text, raising=True
    )

    assert run(["ask", "Q"]) == 143
    assert engine.is_closed


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--temperature", "-1", "a number from 0 to 100, got -1.0"),
        ("--temperature", "nan", "a number from 0 to 100, got nan"),
        ("--temperature", "1e308", "a number from 0 to 100, got 1e+308"),
        ("--top-k", "-1", "a whole number from 0 (off) to 2^31 - 1, got -1"),
        ("--top-p", "0", "a number above 0 and at most 1, got 0.0"),
        ("--min-p", "1", "a number from 0 to below 1, got 1.0"),
        ("--seed", "-1", "a whole number from 0 to 2^63 - 1, got -1"),
        ("--seed", str(2**63), f"a whole number from 0 to 2^63 - 1, got {2**63}"),
        ("--max-tokens", "-1", "a whole number from 0 to 2^31 - 1, got -1"),
        ("--max-tokens", str(2**31), f"a whole number from 0 to 2^31 - 1, got {2**31}"),
        ("--stop", "", "non-empty strings of at most 1024 characters, got ''"),
        ("--context", "0", "a whole number from 1 to 2147483647, got 0"),
        ("--threads", "-2", "a whole number from 1 to 256, got -2"),
    ],
)
def test_a_value_out_of_range_names_option_value_and_range(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], option: str, value: str, allowed: str
) -> None:
    status = run(["ask", "Q", option, value])

    assert status == 2
    assert capsys.readouterr().err == f"inglenook: {option} must be {allowed}.\n"
    assert engine.path is None


@pytest.mark.parametrize(
    "arguments", [["ask"], ["ask", "Q", "--seed", "x"], ["ask", "Q", "--temp", "1"], ["nope"]]
)
def test_wrong_usage_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)

    assert ended.value.code == 2
    assert "usage: inglenook" in capsys.readouterr().err


@pytest.mark.parametrize("question", ["", " ", "\n\t"])
def test_an_empty_question_is_refused(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], question: str
) -> None:
    assert run(["ask", question]) == 2
    assert capsys.readouterr().err == "inglenook: The question is empty.\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["ask", "a\udcff"], "QUESTION"),
        (["ask", "Q", "--system", "\udcff"], "--system"),
        (["ask", "Q", "--stop", "a", "--stop", "\udcff"], "--stop 2"),
    ],
)
def test_an_argument_that_is_no_text_is_refused(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"inglenook: {what} is not valid UTF-8 text.\n"


def give_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_dash_reads_the_question_from_stdin(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, "Grüße\nvon stdin".encode())

    assert run(["ask", "-"]) == 0
    assert engine.request is not None
    assert engine.request.messages == ({"role": "user", "content": "Grüße\nvon stdin"},)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"caf\xe9", "is not UTF-8 text: byte 3 is 0xe9"),
        (b"", "The question is empty"),
        (b"x" * (ask_command.MAX_QUESTION_BYTES + 1), "is longer than 16,000,000 bytes"),
    ],
)
def test_bad_input_on_stdin_is_a_sentence(
    engine: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
    words: str,
) -> None:
    give_stdin(monkeypatch, data)

    assert run(["ask", "-"]) == 2
    assert words in capsys.readouterr().err


def test_without_a_model_the_way_to_one_is_named(
    models: ModelLibrary, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ask", "Q"]) == 1
    assert "inglenook models get smollm2-135m" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("smollm2-135m", "'inglenook models get smollm2-135m' fetches it"),
        ("nothing", "There is no model 'nothing' in the library. Models here: small."),
        ("../../etc", None),
    ],
)
def test_a_model_that_is_not_here_is_named(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], model: str, words: str | None
) -> None:
    if words is None:  # a path: the engine says what is wrong with it
        engine.load_events = [Failed("ModelNotFoundError", "There is nothing.")]
    assert run(["ask", "Q", "--model", model]) == 1
    assert (words or "There is nothing.") in capsys.readouterr().err


def test_a_model_whose_file_has_gone_is_explained(
    engine: FakeEngine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "small.gguf").unlink()

    assert run(["ask", "Q", "--model", "small"]) == 1
    assert f"was imported from {tmp_path / 'small.gguf'}, which is not there" in capsys.readouterr().err


def test_a_path_is_a_model_too(engine: FakeEngine, tmp_path: Path) -> None:
    assert run(["ask", "Q", "--model", str(tmp_path / "small.gguf")]) == 0
    assert engine.path == tmp_path / "small.gguf"


def start(arguments: list[str], tmp_path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "inglenook.app", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "share")},
    )


@pytest.mark.slow
def test_the_real_engine_knows_the_capital_of_france(smollm2: Path, tmp_path: Path) -> None:
    question = ["ask", "What is the capital of France?", "--temperature", "0", "--model", str(smollm2)]
    with start([*question, "--json"], tmp_path) as process:
        out, err = process.communicate(timeout=110)

    assert (process.returncode, err) == (0, b"")
    assert "Paris" in json.loads(out)["text"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["at once", "while loading", "while answering"])
def test_a_signal_at_any_moment_leaves_no_process(
    smollm2: Path, tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    with start(["ask", "Count to a thousand.", "--model", str(smollm2), "--seed", "1"], tmp_path) as process:
        assert process.stdout is not None
        parent = psutil.Process(process.pid)
        children: list[psutil.Process] = []
        if moment != "at once":
            while not (children := parent.children()):
                pass
        if moment == "while answering":
            assert process.stdout.read(1)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    # Before our first line runs, the signal itself ends the interpreter, with whatever Python says of it.
    expected = {128 + number} if moment != "at once" else {128 + number, -number, 1}
    assert process.returncode in expected
    assert moment == "at once" or err == b""
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


@pytest.mark.slow
def test_an_engine_killed_in_the_middle_leaves_its_text_and_a_sentence(smollm2: Path, tmp_path: Path) -> None:
    with start(["ask", "Count to a thousand.", "--model", str(smollm2), "--seed", "1"], tmp_path) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        (engine,) = psutil.Process(process.pid).children()
        engine.kill()
        rest, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert (first + rest).endswith(b"\n")
    assert b"inglenook: The engine" in err
    assert err.count(b"\n") == 1
