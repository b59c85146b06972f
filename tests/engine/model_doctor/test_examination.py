"""The model doctor: green for sound models, red with the right finding for each way a file may be spoiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_checkpoints import make_checkpoint, write_gguf
from tiny_encoders import make_encoder

from inglenook.engine.errors import ModelNotFoundError
from inglenook.engine.model_doctor.examination import examine_model
from inglenook.engine.model_doctor.records import DoctorRecords
from inglenook.engine.model_doctor.report import DoctorReport, Finding
from inglenook.engine.weights.loader import rows_in_halves

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Examine = Callable[[Path], DoctorReport]
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}END\n{% endfor %}<|im_start|>assistant\n"
)


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    records = DoctorRecords(tmp_path / "records")
    return lambda path: examine_model(path, num_threads=1, records=records)


def light(report: DoctorReport, name: str) -> str:
    (finding,) = report.of(name)
    return finding.light


def with_template(source: Path, target: Path, template: str) -> Path:
    """A copy with another chat template of the same length, padded by a comment."""
    data = source.read_bytes()
    key = b"tokenizer.chat_template" + (8).to_bytes(4, "little")
    start = data.index(key) + len(key)
    size = int.from_bytes(data[start : start + 8], "little")
    padded = f"{template}{{#{' ' * (size - len(template.encode()) - 4)}#}}".encode()
    assert len(padded) == size
    target.write_bytes(data[: start + 8] + padded + data[start + 8 + size :])
    return target


def with_tensors(source: Path, target: Path, change: Callable[[str, np.ndarray], np.ndarray]) -> Path:
    """A copy whose tensors' rows of bytes went through `change`."""
    data = bytearray(source.read_bytes())
    for tensor in gguf.GGUFReader(source).tensors:
        rows = np.array(tensor.data)
        changed = np.ascontiguousarray(change(tensor.name, rows))
        data[tensor.data_offset : tensor.data_offset + tensor.n_bytes] = changed.tobytes()
    target.write_bytes(data)
    return target


def test_a_sound_model_is_not_red_and_its_speed_is_measured(examine: Examine, smollm2: Path) -> None:
    report = examine(smollm2)

    assert [f for f in report.findings if f.light != "green" and f.name != "speed"] == []
    assert report.measured is not None
    assert report.measured.bits_per_byte < 1.3
    assert report.measured.decode_tokens_per_s > 0
    assert light(examine(smollm2), "record") == "green"


def test_rows_of_queries_in_another_order_turn_it_red(
    examine: Examine, smollm2: Path, tmp_path: Path
) -> None:
    def change(name: str, rows: np.ndarray) -> np.ndarray:
        heads = {"attn_q.weight": 9, "attn_k.weight": 3}.get(name.partition(".")[2].partition(".")[2])
        return rows if heads is None else rows[rows_in_halves(heads, 64, 64)]

    report = examine(with_tensors(smollm2, tmp_path / "swapped.gguf", change))

    assert (report.light, light(report, "order"), light(report, "tensors")) == ("red", "red", "green")


def test_a_tensor_of_zeros_turns_it_red(examine: Examine, smollm2: Path, tmp_path: Path) -> None:
    def change(name: str, rows: np.ndarray) -> np.ndarray:
        return np.zeros_like(rows) if name == "blk.7.ffn_down.weight" else rows

    report = examine(with_tensors(smollm2, tmp_path / "zeros.gguf", change))

    assert report.of("tensors") == (
        Finding("tensors", "red", "layers.7.down of the file: nothing but zeros."),
    )


def test_numbers_that_are_none_turn_it_red(examine: Examine, smollm2: Path, tmp_path: Path) -> None:
    def change(name: str, rows: np.ndarray) -> np.ndarray:
        return np.full_like(rows, np.nan) if name == "blk.3.attn_norm.weight" else rows

    report = examine(with_tensors(smollm2, tmp_path / "nan.gguf", change))

    assert light(report, "tensors") == "red"


def test_a_template_without_end_token_turns_it_red(examine: Examine, smollm2: Path, tmp_path: Path) -> None:
    sound = examine(with_template(smollm2, tmp_path / "a.gguf", CHAT.replace("END", "<|im_end|>")))
    spoiled = examine(with_template(smollm2, tmp_path / "b.gguf", CHAT.replace("END", "")))

    assert (light(sound, "template"), light(spoiled, "template")) == ("green", "red")


def test_a_doubled_bos_turns_it_red(examine: Examine, smollm2: Path, tmp_path: Path) -> None:
    report = examine(
        with_template(smollm2, tmp_path / "bos.gguf", "{{ bos_token }}" + CHAT.replace("END", "<|im_end|>"))
    )

    (finding,) = report.of("bos")
    assert (finding.light, finding.sentence) == ("red", "A prompt begins with 2 BOS tokens instead of one.")


def test_a_truncated_file_turns_it_red(examine: Examine, smollm2: Path, tmp_path: Path) -> None:
    data = smollm2.read_bytes()
    for size in (0, 1000, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.gguf").write_bytes(data[:size])

        report = examine(tmp_path / "cut.gguf")

        assert [f.light for f in report.findings] == ["red"], size


def test_a_dropped_rope_scaling_turns_it_red(examine: Examine, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "yarn", "llama-yarn")
    path = write_gguf(tmp_path / "yarn", tmp_path / "yarn.gguf")
    sound = examine(path)
    data = path.read_bytes()
    assert data.count(b"yarn") == 1

    path.write_bytes(data.replace(b"yarn", b"none"))
    spoiled = examine(path)

    assert (light(sound, "rope"), light(sound, "record")) == ("green", "green")
    assert (light(spoiled, "rope"), light(spoiled, "record")) == ("red", "red")


def test_an_encoder_is_examined_too(examine: Examine, minilm: Path, tmp_path: Path) -> None:
    make_encoder(tmp_path / "noise", "xlm-roberta")

    assert examine(minilm).light == "green"
    (tmp_path / "noise" / "model.safetensors").write_bytes(b"")
    assert examine(tmp_path / "noise").light == "red"


def test_what_is_not_there_is_an_error(examine: Examine, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        examine(tmp_path / "none.gguf")
