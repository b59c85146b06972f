"""`ProcessRanks`: sums over the cards that share a model, by torch.distributed; NCCL between cards, gloo on the CPU.

The processes find each other through a file in a private folder, and talk over the loopback interface and, with NCCL, over
the links between cards: nothing leaves this computer, and nothing is opened unless several cards were asked for.
A process that ends closes its connections, so gloo tells the others at once; NCCL's waits are ended by `abort`.
"""

# mypy: disable-error-code="attr-defined"
# torch.distributed hands these names out without exporting them

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import torch
from torch import distributed

_LOOPBACK_ADDRESS, _LOOPBACK_INTERFACE = "127.0.0.1", "lo"


class ProcessRanks:
    """This process among those that share a model; see `Ranks`. All calls come from one thread but `abort`.

    rendezvous: a path that all have in common and that does not exist yet.  timeout_s: of one sum.

    Raises:
        RuntimeError: the others did not come in time.
    """

    def __init__(self, rendezvous: Path, rank: int, count: int, *, is_card: bool, timeout_s: float) -> None:
        self.rank, self.count = rank, count
        timeout = datetime.timedelta(seconds=timeout_s)
        store = distributed.FileStore(str(rendezvous), count)
        store.set_timeout(timeout)
        self._group = _nccl(store, rank, count) if is_card else _gloo(store, rank, count, timeout)

    def add_up(self, x: torch.Tensor) -> None:
        """Replace x by its sum over all processes."""
        self._group.allreduce([x]).wait()

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        """Return x [R, N] of all, side by side: [R, count * N]."""
        rows, columns = x.shape
        together = x.new_empty((self.count * rows, columns))
        self._group._allgather_base(together, x).wait()
        return together.view(self.count, rows, columns).transpose(0, 1).reshape(rows, self.count * columns)

    def abort(self) -> None:
        """End what waits for the others, with an error; from any thread."""
        self._group.abort()


# Any: what a process group is called differs between PyTorch's builds
def _gloo(store: Any, rank: int, count: int, timeout: datetime.timedelta) -> Any:
    options = distributed.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._devices = [distributed.ProcessGroupGloo.create_device(hostname=_LOOPBACK_ADDRESS)]
    return distributed.ProcessGroupGloo(store, rank, count, options)


def _nccl(store: Any, rank: int, count: int) -> Any:
    # PyTorch's own watchdog would end the whole process; ours says which card is gone.
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    os.environ["NCCL_SOCKET_IFNAME"] = _LOOPBACK_INTERFACE
    os.environ["NCCL_IB_DISABLE"] = "1"
    options = distributed.ProcessGroupNCCL.Options()
    return distributed.ProcessGroupNCCL(store, rank, count, options)
