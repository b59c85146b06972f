"""The CUDA back end: Triton kernels over weights packed at their own width, decode steps as graphs.

Weights go to the card as the file has them and are packed there. Kernels are compiled while loading, on steps that
do nothing, and kept in Triton's own cache folder. F32, F16 and BF16 matrices become the compute dtype.

A row's logits depend on how many rows a step has, within rounding: products with few, some and many rows sum in
different orders. `is_deterministic` takes one order for all, and then they do not.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable

import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.batch import Batch
from inglenook.engine.cuda_graphs import DECODE_SIZES, DecodeGraphs
from inglenook.engine.device_decoder import DeviceDecoder, Ranks, StepBuffers, StepInputs
from inglenook.engine.device_operations import DeviceOperations, PlainOperations, Rows
from inglenook.engine.device_weights import load_weights
from inglenook.engine.draw import Drawer
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.kv_cache import BLOCK_SIZE, KVDtype, KVGroup, KVTensors, kv_groups
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.plain_drawer import PlainDrawer

logger = logging.getLogger(__name__)

NAME = "cuda"
DETERMINISTIC = "deterministic"
KV_DTYPES: tuple[KVDtype, ...] = ("bfloat16", "float16", "int8", "float8_e4m3fn")
NARROW_KV_DTYPES: tuple[KVDtype, ...] = ("int8", "float8_e4m3fn")
_FLOAT8_SINCE = (8, 9)
_OLDEST = (8, 0)
_STEP_WORK = 2e13  # parameters times tokens of a step
_LARGEST_HEAD = 256

MakeOperations = Callable[[ModelSpec], DeviceOperations]


def cuda_status() -> tuple[bool, str]:
    """Say whether the CUDA back end can be used on this computer, and in one sentence why or why not."""
    if torch.version.hip is not None:
        return (
            False,
            "this PyTorch is built for AMD cards, whose kernels are not tested here: the CPU is used",
        )
    if not torch.cuda.is_available():
        if torch.backends.mps.is_available():
            return False, "Apple's graphics are not used: the CPU back ends run on this computer"
        if hasattr(torch, "xpu") and torch.xpu.is_available():
            return False, "Intel's graphics are not used: the CPU back ends run on this computer"
        if torch.version.cuda is None:
            return False, "this PyTorch is built without CUDA; with an NVIDIA card, install its CUDA build"
        return False, "no NVIDIA card that PyTorch can use was found"
    if importlib.util.find_spec("triton") is None:
        return False, "an NVIDIA card is there, but Triton is not installed: pip install 'inglenook[gpu]'"
    name, capability = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
    if capability < _OLDEST:
        have, want = (".".join(map(str, c)) for c in (capability, _OLDEST))
        return False, f"the {name} has compute capability {have}, and at least {want} is needed"
    return True, f"a {name} is here, with {torch.cuda.mem_get_info()[1] / 1e9:.0f} GB"


def check_float8(capability: tuple[int, int]) -> None:
    """Refuse a cache of 8-bit floats on a card that does not know them.

    Raises:
        InvalidRequestError: the compute capability is below 8.9.
    """
    if capability < _FLOAT8_SINCE:
        have, want = (".".join(map(str, c)) for c in (capability, _FLOAT8_SINCE))
        raise InvalidRequestError(
            f"kv_dtype float8_e4m3fn needs compute capability {want}, and this card has {have}. Use int8, which is as small."
        )


def refusal(spec: ModelSpec) -> str | None:
    """Say why this back end does not run a model, or None where it does."""
    if spec.experts is not None:
        return "it has a mixture of experts"
    if spec.head_size > _LARGEST_HEAD:
        return f"its heads have {spec.head_size} elements, and at most {_LARGEST_HEAD} are run"
    if spec.num_heads % spec.num_kv_heads:
        return f"{spec.num_heads} heads do not share {spec.num_kv_heads} KV heads evenly"
    return None


class CudaBackend:
    """Kernels for one NVIDIA card, or for one of several that share a model.

    ranks: the cards that share it; `load` then takes this card's share of spec and weights.
    takes_hidden: models begin with hidden states of layers that lie elsewhere.
    step_tokens: of a step, where it must not follow from the spec: cards that share a model do steps of one size.
    device, dtype, make_operations: see `on_cpu`.
    """

    name = NAME

    def __init__(
        self,
        *,
        kv_dtype: KVDtype | None = None,
        is_deterministic: bool = False,
        uses_graphs: bool = True,
        device: str = "cuda",
        dtype: torch.dtype = torch.bfloat16,
        make_operations: MakeOperations | None = None,
        reason: str = "an NVIDIA card is here",
        ranks: Ranks | None = None,
        step_tokens: int | None = None,
        takes_hidden: bool = False,
    ) -> None:
        if kv_dtype not in (None, *KV_DTYPES) and make_operations is None:
            raise InvalidRequestError(f"kv_dtype must be {', '.join(KV_DTYPES)} on {NAME}, got {kv_dtype!r}.")
        if kv_dtype == "float8_e4m3fn" and device == "cuda":
            check_float8(torch.cuda.get_device_capability())
        self.device = device
        self.rows_are_exact = is_deterministic
        self.reason = reason
        self._kv_dtype: KVDtype = kv_dtype or "bfloat16"
        self._dtype = dtype
        self._uses_graphs = uses_graphs
        self._make_operations = make_operations or self._kernels
        self._ranks = ranks
        self._step_tokens = step_tokens
        self._takes_hidden = takes_hidden

    @classmethod
    def on_cpu(
        cls,
        *,
        kv_dtype: KVDtype | None = None,
        ranks: Ranks | None = None,
        step_tokens: int | None = None,
        uses_graphs: bool = True,
        takes_hidden: bool = False,
    ) -> CudaBackend:
        """The same steps by the operations' formulas in float32 on the processor: slow, and the oracle of the card's."""
        return cls(
            kv_dtype=kv_dtype or "float32",
            uses_graphs=uses_graphs,
            device="cpu",
            dtype=torch.float32,
            make_operations=lambda spec: PlainOperations(),
            reason="asked for by name: the card's steps by their formulas, on the processor",
            ranks=ranks,
            step_tokens=step_tokens,
            takes_hidden=takes_hidden,
        )

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups of a model here."""
        return kv_groups(spec, self._kv_dtype)

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """The file's own width but for what is wider than the compute dtype, and the buffers of a step."""
        plain = spec.num_parameters * self._dtype.itemsize
        row = 2 * spec.intermediate_size + 4 * spec.q_size + 8 * spec.hidden_size
        return min(plain, source_bytes + source_bytes // 32) + 2 * row * self.step_tokens(spec)

    def free_bytes(self) -> int:
        """Free memory of the card."""
        return torch.cuda.mem_get_info()[0] if self.device == "cuda" else 1 << 62

    def step_tokens(self, spec: ModelSpec) -> int:
        """A power of two from 256 to 2048 that falls with the model's size."""
        if self._step_tokens is not None:
            return self._step_tokens
        tokens = 2048
        while tokens > 256 and tokens * spec.num_parameters > _STEP_WORK:
            tokens //= 2
        return tokens

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> CudaModel:
        """Bring the weights to the card and compile the kernels; see `Backend`."""
        why = refusal(spec)
        if why is not None:
            raise UnsupportedModelError(f"The CUDA back end does not run this model: {why}.")
        device = torch.device(self.device)
        weights, weight_bytes = load_weights(
            spec,
            source,
            device,
            self._dtype,
            progress,
            has_narrow_cache=self._kv_dtype in NARROW_KV_DTYPES,
            has_embedding=not self._takes_hidden,
        )
        decoder = DeviceDecoder(spec, weights, self._make_operations(spec), self._ranks)
        is_card = device.type == "cuda"
        model = CudaModel(
            decoder,
            self.kv_groups(spec),
            StepBuffers(spec, self.step_tokens(spec) if is_card else 64, self._dtype, device),
            weight_bytes,
            uses_graphs=self._uses_graphs,
            takes_hidden=self._takes_hidden,
            drawer=self._drawer(device),
        )
        if is_card:
            total = source.size_bytes
            model.warm_up(lambda: progress(total, total))
        return model

    def _drawer(self, device: torch.device) -> Drawer:
        if device.type != "cuda":
            return PlainDrawer()
        from inglenook.engine.triton_drawer import TritonDrawer

        return TritonDrawer(device, takes_filters=torch.cuda.get_device_capability(device)[1] == 0)

    def _kernels(self, spec: ModelSpec) -> DeviceOperations:
        # Triton is imported when a card is used, and never before
        from inglenook.engine.triton_operations import TritonOperations

        num_sms = torch.cuda.get_device_properties(0).multi_processor_count
        return TritonOperations(
            spec, torch.device(self.device), num_sms, is_deterministic=self.rows_are_exact
        )


class CudaModel:
    """A model on the card: weights, KV tensors, buffers, graphs, and what draws tokens from logits there."""

    def __init__(
        self,
        decoder: DeviceDecoder,
        groups: tuple[KVGroup, ...],
        buffers: StepBuffers,
        weight_bytes: int,
        *,
        uses_graphs: bool,
        takes_hidden: bool = False,
        drawer: Drawer | None = None,
    ) -> None:
        self.drawer = drawer or PlainDrawer()
        self.spec = decoder.spec
        self.kv: tuple[KVTensors, ...] = ()
        self.weight_bytes = weight_bytes
        self._decoder: DeviceDecoder | None = decoder
        self._groups = groups
        self._buffers = buffers
        self._uses_graphs = uses_graphs
        self._takes_hidden = takes_hidden
        self._graphs: DecodeGraphs | None = None

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._buffers.x.device

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors, in place of any earlier ones, and capture the decode steps over them."""
        assert self._decoder is not None, "the model is closed"
        self._graphs, self.kv = None, ()
        self.kv = tuple(
            _allocate(group, count, self.device)
            for group, count in zip(self._groups, num_blocks, strict=True)
        )
        if self._uses_graphs:
            is_card = self.device.type == "cuda"
            self._graphs = DecodeGraphs(
                self._decoder, self.kv, self._buffers, captures=is_card, takes_hidden=self._takes_hidden
            )

    def warm_up(self, report: Callable[[], None]) -> None:
        """Run steps of every kind that store nothing, so that their kernels are compiled; `report` may raise."""
        uses_graphs, self._uses_graphs = self._uses_graphs, False
        self.allocate_kv((1,) * len(self._groups))
        for count in (*DECODE_SIZES, 128, self._buffers.capacity):
            logger.info("compiling kernels for steps of %d rows", count)
            self._warm(count, is_decode=count <= DECODE_SIZES[-1])
            report()
        self._warm(16, is_decode=False)
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.kv, self._uses_graphs = (), uses_graphs
        report()

    def _warm(self, rows: int, *, is_decode: bool) -> None:
        hidden = torch.zeros(rows, self.spec.hidden_size) if self._takes_hidden else None
        self.forward(_empty_batch(rows, len(self.kv), is_decode=is_decode), hidden)

    def forward(self, batch: Batch, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """Run one step; see `BackendModel`. The logits are on the device.

        hidden: float32 [T, hidden_size] on the CPU, what layers elsewhere made of the step, for a model that takes it.
        """
        assert self._decoder is not None, "the model is closed"
        rows, sequences = len(batch.token_ids), len(batch.context_lengths)
        if rows == sequences and self._graphs is not None:
            logits = self._graphs.run(batch, hidden)
            if logits is not None:
                return logits
        if rows > self._buffers.capacity:
            self._buffers = StepBuffers(self.spec, rows, self._buffers.q.dtype, self.device)
        logits = torch.empty(
            (len(batch.logits_rows), self.spec.vocab_size), dtype=torch.float32, device=self.device
        )
        self._decoder.step(self._inputs(batch, hidden), self.kv, self._buffers, logits)
        return logits

    def _inputs(self, batch: Batch, hidden: torch.Tensor | None) -> StepInputs:
        """A step that no graph runs: leading sequences of one row decode, the others are prompts."""
        counts = batch.query_starts[1:] - batch.query_starts[:-1]
        is_longer = torch.nonzero(counts != 1)
        num_decodes = int(is_longer[0]) if len(is_longer) else len(counts)

        def move(x: torch.Tensor) -> torch.Tensor:
            return x.to(self.device, non_blocking=True)

        starts, lengths = move(batch.query_starts), move(batch.context_lengths)
        tables = [move(group.block_tables) for group in batch.groups]
        decodes = [Rows(num_decodes, t[:num_decodes], starts, lengths[:num_decodes]) for t in tables]
        rest = len(counts) - num_decodes
        prefills = [Rows(rest, t[num_decodes:], starts[num_decodes:], lengths[num_decodes:]) for t in tables]
        return StepInputs(
            move(batch.token_ids),
            move(batch.positions),
            tuple(move(group.slots) for group in batch.groups),
            tuple(decodes) if num_decodes else (),
            tuple(prefills) if rest else (),
            move(batch.logits_rows),
            None if hidden is None else move(hidden),
        )

    def close(self) -> None:
        """Drop graphs, weights and KV tensors."""
        self._graphs, self._decoder, self.kv = None, None, ()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _allocate(group: KVGroup, num_blocks: int, device: torch.device) -> KVTensors:
    shape = (len(group.layers), num_blocks, group.num_kv_heads, BLOCK_SIZE, group.head_size)
    dtype = getattr(torch, group.dtype)
    scales: list[torch.Tensor | None] = [None, None]
    if group.dtype == "int8":
        scales = [torch.zeros(shape[:-1], dtype=torch.float32, device=device) for _ in range(2)]
    k, v = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
    return KVTensors(group, k, v, scales[0], scales[1])


def _empty_batch(rows: int, groups: int, *, is_decode: bool) -> Batch:
    """A step that stores nothing and sees one block of zeros."""
    from inglenook.engine.batch import GroupTables

    sequences = rows if is_decode else 1
    count = rows // sequences
    positions = torch.arange(rows) % BLOCK_SIZE if not is_decode else torch.zeros(rows, dtype=torch.int64)
    blocks = -(-count // BLOCK_SIZE)
    tables = GroupTables(
        torch.zeros((sequences, blocks), dtype=torch.int32), torch.full((rows,), -1, dtype=torch.int64)
    )
    return Batch(
        torch.zeros(rows, dtype=torch.int64),
        positions,
        torch.arange(0, rows + 1, count, dtype=torch.int32),
        torch.full((sequences,), count, dtype=torch.int32),
        torch.arange(rows) if is_decode else torch.tensor([rows - 1]),
        (tables,) * groups,
    )
