"""The machine that the checks run on: a card, or in a dry run Triton's interpreter on the CPU with tiny shapes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from inglenook.engine.cards.cuda_backend import compiler_lack


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and how large. `dtype` is the compute dtype: the interpreter multiplies bfloat16 wrongly."""

    is_card: bool
    device: torch.device
    dtype: torch.dtype
    num_sms: int
    name: str

    def seconds(self, work: Callable[[], object], repeats: int) -> float:
        """The median time of one `work`, after one that does not count."""
        work()
        times = []
        for _ in range(3 if self.is_card else 1):
            if self.is_card:
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(repeats if self.is_card else 1):
                work()
            if self.is_card:
                torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / (repeats if self.is_card else 1))
        return sorted(times)[len(times) // 2]


def find_machine(*, is_dry_run: bool) -> Machine:
    """The card that PyTorch sees, or the stand-in of a dry run."""
    if is_dry_run:
        return Machine(False, torch.device("cpu"), torch.float16, 8, "a dry run without a card")
    if not torch.cuda.is_available():
        raise SystemExit(
            "No CUDA card is here, so nothing can be checked. --dry-run tries the script itself."
        )
    lack = compiler_lack()
    if lack is not None:
        raise SystemExit(f"Nothing can be checked here: {lack}.")
    properties = torch.cuda.get_device_properties(0)
    return Machine(
        True, torch.device("cuda"), torch.bfloat16, properties.multi_processor_count, properties.name
    )
