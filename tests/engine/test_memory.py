"""How much memory is free, and what a model needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.engine import memory
from inglenook.engine.errors import NotEnoughMemoryError
from inglenook.engine.kv_cache import KVGroup
from inglenook.engine.memory import check_fit, format_bytes, kv_bytes, memory_state


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 16 GiB, 8 GiB available."""
    write(tmp_path, "proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 8388608 kB\n")
    return tmp_path


def test_free_memory_is_what_the_kernel_calls_available(machine: Path) -> None:
    state = memory_state(machine)

    assert (state.total_bytes, state.free_bytes) == (16 << 30, 8 << 30)


def test_a_container_limit_counts_with_its_file_cache_given_back(machine: Path) -> None:
    write(machine, "proc/self/cgroup", "0::/user/me\n")
    write(machine, "sys/fs/cgroup/user/memory.max", f"{4 << 30}\n")
    write(machine, "sys/fs/cgroup/user/memory.current", f"{3 << 30}\n")
    write(machine, "sys/fs/cgroup/user/memory.stat", f"anon 1\ninactive_file {1 << 30}\n")
    write(machine, "sys/fs/cgroup/user/me/memory.max", "max\n")
    write(machine, "sys/fs/cgroup/user/me/memory.current", "100\n")

    state = memory_state(machine)

    assert (state.total_bytes, state.free_bytes) == (4 << 30, 2 << 30)


def test_the_older_kind_of_control_group_counts_too(machine: Path) -> None:
    write(machine, "proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n")
    write(machine, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", f"{2 << 30}")
    write(machine, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", f"{3 << 30}")

    assert memory_state(machine).free_bytes == 0


@pytest.mark.parametrize("text", ["", "garbage", "0", "0::", "::::::", "4:memory\n"])
def test_odd_control_group_files_are_no_limit(machine: Path, text: str) -> None:
    write(machine, "proc/self/cgroup", text)

    assert memory_state(machine).free_bytes == 8 << 30


def test_without_proc_all_physical_memory_counts(tmp_path: Path) -> None:
    state = memory_state(tmp_path)

    assert state.free_bytes == state.total_bytes > 0


def test_this_machine_has_some_memory() -> None:
    state = memory_state()

    assert 0 < state.free_bytes <= state.total_bytes


def test_kv_bytes_count_whole_blocks_of_all_groups() -> None:
    full = KVGroup((0, 1), 0, num_kv_heads=2, head_size=64, dtype="bfloat16")
    window = KVGroup((2,), 128, num_kv_heads=2, head_size=64, dtype="int8")

    # 17 tokens are 2 blocks of 16; keys and values; int8 has a 4-byte scale a token and head.
    assert kv_bytes((full, window), 17) == 2 * 16 * 2 * (2 * 2 * 64 * 2 + 2 * (64 + 4))


def test_what_does_not_fit_is_refused_with_the_two_numbers() -> None:
    with pytest.raises(NotEnoughMemoryError, match=r"big needs 14\.2 GB, 9\.1 GB are free"):
        check_fit("big", 14_200_000_000, 9_100_000_000)
    check_fit("small", 9_100_000_000, 9_100_000_000)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (98_362_432, "98 MB"),
        (999_400_000, "999 MB"),
        (999_600_000, "1.0 GB"),
        (14_210_000_000, "14.2 GB"),
        (1_500_000_000_000, "1500.0 GB"),
    ],
)
def test_sizes_are_written_as_people_read_them(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_a_quantised_model_needs_its_file_and_a_64th_and_others_two_bytes_a_parameter() -> None:
    kv = 1000
    rest = memory.estimate_listed_need(0, 0, kv)

    assert memory.estimate_listed_need(640_000, 1_000_000, kv) - rest == 650_000
    assert memory.estimate_listed_need(2_000_000, 1_000_000, kv) - rest == 2_000_000
    assert memory.estimate_listed_need(4_000_000, 1_000_000, kv) - rest == 2_000_000
    assert memory.estimate_listed_need(640_000, 1_000_000, 0) == memory.estimate_need(4_000_000, 0)
