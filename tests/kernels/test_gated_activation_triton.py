"""SiLU and GELU with their gate, interpreted, beside the reference."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close

from inglenook.kernels.gated_activation_triton import gated_activation
from inglenook.kernels.gelu_and_mul import gelu_and_mul
from inglenook.kernels.silu_and_mul import silu_and_mul

# infinities that NumPy warns of in the interpreter are meant
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def reference(gate_up: torch.Tensor, gate: str) -> torch.Tensor:
    if gate == "silu":
        return silu_and_mul(gate_up)
    return gelu_and_mul(gate_up, by_tanh=gate == "gelu_tanh")


@pytest.mark.parametrize("gate", ["silu", "gelu", "gelu_tanh"])
@pytest.mark.parametrize("columns", [1, 1025])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_gate_is_applied(gate: str, columns: int, dtype: torch.dtype) -> None:
    gate_up = torch.randn(3, 2 * columns, generator=torch.Generator().manual_seed(0)).mul(3).to(dtype)
    out = torch.full((3, columns), torch.nan, dtype=dtype)

    gated_activation(gate_up, out, gate)

    assert_close("gated_activation", out, reference(gate_up.float(), gate).double(), dtype)


def test_huge_values_give_no_nan() -> None:
    gate_up = torch.tensor([[-1e30, 1e30, 1.0, 1.0]])
    out = torch.full((1, 2), torch.nan)

    for gate in ("silu", "gelu", "gelu_tanh"):
        gated_activation(gate_up, out, gate)

        assert out.tolist() == [[0.0, pytest.approx(1e30)]]
