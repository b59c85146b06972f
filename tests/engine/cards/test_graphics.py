"""The graphics hardware as the kernel's files tell it, and what each kind does here."""

from pathlib import Path

import pytest

from inglenook.engine.cards.graphics import graphics


def write_device(root: Path, place: str, kind: str, vendor: str, device: str = "0x1234") -> None:
    folder = root / "sys" / "bus" / "pci" / "devices" / place
    folder.mkdir(parents=True)
    for name, text in (("class", kind), ("vendor", vendor), ("device", device)):
        (folder / name).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("vendor", "name", "words"),
    [
        ("0x1002", "AMD (1002:1234)", "is not used.*run on the processor.*ROCm build changes nothing"),
        ("0x8086", "Intel (8086:1234)", "is not used.*XPU build changes nothing"),
        ("0x10de", "NVIDIA (10de:1234)", "can run models"),
    ],
)
def test_each_makers_hardware_has_its_sentence(tmp_path: Path, vendor: str, name: str, words: str) -> None:
    import re

    write_device(tmp_path, "0000:01:00.0", "0x030000", vendor)

    (facts,) = graphics(tmp_path, "Linux")

    assert facts.name == name
    assert re.search(words, facts.sentence)
    assert facts.is_nvidia == (vendor == "0x10de")


def test_only_display_controllers_count_in_their_order(tmp_path: Path) -> None:
    write_device(tmp_path, "0000:00:02.0", "0x030000", "0x8086")
    write_device(tmp_path, "0000:00:1f.0", "0x060100", "0x8086")
    write_device(tmp_path, "0000:01:00.0", "0x030200", "0x10de")  # a card without a screen
    write_device(tmp_path, "0000:02:00.0", "0x030000", "0x1a03")  # a server's own, which nobody computes on

    assert [facts.name[:5] for facts in graphics(tmp_path, "Linux")] == ["Intel", "NVIDI"]


def test_apples_graphics_are_named_and_a_computer_without_any_has_none(tmp_path: Path) -> None:
    (apple,) = graphics(tmp_path, "Darwin", "arm64")

    assert "MPS is not used" in apple.sentence
    assert graphics(tmp_path, "Darwin", "x86_64") == graphics(tmp_path, "Linux") == ()
