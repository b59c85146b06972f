"""What tests of answers from documents share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from document_shelf import Shelf

from inglenook.storage.parsing.client import ParserClient


@pytest.fixture(scope="module")
def parser() -> Iterator[ParserClient]:
    with ParserClient() as client:
        yield client


@pytest.fixture
def shelf(tmp_path: Path, parser: ParserClient) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path, parser)
    yield shelf
    shelf.db.close()
