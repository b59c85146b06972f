"""Where keys and values lie: block geometry, one tensor pair a layer group, and how many blocks fit.

The layout is a contract between every back end, kernel and tier:

    k, v     [L, num_blocks, H_kv, BLOCK_SIZE, D]   in `dtype` (float32, float16, bfloat16, int8 or float8_e4m3fn)
    k_scale, v_scale   [L, num_blocks, H_kv, BLOCK_SIZE] float32, only for int8: one scale a token and head

contiguous, on the device of the model. L counts the layers of one group: layers that see the whole context are one
group, layers with the same sliding window another. Each group has block ids, block tables and slots of its own.

The native kernels have an order of their own (`KVGroup.by_block`): all layers of a block lie together, in huge pages where
the system has them, and in a block the keys of a head lie as [D, BLOCK_SIZE], so that one element of 16 keys is one vector:

    k [L, num_blocks, H_kv, D, BLOCK_SIZE], v and scales as above, each a view of memory with num_blocks outermost

A *slot* is `block * BLOCK_SIZE + offset`; slot -1 means "do not store". Position p of a sequence lies in entry
`p // BLOCK_SIZE` of its block table at offset `p % BLOCK_SIZE`. One (block, head) is a contiguous [BLOCK_SIZE, D]
tile, which is what both a CPU core and a Triton program read at a time. Block 0 is an ordinary block.

Keys are stored after rotary embedding. int8: scale = absmax / 127 over a token's head, value = round(x / scale), where
a key with a bias is first brought into its range (`key_range.py`); so for float8_e4m3fn, which has no scale and is for
NVIDIA cards that know it.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from inglenook.engine.models.spec import ModelSpec

if TYPE_CHECKING:
    import torch

BLOCK_SIZE = 16

KVDtype = Literal["float32", "float16", "bfloat16", "int8", "float8_e4m3fn"]
_BYTES: dict[KVDtype, int] = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "float8_e4m3fn": 1}
_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class KVGroup:
    """Layers that share a block table: their indices in the model, and their window (0 = the whole context).

    by_block: in the order of the native kernels.
    """

    layers: tuple[int, ...]
    window: int
    num_kv_heads: int
    head_size: int
    dtype: KVDtype
    by_block: bool = False

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all layers of the group, keys and values together."""
        per_head = self.head_size * _BYTES[self.dtype] + (_SCALE_BYTES if self.dtype == "int8" else 0)
        return 2 * len(self.layers) * self.num_kv_heads * BLOCK_SIZE * per_head


def kv_groups(spec: ModelSpec, dtype: KVDtype, *, by_block: bool = False) -> tuple[KVGroup, ...]:
    """Group the layers of a model by their window, full context first."""
    windows = sorted(set(spec.sliding_windows))
    return tuple(
        KVGroup(
            tuple(i for i, w in enumerate(spec.sliding_windows) if w == window),
            window,
            spec.num_kv_heads,
            spec.head_size,
            dtype,
            by_block,
        )
        for window in windows
    )


def num_blocks_for(tokens: int) -> int:
    """Blocks that hold `tokens` tokens of one sequence."""
    return -(-tokens // BLOCK_SIZE)


@dataclass(slots=True)
class KVTensors:
    """The tensors of one group, laid out as the module's docstring says; scales are None unless int8.

    `memory` is what the CPU tensors lie in, in the order k, v, k_scale, v_scale; empty on other devices.
    """

    group: KVGroup
    k: torch.Tensor
    v: torch.Tensor
    k_scale: torch.Tensor | None = None
    v_scale: torch.Tensor | None = None
    memory: tuple[mmap.mmap, ...] = field(default=(), repr=False)

    @property
    def num_blocks(self) -> int:
        """Blocks allocated."""
        return int(self.k.shape[1])

    @property
    def _tensors(self) -> list[torch.Tensor]:
        """All tensors there are; 8-bit ones as integers, since PyTorch does not index every 8-bit float."""
        import torch

        there = [x for x in (self.k, self.v, self.k_scale, self.v_scale) if x is not None]
        return [x.view(torch.uint8) if x.element_size() == 1 else x for x in there]

    def copy_blocks(self, pairs: list[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination) in every layer of the group."""
        if not pairs:
            return
        source, destination = [s for s, _ in pairs], [d for _, d in pairs]
        for tensor in self._tensors:
            tensor[:, destination] = tensor[:, source]

    def blank(self, blocks: list[int]) -> None:
        """Overwrite blocks with zeros in every layer of the group, and give whole pages of them back to the system."""
        if not self.memory:
            for tensor in self._tensors if blocks else ():
                tensor[:, blocks] = 0
            return
        runs, num_parts = _runs(sorted(blocks)), 1 if self.group.by_block else len(self.group.layers)
        for memory in self.memory:
            block_bytes = len(memory) // num_parts // self.num_blocks
            for part, (first, end) in itertools.product(range(num_parts), runs):
                start = part * self.num_blocks * block_bytes
                _blank(memory, start + first * block_bytes, start + end * block_bytes)


def _blank(memory: mmap.mmap, start: int, end: int) -> None:
    # A private page that is given back reads as zeros afterwards.
    first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last or not hasattr(mmap, "MADV_DONTNEED"):
        memory[start:end] = bytes(end - start)
        return
    memory[start:first] = bytes(first - start)
    memory.madvise(mmap.MADV_DONTNEED, first, last - first)
    memory[last:end] = bytes(end - last)


def allocate_kv(group: KVGroup, num_blocks: int, *, poison: bool = False) -> KVTensors:
    """Allocate the CPU tensors of one group.

    Pages are zero and mapped when first written, so an unused cache costs address space only. `poison` fills
    floats with NaN instead (a debug aid): a stale read then shows.
    """
    num_layers, head, size = len(group.layers), (group.num_kv_heads, BLOCK_SIZE), group.head_size
    keys = (group.num_kv_heads, size, BLOCK_SIZE) if group.by_block else (*head, size)
    shapes = {"k": keys, "v": (*head, size)} | (
        {"k_scale": head, "v_scale": head} if group.dtype == "int8" else {}
    )
    tensors, memory = {}, []
    for name, shape in shapes.items():
        dtype: KVDtype = "float32" if name.endswith("_scale") else group.dtype
        outer = (num_blocks, num_layers) if group.by_block else (num_layers, num_blocks)
        tensor, pages = _lazy_zeros((*outer, *shape), dtype)
        if group.by_block and hasattr(mmap, "MADV_HUGEPAGE"):
            # Blocks are used from the first on, so hardly more memory is taken than they fill.
            with contextlib.suppress(OSError):  # a system without huge pages
                pages.madvise(mmap.MADV_HUGEPAGE)
        tensors[name] = tensor.transpose(0, 1) if group.by_block else tensor
        memory.append(pages)
        if poison and dtype != "int8":
            tensors[name].fill_(float("nan"))
    return KVTensors(group, memory=tuple(memory), **tensors)


def _lazy_zeros(shape: tuple[int, ...], dtype: KVDtype) -> tuple[torch.Tensor, mmap.mmap]:
    # Pages of our own, because torch.zeros would touch every one, and because these can be given back in part.
    import torch

    size = math.prod(shape) * _BYTES[dtype]
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if hasattr(mmap, "MAP_PRIVATE") else None
    pages = mmap.mmap(-1, size) if private is None else mmap.mmap(-1, size, flags=private)
    return torch.frombuffer(pages, dtype=getattr(torch, dtype)).view(shape), pages


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """The runs of consecutive numbers, each as its first and the number after its last."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs
