"""The decoder's plain operations beside PyTorch's own."""

import pytest
import torch

from inglenook.kernels.expert_routing import route_to_experts
from inglenook.kernels.gelu_and_mul import gelu_and_mul
from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.silu_and_mul import silu_and_mul
from inglenook.kernels.softcap import softcap


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


@pytest.mark.parametrize("by_tanh", [True, False])
def test_gelu_gate_equals_pytorchs_own(by_tanh):
    gate_up = torch.randn(3, 14)

    got = gelu_and_mul(gate_up, by_tanh=by_tanh)

    gelu = torch.nn.GELU("tanh" if by_tanh else "none")
    torch.testing.assert_close(got, gelu(gate_up[:, :7]) * gate_up[:, 7:])


def test_a_soft_cap_keeps_small_scores_and_bounds_large_ones():
    got = softcap(torch.tensor([0.0, 0.01, 1e30, -1e30]), 30.0)

    torch.testing.assert_close(got, torch.tensor([0.0, 0.01, 30.0, -30.0]))


def test_routing_takes_the_likeliest_experts_and_normalises_if_asked():
    logits = torch.tensor([[0.0, 3.0, 2.0, 1.0], [5.0, 0.0, 0.0, 4.0]])

    plain, numbers = route_to_experts(logits, 2, normalizes=False)
    whole, _ = route_to_experts(logits, 2, normalizes=True)

    assert numbers.tolist() == [[1, 2], [0, 3]]
    torch.testing.assert_close(plain, logits.softmax(-1).gather(1, numbers))
    torch.testing.assert_close(whole, plain / plain.sum(-1, keepdim=True))
