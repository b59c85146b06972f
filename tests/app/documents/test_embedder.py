"""The sentence encoder is loaded when it is first wanted, and nobody waits for it for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from encoder_record import installed_encoder
from fake_client import FakeClient
from pytestqt.qtbot import QtBot

from inglenook.app.bridge import EngineBridge
from inglenook.app.documents.embedder import Embedder


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def embedder(qtbot: QtBot, client: FakeClient, tmp_path: Path) -> Iterator[Embedder]:
    bridge = EngineBridge(client)  # type: ignore[arg-type]
    embedder = Embedder(bridge)
    embedder.use(installed_encoder(tmp_path))
    yield embedder
    bridge.close()


def test_it_is_loaded_once_when_it_is_first_wanted(
    qtbot: QtBot, embedder: Embedder, client: FakeClient
) -> None:
    results: list[object] = []
    assert not client.loads

    embedder.embed(["a"], results.append)
    embedder.embed(["b"], results.append)
    qtbot.waitUntil(lambda: len(results) == 2)

    assert [load.slot for load in client.loads] == ["embedder"]


def test_without_one_or_after_a_failed_load_there_are_no_vectors(
    qtbot: QtBot, embedder: Embedder, client: FakeClient, tmp_path: Path
) -> None:
    client.loads_at_once = client.embeds_at_once = False
    results: list[object] = []
    embedder.embed(["a"], results.append)
    client.loads[0].fail("ModelFileError", "damaged")
    client.embeddings[0].fail("NotLoadedError", "no model")
    qtbot.waitUntil(lambda: results == [None])

    embedder.embed(["a"], results.append)
    embedder.use(installed_encoder(tmp_path / "gone"))
    embedder.embed(["a"], results.append)

    assert results == [None, None, None]
    assert embedder.name == ""
    assert len(client.embeddings) == 1


def test_a_vector_that_takes_too_long_is_not_waited_for(
    qtbot: QtBot, embedder: Embedder, client: FakeClient
) -> None:
    client.embeds_at_once = False
    results: list[object] = []

    embedder.embed(["a"], results.append, timeout_s=0.05)
    qtbot.waitUntil(lambda: results == [None])
    client.embedded(client.embeddings[0])
    embedder.embed(["b"], results.append)
    client.embedded(client.embeddings[1])
    qtbot.waitUntil(lambda: len(results) == 2)

    assert client.embeddings[0].is_cancelled


def test_another_encoder_empties_the_slot_and_is_told(
    qtbot: QtBot, embedder: Embedder, client: FakeClient, tmp_path: Path
) -> None:
    embedder.embed(["a"], lambda _vectors: None)
    qtbot.waitUntil(lambda: embedder.state.phase == "ready")
    embedder.use(installed_encoder(tmp_path))

    with qtbot.waitSignal(embedder.changed):
        embedder.use(installed_encoder(tmp_path, "other"))

    assert client.unloads == ["embedder"]
    assert embedder.name == "other"
    assert embedder.tokenizer is None


def test_what_is_embedded_is_said_so_that_an_encoder_gets_its_own_words_before_it(
    qtbot: QtBot, embedder: Embedder, client: FakeClient
) -> None:
    results: list[object] = []

    embedder.embed(["a"], results.append)
    embedder.embed(["b"], results.append, purpose="query")
    qtbot.waitUntil(lambda: len(results) == 2)

    assert client.purposes == ["document", "query"]
