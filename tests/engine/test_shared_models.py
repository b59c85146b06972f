"""Models that a system package brings for every user."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from inglenook.engine.errors import LibraryError
from inglenook.engine.model_library import ModelLibrary, ModelRecord, shared_model_folders

RECORD = ModelRecord(
    title="Tiny", kind="chat", licence="MIT", origin="", size_bytes=4, num_parameters=1, kv_bytes_per_token=1
)


def put(folder: Path, name: str, title: str = "Tiny") -> Path:
    """A model as a package installs it."""
    entry = folder / name
    entry.mkdir(parents=True)
    (entry / "model.gguf").write_bytes(b"GGUF")
    (entry / "model.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(RECORD, title=title)))
    return entry


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "system" / "inglenook" / "models"


@pytest.fixture
def library(tmp_path: Path, shared: Path) -> ModelLibrary:
    return ModelLibrary(tmp_path / "own", shared=(tmp_path / "nothing", shared))


def test_shared_models_are_listed_and_found_without_a_folder_of_ones_own(
    library: ModelLibrary, shared: Path
) -> None:
    entry = put(shared, "tiny")

    (model,) = library.models()

    assert (model.name, model.is_shared, model.path) == ("tiny", True, entry / "model.gguf")
    assert library.get("tiny") == model
    assert library.preferred("chat", 1 << 30) == model
    assert not library.folder.exists()


def test_a_model_of_ones_own_hides_the_shared_one(library: ModelLibrary, shared: Path) -> None:
    put(shared, "tiny")
    put(library.folder, "tiny", title="Mine")

    assert [(m.record.title, m.is_shared) for m in library.models()] == [("Mine", False)]


def test_a_shared_model_is_not_removed_and_the_sentence_says_who_can(
    library: ModelLibrary, shared: Path
) -> None:
    entry = put(shared, "tiny")

    with pytest.raises(LibraryError, match="belongs to every user"):
        library.remove("tiny")

    assert (entry / "model.gguf").exists()


def test_a_shared_model_without_a_sound_record_is_passed_over_and_not_written_to(
    library: ModelLibrary, shared: Path
) -> None:
    entry = put(shared, "tiny")
    (entry / "model.json").write_text("{")

    assert library.models() == []
    assert sorted(p.name for p in entry.iterdir()) == ["model.gguf", "model.json"]


def test_fetching_what_is_shared_downloads_nothing(library: ModelLibrary, shared: Path) -> None:
    put(shared, "smollm2-135m")

    model = library.fetch("smollm2-135m", lambda _done, _total: None)

    assert model.is_shared


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["/usr/local/share", "/usr/share"]),
        ({"XDG_DATA_DIRS": ""}, ["/usr/local/share", "/usr/share"]),
        ({"XDG_DATA_DIRS": "relative:/a::/b"}, ["/a", "/b"]),
    ],
)
def test_shared_folders_follow_the_xdg_specification(given: dict[str, str], expected: list[str]) -> None:
    assert shared_model_folders(given) == tuple(Path(d) / "inglenook" / "models" for d in expected)
