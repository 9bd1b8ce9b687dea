"""Chapter 6's references against numbers by hand, central differences, and torch's own layers."""

import pytest
import torch
import torch.nn.functional as F
from parity import PRECISION, assert_parity, assert_same_gradients, close, shaken
from torch import nn

from solutions import residual_layernorm as ref

SHAPES = pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (2, 1, 4, 8)])
pytestmark = pytest.mark.seed(61)


@SHAPES
@PRECISION
def test_layer_norm_equals_torchs_forward_and_backward(dtype, within, shape):
    ours = shaken(ref.LayerNorm(8)).to(dtype)
    theirs = nn.LayerNorm(8).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    assert_parity(ours, theirs, [2 * torch.randn(shape, dtype=dtype) + 1], within)


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.1, 3.0])
def test_layer_norm_takes_its_eps(eps):
    x = 0.1 * torch.randn(4, 6, dtype=torch.float64)
    assert close(ref.LayerNorm(6, eps).double()(x), F.layer_norm(x, (6,), eps=eps), 1e-13)


def test_a_token_of_equal_features_comes_out_as_the_bias():
    norm = shaken(ref.LayerNorm(5))
    x = torch.full((2, 3, 5), 7.0, requires_grad=True)
    out = norm(x)
    assert torch.equal(out, norm.bias.expand(2, 3, 5))
    (grad,) = torch.autograd.grad(out.square().sum(), x)
    assert grad.isfinite().all()


def test_batch_norm_in_training_normalises_the_other_axes():
    """What the chapter's picture says: one mean per feature there, one per token here."""
    x = torch.randn(4, 5, 6) + 3
    ours = ref.LayerNorm(6)(x)
    theirs = nn.BatchNorm1d(6).train()(x.transpose(1, 2)).transpose(1, 2)
    assert close(ours.mean(-1), torch.zeros(4, 5), 1e-5)
    assert close(theirs.mean((0, 1)), torch.zeros(6), 1e-5)
    assert theirs.mean(-1).abs().max() > 0.1


# --- layer_norm_backward ------------------------------------------------------------------------


class Ours(torch.autograd.Function):
    """torch's forward pass with our backward pass."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)

    @staticmethod
    def backward(ctx, grad_output):
        return *ref.layer_norm_backward(grad_output, *ctx.saved_tensors, ctx.eps), None


def leaves(*shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight, bias = (torch.randn(shape[-1], dtype=torch.float64) for _ in range(2))
    return x, weight.requires_grad_(), bias.requires_grad_()


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4), (2, 1, 2, 3), (3, 1)])
def test_layer_norm_backward_passes_gradcheck(shape, eps):
    assert torch.autograd.gradcheck(lambda *a: Ours.apply(*a, eps), leaves(*shape))


@SHAPES
@PRECISION
def test_layer_norm_backward_equals_autograd(dtype, within, shape):
    x, weight, bias = (leaf.detach().to(dtype).requires_grad_() for leaf in leaves(*shape))
    grad_output = torch.randn(shape, dtype=dtype) / x.shape[:-1].numel()  # of a mean over tokens
    out = F.layer_norm(x, x.shape[-1:], weight, bias)
    theirs = torch.autograd.grad(out, (x, weight, bias), grad_output)
    ours = ref.layer_norm_backward(grad_output, x.detach(), weight.detach())
    names = ("x", "weight", "bias")
    assert_same_gradients(*(dict(zip(names, g, strict=True)) for g in (ours, theirs)), within)
    assert all(part.dtype == dtype for part in ours)


def test_layer_norm_backward_works_in_inference_mode_and_records_nothing():
    with torch.inference_mode():
        parts = ref.layer_norm_backward(torch.ones(2, 3), torch.randn(2, 3), torch.ones(3))
    assert not any(part.requires_grad for part in parts)


# --- gelu ---------------------------------------------------------------------------------------


@PRECISION
def test_gelu_equals_torchs_exact_one_and_not_its_approximation(dtype, within):
    x = torch.linspace(-8, 8, 401, dtype=dtype)
    assert close(ref.gelu(x), F.gelu(x), within)
    assert not close(ref.gelu(x), F.gelu(x, approximate="tanh"), 4e-4)


def test_gelu_minus_its_mirror_image_is_x():
    """x Φ(x) − (−x) Φ(−x) = x, since Φ(x) + Φ(−x) = 1."""
    x = torch.randn(50, dtype=torch.float64) * 3
    assert close(ref.gelu(x) - ref.gelu(-x), x, 1e-14)
    assert torch.equal(ref.gelu(torch.tensor([1e4, -1e4])), torch.tensor([1e4, 0.0]))


def test_gelu_passes_gradcheck_and_takes_any_shape():
    assert torch.autograd.gradcheck(
        ref.gelu, torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    )
    assert ref.gelu(torch.tensor(0.0)).shape == ()
    assert ref.gelu(torch.zeros(0, 3)).shape == (0, 3)
