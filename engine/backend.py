"""What differs between the ways to run a model, behind one small interface.

A `Backend` turns weights into a `BackendModel`; a `BackendModel` runs one step over its own KV tensors. Nothing else
in the engine knows the device, the dtype or the weight layout. Back ends differ in speed and in how they round; what
each promises is written here once:

- "reference": fp32, plain PyTorch, every operation as its docstring's formula. The oracle.
- "torch-cpu": PyTorch's CPU operations, bf16 weights and activations, fp32 sums. Runs wherever torch does.
- "native-cpu": whole steps in our own kernels, one arithmetic at every number of rows.
- "cuda": NVIDIA cards, one, several, or one with the processor's help (`card_choice.py`).

`forward` stores the step's keys and values first and reads them back through the block tables, also inside their own
chunk. It writes no block that no slot names, and returns fp32 logits. It is called from one thread only. A back end
that can end a step between layers has a method `cancel`, for any thread: the step in flight, or else the next one,
then raises `StepCancelledError`. One that compiles for a device has `prepare`, called after `load` and before any cache;
one that can choose tokens where its logits lie has a `drawer` (`draw.py`); one whose models lie in several memories has
`memory_places` (`memory_plan.py`). A back end must refuse (UnsupportedModelError, by name) a spec that it cannot run
exactly as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from inglenook.engine.kv_cache import KVDtype, KVGroup, KVTensors
from inglenook.engine.models.spec import ModelSpec

if TYPE_CHECKING:
    import torch

    from inglenook.engine.batch import Batch
    from inglenook.kernels.weight_tensor import WeightTensor

# done bytes, total bytes; raises to cancel the load
Progress = Callable[[int, int], None]


class StepCancelledError(Exception):
    """A step ended before its time because its model's `cancel` was called; what its slots hold is undefined."""


class WeightSource(Protocol):
    """The tensors of one model under canonical names (see `models/spec.py`), read from disk when asked for."""

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors in their file formats."""

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of a canonical name, in its file's format.

        Raises:
            ModelFileError: there is none of that name.
        """

    def close(self) -> None:
        """Unmap the files; tensors handed out must no longer be used. Closing twice is fine."""


class BackendModel(Protocol):
    """A loaded model: weights, KV tensors, and one step at a time."""

    spec: ModelSpec
    kv: tuple[KVTensors, ...]

    @property
    def weight_bytes(self) -> int:
        """Bytes that the weights take as loaded."""

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors with `num_blocks[g]` blocks for group g, in place of any earlier ones."""

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run one step.

        Returns:
            Logits of `batch.logits_rows`: float32 [R, vocab_size], contiguous, on the CPU or the model's device.
        """

    def close(self) -> None:
        """Give all memory back. Closing twice is fine."""


class Backend(Protocol):
    """One way to run models on one device."""

    name: str
    device: str
    rows_are_exact: (
        bool  # a row's logits are bit-identical at every number of rows, so speculation changes nothing
    )
    reason: str  # one sentence: why this one was chosen, for `doctor`

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups a model will have here, before it is loaded."""

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """Bytes that the weights will take once loaded, before loading them."""

    def step_tokens(self, spec: ModelSpec) -> int:
        """Tokens a step that keep one near 50 ms on a small computer; fixed for a model, never by the clock."""

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> BackendModel:
        """Load weights, calling `progress` at least every 100 MB.

        Raises:
            UnsupportedModelError: the spec asks for something this back end does not do.
            ModelFileError: a tensor is missing or has another shape than the spec says.
        """


__all__ = ["Backend", "BackendModel", "KVDtype", "Progress", "StepCancelledError", "WeightSource"]
