"""Fixtures for the whole suite: real models and the shared test material, skipped with a reason where missing."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def _model(name: str) -> Path:
    default = Path.home() / ".cache" / "inglenook-test-models"
    path = Path(os.environ.get("INGLENOOK_TEST_MODELS", default)) / name
    if not path.exists():
        pytest.skip(f"the test model {name} is missing; the shared tools/get_models.py fetches it")
    return path


@pytest.fixture(scope="session", autouse=True)
def own_user_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of the tests' own for what the program keeps, so that none of the user's is read or written."""
    folder = tmp_path_factory.mktemp("user")
    names = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            (folder / name).mkdir(mode=0o700)
            patch.setenv(name, str(folder / name))
        yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return _model("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def qwen2() -> Path:
    return _model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")


@pytest.fixture(scope="session")
def minilm() -> Path:
    return _model("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def shared() -> Path:
    path = Path(os.environ.get("INGLENOOK_SHARED", REPOSITORY.parent / "shared"))
    if not path.is_dir():
        pytest.skip("the shared test material is missing; $INGLENOOK_SHARED names its folder")
    return path


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> None:
    """Keep the garbage collector off what earlier modules left: some tests bound the time of making many objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
