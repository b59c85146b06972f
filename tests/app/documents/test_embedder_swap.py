"""Another sentence encoder is built beside the one in use, takes over when it is complete, and leaves nothing when not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.documents.embedder_choice import embedder_in_use
from inglenook.app.window.theme import Theme
from inglenook.engine.model_library import InstalledModel, ModelRecord
from inglenook.storage.vectors import Vectors

NEXT_SLOT = "next embedder"


def installed(folder: Path, name: str, kind: str = "embedding", *, is_there: bool = True) -> InstalledModel:
    record = ModelRecord(
        title=name,
        kind=kind,  # type: ignore[arg-type]
        licence="",
        origin="",
        size_bytes=0,
        num_parameters=0,
        kv_bytes_per_token=0,
    )
    if is_there:
        (folder / name).mkdir()
    return InstalledModel(name, record, folder / name, False)


@pytest.mark.parametrize(
    ("chosen", "counts", "used"),
    [
        ("", {}, "small"),
        ("large", {}, "large"),
        ("", {"large": 7, "gone": 90}, "large"),
        ("small", {"large": 7}, "small"),
        ("gone", {"large": 7}, "large"),
        ("chat", {}, "small"),
        ("", {"large": 0}, "small"),
    ],
)
def test_encoder_in_use_is_the_chosen_one_or_the_one_that_the_vectors_are_of(
    tmp_path: Path, chosen: str, counts: dict[str, int], used: str
) -> None:
    small, large = installed(tmp_path, "small"), installed(tmp_path, "large")
    models = [small, large, installed(tmp_path, "gone", is_there=False), installed(tmp_path, "chat", "chat")]

    assert embedder_in_use(models, small, chosen=chosen, counts=counts).name == used  # type: ignore[union-attr]


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    """A window with two encoders and a document whose vectors the first has made."""
    put_model(tmp_path)
    put_model(tmp_path, "old-encoder", kind="embedding")
    put_model(tmp_path, "new-encoder", kind="embedding")
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    note = tmp_path / "note.txt"
    note.write_text("The heron stands on one leg.")
    desk.drop(note)
    qtbot.waitUntil(lambda: list(counts(desk)) == [desk.application.embedder.name], timeout=20_000)
    if desk.application.embedder.name != "old-encoder":
        choose(desk, "old-encoder")
        qtbot.waitUntil(lambda: counts(desk) == {"old-encoder": 1}, timeout=20_000)
    yield desk
    desk.close()


def counts(desk: WindowDesk) -> dict[str, int]:
    found: list[dict[str, int]] = []
    desk.application.tasks.read(lambda db: Vectors(db).counts(), found.append)
    desk.qtbot.waitUntil(lambda: bool(found))
    return found[0]


def choose(desk: WindowDesk, name: str) -> None:
    desk.window.sidebar.documents.embedder_chosen.emit(name)


def menu_words(desk: WindowDesk) -> list[str]:
    documents = desk.window.sidebar.documents
    documents.scope_menu.aboutToShow.emit()
    submenu = next(a for a in documents.scope_menu.actions() if a.text() == "Find by meaning with").menu()
    return [("✓ " if action.isChecked() else "") + action.text() for action in submenu.actions()]


def test_old_one_answers_until_the_new_one_is_complete(desk: WindowDesk) -> None:
    client = desk.client
    client.embeds_at_once = False
    choose(desk, "new-encoder")
    desk.qtbot.waitUntil(lambda: bool(client.embeddings) and client.embeddings[-1].slot == NEXT_SLOT)
    building = client.embeddings[-1]

    assert desk.application.embedder.name == "old-encoder"
    assert menu_words(desk) == ["new-encoder", "✓ old-encoder", "Stop the change to new-encoder"]
    assert "Changing to new-encoder: 0 of 1" in desk.window.sidebar.documents._embedding.text()
    desk.send("What does the heron do?")
    desk.qtbot.waitUntil(lambda: client.embeddings[-1] is not building)
    assert client.embeddings[-1].slot == "embedder"
    client.embeds_at_once = True
    client.embedded(client.embeddings[-1])
    client.embedded(building)

    desk.qtbot.waitUntil(lambda: desk.application.embedder.name == "new-encoder")
    desk.qtbot.waitUntil(lambda: counts(desk) == {"new-encoder": 1})
    assert menu_words(desk) == ["✓ new-encoder", "old-encoder"]
    assert desk.application.settings.value("documents.embedder") == "new-encoder"
    assert desk.application.settings.value("documents.next_embedder") == ""
    assert desk.window.sidebar.documents._embedding.isHidden()


def test_cancelled_change_leaves_the_old_vectors_and_none_of_the_new(desk: WindowDesk) -> None:
    desk.client.embeds_at_once = False
    choose(desk, "new-encoder")
    desk.qtbot.waitUntil(lambda: desk.client.embeddings[-1].slot == NEXT_SLOT)
    desk.application.tasks.write(lambda db: Vectors(db).add("new-encoder", [1], np.ones((1, 8), np.float32)))

    choose(desk, "")

    desk.qtbot.waitUntil(lambda: counts(desk) == {"old-encoder": 1})
    desk.client.embedded(desk.client.embeddings[-1])
    desk.qtbot.waitUntil(lambda: NEXT_SLOT in desk.client.unloads)
    assert counts(desk) == {"old-encoder": 1}
    assert desk.application.embedder.name == "old-encoder"
    assert desk.application.settings.value("documents.next_embedder") == ""


def test_encoder_that_cannot_be_loaded_leaves_the_old_one(desk: WindowDesk) -> None:
    desk.client.loads_at_once = desk.client.embeds_at_once = False
    choose(desk, "new-encoder")
    desk.qtbot.waitUntil(lambda: desk.client.loads[-1].slot == NEXT_SLOT)

    desk.client.loads[-1].fail("ModelFileError", "The file is damaged.")
    for asked in desk.client.embeddings:
        if asked.slot == NEXT_SLOT:
            asked.fail("ModelNotLoadedError", "There is no encoder.")

    desk.qtbot.waitUntil(lambda: "new-encoder could not be loaded" in desk.window.banner._text.text())
    assert counts(desk) == {"old-encoder": 1}
    assert desk.application.embedder.name == "old-encoder"


def test_change_that_was_cut_off_goes_on_at_the_next_start(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    desk.client.embeds_at_once = False
    choose(desk, "new-encoder")
    desk.qtbot.waitUntil(lambda: desk.client.embeddings[-1].slot == NEXT_SLOT)
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    try:
        qtbot.waitUntil(lambda: again.application.embedder.name == "new-encoder", timeout=20_000)
        qtbot.waitUntil(lambda: counts(again) == {"new-encoder": 1})
    finally:
        again.close()
