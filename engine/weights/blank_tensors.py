"""Weights that were never written: a copy that was cut off and padded has a sound header and zeros for its data.

Told from the raw bytes of a few rows, so that a file of any size is looked at in milliseconds.
"""

from __future__ import annotations

import numpy as np

from inglenook.engine.errors import ModelFileError
from inglenook.engine.weights.loader import ModelFile
from inglenook.kernels.weight_tensor import WeightTensor

_SAMPLED_ROWS = 16


def blank_notice(file: ModelFile) -> str:
    """A sentence on the matrices of `file` that hold nothing but zeros; "" where none does.

    Raises:
        ModelFileError: all matrices do.
    """
    matrices = [name for name in file.names if len(file.tensor(name).shape) > 1]
    blank = [name for name in matrices if _is_blank(file.tensor(name))]
    if not blank:
        return ""
    fault = (
        f"{file.name} holds nothing but zeros in {len(blank):,} of its {len(matrices):,} matrices: it was "
        "probably not copied to the end."
    )
    if len(blank) == len(matrices):
        raise ModelFileError(f"{fault} Copy or download it again.")
    return f"{fault} Its answers will be wrong; copy or download it again."


def _is_blank(tensor: WeightTensor) -> bool:
    rows = np.unique(np.linspace(0, len(tensor.data) - 1, _SAMPLED_ROWS).astype(np.int64))
    return not tensor.data[rows].any()
