"""The CUDA back end: Triton kernels over weights packed at their own width, decode steps as graphs.

Weights go to the card as the file has them and are packed there. Kernels are compiled after loading, on steps that do
nothing (`cuda_model.py`), and kept in the user's cache folder. F32, F16 and BF16 matrices become the compute dtype.

A row's logits depend on how many rows a step has, within rounding: products with few, some and many rows sum in
different orders. `is_deterministic` takes one order for all, and then they do not.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_decoder import DeviceDecoder, Ranks, StepBuffers
from inglenook.engine.cards.device_operations import DeviceOperations, PlainOperations
from inglenook.engine.cards.device_weights import load_weights
from inglenook.engine.cards.draw import Drawer
from inglenook.engine.cards.plain_drawer import PlainDrawer
from inglenook.engine.errors import InvalidRequestError, UnsupportedModelError
from inglenook.engine.kv_cache import KVDtype, KVGroup, kv_groups
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.private_files import make_folder

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
    lack = compiler_lack()
    if lack is not None:
        return False, f"an NVIDIA card is there, but {lack}"
    name, capability = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
    if capability < _OLDEST:
        have, want = (".".join(map(str, c)) for c in (capability, _OLDEST))
        return False, f"the {name} has compute capability {have}, and at least {want} is needed"
    return True, f"a {name} is here, with {torch.cuda.mem_get_info()[1] / 1e9:.0f} GB"


def compiler_lack() -> str | None:
    """Say what the installed Triton lacks to make the stub through which it calls a driver, or None.

    Triton 3.6 compiles that stub in C where it first runs, Triton 3.9 brings one.
    """
    package = importlib.util.find_spec("triton")
    if package is None or package.origin is None:
        return "Triton is not installed"
    driver = Path(package.origin).parent / "backends" / "nvidia" / "driver.py"
    if not driver.is_file() or "compile_module_from_src" not in driver.read_text():
        return None
    compiler = os.environ.get("CC") or "gcc or clang"
    if not any(shutil.which(name) for name in compiler.split(" or ")):
        return f"this Triton needs a C compiler, and {compiler} is not here: install gcc, or a newer Triton"
    header = Path(sysconfig.get_paths(scheme="posix_prefix")["include"]) / "Python.h"
    if not header.is_file():
        return (
            "this Triton needs the headers of Python, which are not here: install "
            f"python{sysconfig.get_python_version()}-dev, or a newer Triton"
        )
    return None


def keep_compiled_kernels() -> None:
    """Have Triton keep what it compiles in $XDG_CACHE_HOME/inglenook/triton, open to the user alone.

    $TRITON_CACHE_DIR names another folder. One that cannot be made leaves it to Triton.
    """
    if "TRITON_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "inglenook" / "triton"
    try:
        make_folder(folder)
    except OSError as error:
        logger.warning("compiled kernels are not kept where they should be: %s", error.strerror)
        return
    os.environ["TRITON_CACHE_DIR"] = str(folder)


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
        """Bring the weights to the card; see `Backend`. `CudaModel.prepare` comes next."""
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
        return CudaModel(
            decoder,
            self.kv_groups(spec),
            StepBuffers(spec, self.step_tokens(spec) if is_card else 64, self._dtype, device),
            weight_bytes,
            uses_graphs=self._uses_graphs,
            takes_hidden=self._takes_hidden,
            drawer=self._drawer(device),
        )

    def _drawer(self, device: torch.device) -> Drawer:
        if device.type != "cuda":
            return PlainDrawer()
        from inglenook.engine.cards.triton_drawer import FAST_FLOAT64, TritonDrawer

        return TritonDrawer(device, takes_filters=torch.cuda.get_device_capability(device) in FAST_FLOAT64)

    def _kernels(self, spec: ModelSpec) -> DeviceOperations:
        # Triton is imported when a card is used, and never before
        keep_compiled_kernels()
        from inglenook.engine.cards.triton_operations import TritonOperations

        num_sms = torch.cuda.get_device_properties(0).multi_processor_count
        return TritonOperations(
            spec, torch.device(self.device), num_sms, is_deterministic=self.rows_are_exact
        )
