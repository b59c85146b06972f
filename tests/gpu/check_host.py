"""What the host does in a decode step: it never waits for the card, compiles nothing, and allocates nothing."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from check_models import load, shapes
from check_operations import Outcome
from machine import Machine
from random_models import Steps

STEPS = 12


def check_host(machine: Machine) -> Iterator[Outcome]:
    """Decode steps by graphs and without, after `prepare`: prompts of any length and place first, as in a chat."""
    spec = next(iter(shapes(machine).values()))
    for uses_graphs in (True, False):
        model = load(machine, spec, "Q4_0", uses_graphs=uses_graphs)
        steps = Steps(spec, 1, 3)
        model.allocate_kv((steps.num_blocks,))
        compiled = compilations(machine)
        # odd lengths, several prompts, a decode row before them
        model.forward(steps.batch({0: 5}))
        model.forward(steps.batch({0: 1, 1: 7, 2: 3}))
        count = STEPS if machine.is_card else 1
        batches = [steps.batch({0: 1, 1: 1, 2: 1}) for _ in range(count)]
        waits = 0
        before = allocations(machine)
        for batch in batches:
            waits += waited(machine, lambda model=model, batch=batch: model.forward(batch))
        words = "by graphs" if uses_graphs else "without graphs"
        yield f"decode steps {words} that wait for the card", waits, 0
        yield f"kernels compiled after prepare, {words}", compilations(machine) - compiled, 0
        if uses_graphs:
            # the copy of the logits that is handed out, and no more
            yield "allocations of a decode step by graphs", (allocations(machine) - before) / count, 1
        model.close()


def waited(machine: Machine, work) -> int:
    """Whether `work` makes the host wait for the card."""
    if not machine.is_card:
        work()
        return 0
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        work()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        print(str(error).splitlines()[0], flush=True)
        return 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return 0


def allocations(machine: Machine) -> int:
    """Blocks that PyTorch's allocator has handed out so far."""
    return torch.cuda.memory_stats()["allocation.all.allocated"] if machine.is_card else 0


def compilations(machine: Machine) -> int:
    """Kernels that Triton holds for this card, over all of ours."""
    if not machine.is_card:
        return 0
    from inglenook.kernels.aot import kernels

    return sum(len(cache[0]) for kernel in kernels() for cache in kernel.device_caches.values())
