"""Files whose data is zeros, whole or from some place on, as interrupted copies leave them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf import GGUFReader
from tiny_gguf import write_tiny_gguf

from inglenook.engine.errors import ModelFileError
from inglenook.engine.weights.blank_tensors import blank_notice
from inglenook.engine.weights.loader import open_model


def with_zeros_from_tensor(path: Path, index: int) -> Path:
    """The tiny model with nothing written from one of its tensors on."""
    write_tiny_gguf(path)
    start = sorted(tensor.data_offset for tensor in GGUFReader(path).tensors)[index]
    content = path.read_bytes()
    path.write_bytes(content[:start] + bytes(len(content) - start))
    return path


def test_a_sound_file_is_not_remarked_on(tmp_path: Path) -> None:
    with open_model(write_tiny_gguf(tmp_path / "sound.gguf")) as file:
        assert blank_notice(file) == ""


def test_a_file_of_zeros_is_refused(tmp_path: Path) -> None:
    with (
        open_model(with_zeros_from_tensor(tmp_path / "blank.gguf", 0)) as file,
        pytest.raises(
            ModelFileError, match=r"nothing but zeros in (\d+) of its \1 matrices.*download it again"
        ),
    ):
        blank_notice(file)


def test_a_file_that_ends_in_zeros_is_remarked_on_with_both_numbers(tmp_path: Path) -> None:
    with open_model(with_zeros_from_tensor(tmp_path / "cut.gguf", 5)) as file:
        notice = blank_notice(file)

    assert "Its answers will be wrong" in notice
    blank, matrices = (int(word) for word in notice.split() if word.isdigit())
    assert 0 < blank < matrices
