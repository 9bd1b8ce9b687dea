"""Chapter 2's modules and cosine scores against numbers by hand, plain loops, and torch's own."""

import math

import pytest
import torch
import torch.nn.functional as F
from parity import PRECISION
from scoring import assert_same, largest_gap, tensors
from torch import nn

from solutions import attention_scoring as ref

pytestmark = pytest.mark.seed(17)


def additive(query_size, key_size, hidden_size, dropout=0.0, dtype=torch.float64):
    return ref.AdditiveAttention(query_size, key_size, hidden_size, dropout).to(dtype)


def additive_pair_by_pair(ours, query, key, value):
    """w_vᵀ tanh(W_q q + W_k k) for one pair at a time."""
    tables = []
    for b in range(len(query)):
        scores = [
            [
                ours.w_v.weight[0] @ torch.tanh(ours.W_q.weight @ q + ours.W_k.weight @ k)
                for k in key[b]
            ]
            for q in query[b]
        ]
        tables.append(torch.stack([F.softmax(torch.stack(row), 0) for row in scores]))
    weights = torch.stack(tables)
    return torch.stack([w @ v for w, v in zip(weights, value, strict=True)]), weights


@PRECISION
@pytest.mark.parametrize(
    ("B", "n_q", "n_k", "sizes"),
    [(2, 3, 5, (4, 3, 6, 2)), (1, 1, 4, (2, 5, 3, 3)), (3, 2, 1, (3, 3, 3, 3))],
)
def test_additive_attention_is_its_formula_pair_by_pair(B, n_q, n_k, sizes, dtype, within):
    q, k, h, d_v = sizes
    ours = additive(q, k, h, dtype=dtype)
    x = tensors((B, n_q, q), (B, n_k, k), (B, n_k, d_v), dtype=dtype)
    output, weights = ours(*x)
    by_pairs = additive_pair_by_pair(ours, *x)
    assert_same(output, by_pairs[0], [*x, *ours.parameters()], within)
    assert largest_gap([weights], [by_pairs[1]]) <= within


@pytest.mark.parametrize(("q", "k", "h"), [(4, 3, 6), (1, 1, 1), (20, 2, 8)])
def test_additive_attention_has_h_times_one_plus_q_plus_k_parameters(q, k, h):
    ours = additive(q, k, h)
    assert sum(p.numel() for p in ours.parameters()) == h * (1 + q + k)
    assert {n: tuple(p.shape) for n, p in ours.named_parameters()} == {
        "W_q.weight": (h, q),
        "W_k.weight": (h, k),
        "w_v.weight": (1, h),
    }


def test_additive_dropout_acts_on_the_weights_in_training_only():
    ours = additive(3, 4, 5, dropout=0.25)
    query, key = (t.detach() for t in tensors((1, 3, 3), (1, 4, 4)))
    value = torch.eye(4, dtype=torch.float64)[None]
    still, weights = ours.eval()(query, key, value)
    assert torch.equal(still, weights)
    assert torch.equal(still, ours(query, key, value)[0])
    ours.train()
    with torch.no_grad():
        draws = torch.stack([ours(query, key, value)[0] for _ in range(2000)])
    ratio = draws / still
    assert bool(((ratio.abs() < 1e-9) | ((ratio - 4 / 3).abs() < 1e-9)).all())
    assert abs(float((ratio == 0).double().mean()) - 0.25) < 0.02  # 24000: 7 standard errors
    assert torch.equal(ours(query, key, value)[1], weights)


def kept_for_backward(attend, *inputs):
    """Numbers in the tensors that a call keeps for its backward pass."""
    kept = {}

    def note(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor  # alive, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        attend(*inputs)
    return sum(t.untyped_storage().nbytes() // t.element_size() for t in kept.values())


def test_additive_attention_keeps_h_numbers_for_every_pair():
    """The cost that the chapter measures: B·n_q·n_k·h numbers, where a dot product keeps one."""
    n, h = 96, 16
    inputs = tensors(*[(1, n, 8)] * 3, dtype=torch.float32)
    ours = additive(8, 8, h, dtype=torch.float32)
    by_tanh = kept_for_backward(ours, *inputs)
    by_dots = kept_for_backward(ref.scaled_dot_product_attention, *inputs)
    assert n * n * h <= by_tanh < n * n * (h + 2)
    assert n * n <= by_dots < n * n * 1.5
    by_kernel = kept_for_backward(F.scaled_dot_product_attention, *(x[None] for x in inputs))
    assert by_kernel < n * n / 2  # no table of weights


# --- bilinear attention -------------------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize(("q", "k"), [(4, 3), (1, 5), (3, 3)])
def test_bilinear_attention_is_torchs_bilinear(q, k, dtype, within):
    ours = ref.BilinearAttention(q, k).to(dtype)
    x = tensors((2, 3, q), (2, 5, k), (2, 5, 2), dtype=dtype)
    pairs = x[0][:, :, None].expand(2, 3, 5, q), x[1][:, None].expand(2, 3, 5, k)
    scores = F.bilinear(*(p.contiguous() for p in pairs), ours.W[None])[..., 0] / (q * k) ** 0.25
    output, weights = ours(*x)
    assert_same(output, scores.softmax(-1) @ x[2], [*x, ours.W], within)
    assert largest_gap([weights], [scores.softmax(-1)]) <= within


@pytest.mark.parametrize(("q", "k"), [(64, 64), (256, 16)])
def test_the_fourth_root_fits_xavier_and_not_unit_variance(q, k):
    """With unit-variance q and k, var = 2√(qk)/(q + k) ≤ 1 for Xavier's W, √(qk) for a unit one."""
    query, key = torch.randn(4000, q), torch.randn(4000, k)
    W = nn.init.xavier_normal_(torch.empty(q, k))
    for scale, expected in ((1.0, 2 * math.sqrt(q * k) / (q + k)), (None, math.sqrt(q * k))):
        form = W if scale else torch.randn(q, k)
        scores = (query @ form * key).sum(-1) / (q * k) ** 0.25
        assert scores.var().item() == pytest.approx(expected, rel=0.25)


# --- cosine scores ------------------------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_cosine_scores_are_torchs_cosine_similarity(batch, dtype, within):
    x = tensors((*batch, 3, 4), (*batch, 5, 4), dtype=dtype)
    theirs = F.cosine_similarity(x[0][..., :, None, :], x[1][..., None, :, :], dim=-1)
    assert_same(ref.cosine_scores(*x), theirs, x, within)


def test_cosines_stay_in_bounds_and_stand_zero_vectors():
    x = torch.randn(400, 3)
    scores = ref.cosine_scores(x, 5 * x)
    assert scores.abs().max().item() <= 1.0
    assert scores.diagonal().min().item() > 1 - 1e-6
    zero = torch.zeros(2, 3, requires_grad=True)
    scores = ref.cosine_scores(zero, x, eps=1e-6)
    assert not scores.any()
    (gradient,) = torch.autograd.grad(scores.sum(), zero)
    assert bool(torch.isfinite(gradient).all())


# --- self-attention -----------------------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize(
    ("B", "n", "sizes"), [(2, 5, (4, 3, 2)), (1, 1, (3, 2, 4)), (3, 4, (4, 4, 4))]
)
def test_self_attention_is_the_fused_kernel_on_projections(B, n, sizes, dtype, within):
    ours = ref.SelfAttention(*sizes).to(dtype)
    (x,) = tensors((B, n, sizes[0]), dtype=dtype)
    projected = [x @ layer.weight.T for layer in (ours.W_q, ours.W_k, ours.W_v)]
    theirs = F.scaled_dot_product_attention(*projected)
    assert_same(ours(x)[0], theirs, [x, *ours.parameters()], within)


def test_self_attentions_parameters():
    ours = ref.SelfAttention(6, 3, 5)
    assert {n: tuple(p.shape) for n, p in ours.named_parameters()} == {
        "W_q.weight": (3, 6),
        "W_k.weight": (3, 6),
        "W_v.weight": (5, 6),
    }
