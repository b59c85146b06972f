"""The graphics hardware of this computer and what it does here, in a sentence each. Torch-free, and asks no driver.

Only NVIDIA cards run models: the kernels are written, compiled and checked for them. With any other hardware everything
runs on the processor, with the same answers.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

_DISPLAY_CLASS = "0x03"  # of PCI: display controllers
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
_ELSEWHERE = (
    "is not used: the kernels for cards are for NVIDIA's. Chat, documents, adapters and the doctor run on the processor, "
    "with the same answers; several cards and layers on a card do not exist here"
)
_SENTENCES = {
    "NVIDIA": "can run models; the line of the back end cuda says whether it does, and why",
    "AMD": f"{_ELSEWHERE}. PyTorch's ROCm build changes nothing",
    "Intel": f"{_ELSEWHERE}. PyTorch's XPU build changes nothing",
    "Apple": f"{_ELSEWHERE}. PyTorch's MPS is not used",
}


@dataclass(frozen=True, slots=True)
class GraphicsFacts:
    """One display controller: whose it is with its PCI numbers, and what it does here (no full stop)."""

    name: str
    sentence: str

    @property
    def is_nvidia(self) -> bool:
        """Whether it can run models."""
        return self.name.startswith("NVIDIA")


def graphics(root: Path = Path("/"), system: str = "", machine: str = "") -> tuple[GraphicsFacts, ...]:
    """List the hardware by the kernel's own files under `root`; on Apple's processors their graphics, elsewhere nothing."""
    if (system or platform.system()) == "Darwin":
        is_apple = (machine or platform.machine()) == "arm64"
        return (GraphicsFacts("Apple", _SENTENCES["Apple"]),) if is_apple else ()
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        kind, vendor, number = (_read(device / name) for name in ("class", "vendor", "device"))
        if kind.startswith(_DISPLAY_CLASS) and vendor in _VENDORS:
            name = _VENDORS[vendor]
            found.append(GraphicsFacts(f"{name} ({vendor[2:]}:{number[2:]})", _SENTENCES[name]))
    return tuple(found)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
