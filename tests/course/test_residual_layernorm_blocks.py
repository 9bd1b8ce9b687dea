"""Chapter 6's feed-forward network and residuals against torch's own layers."""

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, assert_parity, close, our_names, shaken
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention
from solutions import residual_layernorm as ref

NORM_FIRST = pytest.mark.parametrize("norm_first", [False, True])
pytestmark = pytest.mark.seed(61)


@PRECISION
@pytest.mark.parametrize("activation", [torch.relu, F.gelu])
def test_feed_forward_equals_torchs_encoder_layers(dtype, within, activation):
    """torch keeps it inside nn.TransformerEncoderLayer: linear1, linear2 and _ff_block."""
    torchs = nn.TransformerEncoderLayer(
        8, 2, 20, dropout=0.0, activation=activation, batch_first=True
    )
    torchs = shaken(torchs).to(dtype)
    ours = ref.FeedForward(8, 20, activation=activation).to(dtype)
    names = [*ours.state_dict()]
    assert names == ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"]
    ours.load_state_dict({name: torchs.state_dict()[name] for name in names})

    class Theirs(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = torchs.linear1, torchs.linear2

        def forward(self, x):
            return torchs._ff_block(x)

    assert_parity(ours, Theirs(), [torch.randn(3, 5, 8, dtype=dtype)], within)


def test_feed_forward_drops_hidden_features_in_training_only():
    layer = ref.FeedForward(40, 40, dropout=0.3)
    state = {"weight": torch.eye(40), "bias": torch.zeros(40)}
    layer.linear1.load_state_dict(state)
    layer.linear2.load_state_dict(state)
    x = torch.ones(100, 40)
    assert torch.equal(layer.eval()(x), x)
    values, counts = layer.train()(x).unique(return_counts=True)
    assert close(values, torch.tensor([0.0, 1 / 0.7]), 1e-6)
    assert abs(counts[0].item() / 4000 - 0.3) < 0.05


# --- Residual -----------------------------------------------------------------------------------


@PRECISION
@NORM_FIRST
def test_two_residuals_make_torchs_encoder_layer(dtype, within, norm_first):
    """Attention and feed-forward, each in a Residual, with torch's weights."""
    torchs = nn.TransformerEncoderLayer(
        8, 2, 20, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    torchs = shaken(torchs).to(dtype)

    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = MultiHeadAttention(8, 2)

        def forward(self, x, mask=None):
            return self.heads(x, x, x, mask=mask)[0]

    class Layer(nn.Module):
        """Both residuals in a tuple; their parts have torch's names."""

        def __init__(self):
            super().__init__()
            attention = ref.Residual(SelfAttention(), 8, norm_first=norm_first)
            think = ref.Residual(ref.FeedForward(8, 20), 8, norm_first=norm_first)
            self.residuals = (attention, think)
            self.self_attn, self.norm1 = attention.sublayer.heads, attention.norm
            self.norm2 = think.norm
            self.linear1, self.linear2 = think.sublayer.linear1, think.sublayer.linear2

        def forward(self, x):
            attention, think = self.residuals
            return think(attention(x, mask=mask))

    mask = torch.ones(5, 5).tril().bool()
    ours = Layer().to(dtype)
    ours.load_state_dict(our_names(torchs.state_dict()))
    x = torch.randn(3, 5, 8, dtype=dtype)
    assert_parity(ours, torchs, [x], within, their_call=lambda x: torchs(x, src_mask=~mask))


@NORM_FIRST
def test_a_sublayer_that_says_nothing_leaves_x_or_its_norm(norm_first):
    x = torch.randn(2, 3, 6)
    layer = ref.Residual(torch.zeros_like, 6, norm_first=norm_first)
    assert torch.equal(layer(x), x if norm_first else F.layer_norm(x, (6,)))


@NORM_FIRST
def test_everything_but_x_reaches_the_sublayer_as_it_is(norm_first):
    seen = {}

    def sublayer(x, *args, **kwargs):
        seen.update(args=args, kwargs=kwargs)
        return x

    memory, mask = torch.randn(3), object()
    ref.Residual(sublayer, 4, norm_first=norm_first)(torch.randn(2, 4), memory, 7, mask=mask)
    assert seen["args"][0] is memory
    assert seen["args"][1] == 7
    assert seen["kwargs"] == {"mask": mask}


@NORM_FIRST
def test_dropout_in_a_residual_spares_x(norm_first):
    x = torch.arange(50.0).repeat(200, 1)
    layer = ref.Residual(torch.ones_like, 50, dropout=0.4, norm_first=True)
    values, counts = (layer.train()(x) - x).round(decimals=4).unique(return_counts=True)
    assert close(values, torch.tensor([0.0, 1 / 0.6]), 1e-3)
    assert abs(counts[0].item() / 10_000 - 0.4) < 0.03
    everything = ref.Residual(nn.Linear(50, 50), 50, dropout=1.0, norm_first=norm_first)
    assert torch.equal(everything(x), x if norm_first else F.layer_norm(x, (50,)))


# --- DropPath -----------------------------------------------------------------------------------


def test_drop_path_drops_whole_samples_at_the_rate_it_says():
    layer, x = ref.DropPath(0.3).train(), torch.rand(4000, 2, 3) + 1
    factors = layer(x) / x
    assert close(factors.amin((1, 2)), factors.amax((1, 2)), 1e-6)
    values, counts = factors[:, 0, 0].round(decimals=4).unique(return_counts=True)
    assert close(values, torch.tensor([0.0, 1 / 0.7]), 1e-3)
    assert abs(counts[0].item() / 4000 - 0.3) < 0.04


@pytest.mark.parametrize("shape", [(6,), (6, 2), (6, 2, 3, 1)])
def test_drop_path_is_the_identity_in_eval_and_without_p(shape):
    x = torch.randn(shape)
    assert torch.equal(ref.DropPath(0.9).eval()(x), x)
    assert torch.equal(ref.DropPath(0.0).train()(x), x)
    assert torch.equal(ref.DropPath(1.0).train()(x), torch.zeros(shape))


def test_eval_mode_draws_nothing():
    before = torch.get_rng_state()
    ref.DropPath(0.5).eval()(torch.ones(4, 2))
    assert torch.equal(torch.get_rng_state(), before)


# --- chunked_feed_forward -----------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 14))
@settings(deadline=None, max_examples=80)
def test_chunks_of_any_size_give_the_same(n, size):
    layer = ref.FeedForward(4, 9).double()
    x = torch.randn(2, n, 4, dtype=torch.float64, requires_grad=True)
    seen = []

    def watched(chunk):
        seen.append(chunk.shape[1])
        return layer(chunk)

    out = ref.chunked_feed_forward(watched, x, size)
    assert close(out, layer(x), 1e-14)
    assert sum(seen) == n
    assert seen == [n] if size == 0 else max(seen) <= size and len(seen) == -(-n // size)
    (mine,) = torch.autograd.grad(out.square().sum(), x)
    (wanted,) = torch.autograd.grad(layer(x).square().sum(), x)
    assert close(mine, wanted, 1e-12)


# --- shapes -------------------------------------------------------------------------------------


def checked(function):
    return jaxtyped(typechecker=beartype)(function)


def test_shapes_in_the_signatures_hold():
    grad, x, weight = torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.ones(4)
    checked(ref.layer_norm_backward)(grad, x, weight)
    checked(ref.gelu)(x)
    checked(ref.chunked_feed_forward)(ref.FeedForward(4, 8), x, 2)
    modules = [ref.LayerNorm(4), ref.FeedForward(4, 8), ref.DropPath(0.5)]
    modules.append(ref.Residual(ref.FeedForward(4, 8), 4))
    for module in modules:
        checked(type(module).forward)(module, x)


def test_a_weight_of_another_size_is_told_apart():
    with pytest.raises(TypeCheckError):
        checked(ref.layer_norm_backward)(torch.randn(2, 4), torch.randn(2, 4), torch.ones(3))
