"""Facts about `rms_norm_backward`, found by other means than the reference."""

import pytest
import torch
import torch.nn.functional as F

from solutions.residual_layernorm import rms_norm_backward


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
