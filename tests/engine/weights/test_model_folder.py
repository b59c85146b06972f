"""No link in a model's folder leads a reader out of it; the cache of huggingface_hub, which is made of links, works."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import tokenizers
from tiny_checkpoints import make_checkpoint
from tiny_encoders import make_encoder
from tokenizers import models

from inglenook.engine.encoder_file import is_encoder, open_encoder
from inglenook.engine.errors import ModelFileError
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.loader import open_model
from inglenook.engine.weights.model_folder import holds, inside

CHAT_FILES = (
    "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "chat_template.json", "chat_template.jinja",
)  # fmt: skip
ENCODER_FILES = (
    "config.json", "model.safetensors", "tokenizer.json", "modules.json", "sentence_bert_config.json",
    "config_sentence_transformers.json", "1_Pooling/config.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def chat_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "chat"
    make_checkpoint(folder, "llama")
    vocab = {"<s>": 0, "</s>": 1, **{chr(c): c - 30 for c in range(32, 127)}}
    tokenizers.Tokenizer(models.BPE(vocab, [])).save(str(folder / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).write_text(json.dumps(special))
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
    return folder


@pytest.fixture(scope="module")
def encoder_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "encoder"
    make_encoder(folder, "xlm-roberta")
    (folder / "modules.json").write_text("[]")
    (folder / "sentence_bert_config.json").write_text("{}")
    (folder / "config_sentence_transformers.json").write_text("{}")
    return folder


@pytest.fixture(params=[*(("chat", n) for n in CHAT_FILES), *(("encoder", n) for n in ENCODER_FILES)])
def linked(
    request: pytest.FixtureRequest, tmp_path: Path, chat_source: Path, encoder_source: Path
) -> tuple[str, Path, str]:
    """A kind of model, its folder, and the name of the one file in it that is a link out of the folder."""
    kind, name = request.param
    folder = Path(shutil.copytree(chat_source if kind == "chat" else encoder_source, tmp_path / "model"))
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    return kind, folder, name


def load(kind: str, path: Path) -> None:
    """Open everything that a load opens."""
    if kind == "encoder":
        assert is_encoder(path)
        open_encoder(path).close()
        return
    open_model(path).close()
    Tokenizer.from_folder(path).close()


def test_no_reader_follows_a_link_out_of_the_folder(linked: tuple[str, Path, str]) -> None:
    kind, folder, name = linked

    with pytest.raises(ModelFileError, match=f"{name} is a link to a place outside"):
        load(kind, folder)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    "linked", [("chat", "tokenizer.json"), ("encoder", "1_Pooling/config.json")], indirect=True
)
def test_no_import_follows_a_link_out_of_the_folder(
    linked: tuple[str, Path, str], copy: bool, tmp_path: Path
) -> None:
    _, folder, name = linked
    library = ModelLibrary(tmp_path / "library", shared=())

    with pytest.raises(ModelFileError, match=f"{name} is a link to a place outside"):
        library.add(folder, copy=copy)
    assert library.models() == []


def test_a_copy_takes_nothing_from_outside_that_no_reader_knows(chat_source: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(chat_source, tmp_path / "model"))
    (tmp_path / "secret").write_text("theirs")
    (folder / "notes.txt").symlink_to(tmp_path / "secret")

    with pytest.raises(ModelFileError, match=r"notes.txt is a link to a place outside"):
        ModelLibrary(tmp_path / "library", shared=()).add(folder, copy=True)


def as_hub_cache(source: Path, root: Path) -> Path:
    """Lay a model out as huggingface_hub's cache does; returns the snapshot's folder."""
    repository = root / "models--someone--thing"
    snapshot, blobs = repository / "snapshots" / "0123abcd", repository / "blobs"
    blobs.mkdir(parents=True)
    for number, file in enumerate(sorted(p for p in source.rglob("*") if p.is_file())):
        shutil.copy(file, blobs / f"{number:040x}")
        link = snapshot / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blobs / f"{number:040x}", link.parent))
    return snapshot


@pytest.mark.parametrize("kind", ["chat", "encoder"])
def test_a_snapshot_of_the_hub_cache_is_a_model_by_reference_and_by_copy(
    kind: str, chat_source: Path, encoder_source: Path, tmp_path: Path
) -> None:
    snapshot = as_hub_cache(chat_source if kind == "chat" else encoder_source, tmp_path)
    library = ModelLibrary(tmp_path / "library", shared=())

    load(kind, snapshot)
    referenced = library.add(snapshot)
    load(kind, referenced.path)
    assert referenced.name == "thing"
    copied = library.add(snapshot, name="copied", copy=True).path
    shutil.rmtree(snapshot.parent.parent)

    load(kind, copied)
    assert not any(p.is_symlink() for p in copied.rglob("*"))


@pytest.mark.parametrize("trick", ["blobs are a link", "a blob is a link", "below blobs", "another name"])
def test_what_only_looks_like_the_hub_cache_opens_nothing_else(
    trick: str, chat_source: Path, tmp_path: Path
) -> None:
    snapshot = as_hub_cache(chat_source, tmp_path)
    repository = snapshot.parent.parent
    blobs, link = repository / "blobs", snapshot / "config.json"
    if trick == "blobs are a link":
        blobs.rename(tmp_path / "elsewhere")
        blobs.symlink_to(tmp_path / "elsewhere")
    elif trick == "a blob is a link":
        blob = link.resolve()
        blob.rename(tmp_path / "elsewhere")
        blob.symlink_to(tmp_path / "elsewhere")
    elif trick == "below blobs":
        (blobs / "deeper").mkdir()
        link.resolve().rename(blobs / "deeper" / "file")
        link.unlink()
        link.symlink_to("../../blobs/deeper/file")
    else:
        snapshot = repository.rename(tmp_path / "thing") / "snapshots" / snapshot.name

    with pytest.raises(ModelFileError, match="is a link to a place outside"):
        load("chat", snapshot)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../outside", "deeper/link"])
def test_a_name_or_a_linked_folder_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside").write_text("theirs")
    (tmp_path / "others").mkdir()
    (folder / "deeper").symlink_to(tmp_path / "others")

    with pytest.raises(ModelFileError, match="is a link to a place outside"):
        inside(folder, name)


def test_links_within_a_folder_and_to_a_folder_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "real").write_text("{}")
    (folder / "config.json").symlink_to("real")
    (tmp_path / "link").symlink_to(folder)

    assert holds(tmp_path / "link", "config.json")
    assert not holds(folder, "absent.json")


def test_circles_and_pipes_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")

    assert not holds(tmp_path, "circle")
    assert not holds(tmp_path, "pipe")
