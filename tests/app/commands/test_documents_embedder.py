"""`documents embedder`: the encoder is changed when all vectors are there, and stays when anything ends that early."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_client import FakeClient
from window_desk import put_model

from inglenook.app.cli import run
from inglenook.app.commands import documents_profile
from inglenook.engine.errors import EngineStoppedError
from inglenook.storage.database import Database
from inglenook.storage.vectors import Vectors

Run = Callable[..., tuple[int, Any]]


class Engine(FakeClient):
    """A client that is its own context manager; `ends_with` is raised in place of vectors."""

    ends_with: BaseException | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        """Stay open for the next command."""

    def embed(self, *arguments: Any, **more: Any) -> Any:
        if self.ends_with is not None:
            raise self.ends_with
        return super().embed(*arguments, **more)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A profile with two encoders and a document whose vectors "old" has made."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    engine = Engine()
    monkeypatch.setattr(documents_profile.EngineClient, "child", lambda: engine)
    profile = tmp_path / "share" / "inglenook"
    for name, kind in (("old", "embedding"), ("new", "embedding"), ("chatty", "chat")):
        put_model(tmp_path / "made", name, kind=kind)
    profile.mkdir(parents=True, exist_ok=True)
    (tmp_path / "made" / "data" / "models").rename(profile / "models")
    note = tmp_path / "note.txt"
    note.write_text("The heron stands on one leg.")
    assert run(["documents", "add", str(note), "--words-only"]) == 0
    assert run(["documents", "embedder", "old"]) == 0
    return engine


def counts(tmp_path: Path) -> dict[str, int]:
    with Database.open(tmp_path / "share" / "inglenook" / "history.db") as db:
        return Vectors(db).counts()


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_change_leaves_the_vectors_of_the_new_one_alone(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["documents", "embedder", "new", "--json"]) == 0

    assert said(capsys) == {
        "embedder": "new",
        "passages": 1,
        "vectors": {"new": 1},
        "installed": ["new", "old"],
    }
    assert counts(tmp_path) == {"new": 1}
    assert run(["documents", "embedder"]) == 0
    assert "new: 1 of 1 passages can be found by meaning.\nAlso here: old." in capsys.readouterr().out


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EngineStoppedError("The engine ended.")])
def test_what_ends_early_keeps_the_old_one(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    engine.ends_with = error
    with Database.open(tmp_path / "share" / "inglenook" / "history.db") as db:
        Vectors(db).add("new", [99], np.ones((1, 8), np.float32))

    assert run(["documents", "embedder", "new"]) != 0

    assert counts(tmp_path) == {"old": 1}
    assert run(["documents", "embedder", "--json"]) == 0
    assert said(capsys)["embedder"] == "old"


@pytest.mark.parametrize(
    ("name", "sentence"), [("chatty", "is a chat model"), ("none", "There is no model or folder none")]
)
def test_what_is_no_encoder_is_refused(
    engine: Engine, capsys: pytest.CaptureFixture[str], name: str, sentence: str
) -> None:
    assert run(["documents", "embedder", name]) == 1

    assert sentence in capsys.readouterr().err
