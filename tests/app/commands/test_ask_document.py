"""`ask --document`: the files are read, the page is named, and every bad file is a sentence."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pypdf
import pytest
from citations import invent_facts, write_pdf
from fake_client import Asked, FakeClient
from small_pdf import write_pdf as write_small_pdf

from inglenook.app.cli import run
from inglenook.app.commands import ask_command, asked_documents
from inglenook.app.commands.ask_documents import UNSUPPORTED
from inglenook.engine.memory import MemoryState
from inglenook.engine.model_library import ModelLibrary


class Engine(FakeClient):
    """A client that is its own context manager."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    engine = Engine()
    monkeypatch.setattr(ask_command.EngineClient, "child", lambda: engine)
    yield engine
    assert not list(tmp_path.glob("share/inglenook/*.db*"))


@pytest.fixture
def facts_file(tmp_path: Path) -> Path:
    path = tmp_path / "facts.md"
    path.write_text("# Facts\n\nThe mill of Mell is old.\n\nThe tower of Zorb is 34 metres high.\n")
    return path


def say(text: str) -> Callable[[Asked], None]:
    def answer(asked: Asked) -> None:
        asked.say(text, 1)
        asked.finish()

    return answer


def ask(question: str, *arguments: str | Path) -> int:
    return run(["ask", question, "--model", "/no/such.gguf", *map(str, arguments)])


def asked_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_right_page_of_a_pdf_is_a_cited_source(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = invent_facts(40)
    path = write_pdf(tmp_path / "survey.pdf", facts)
    engine.answers = say(facts[24].sentence)

    assert ask(facts[24].question, "--document", path, "--json") == 0

    source = asked_json(capsys)["sources"][0]
    assert (source["file"], source["page"], source["lines"]) == (str(path), 25, None)
    assert (source["cited"], source["verified"]) == (True, True)
    assert source["quote"] == facts[24].sentence


def test_a_text_has_lines_and_goes_in_whole(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 34 metres high.")

    ask("How high is the tower of Zorb?", "--document", facts_file, "--json")

    (source,) = asked_json(capsys)["sources"]
    assert (source["page"], source["lines"]) == (None, [5, 5])
    assert "=== facts.md ===" in engine.requests[0].what.messages[0]["content"]


def test_an_answer_of_its_own_cites_nothing_but_names_the_closest_passage(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("I cannot say.")

    ask("How high is the tower of Zorb?", "--document", facts_file, "--json")

    sources = asked_json(capsys)["sources"]
    assert [(source["cited"], source["verified"]) for source in sources] == [(False, False)]


@pytest.mark.parametrize(
    ("reply", "unsupported", "is_noticed"),
    [
        ("The tower of Zorb is 35 metres high.", ["The tower of Zorb is 35 metres high."], True),
        ("34 metres. Its dome is made of gold.", ["Its dome is made of gold."], False),
        ("<think>The tower of Zorb is 34 metres high.</think>It is 99 metres.", ["It is 99 metres."], True),
        ("The tower of Zorb is 34 metres high.", [], False),
        ("The documents do not say it.", [], True),
    ],
)
def test_what_no_passage_says_is_listed_and_cites_nothing(
    engine: Engine,
    facts_file: Path,
    capsys: pytest.CaptureFixture[str],
    reply: str,
    unsupported: list[str],
    is_noticed: bool,
) -> None:
    engine.answers = say(reply)

    ask("How high is the tower of Zorb?", "--document", facts_file, "--json")

    answer = asked_json(capsys)
    assert answer["unsupported"] == unsupported
    assert (UNSUPPORTED in answer["notices"]) == is_noticed
    assert any(source["cited"] for source in answer["sources"]) != is_noticed


def test_for_people_a_baseless_answer_is_said_to_be_one_with_the_closest_passage(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 35 metres high.")

    ask("How high is the tower of Zorb?", "--document", facts_file)

    out = capsys.readouterr().out.splitlines()
    assert out[1] == UNSUPPORTED
    assert out[2].startswith("[1] closest passage: facts.md, line")


def test_for_people_a_sentence_without_ground_is_repeated(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 34 metres high. Its dome is made of gold.")

    ask("How high is the tower of Zorb?", "--document", facts_file)

    assert "Not found in the documents: “Its dome is made of gold.”" in capsys.readouterr().out


def test_every_key_of_an_answer_is_explained(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 34 metres high.")
    ask("How high is the tower of Zorb?", "--document", facts_file, "--json")
    answer = asked_json(capsys)

    with pytest.raises(SystemExit):
        run(["ask", "--help"])

    explained = set(re.findall(r"\w+", capsys.readouterr().out.split("--json prints")[1]))
    assert {*answer, *answer["sources"][0], "error"} <= explained


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    writer = pypdf.PdfWriter(
        clone_from=write_small_pdf(tmp_path / "plain.pdf", ["The code word is gooseberry."])
    )
    writer.encrypt("schlüssel", algorithm="RC4-128")
    writer.write(tmp_path / "secret.pdf")
    return tmp_path / "secret.pdf"


def test_an_encrypted_file_says_how_its_password_is_given(
    engine: Engine, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("What is the code word?", "--document", secret) == 1

    assert "give --password-file FILE" in capsys.readouterr().err


def test_an_encrypted_file_is_answered_from_with_its_password(
    engine: Engine, secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "word").write_text("schlüssel")
    engine.answers = say("The code word is gooseberry.")

    options = ("--document", secret, "--password-file", tmp_path / "word", "--json")
    assert ask("What is the code word?", *options) == 0

    assert [source["page"] for source in asked_json(capsys)["sources"]] == [1]


def test_for_people_sources_follow_the_answer(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 34 metres high.")

    ask("How high is the tower of Zorb?", "--document", facts_file)

    assert capsys.readouterr().out == (
        "The tower of Zorb is 34 metres high.\n[1] facts.md, line 5: “The tower of Zorb is 34 metres high.”\n"
    )


def test_a_folder_and_a_repeated_file_are_read_once(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.answers = say("The tower of Zorb is 34 metres high.")

    status = ask("Zorb?", "--document", facts_file, "--document", facts_file.parent, "--json")

    assert status == 0
    assert len(asked_json(capsys)["sources"]) == 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.pdf", b"", "This file is empty (0 bytes)."),
        ("broken.pdf", b"%PDF-1.4\nno", "damaged"),
        ("picture.pdf", b"\x89PNG\r\n\x1a\n" + bytes(50), "a picture (PNG)"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence_before_any_model_is_loaded(
    engine: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: bytes,
    sentence: str,
) -> None:
    (tmp_path / name).write_bytes(content)

    assert ask("What?", "--document", tmp_path / name) == 1

    error = capsys.readouterr().err
    assert sentence in error
    assert name in error
    assert error.count("\n") == 1
    assert not engine.loads


def test_a_file_that_is_not_there_is_a_sentence(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("What?", "--document", "/no/such.pdf") == 1

    assert capsys.readouterr().err == "inglenook: /no/such.pdf is not there.\n"


def test_a_folder_without_documents_is_a_sentence(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()

    assert ask("What?", "--document", tmp_path / "none") == 1

    assert "There is nothing to read among the documents." in capsys.readouterr().err


def test_a_prompt_that_is_too_long_is_tried_shorter(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"The tower of Zorb{n} is high. " + f"w{n} " * 200 for n in range(60)))

    def refuse(asked: Asked) -> None:
        if len(asked.what.messages[-1]["content"]) > 1500:
            asked.fail("ContextLengthError", "The prompt has too many tokens.")
        else:
            say("Yes.")(asked)

    engine.answers = refuse

    assert ask("Is the tower of Zorb7 high?", "--document", path, "--json") == 0

    assert len(engine.requests) > 1
    assert asked_json(capsys)["text"] == "Yes."


@pytest.mark.slow
def test_the_real_models_answer_from_a_document(
    smollm2: Path,
    minilm: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    ModelLibrary(tmp_path / "share" / "inglenook" / "models").add(minilm, name="minilm")
    facts = invent_facts(30)
    path = write_pdf(tmp_path / "survey.pdf", facts)

    options = ["--model", str(smollm2), "--json", "--temperature", "0", "--max-tokens", "24"]
    status = run(["ask", facts[20].question, "--document", str(path), *options])

    assert status == 0
    assert 21 in [source["page"] for source in asked_json(capsys)["sources"]]


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Engine:
    """A profile with two documents in two collections, and an engine that answers from the first."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name, text in (
        ("mill 2019", "The mill of Mell is 12 metres high."),
        ("mill 2020", "The mill is 34 metres high."),
    ):
        path = tmp_path / f"{name}.txt"
        path.write_text(text)
        run(["documents", "add", str(path), "--collection", name.split()[1], "--words-only"])
    capsys.readouterr()
    engine = Engine()
    monkeypatch.setattr(ask_command.EngineClient, "child", lambda: engine)
    return engine


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        (["--documents"], ["mill 2019.txt", "mill 2020.txt"]),
        (["--collection", "2019"], ["mill 2019.txt"]),
        (["--name", "*2020*"], ["mill 2020.txt"]),
        (["--year", "2020"], ["mill 2020.txt"]),
        (["--in", "1"], ["mill 2019.txt"]),
    ],
)
@pytest.mark.slow
def test_documents_of_the_profile_are_asked_in_their_scope(
    profile: Engine, capsys: pytest.CaptureFixture[str], scope: list[str], names: list[str]
) -> None:
    profile.answers = say("It is high.")

    assert ask("How high is the mill?", *scope, "--json") == 0

    prompt = str(profile.requests[-1].what)
    assert [name for name in ("mill 2019.txt", "mill 2020.txt") if name in prompt] == names
    assert {Path(source["file"]).name for source in asked_json(capsys)["sources"]} <= set(names)


def test_files_and_documents_of_the_profile_are_not_mixed(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("How high?", "--document", facts_file, "--year", "2020") == 2
    assert "Give one kind" in capsys.readouterr().err


def test_a_profile_without_documents_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(ask_command.EngineClient, "child", Engine)

    assert ask("How high?", "--documents") == 1
    assert "no documents yet" in capsys.readouterr().err


def test_what_the_documents_say_is_never_written(
    engine: Engine, facts_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    seen: list[Path] = []

    def look(asked: Asked) -> None:
        seen.extend(place.rglob("*"))
        say("34 metres.")(asked)

    engine.answers = look

    assert ask("How high is the tower of Zorb?", "--document", facts_file) == 0
    assert engine.requests
    assert not seen


def test_documents_that_would_fill_the_memory_end_with_a_sentence(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked_documents, "memory_state", lambda: MemoryState(1 << 20, 1 << 17))

    assert ask("How high?", "--document", facts_file) == 1
    assert "more than half of what was free" in capsys.readouterr().err


def test_a_document_that_was_not_read_is_told_in_json_too(
    engine: Engine, facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (facts_file.parent / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    engine.answers = say("34 metres.")

    assert ask("How high is the tower of Zorb?", "--document", facts_file.parent, "--json") == 0
    assert any("broken.pdf" in notice for notice in asked_json(capsys)["notices"])
