"""The tolerance table of the GPU kernels, in one place: the interpreter's tests and `tests/gpu` are held to the same.

An error is the largest deviation from a float64 reference on the same inputs, divided by the reference's root mean
square. bfloat16 rounds at 2^-9, float16 at 2^-12; sums are float32 everywhere, so what is left is the rounding of
inputs on their way to the tensor cores and of the result.
"""

from __future__ import annotations

import torch

_F32, _F16, _BF16 = torch.float32, torch.float16, torch.bfloat16

TOLERANCES: dict[str, dict[torch.dtype, float]] = {
    "rms_norm": {_F32: 1e-5, _F16: 4e-3, _BF16: 3e-2},
    "rotary_embedding": {_F32: 1e-5, _F16: 4e-3, _BF16: 3e-2},
    "gated_activation": {_F32: 1e-5, _F16: 1e-2, _BF16: 8e-2},
    "embedding": {_F32: 1e-5, _F16: 4e-3, _BF16: 3e-2},
    "linear": {_F32: 2e-5, _F16: 6e-3, _BF16: 4e-2},
    "attention": {_F32: 2e-5, _F16: 6e-3, _BF16: 4e-2},
    # of the cache's own values, before what storing them in 8 bits costs
    "attention_int8": {_F32: 2e-5, _F16: 8e-3, _BF16: 5e-2},
}


def deviation(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest deviation over the root mean square of `expected`; infinite where a number is missing."""
    assert actual.shape == expected.shape, f"{tuple(actual.shape)} instead of {tuple(expected.shape)}"
    if not expected.numel():
        return 0.0
    expected = expected.double()
    difference = (actual.double() - expected).abs().max()
    return float(torch.nan_to_num(difference, nan=torch.inf) / expected.square().mean().sqrt())


def assert_close(operation: str, actual: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> None:
    """Fail when `actual` deviates from a float64 reference by more than the table allows for `dtype`."""
    error, bound = deviation(actual, expected), TOLERANCES[operation][dtype]
    assert error <= bound, f"{operation} in {dtype}: error {error:.2e}, allowed {bound:.0e}"
