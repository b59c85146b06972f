"""The native CPU kernels: which library fits this processor, and an engine that runs whole steps in it.

`kernels/cpu` is built once for each instruction set; `load_native` takes the best one that the processor runs. All
of them compute the same bits, so the choice is one of speed only. The scalar one is a twin for tests, never chosen
unless it is named. Nothing is loaded at import.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inglenook.kernels import native_interface as c

ISAS = ("amx", "avx512vnni", "avxvnni", "avx2", "scalar")
_CHOSEN_UNASKED = ISAS[:-1]
ISA_VARIABLE = "INGLENOOK_ISA"  # forces one of ISAS, for tests and to compare


class NativeUnavailableError(Exception):
    """The native kernels cannot be used here; the message says why."""


@dataclass(frozen=True, slots=True)
class IsaStatus:
    """One instruction set on this computer: whether its library can be used, and one sentence why or why not."""

    isa: str
    usable: bool
    reason: str


class NativeLibrary:
    """One loaded library. Functions are those of kernels/cpu/inglenook.h without their prefix."""

    def __init__(self, isa: str, path: Path) -> None:
        """Load the library of `isa` at `path`.

        Raises:
            NativeUnavailableError: it does not load, is of another version, or the processor cannot run it.
        """
        try:
            self._library = ctypes.CDLL(str(path))
            version = self._library.inglenook_interface_version()
        except (OSError, AttributeError) as error:
            raise NativeUnavailableError(f"the {isa} kernels do not load: {error}") from error
        if version != c.INTERFACE_VERSION:
            raise NativeUnavailableError(
                f"the {isa} kernels are version {version}, this program needs {c.INTERFACE_VERSION}; install it again"
            )
        for name, (result, arguments) in c.FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self.isa = isa
        if not self._library.inglenook_is_supported():
            raise NativeUnavailableError(f"this processor has no {isa} instructions")

    def __getattr__(self, name: str) -> Any:  # the functions' types are in FUNCTIONS
        return getattr(self._library, f"inglenook_{name}")

    def checksum(self, data: npt.NDArray[np.uint8]) -> int:
        """A 64-bit checksum of contiguous bytes, at the speed of memory."""
        return int(self._library.inglenook_checksum(data.ctypes.data, data.nbytes))

    def dequantize_row(self, matrix: c.Matrix, row: int) -> npt.NDArray[np.float32]:
        """One row of a packed matrix as float32, exactly as the reference has it."""
        out = np.empty(matrix.columns, dtype=np.float32)
        self._library.inglenook_dequantize_row(matrix, row, out.ctypes.data)
        return out


def isa_statuses() -> tuple[IsaStatus, ...]:
    """Say of every instruction set whether its kernels can be used here."""
    return tuple(_status(isa) for isa in ISAS)


def load_native(isa: str | None = None) -> NativeLibrary:
    """Load the library of `isa`, or of $INGLENOOK_ISA, or the best one for this processor.

    Raises:
        NativeUnavailableError: the named one, or every one, cannot be used here.
    """
    name = isa or os.environ.get(ISA_VARIABLE)
    if name is not None:
        if name not in ISAS:
            raise NativeUnavailableError(
                f"the instruction set must be one of {', '.join(ISAS)}; got {name!r}"
            )
        return NativeLibrary(name, _path(name))
    reasons = []
    for candidate in _CHOSEN_UNASKED:
        try:
            return NativeLibrary(candidate, _path(candidate))
        except NativeUnavailableError as error:
            reasons.append(str(error))
    raise NativeUnavailableError("; ".join(dict.fromkeys(reasons)))


def _status(isa: str) -> IsaStatus:
    try:
        NativeLibrary(isa, _path(isa))
    except NativeUnavailableError as error:
        return IsaStatus(isa, False, str(error))
    return IsaStatus(isa, True, f"the {isa} kernels are built and this processor runs them")


def _path(isa: str) -> Path:
    paths = sorted(Path(__file__).parent.glob(f"_native_{isa}.*"))
    if not paths:
        raise NativeUnavailableError(
            "the native kernels were not built: installing found no C++ compiler for this processor"
        )
    return paths[0]


class NativeEngine:
    """A model described to one library, its threads and its work space. Used from one thread at a time.

    The caller keeps everything that `model` points at alive until `close`.
    """

    def __init__(self, library: NativeLibrary, model: c.Model, num_threads: int) -> None:
        self.library = library
        self.num_threads = num_threads
        self._handle: int | None = library.create(model, num_threads)
        if self._handle is None:
            raise MemoryError(f"the native kernels could not start {num_threads} threads")

    def wake(self) -> None:
        """Wake the threads ahead of a step, so that it need not wait for them."""
        self.library.wake(self._open())

    def step(
        self,
        batch: c.Batch,
        groups: Sequence[c.KvGroup],
        logits: int,
        cancel: ctypes.c_int32,
    ) -> int:
        """Run one step and write the logits to the address `logits`; returns one of the STEP_ codes."""
        table = (c.KvGroup * len(groups))(*groups)
        return int(self.library.step(self._open(), batch, table, logits, ctypes.addressof(cancel)))

    def matmul(self, matrix: c.Matrix, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Multiply: x [R, columns] float32, contiguous, to [R, rows]."""
        if x.dtype != np.float32 or x.ndim != 2 or x.shape[1] != matrix.columns or not x.flags.c_contiguous:
            raise ValueError(f"x must be contiguous float32 [R, {matrix.columns}], got {x.dtype} {x.shape}")
        out = np.full((x.shape[0], matrix.rows), np.nan, dtype=np.float32)
        self.library.matmul(self._open(), matrix, x.ctypes.data, x.shape[0], out.ctypes.data)
        return out

    def read_seconds(self, data: npt.NDArray[np.uint8]) -> float:
        """Seconds that the engine's threads take to read `data` once."""
        return float(self.library.read_seconds(self._open(), data.ctypes.data, data.nbytes))

    def close(self) -> None:
        """End the threads and free the work space. Closing twice is fine."""
        if self._handle is not None:
            self.library.destroy(self._handle)
            self._handle = None

    def _open(self) -> int:
        assert self._handle is not None, "the engine is closed"
        return self._handle
