"""The back end behind "cuda": one card, several, or a card with the processor's help, as `placement.py` chooses.

"cuda:deterministic" takes one order of sums; "cuda:reference" is the card's control flow with the operations' formulas on
the processor, which is how several cards and partial offload are tried on computers without a card.
"""

from __future__ import annotations

from pathlib import Path

import torch

from inglenook.engine.backend import Backend, WeightSource
from inglenook.engine.cards.cuda_backend import DETERMINISTIC, NAME, CudaBackend, cuda_status, refusal
from inglenook.engine.cards.offload import OffloadBackend
from inglenook.engine.cards.placement import CardOptions, Placement, card_need, place
from inglenook.engine.cards.shares import plan_shares
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.kv_cache import KVDtype
from inglenook.engine.memory import estimate_need
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.native_backend import NativeBackend, has_floats
from inglenook.engine.native_backend import refusal as native_refusal
from inglenook.kernels.native import NativeUnavailableError
from inglenook.kernels.native_interface import KV_DTYPE_IDS

REFERENCE = "reference"
MODES = ("", DETERMINISTIC, REFERENCE)
# both parts of an offloaded model have it
_OFFLOAD_KV: KVDtype = "float16"


class CardChooser:
    """Chooses among cards for one model.

    Raises:
        InvalidRequestError: the mode is none of `MODES`, or more cards were asked for than are here.
    """

    def __init__(
        self,
        mode: str,
        spec: ModelSpec,
        source: WeightSource,
        *,
        kv_dtype: KVDtype | None,
        options: CardOptions,
        num_threads: int | None,
        folder: Path | None,
    ) -> None:
        if mode not in MODES:
            known = " or ".join(f"{NAME}:{m}" for m in MODES if m)
            raise InvalidRequestError(f"backend {NAME} can be {NAME}, {known}, got {NAME}:{mode}.")
        self._mode, self._spec, self._source = mode, spec, source
        self._kv_dtype, self._options = kv_dtype, options
        self._num_threads, self._folder = num_threads, folder
        self._is_card = mode != REFERENCE
        usable, self._status = (
            cuda_status() if self._is_card else (True, "the card's steps, on the processor")
        )
        self.refusal = refusal(spec) if usable else self._status
        if self.refusal is None:
            self._check_cards()

    def choose(self) -> Backend | None:
        """The back end; None where the processor alone is better, with `refusal` saying why.

        Raises:
            UnsupportedModelError: what was asked for cannot be had.
        """
        assert self.refusal is None, "asked to choose although cards are refused"
        weights = self._one("").estimate_weight_bytes(self._spec, self._source.size_bytes)
        need = card_need(
            self._spec,
            self._source,
            self._kv_dtype or _OFFLOAD_KV,
            self._options.context_length,
            alone_bytes=estimate_need(weights, 0, self._spec.vocab_size),
        )
        free = self._free_bytes()
        placement = place(need, free, self._options)
        if placement.num_cards > 1:
            if self._options.num_cards is not None or self._is_divisible(placement.num_cards):
                return self._several(placement)
            placement = place(need, free[:1], self._options)
        if placement.card_layers == self._spec.num_layers:
            return self._one(f"{self._status}; {placement.reason}")
        if not placement.num_cards:
            self.refusal = placement.reason
            return None
        return self._part(placement)

    def _is_divisible(self, num_cards: int) -> bool:
        """Whether so many cards can share the model."""
        try:
            plan_shares(self._spec, self._source, num_cards)
        except UnsupportedModelError:
            return False
        return True

    def _check_cards(self) -> None:
        wanted = self._options.num_cards or 1
        here = torch.cuda.device_count() if self._is_card else wanted
        if wanted > here:
            raise InvalidRequestError(
                f"num_cards must be at most {here}, the cards of this computer; got {wanted}."
            )
        layers = self._options.card_layers
        if layers is not None and layers > self._spec.num_layers:
            raise InvalidRequestError(
                f"card_layers must be at most {self._spec.num_layers}, the layers of this model; got {layers}."
            )

    def _free_bytes(self) -> list[int]:
        if not self._is_card:
            return [1 << 62]
        return [torch.cuda.mem_get_info(card)[0] for card in range(torch.cuda.device_count())]

    def _one(self, reason: str) -> Backend:
        if not self._is_card:
            return CudaBackend.on_cpu(kv_dtype=self._kv_dtype)
        return CudaBackend(
            kv_dtype=self._kv_dtype,
            is_deterministic=self._mode == DETERMINISTIC,
            reason=reason,
        )

    def _several(self, placement: Placement) -> Backend:
        # torch.distributed is imported when several cards are used, and never before
        if not torch.distributed.is_available():
            raise UnsupportedModelError("This PyTorch is built without torch.distributed. Use one card.")
        from inglenook.engine.cards.tensor_parallel import TensorParallelBackend

        return TensorParallelBackend(
            placement.num_cards,
            is_card=self._is_card,
            kv_dtype=self._kv_dtype,
            is_deterministic=self._mode == DETERMINISTIC,
            reason=placement.reason,
        )

    def _part(self, placement: Placement) -> Backend | None:
        """The card and the processor; None where the processor's kernels do not run the model."""
        why = native_refusal(self._spec, self._source)
        try:
            host = NativeBackend(
                num_threads=self._num_threads,
                kv_dtype=self._host_kv(),
                folder=self._folder,
                hands_on=True,
                has_floats=has_floats(self._source),
            )
        except NativeUnavailableError as error:
            why = str(error)
        if why is not None:
            self.refusal = f"{placement.reason}, and the processor's kernels do not run the rest: {why}"
            return None
        if self._is_card:
            card = CudaBackend(
                kv_dtype=self._kv_dtype or _OFFLOAD_KV,
                is_deterministic=self._mode == DETERMINISTIC,
                takes_hidden=True,
            )
        else:
            card = CudaBackend.on_cpu(kv_dtype=self._kv_dtype, takes_hidden=True)
        return OffloadBackend(
            card,
            host,
            self._source,
            self._spec,
            placement.card_layers,
            f"{self._status}; {placement.reason}",
            placement.sentence,
        )

    def _host_kv(self) -> KVDtype:
        kv_dtype = self._kv_dtype or _OFFLOAD_KV
        if kv_dtype not in KV_DTYPE_IDS:
            raise InvalidRequestError(
                f"kv_dtype {kv_dtype} is the card's alone, and only a part of the model fits it; use int8 or float16."
            )
        return kv_dtype
