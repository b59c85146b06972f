"""Rows of numbers to blocks of our group formats, with scales and codes found by optimum-quanto.

quanto looks for the scale, and for 4 bits the shift, of each group in float32. Both are then rounded to fp16, in which our
blocks keep them, and quanto finds the codes for the rounded ones: so the weights that we run are exactly what quanto's
own `dequantize` gives for these numbers. A scale is rounded up, so that no weight is cut off, and is never 0.
quanto has one scale for a row in its 8-bit types; it gets each group as a row.

`Quanto` is the one place that imports the package, which only quantising needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from inglenook.engine.errors import LibraryError, ModelFileError, UnsupportedModelError
from inglenook.engine.installed_pip import pip_is_installed

WeightType = Literal["qint4", "qint8", "qfloat8"]
WEIGHT_TYPES: tuple[WeightType, ...] = get_args(WeightType)
GROUP_SIZES = (32, 64, 128)
REQUIREMENT = "optimum-quanto>=0.2.7,<0.3"

_IN_32 = {"qint4": "Q4_1", "qint8": "Q8_0", "qfloat8": "QFLOAT8_G32"}
_SMALLEST = 2.0**-24  # of fp16


def format_of(weights: WeightType, group: int) -> str:
    """The format of matrices with groups of that size; in groups of 32 two are formats of GGUF files."""
    return _IN_32[weights] if group == 32 else f"{weights.upper()}_G{group}"


def widest_group(columns: int, group: int) -> int:
    """The largest allowed group, up to `group`, that divides a row of `columns`; 0 where none does."""
    return next((g for g in reversed(GROUP_SIZES) if g <= group and columns % g == 0), 0)


class Quanto:
    """The quantiser.

    Raises:
        LibraryError: optimum-quanto is not installed, or does not load; the message has the command that installs it.
    """

    def __init__(self) -> None:
        if importlib.util.find_spec("optimum") is None or importlib.util.find_spec("optimum.quanto") is None:
            raise LibraryError(
                f"Quantising needs optimum-quanto, which is not installed. {_how_to_install()}"
            )
        try:
            quanto: Any = importlib.import_module("optimum.quanto.tensor")  # has no types
        except Exception as error:
            raise LibraryError(
                f"The installed optimum-quanto does not load: {error}. {_how_to_install()}"
            ) from error
        self._absmax, self._min_max = quanto.AbsmaxOptimizer(), quanto.MaxOptimizer()
        self._types: dict[str, Any] = {name: getattr(quanto, name) for name in WEIGHT_TYPES}

    def quantize(
        self, rows: torch.Tensor, weights: WeightType, group: int, name: str
    ) -> npt.NDArray[np.uint8]:
        """Quantise rows.

        rows: float32 [R, K], K a multiple of `group`.
        name: of the tensor, for errors.

        Returns:
            The rows in `format_of(weights, group)`: uint8 [R, bytes of a row].

        Raises:
            ModelFileError: a number is infinite or none.
            UnsupportedModelError: the numbers are too large for fp16 scales.
        """
        if not bool(torch.isfinite(rows).all()):
            raise ModelFileError(
                f"{name} has numbers that are infinite or none; quantising would hide them. Fetch the model again."
            )
        groups = rows.reshape(-1, group)
        # quanto takes a single group for a tensor without an axis
        padded = groups if len(groups) > 1 else groups.repeat(2, 1)
        if weights == "qint4":
            parts, codes = self._four_bits(padded, group, name)
        else:
            parts, codes = self._eight_bits(padded, weights, name)
        halves = [part.view(torch.uint8).view(-1, 2) for part in parts]
        blocks = torch.cat([*halves, codes], dim=1)[: len(groups)]
        return blocks.view(len(rows), -1).numpy()

    def _four_bits(
        self, groups: torch.Tensor, group: int, name: str
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        scale, shift = self._min_max(groups, self._types["qint4"], 0, group)
        scale, shift = _rounded_up(scale, name), _finite(shift.half(), name)
        codes = torch.ops.quanto.quantize_affine(
            groups, bits=4, axis=0, group_size=group, scale=scale.float(), shift=shift.float()
        )
        # 64 columns share 32 bytes, the first 32 in the low halves; of 32 columns, the first 16
        halves = codes.view(len(groups), -1, 2, min(group, 64) // 2)
        return [scale, -shift], (halves[:, :, 0] | halves[:, :, 1] << 4).flatten(1)

    def _eight_bits(
        self, groups: torch.Tensor, weights: WeightType, name: str
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        kind = self._types[weights]
        scale = _rounded_up(self._absmax(groups, kind, 0), name)
        codes = torch.ops.quanto.quantize_symmetric(groups, dtype=kind.dtype, axis=0, scale=scale.float())
        return [scale], codes.view(torch.uint8)


def _how_to_install() -> str:
    if not pip_is_installed():  # as in an installed package
        return (
            "This Python has no pip to install it with. Quantise with an inglenook that was installed from source, and "
            "use 'inglenook models import FOLDER' here."
        )
    return f"This installs it: {sys.executable} -m pip install '{REQUIREMENT}'"


def _rounded_up(scale: torch.Tensor, name: str) -> torch.Tensor:
    """Positive float32 numbers as the next fp16 that is not below."""
    half = scale.clamp_min(_SMALLEST).half()
    # one step up in the bits of a positive number is the next number
    return _finite(
        (half.view(torch.int16) + (half.float() < scale).to(torch.int16)).view(torch.float16), name
    )


def _finite(half: torch.Tensor, name: str) -> torch.Tensor:
    if not bool(torch.isfinite(half).all()):
        raise UnsupportedModelError(
            f"{name} has weights above {torch.finfo(torch.float16).max:,.0f}, for which a scale in fp16 is too small."
        )
    return half
