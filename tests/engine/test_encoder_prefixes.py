"""The words that some encoders want before questions and passages: found by family, and put there by purpose."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_encoders import make_encoder

from inglenook.engine.client import EngineClient
from inglenook.engine.encoder_file import open_encoder
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.request import LoadOptions


@pytest.fixture(scope="module")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    make_encoder(folder, "xlm-roberta")
    return folder


@pytest.mark.parametrize(
    ("place", "query"),
    [
        ("multilingual-e5-small", "query: "),
        ("e5-small/model", "query: "),
        ("models--intfloat--e5-base-v2/snapshots/0123", "query: "),
        ("multilingual-e5-large-instruct", "Instruct: "),
        ("bge-base-en-v1.5", "Represent this sentence"),
        ("bge-small-zh-v1.5", "为这个句子"),
        ("snowflake-arctic-embed-m", "Represent this sentence"),
        ("snowflake-arctic-embed-l-v2.0", "query: "),
        ("mxbai-embed-large-v1", "Represent this sentence"),
        ("bge-m3", ""),
        ("gte-small", ""),
        ("model", ""),
    ],
)
def test_the_prefix_of_a_known_family_is_found_by_its_name_wherever_it_lies(
    tmp_path: Path, place: str, query: str, tiny_encoder: Path
) -> None:
    folder = tmp_path / place
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(tiny_encoder, folder)

    with open_encoder(folder) as file:
        assert file.prefixes.query[: len(query)] == query
        assert bool(file.prefixes.query) == bool(query)


def test_the_client_says_what_texts_are_and_gets_the_vectors_with_their_prefix(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "e5-tiny"))
    with EngineClient.in_process() as client:
        client.load(folder, "embedder", LoadOptions(num_threads=1, backend="reference")).result(60)

        query = client.embed(["the lamp"], purpose="query").result(30)
        document = client.embed(["the lamp"], purpose="document").result(30)
        plain = client.embed(["query: the lamp", "passage: the lamp"]).result(30)
        bare = client.embed(["the lamp"]).result(30)

    want = np.frombuffer(plain.vectors, "<f4").reshape(2, -1)
    for got, row in ((query, want[0]), (document, want[1])):
        np.testing.assert_allclose(np.frombuffer(got.vectors, "<f4"), row, atol=1e-5)
        assert not np.allclose(np.frombuffer(bare.vectors, "<f4"), row, atol=1e-3)


def test_a_purpose_that_there_is_not_is_refused_by_name() -> None:
    with (
        EngineClient.in_process() as client,
        pytest.raises(InvalidRequestError, match="purpose must be plain, query or document, got 'passage'"),
    ):
        client.embed(["x"], purpose="passage").result(30)  # type: ignore[arg-type] # what is tried
