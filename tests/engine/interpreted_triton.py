"""Import this before any `*_triton` module: Triton then runs its kernels in its interpreter, without a card.

The variable has to be set before Triton's own functions are decorated, so a test module that comes too late is told.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

os.environ["TRITON_INTERPRET"] = "1"
if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed here", allow_module_level=True)

import triton

assert triton.knobs.runtime.interpret, f"Triton was imported too early: {sys.modules['triton']}"
