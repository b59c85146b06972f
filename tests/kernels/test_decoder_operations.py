import pytest
import torch

from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.silu_and_mul import silu_and_mul


def test_rms_norm_equals_pytorchs_own():
    x, weight = torch.randn(5, 33), torch.randn(33)

    got = rms_norm(x, weight, 1e-5)

    torch.testing.assert_close(got, torch.nn.functional.rms_norm(x, (33,), weight, 1e-5))


def test_rms_norm_of_zeros_is_zero():
    assert torch.equal(rms_norm(torch.zeros(2, 8), torch.ones(8), 1e-6), torch.zeros(2, 8))


def test_rotation_is_multiplication_by_a_unit_complex_number():
    x = torch.randn(4, 3, 10)
    angle = torch.randn(4, 4)

    got = rotary_embedding(x, angle.cos(), angle.sin())

    numbers = torch.complex(x[..., :4], x[..., 4:8]) * torch.polar(torch.ones(4, 4), angle)[:, None]
    torch.testing.assert_close(got[..., :4], numbers.real)
    torch.testing.assert_close(got[..., 4:8], numbers.imag)
    assert torch.equal(got[..., 8:], x[..., 8:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gate_is_applied_in_float32_and_keeps_the_dtype(dtype):
    gate_up = torch.randn(3, 14).to(dtype)

    got = silu_and_mul(gate_up)

    gate, up = gate_up.float()[:, :7], gate_up.float()[:, 7:]
    torch.testing.assert_close(got, (gate * torch.sigmoid(gate) * up).to(dtype))
    assert got.dtype == dtype
