"""What this computer offers the engine: facts for `inglenook doctor` and the settings page.

PyTorch is examined in a process of its own (this module run as a program), so that asking neither imports it here nor
ends us when it is broken or built for another processor. Everything else is read from the system's own files.
"""

from __future__ import annotations

import importlib.metadata
import platform
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inglenook.engine.cards.graphics import GraphicsFacts, graphics
from inglenook.engine.cpu import default_num_threads, physical_cores
from inglenook.engine.memory import MemoryState, memory_state

_PROBE_TIMEOUT_S = 60.0
# Flags of /proc/cpuinfo that matter to kernels, under the name we show.
_FEATURES = {
    "avx2": ("avx2",),
    "f16c": ("f16c",),
    "fma": ("fma",),
    "avx512": ("avx512f",),
    "vnni": ("avx512_vnni", "avx_vnni"),
    "bf16": ("avx512_bf16", "bf16"),
    "amx": ("amx_tile",),
    "dotprod": ("asimddp",),
    "i8mm": ("i8mm",),
}


class BackendFacts(msgspec.Struct, frozen=True):
    """One back end: whether it can be used here, and why or why not."""

    name: str
    usable: bool
    reason: str


class TorchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What PyTorch says of itself; `error` is a sentence when it could not be asked, and the rest is then empty."""

    version: str
    devices: tuple[str, ...] = ()
    backends: tuple[BackendFacts, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputerFacts:
    """All that `examine_computer` finds. The first usable back end is the one that "auto" takes."""

    inglenook: str
    python: str
    system: str
    cpu: str
    features: tuple[str, ...]
    cores: int
    threads: int
    memory: MemoryState
    torch: TorchFacts
    graphics: tuple[GraphicsFacts, ...] = ()


def examine_computer() -> ComputerFacts:
    """Gather the facts; takes a second or two, for PyTorch."""
    return ComputerFacts(
        inglenook=importlib.metadata.version("inglenook"),
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        cpu=cpu_name(),
        features=cpu_features(),
        cores=physical_cores(),
        threads=default_num_threads(),
        memory=memory_state(),
        graphics=graphics(),
        torch=examine_torch((sys.executable, "-P", "-m", "inglenook.engine.doctor")),
    )


def cpu_name(root: Path = Path("/")) -> str:
    """The processor's name as the kernel tells it."""
    fields = _cpuinfo(root)
    return fields.get("model name") or fields.get("Hardware") or platform.processor() or "unknown"


def cpu_features(root: Path = Path("/")) -> tuple[str, ...]:
    """The instruction sets that matter to kernels and that this processor has."""
    fields = _cpuinfo(root)
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return tuple(name for name, any_of in _FEATURES.items() if flags.intersection(any_of))


def examine_torch(command: tuple[str, ...], timeout_s: float = _PROBE_TIMEOUT_S) -> TorchFacts:
    """Run the probe and read its answer; whatever goes wrong becomes the `error`."""
    try:
        installed = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return TorchFacts(version="", error="PyTorch is not installed; install inglenook again.")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return TorchFacts(version=installed, error=f"PyTorch did not start within {timeout_s:.0f} s.")
    except OSError as error:
        return TorchFacts(version=installed, error=f"PyTorch could not be started: {error.strerror}.")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        why = " It may be built for another processor." if name == "SIGILL" else ""
        return TorchFacts(version=installed, error=f"PyTorch was ended by {name}.{why}")
    try:
        return msgspec.json.decode(done.stdout, type=TorchFacts)
    except msgspec.DecodeError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason was given"]
        return TorchFacts(version=installed, error=f"PyTorch cannot be used: {last[0]}")


def reason_alone(reason: str) -> str:
    """A back end's reason without how it was chosen, which is told beside it, as a sentence of its own."""
    reason = reason.removeprefix("asked for by name: ")
    return f"{reason[:1].upper()}{reason[1:]}"


def _probe() -> TorchFacts:
    import torch

    from inglenook.engine.backend_choice import backend_statuses

    devices = [f"cpu ({torch.backends.cpu.get_cpu_capability()})"]
    for number in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(number)
        devices.append(
            f"cuda:{number} ({device.name}, {device.total_memory / 1e9:.1f} GB, "
            f"compute capability {device.major}.{device.minor})"
        )
    statuses = (BackendFacts(s.name, s.usable, reason_alone(s.reason)) for s in backend_statuses())
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    version = f"{torch.__version__} ({build} build)"
    return TorchFacts(version=version, devices=tuple(devices), backends=tuple(statuses))


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's fields of /proc/cpuinfo; empty where there is none."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_probe()))
