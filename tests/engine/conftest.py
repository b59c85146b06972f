"""The tiny model as a file, and an engine in this process that has it loaded: shared by a module's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.engine.client import EngineClient
from inglenook.engine.request import LoadOptions

ONE_THREAD = LoadOptions(backend="reference", num_threads=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def tiny_client(tiny: Path) -> Iterator[EngineClient]:
    with EngineClient.in_process() as client:
        client.load(tiny, options=ONE_THREAD).result(30)
        yield client
