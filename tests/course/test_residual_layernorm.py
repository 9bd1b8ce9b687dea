"""Chapter 6's references against numbers by hand, central differences, and torch's own layers."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import PRECISION, assert_parity, assert_same_gradients, close, double, shaken
from torch import nn

from solutions import residual_layernorm as ref

SHAPES = pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (2, 1, 4, 8)])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(61)


def normal_density(t):
    return math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)


def test_four_numbers_by_hand():
    """1, 1, 5, 5: mean 3, variance 4; ε = 0 leaves −1, −1, 1, 1; then times 10, plus 1, 2, 3, 4."""
    norm = ref.LayerNorm(4, eps=0.0).double()
    assert close(norm(double(1, 1, 5, 5)), double(-1, -1, 1, 1), 1e-15)
    norm.load_state_dict({"weight": double(10, 10, 10, 10), "bias": double(1, 2, 3, 4)})
    assert close(norm(double(1, 1, 5, 5)), double(-9, -8, 13, 14), 1e-14)


def test_eps_stands_under_the_root():
    """Variance 9 and ε = 16 make √25."""
    norm = ref.LayerNorm(2, eps=16.0).double()
    assert close(norm(double(-3, 3)), double(-0.6, 0.6), 1e-15)


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


@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=9),
    st.floats(-1e3, 1e3),
    st.floats(0.5, 100),
)
@settings(deadline=None, max_examples=60)
def test_layer_norm_does_not_see_a_shift_or_a_scale(numbers, shift, scale):
    x = double(*numbers)
    norm = ref.LayerNorm(len(numbers), eps=0.0).double()
    if x.std() < 1e-3:
        return
    assert close(norm(scale * x + shift), norm(x), 1e-6)


def test_tokens_do_not_see_each_other():
    norm, x = shaken(ref.LayerNorm(6)), torch.randn(3, 4, 6)
    together = norm(x)
    for b, i in product(range(3), range(4)):
        assert close(norm(x[b, i]), together[b, i], 1e-6)


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


def test_layer_norm_backward_by_hand():
    """x = 1, 1, 5, 5 has x̂ = −1, −1, 1, 1 and σ = 2. Of g = 8, 0, 0, 0 the mean is 2 and the mean
    of g · x̂ is −2: (8, 0, 0, 0) − 2 + 2 x̂ = 4, −4, 0, 0, divided by 2.
    """
    parts = ref.layer_norm_backward(
        double(8, 0, 0, 0), double(1, 1, 5, 5), double(1, 1, 1, 1), eps=0.0
    )
    assert close(parts[0], double(2, -2, 0, 0), 1e-14)
    assert close(parts[1], double(-8, 0, 0, 0), 1e-14)
    assert close(parts[2], double(8, 0, 0, 0), 0.0)


def test_the_gradient_of_x_is_orthogonal_to_shifts_and_scales():
    """Moving x along (1, …, 1) or along itself changes nothing, so no gradient points there."""
    grad, x, weight = (torch.randn(s, dtype=torch.float64) for s in ((7, 6), (7, 6), (6,)))
    grad_x, *_ = ref.layer_norm_backward(grad, x, weight, eps=0.0)
    assert close(grad_x.sum(-1), torch.zeros(7, dtype=torch.float64), 1e-12)
    assert close((grad_x * x).sum(-1), torch.zeros(7, dtype=torch.float64), 1e-12)


def test_layer_norm_backward_works_in_inference_mode_and_records_nothing():
    with torch.inference_mode():
        parts = ref.layer_norm_backward(torch.ones(2, 3), torch.randn(2, 3), torch.ones(3))
    assert not any(part.requires_grad for part in parts)


# --- gelu ---------------------------------------------------------------------------------------


def test_gelu_is_x_times_the_area_under_the_normal_density():
    """Simpson's rule on the density from −12 up to x."""
    for x in (-3.0, -1.0, -0.2, 0.0, 0.5, 2.0, 4.0):
        n = 2000
        h = (x + 12) / n
        heights = [normal_density(-12 + i * h) for i in range(n + 1)]
        area = (
            h / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2]))
        )
        assert close(ref.gelu(double(x)), double(x * area), 1e-10)


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
