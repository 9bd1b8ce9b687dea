"""Facts about `rms_norm_backward`, found by other means than the reference."""

import pytest
import torch
import torch.nn.functional as F

from solutions.residual_layernorm import rms_norm_backward


def test_worked_by_hand():
    """x = (1, 7) has the mean square 25, so r = 5. For g = (5, 0) and weight 1: x̂ = (0.2, 1.4),
    the mean of g · x̂ is 0.5, and grad_x = ((5, 0) − 0.5 (0.2, 1.4)) / 5."""
    x, g = torch.tensor([[1.0, 7.0], [5.0, 0.0]], dtype=torch.float64)
    grad_x, grad_weight = rms_norm_backward(g, x, torch.ones(2).double(), eps=0.0)
    assert grad_x.tolist() == pytest.approx([0.98, -0.14])
    assert grad_weight.tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("shape", [(4,), (5, 3), (2, 3, 6), (3, 1)])
@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_equals_autograd(shape, eps):
    torch.manual_seed(1)
    x, grad = torch.randn(2, *shape, dtype=torch.float64)
    weight = torch.rand(shape[-1], dtype=torch.float64) + 0.5
    leaves = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
    theirs = torch.autograd.grad(F.rms_norm(leaves[0], shape[-1:], leaves[1], eps), leaves, grad)
    for a, b in zip(rms_norm_backward(grad, x, weight, eps), theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-12)


def test_the_gradient_is_at_a_right_angle_to_x():
    """A longer x gives the same output, so a step along x changes nothing (without ε)."""
    torch.manual_seed(2)
    x, grad = torch.randn(2, 5, 8, dtype=torch.float64)
    grad_x, _ = rms_norm_backward(grad, x, torch.rand(8).double(), eps=0.0)
    assert (grad_x * x).sum(-1).abs().max() < 1e-12
