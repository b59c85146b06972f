"""Quantising into the library: whole or not at all, measured on one back end, and what is said where it cannot be done."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_folders import write_tiny_folder

from inglenook.engine.errors import FetchError, LibraryError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.library.model_quantizing import QuantizedModel, quantize_model
from inglenook.engine.library.perplexity_text import TEXT
from inglenook.engine.memory import MemoryState
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.weights.loader import open_model
from inglenook.engine.weights.quantize import Quantization

SHORT = TEXT[:900]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(autouse=True)
def _threads_and_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def quantize(library: ModelLibrary, source: Path, text: str | None = None, **changes: Any) -> QuantizedModel:
    options: dict[str, Any] = {
        "called": "tiny",
        "name": "tiny-qint8",
        "how": Quantization("qint8"),
        "text": text,
        "title": "Tiny",
        "licence": "MIT",
        "progress": lambda stage, done, total: None,
    }
    return quantize_model(library, source, **{**options, **changes})


def test_the_new_model_is_in_the_library_with_what_it_cost(folder: Path, tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path / "models", shared=())
    stages = []

    done = quantize(library, folder, SHORT, progress=lambda stage, *_now: stages.append(stage))

    (model,) = library.models()
    assert model == done.model
    assert (model.record.title, model.record.licence, model.record.origin) == ("Tiny, qint8", "MIT", "tiny")
    with open_model(model.path) as file, open_model(folder) as before:
        assert file.tensor("layers.0.q").format.name == "QINT8_G128"
        assert file.size_bytes == done.plan.size_bytes < before.size_bytes == done.source_bytes
    assert done.words == "native-cpu"
    assert done.change is not None
    assert done.change.num_tokens > 200
    assert done.change.ratio == pytest.approx(1, abs=0.02)
    assert done.change.after == pytest.approx(done.change.before * done.change.ratio)
    assert list(dict.fromkeys(stages)) == ["quantise", "before", "after"]
    # measuring keeps no packed copies
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_models_that_the_native_kernels_do_not_run_are_both_measured_on_pytorch(tmp_path: Path) -> None:
    source = write_tiny_folder(tmp_path / "model", dtype=torch.float32)

    done = quantize(ModelLibrary(tmp_path / "models", shared=()), source, SHORT)

    assert done.words == "torch-cpu"
    assert done.change is not None


@pytest.mark.parametrize("stage", ["quantise", "before", "after"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, LibraryError])
def test_cancelling_at_any_stage_leaves_nothing(
    folder: Path, tmp_path: Path, stage: str, error: type[BaseException]
) -> None:
    library = ModelLibrary(tmp_path / "models", shared=())

    def cancel(now: str, done: int, total: int) -> None:
        if now == stage and done:
            raise error

    with pytest.raises(error):
        quantize(library, folder, SHORT, progress=cancel)

    assert library.models() == []
    assert [p.name for p in library.folder.rglob("*")] == [".partial"]


def test_a_disk_that_fills_up_leaves_nothing_and_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ModelLibrary(tmp_path / "models", shared=())

    def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("inglenook.engine.weights.safetensors_writer.os.fsync", full)

    with pytest.raises(
        LibraryError, match=r"The disk filled up while tiny was quantised into .* Nothing was kept"
    ):
        quantize(library, folder)
    assert [p.name for p in library.folder.rglob("*")] == [".partial"]


def test_a_disk_without_room_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "inglenook.engine.library.fetch.shutil.disk_usage", lambda _p: type("Use", (), {"free": 1000})
    )

    with pytest.raises(FetchError, match=r"tiny-qint8 needs .* of disk, 1\.0 KB are free|tiny-qint8 needs"):
        quantize(ModelLibrary(tmp_path / "models", shared=()), folder)


def test_a_name_that_is_taken_is_refused_and_the_model_stays(folder: Path, tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path / "models", shared=())
    first = quantize(library, folder)

    with pytest.raises(LibraryError, match="There is a model tiny-qint8 already"):
        quantize(library, folder)
    with pytest.raises(LibraryError, match="A model's name has 1 to 64"):
        quantize(library, folder, name="../x")

    assert library.models() == [first.model]


def test_a_model_too_large_to_run_is_made_all_the_same_and_the_reason_is_given(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inglenook.engine.library.perplexity.memory_state", lambda: MemoryState(10**6, 10**6))

    done = quantize(ModelLibrary(tmp_path / "models", shared=()), folder, SHORT)

    assert done.change is None
    assert "tiny needs" in done.words
    assert done.model.path.is_dir()


def test_what_is_no_language_model_is_refused(tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path / "models", shared=())
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "bert"}')

    with pytest.raises(UnsupportedModelError, match="tiny is a sentence encoder"):
        quantize(library, encoder)
    with pytest.raises(ModelNotFoundError):
        quantize(library, tmp_path / "nothing")
