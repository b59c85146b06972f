"""The GGUF reader: sound files agree with a second reader, everything else is a sentence."""

from __future__ import annotations

import os
import random
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from inglenook.engine.errors import ModelFileError, ModelNotFoundError, UnsupportedModelError
from inglenook.engine.weights.gguf import GGUFFile
from inglenook.engine.weights.loader import open_model

U8, U32, STRING, ARRAY = 0, 4, 8, 9
# seconds of this process, so that a busy machine does not matter
MAX_SECONDS, MAX_BYTES = 1.0, 200e6


def opens(path: Path) -> bool:
    """Open and read all tensors: True, or False for a ModelFileError; any other error fails the test."""
    try:
        with open_model(path) as model:
            for name in model.names:
                model.tensor(name)
    except ModelFileError:
        return False
    return True


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_metadata_and_tensors_equal_those_of_the_gguf_package(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    path = make_gguf().write(tmp_path / "tiny.gguf")
    oracle = gguf.GGUFReader(path)

    with GGUFFile(path) as ours:
        for key, entry in oracle.fields.items():
            if key.startswith("GGUF."):
                continue
            value = ours.metadata[key]
            assert entry.contents() == (value.tolist() if isinstance(value, np.ndarray) else value), key
        assert len(ours.metadata) == len(oracle.fields) - 3
        assert list(ours.tensors) == [t.name for t in oracle.tensors]
        for theirs in oracle.tensors:
            tensor = ours.tensor(theirs.name)
            assert tensor.format.name == theirs.tensor_type.name
            assert tensor.shape == tuple(int(n) for n in reversed(theirs.shape))
            assert tensor.data.tobytes() == theirs.data.tobytes()


def test_version_2_and_other_alignments_are_read(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    writer = make_gguf().key("general.alignment", U32, 64)
    writer.version, writer.alignment = 2, 64

    assert opens(writer.write(tmp_path / "tiny.gguf"))


def test_closing_twice_and_a_tensor_that_outlives_the_file_are_fine(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    file = GGUFFile(make_gguf().write(tmp_path / "tiny.gguf"))
    tensor = file.tensor("output_norm.weight")

    file.close()
    file.close()

    assert tensor.data.size == 256
    with pytest.raises(ModelFileError, match=r"tiny.gguf has no tensor nothing\.weight\."):
        GGUFFile(tmp_path / "tiny.gguf").tensor("nothing.weight")


EDGES = (0, 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**62, 2**63, 2**64 - 2, 2**64 - 1)


def test_every_header_field_at_its_edges_gives_a_sentence_in_time_and_memory(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    writer = make_gguf()
    sound = writer.build()
    path = writer.write(tmp_path / "edge.gguf")
    tried = 0
    tracemalloc.start()
    try:
        # of a list's texts the first speaks for all
        fields = {m: place for m, place in writer.marks.items() if "[" not in m or m.endswith("[0]")}
        for mark, (at, size) in fields.items():
            for edge in (value for value in EDGES if value < 1 << 8 * size):
                overwrite(path, at, edge.to_bytes(size, "little"))
                tracemalloc.reset_peak()
                started = time.process_time()
                opens(path)
                assert time.process_time() - started < MAX_SECONDS, (mark, edge)
                assert tracemalloc.get_traced_memory()[1] < MAX_BYTES, (mark, edge)
                tried += 1
            overwrite(path, at, sound[at : at + size])
    finally:
        tracemalloc.stop()

    assert tried > 1000


def test_a_file_cut_at_any_byte_is_refused(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    writer = make_gguf()
    sound = writer.build()
    header = max(at + size for at, size in writer.marks.values())
    path = writer.write(tmp_path / "cut.gguf")

    assert opens(path)
    for size in [len(sound) - 1, *range(len(sound) - 500, header, -997), *range(header, -1, -1)]:
        os.truncate(path, size)
        assert not opens(path), size


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 1500), pytest.param(1, 10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_changes_of_the_header_only_ever_give_sentences(
    make_gguf: Callable[..., Any], tmp_path: Path, seed: int, rounds: int
) -> None:
    writer = make_gguf()
    sound = writer.build()
    header = max(at + size for at, size in writer.marks.values())
    path = writer.write(tmp_path / "mutant.gguf")
    rng = random.Random(seed)
    refused = 0
    for _ in range(rounds):
        mutant = bytearray(sound[:header])
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(header)
            kind = rng.randrange(3)
            if kind == 0:
                mutant[at] = rng.randrange(256)
            elif kind == 1:
                mutant[at] ^= 1 << rng.randrange(8)
            else:
                mutant[at : at + 9] = rng.randbytes(9)
        overwrite(path, 0, mutant)
        started = time.process_time()
        refused += not opens(path)
        assert time.process_time() - started < MAX_SECONDS

    assert refused > rounds // 2


def hostile_list(writer: Any, path: Path) -> Path:
    """Ends in as many texts as are allowed, of the most memory for their bytes; the tensor table is missing."""
    writer.key("tokenizer.ggml.merges", ARRAY, (STRING, []))
    sound = writer.build()
    at, _ = writer.marks["count of tokenizer.ggml.merges"]
    text = "ab😀".encode()
    entry = len(text).to_bytes(8, "little") + text
    path.write_bytes(sound[:at] + (1_190_000).to_bytes(8, "little") + entry * 1_190_000 + bytes(40 << 20))
    return path


def test_a_hostile_list_of_a_million_texts_is_refused_in_time(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    path = hostile_list(make_gguf(), tmp_path / "many.gguf")

    started = time.process_time()
    assert not opens(path)
    assert time.process_time() - started < MAX_SECONDS


@pytest.mark.slow
def test_a_hostile_list_of_a_million_texts_is_refused_in_memory(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    path = hostile_list(make_gguf(), tmp_path / "many.gguf")
    tracemalloc.start()
    try:
        assert not opens(path)
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("mark", "value", "message"),
    [
        ("version", 1, "version 1; versions 2 and 3"),
        ("version", 3 << 24, "big-endian"),
        ("n_tensors", 10**9, "number of tensors is 1,000,000,000; at most 20,000"),
        ("n_kv", 10_001, "number of keys is 10,001; at most 10,000"),
        ("key length of general.name", 10**6, "a key's name has 1,000,000 bytes; at most 255"),
        ("length of general.name", 5 * 10**6, r"general.name needs 5,000,000 bytes, [\d,]+ are left"),
        ("type of general.name", 13, "general.name has the value type 13"),
        ("count of tokenizer.ggml.tokens", 2**24, r"tokenizer.ggml.tokens with 16,777,216 texts needs"),
        ("count of tokenizer.ggml.scores", 2**40, r"tokenizer.ggml.scores with 1,099,511,627,776 numbers needs"),
        ("element type of tokenizer.ggml.scores", ARRAY, "tokenizer.ggml.scores is an array of arrays"),
        ("value of general.alignment", 48, "general.alignment is 48; it must be a power of two"),
        ("value of general.alignment", 0, "general.alignment is 0; it must be from 8 to 65,536"),
        ("axes of token_embd.weight", 5, "token_embd.weight has 5 axes; 1 to 4"),
        ("axis 0 of token_embd.weight", 0, r"token_embd.weight has the shape \(40, 0\)"),
        ("axis 0 of token_embd.weight", 65, "rows of 65 elements; Q8_0 needs a multiple of 32"),
        ("axis 1 of blk.1.ffn_down.weight", 2**40, r"incomplete: it needs [\d,.]+ TB .* has [\d.]+ KB"),
        ("kind of token_embd.weight", 17, "token_embd.weight has the type IQ2_XS, which is not supported"),
        ("kind of token_embd.weight", 77, "token_embd.weight has the type number 77"),
        ("offset of output_norm.weight", 8, "is at 8; it must be at a multiple of 32"),
        ("offset of output_norm.weight", 64, "token_embd.weight and output_norm.weight overlap"),
        ("value of tokenizer.ggml.add_bos_token", 2, "add_bos_token is true or false and must be 0 or 1, got 2"),
    ],
)  # fmt: skip
def test_an_error_names_the_key_and_the_numbers(
    make_gguf: Callable[..., Any], tmp_path: Path, mark: str, value: int, message: str
) -> None:
    writer = make_gguf()
    data = bytearray(writer.build())
    at, size = writer.marks[mark]
    data[at : at + size] = value.to_bytes(size, "little")
    (tmp_path / "bad.gguf").write_bytes(data)

    with pytest.raises(ModelFileError, match=message):
        GGUFFile(tmp_path / "bad.gguf")


def test_keys_and_tensors_that_stand_there_twice_are_refused(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    writer = make_gguf()
    writer.keys.append(("general.name", STRING, "Again"))
    with pytest.raises(ModelFileError, match=r"the key general.name stands there twice"):
        GGUFFile(writer.write(tmp_path / "twice.gguf"))

    writer = make_gguf()
    writer.tensors.append(writer.tensors[-1])
    with pytest.raises(ModelFileError, match=r"the tensor \S+ stands there twice"):
        GGUFFile(writer.write(tmp_path / "twice.gguf"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (bytes(100_000), "begins with 4.1 KB of zeros: an interrupted copy or download"),
        (b"<!DOCTYPE html><html>404</html>", "is a web page"),
        (b"\n  <HTML>login</HTML>", "is a web page"),
        (b"hello, I am a text\n", "is a text file"),
        (b"version https://git-lfs\noid sha256:0\n", "is a Git LFS pointer"),
        (b"\x80\x04\x95\x0c\x00", "is a Python pickle.*this format can run code"),
        (b"\x93NUMPY\x01\x00", "is a NumPy file.*this format can run code"),
        (b"\x1f\x8b\x08\x00", "is a gzip archive"),
        (b"\x89HDF\r\n", "Keras.*this format can run code"),
        (b"tjgg\x01\x00\x00\x00", "GGML file from before GGUF"),
        ((2).to_bytes(8, "little") + b"{}", "is a safetensors file, not a GGUF file"),
        (b"GGUF", "incomplete or damaged: the version needs 4 bytes, 0 are left"),
        (b"\xfe\xed\xfa\xce\x00", "begins with the bytes fe ed fa ce"),
    ],
)
def test_a_wrong_file_is_named_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(ModelFileError, match=message):
        open_model(path)


def test_archives_of_pickles_are_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02")
    with pytest.raises(UnsupportedModelError, match="this format can run code"):
        open_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.txt", b"x")
    with pytest.raises(ModelFileError, match="is a zip archive"):
        open_model(path)
    (tmp_path / "old.pkl").write_bytes(b"(lp0\n.")
    with pytest.raises(UnsupportedModelError, match="this format can run code"):
        open_model(tmp_path / "old.pkl")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")

    with pytest.raises(ModelFileError, match="not an ordinary file"):
        open_model(tmp_path / "pipe.gguf")
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        open_model(Path("/dev/zero"))
    with pytest.raises(ModelNotFoundError, match="no file"):
        open_model(tmp_path / "absent.gguf")
    with pytest.raises(ModelFileError, match="cannot be opened"):
        open_model(Path("a\0b"))


@pytest.mark.slow
def test_an_incomplete_download_says_what_it_needs_and_has(smollm2: Path, tmp_path: Path) -> None:
    (tmp_path / "half.gguf").write_bytes(smollm2.read_bytes()[:12_100_000])

    with pytest.raises(ModelFileError, match=r"it needs 98.4 MB \(.*\), has 12.1 MB"):
        open_model(tmp_path / "half.gguf")


@pytest.mark.slow
def test_a_vocabulary_of_150_000_tokens_is_read_in_half_a_second(qwen2: Path) -> None:
    best = 9.0
    for _ in range(3):
        started = time.process_time()
        GGUFFile(qwen2).close()
        best = min(best, time.process_time() - started)

    assert best < 0.5
