"""The course's blocks: what later chapters rely on, against torch's own module and plain sums."""

import math

import pytest
import torch
from parity import PRECISION, assert_parity, our_names
from torch import nn

from attention_by_hand import blocks
from attention_by_hand.blocks import MultiHeadAttention

D_MODEL, HEADS = 6, 3
BOTH = pytest.mark.parametrize("need_weights", [True, False])


def inputs(n_q=4, n_k=5, batch=(2,), dtype=torch.float64, d_model=D_MODEL):
    shapes = [(*batch, n, d_model) for n in (n_q, n_k, n_k)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def made(dtype=torch.float64, **kwargs):
    torch.manual_seed(3)
    return MultiHeadAttention(D_MODEL, HEADS, **kwargs).to(dtype)


def close(a, b, within=1e-12):
    return torch.allclose(a, b, rtol=0.0, atol=within)


@PRECISION
@BOTH
def test_equals_torch_with_the_same_parameters_forward_and_backward(dtype, within, need_weights):
    ours = made(dtype)
    twin = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, dtype=dtype)
    ours.load_state_dict(our_names(twin.state_dict()))
    mask = torch.rand(4, 5) > 0.3
    mask[:, 0] = True
    x = inputs(dtype=dtype)
    assert_parity(
        ours,
        twin,
        x,
        within,
        call=lambda *x: ours(*x, mask=mask, need_weights=need_weights)[0],
        their_call=lambda *x: twin(*x, attn_mask=~mask)[0],
    )
    if need_weights:
        _, weights = ours(*x, mask=mask)
        _, theirs = twin(*x, attn_mask=~mask, average_attn_weights=False)
        assert close(weights, theirs, within)


def test_without_weights_the_output_is_the_same_and_weights_are_none():
    ours, x = made(), inputs()
    mask = torch.rand(2, 1, 4, 5) > 0.4
    out, weights = ours(*x, mask=mask)
    fast, none = ours(*x, mask=mask, need_weights=False)
    assert none is None
    assert weights.shape == (2, HEADS, 4, 5)
    assert close(out, fast)


@BOTH
def test_a_query_that_may_attend_to_nothing_gets_zeros_forward_and_backward(need_weights):
    ours = made()
    x = inputs()
    mask = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    mask[1, 0, 2] = False
    out, weights = ours(*x, mask=mask, need_weights=need_weights)
    assert (out[1, 2] == 0).all()
    if need_weights:
        assert (weights[1, :, 2] == 0).all()
        assert close(weights.sum(-1)[0], torch.ones(HEADS, 4, dtype=torch.float64))
    grads = torch.autograd.grad(out.square().sum(), [*x, *ours.parameters()])
    assert all(torch.isfinite(g).all() for g in grads)
    assert (grads[0][1, 2] == 0).all()


@BOTH
def test_when_everything_is_masked_no_gradient_flows_and_none_is_nan(need_weights):
    ours = made()
    x = inputs()
    mask = torch.zeros(5, dtype=torch.bool)
    out, _ = ours(*x, mask=mask, need_weights=need_weights)
    assert (out == 0).all()
    for grad in torch.autograd.grad(out.sum(), [*x, *ours.parameters()]):
        assert (grad == 0).all()


@BOTH
def test_a_query_that_only_some_heads_leave_without_keys_keeps_the_others(need_weights):
    ours, x = made(), inputs()
    mask = torch.ones(HEADS, 4, 5, dtype=torch.bool)
    mask[0, 1] = False
    out, _ = ours(*x, mask=mask, need_weights=need_weights)
    without, _ = ours(*x, head_mask=torch.tensor([0.0, 1.0, 1.0]))
    assert close(out[:, 1], without[:, 1])
    assert close(out[:, 0], ours(*x)[0][:, 0])


@pytest.mark.parametrize(
    "shape", [(5,), (4, 5), (1, 4, 5), (2, 1, 1, 5), (2, 1, 4, 5), (HEADS, 4, 5), (2, HEADS, 4, 5)]
)
@BOTH
def test_masks_broadcast_to_batch_heads_queries_keys(shape, need_weights):
    ours, x = made(), inputs()
    mask = torch.rand(shape) > 0.4
    out, _ = ours(*x, mask=mask, need_weights=need_weights)
    whole, _ = ours(*x, mask=mask.expand(2, HEADS, 4, 5), need_weights=need_weights)
    assert close(out, whole)


def test_a_mask_that_is_not_boolean_is_refused():
    ours, x = made(), inputs()
    with pytest.raises(TypeError, match="boolean"):
        ours(*x, mask=torch.zeros(4, 5))


@BOTH
def test_head_mask_scales_what_a_head_contributes_and_leaves_the_weights(need_weights):
    ours, x = made(), inputs()
    weights = ours(*x)[1]
    whole, none = ours(*x)[0], ours(*x, head_mask=torch.zeros(HEADS))[0]
    parts = []
    for h in range(HEADS):
        only = torch.eye(HEADS)[h]
        out, kept = ours(*x, head_mask=only, need_weights=need_weights)
        assert not need_weights or torch.equal(kept, weights)
        parts.append(out - none)
    assert close(sum(parts) + none, whole)
    half, _ = ours(*x, head_mask=torch.tensor([0.5, 1.0, 1.0]), need_weights=need_weights)
    assert close(half, whole - 0.5 * parts[0])


@BOTH
def test_dropout_acts_in_training_only_and_the_returned_weights_are_those_before_it(need_weights):
    ours, x = made(dropout=0.5), inputs()
    ours.eval()
    still, weights = ours(*x)
    assert torch.equal(still, ours(*x)[0])
    ours.train()
    torch.manual_seed(0)
    draws = [ours(*x, need_weights=need_weights) for _ in range(3000)]
    assert not close(draws[0][0], draws[1][0], 1e-3)
    if need_weights:
        assert all(torch.equal(w, weights) for _, w in draws)
    samples = torch.stack([out for out, _ in draws])
    error = (samples.mean(0) - still).abs() / (samples.std(0) / math.sqrt(len(draws)))
    assert float(error.detach().max()) < 6  # the mean is the output without dropout


@BOTH
def test_scores_of_ten_thousand_give_finite_numbers(need_weights):
    ours = made(torch.float32)
    query, key, value = inputs(dtype=torch.float32)
    out, _ = ours(1e3 * query, 1e3 * key, value, need_weights=need_weights)
    grads = torch.autograd.grad(out.sum(), [query, key, value])
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(g).all() for g in grads)


def test_any_number_of_leading_dimensions():
    ours, x = made(), inputs(batch=(2, 3))
    out, weights = ours(*x)
    assert out.shape == (2, 3, 4, D_MODEL)
    assert weights.shape == (2, 3, HEADS, 4, 5)
    alone, alone_weights = ours(*(t[1, 2] for t in x))
    assert close(out[1, 2], alone)
    assert close(weights[1, 2], alone_weights)


def test_parameters_and_errors():
    names = {name for name, _ in MultiHeadAttention(8, 2, bias=False).named_parameters()}
    assert names == {"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"}
    count = sum(p.numel() for p in MultiHeadAttention(8, 4).parameters())
    assert count == 4 * (8 * 8 + 8)
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b3\b)(?=.*\b8\b)"):
        MultiHeadAttention(8, 3)


def test_device_comes_with_the_blocks(monkeypatch):
    monkeypatch.setenv("ATTENTION_DEVICE", "meta")
    assert blocks.device() == torch.device("meta")


# --- positions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "base"), [(8, 10000.0), (7, 10000.0), (1, 50.0), (6, 10.0)])
def test_sinusoids_number_by_number(d_model, base):
    table = blocks.sinusoidal_encoding(30, d_model, base)
    assert table.dtype == torch.float32
    assert table.shape == (30, d_model)
    for place in range(30):
        for column in range(d_model):
            angle = place / base ** (2 * (column // 2) / d_model)
            wanted = math.cos(angle) if column % 2 else math.sin(angle)
            assert float(table[place, column]) == pytest.approx(wanted, abs=1e-7)


def test_sinusoids_of_far_positions_keep_their_digits():
    table = blocks.sinusoidal_encoding(100_001, 4)
    assert float(table[100_000, 0]) == pytest.approx(math.sin(100_000), abs=1e-7)
    assert blocks.sinusoidal_encoding(0, 4).shape == (0, 4)
