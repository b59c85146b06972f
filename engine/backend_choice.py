"""Which back end runs a model, and why: the choice behind "auto", and the list that `doctor` prints.

"auto" prefers an NVIDIA card that runs the model, or its last layers; then the native CPU kernels where they were built,
this processor runs them and they know everything the model asks for; else PyTorch on the CPU. The reason travels with the back end to whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inglenook.engine.backend import Backend, WeightSource
from inglenook.engine.cards.card_choice import CardChooser
from inglenook.engine.cards.cuda_backend import NAME as CUDA
from inglenook.engine.cards.cuda_backend import cuda_status
from inglenook.engine.cards.placement import CardOptions
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.kv_cache import KVDtype
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.native_backend import NAME as NATIVE
from inglenook.engine.native_backend import NativeBackend, has_floats, refusal
from inglenook.engine.torch_backend import TORCH_BACKENDS, TorchBackend
from inglenook.kernels.native import NativeUnavailableError
from inglenook.kernels.native_interface import KV_DTYPE_IDS

BACKEND_NAMES = (NATIVE, *TORCH_BACKENDS, CUDA)


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """One back end on this computer: whether it can be used, and one sentence why or why not."""

    name: str
    usable: bool
    reason: str


def backend_statuses() -> tuple[BackendStatus, ...]:
    """List all back ends, the preferred one first."""
    try:
        native = BackendStatus(NATIVE, True, NativeBackend().reason)
    except NativeUnavailableError as error:
        native = BackendStatus(NATIVE, False, str(error))
    others = (BackendStatus(name, True, make().reason) for name, make in TORCH_BACKENDS.items())
    cuda = BackendStatus(CUDA, *cuda_status())
    return (cuda, native, *others) if cuda.usable else (native, *others, cuda)


def choose_backend(
    name: str,
    spec: ModelSpec,
    source: WeightSource,
    *,
    kv_dtype: KVDtype | None = None,
    num_threads: int | None = None,
    packed_folder: Path | None = None,
    cards: CardOptions | None = None,
) -> Backend:
    """Return the back end of a name, or for "auto" the best one for this model.

    `kv_dtype` None is the back end's own. A native back end of one instruction set is named "native-cpu:ISA",
    the CUDA one with one order of sums "cuda:deterministic". `cards` says how many cards, and how many layers on one.

    Raises:
        InvalidRequestError: there is no back end of that name, or it has no such KV cache.
        UnsupportedModelError: the back end asked for by name cannot run here, or cannot run this model.
    """
    kind, _, isa = name.partition(":")
    asked = "" if cards is None else cards.asked
    if kind == CUDA or name == "auto":
        chooser = CardChooser(
            isa if kind == CUDA else "",
            spec,
            source,
            kv_dtype=kv_dtype,
            options=cards or CardOptions(),
            num_threads=num_threads,
            folder=packed_folder,
        )
        card = None if chooser.refusal is not None else chooser.choose()
        if card is not None:
            return card
        if kind == CUDA:
            raise UnsupportedModelError(f"The CUDA back end does not run this model: {chooser.refusal}.")
        if asked:
            raise UnsupportedModelError(f"{asked} cannot be had: {chooser.refusal}.")
    elif asked:
        raise InvalidRequestError(f"{asked} is for the back end {CUDA}, not for {name}.")
    if kind == NATIVE or name == "auto":
        why = refusal(spec, source)
        if kv_dtype is not None and kv_dtype not in KV_DTYPE_IDS:
            raise InvalidRequestError(
                f"kv_dtype {kv_dtype} is for NVIDIA cards; on the processor it must be {', '.join(KV_DTYPE_IDS)}. "
                "int8 is as small."
            )
        try:
            if why is None:
                return NativeBackend(
                    isa=isa or None,
                    num_threads=num_threads,
                    kv_dtype=kv_dtype or "float16",
                    folder=packed_folder,
                    has_floats=has_floats(source),
                )
        except NativeUnavailableError as error:
            why = str(error)
        if kind == NATIVE:
            raise UnsupportedModelError(f"The native CPU back end does not run this model: {why}.")
        return _torch("torch-cpu", kv_dtype, because=why)
    if name not in TORCH_BACKENDS:
        raise InvalidRequestError(f"backend must be auto, {', '.join(BACKEND_NAMES)}; got {name!r}.")
    return _torch(name, kv_dtype)


def _torch(name: str, kv_dtype: KVDtype | None, because: str | None = None) -> TorchBackend:
    backend = TORCH_BACKENDS[name]()
    if kv_dtype is not None and kv_dtype != backend.kv_dtype:
        raise InvalidRequestError(f"kv_dtype must be {backend.kv_dtype} on {name}, got {kv_dtype!r}.")
    if because is not None:
        backend.reason = f"{backend.reason}; the native kernels do not run here: {because}"
    return backend
