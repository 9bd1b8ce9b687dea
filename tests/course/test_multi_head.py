"""Chapter 3's references against numbers by hand, plain loops, and torch's own modules.

The module and torch's agree forward and backward, to 1e-6 in float32 and to 1e-12 in float64, and
so do the page's loop, einsum, batched product and fused kernel.
"""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from scoring import largest_gap
from torch import Tensor, nn

from attention_by_hand.blocks import merge_heads
from benchmarks.page_cells import cell_of, run_cells
from solutions import multi_head as ref

PRECISION = pytest.mark.parametrize(
    ("dtype", "within"), [(torch.float32, 1e-6), (torch.float64, 1e-12)]
)
SIZES = pytest.mark.parametrize(
    ("B", "n_q", "n_k", "d_model", "num_heads"),
    [(2, 3, 6, 8, 2), (1, 5, 4, 6, 3), (3, 4, 4, 4, 1), (2, 1, 3, 5, 5)],
)
pytestmark = pytest.mark.seed(17)


def inputs(B, n_q, n_k, d_model, dtype=torch.float64):
    shapes = [(B, n, d_model) for n in (n_q, n_k, n_k)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def pair(d_model, num_heads, dtype=torch.float64, bias=True):
    """torch's module with random biases, and ours with its parameters."""
    theirs = nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True, dtype=dtype)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = ref.MultiHeadAttention(d_model, num_heads, bias=bias).to(dtype)
    return ref.load_torch_weights(ours, theirs), theirs


# --- moving numbers about -----------------------------------------------------------------------


@pytest.mark.parametrize(("B", "n", "H", "d_k"), [(1, 1, 1, 1), (2, 3, 4, 5), (3, 3, 3, 3)])
def test_every_number_goes_where_its_indices_say(B, n, H, d_k):
    x = torch.randn(B, n, H * d_k)
    split = ref.split_heads(x, H)
    assert split.shape == (B, H, n, d_k)
    for b, h, i, c in product(range(B), range(H), range(n), range(d_k)):
        assert split[b, h, i, c] == x[b, i, h * d_k + c]
    assert torch.equal(merge_heads(split), x)


@pytest.mark.parametrize(("n", "H"), [(4, 2), (6, 3), (6, 2)])
def test_a_reshape_alone_gives_a_head_few_positions_in_pieces(n, H):
    """Position i is filled with i, so that a head's entries say where they come from."""
    d = 2 * H
    x = torch.arange(n)[None, :, None].expand(1, n, d)
    right, wrong = ref.split_heads(x, H), x.reshape(1, H, n, d // H)
    assert wrong.shape == right.shape
    for h in range(H):
        assert right[0, h].unique().tolist() == list(range(n))
        assert wrong[0, h].unique().tolist() == list(range(h * n // H, (h + 1) * n // H))


def test_two_reshapes_cancel_and_hide_all_but_a_block_of_positions():
    """The colleague's module in the chapter's first question, with n = 6 and H = 3."""
    ours, _ = pair(12, 3)

    def by_reshape(x):
        q, k, v = (layer(x).reshape(1, 3, 6, 4) for layer in (ours.W_q, ours.W_k, ours.W_v))
        return ours.W_o((F.softmax(q @ k.mT / 2, -1) @ v).reshape(1, 6, 12))

    x = torch.randn(1, 6, 12, dtype=torch.float64)
    assert torch.equal(x.reshape(1, 3, 6, 4).reshape(1, 6, 12), x)
    for j in range(6):
        other = x.clone()
        other[0, j] += 1.0
        for attend, seen in ((by_reshape, j < 2), (lambda t: ours(t, t, t)[0], True)):
            assert bool((attend(other) - attend(x))[0, 0].abs().max() > 1e-6) == seen


@pytest.mark.parametrize(("d_model", "num_heads"), [(7, 2), (10, 4), (3, 5)])
def test_uneven_heads_are_an_error_that_names_both_numbers(d_model, num_heads):
    named = rf"(?=.*\b{d_model}\b)(?=.*\b{num_heads}\b)"
    with pytest.raises(ValueError, match=named):
        ref.split_heads(torch.zeros(1, 2, d_model), num_heads)
    with pytest.raises(ValueError, match=named):
        ref.MultiHeadAttention(d_model, num_heads)


def test_signatures_say_the_shapes_that_hold():
    check = jaxtyped(typechecker=beartype)
    assert check(ref.split_heads)(torch.zeros(2, 3, 4), 2).shape == (2, 2, 3, 2)
    three = [np.ones((n, 4)) for n in (2, 3, 3)]
    assert check(ref.multi_head_numpy)(*three, 2).shape == (2, 4)
    with pytest.raises(TypeCheckError):
        check(ref.multi_head_numpy)(three[0], three[1], three[0], 2)
    ours = ref.MultiHeadAttention(4, 2)
    output, weights = check(ref.MultiHeadAttention.forward)(
        ours, *inputs(2, 3, 5, 4, torch.float32)
    )
    assert (output.shape, weights.shape) == ((2, 3, 4), (2, 2, 3, 5))
    assert check(ref.head_importance)(ours, torch.ones(1, 2, 4)).shape == (2,)


# --- the same numbers, five ways ----------------------------------------------------------------


def by_plain_numbers(query, key, value, num_heads):
    """Multi-head attention without projections for lists of lists, one number at a time."""
    d_k = len(query[0]) // num_heads
    out = [[0.0] * len(query[0]) for _ in query]
    for h, i in product(range(num_heads), range(len(query))):
        own = range(h * d_k, (h + 1) * d_k)
        raw = [math.exp(sum(query[i][c] * k[c] for c in own) / math.sqrt(d_k)) for k in key]
        for share, v in zip(raw, value, strict=True):
            for c in own:
                out[i][c] += share / sum(raw) * v[c]
    return out


PAGE = Path(__file__).parents[2] / "book" / "03_multi_head.md"


def test_the_page_compares_five_ways_to_1e_6_and_1e_12():
    scope = {"math": math, "torch": torch, "F": F, "nn": nn} | vars(ref)
    scope = run_cells(PAGE, ["def looped(q, k, v, H):"], scope)
    code, loop, _ = cell_of(PAGE, "def compared").partition("\nfor ")
    exec(code, scope)
    assert loop
    for dtype, within in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        gaps = dict(scope["compared"](dtype))
        assert gaps.keys() == {"loop", "einsum", "batched", "fused"}
        assert all(0 <= gap < within for both in gaps.values() for gap in both)


def test_the_pages_handmade_heads_look_where_it_says():
    scope = {"torch": torch, "MultiHeadAttention": ref.MultiHeadAttention}
    scope = run_cells(PAGE, ["handmade = MultiHeadAttention"], scope)
    tokens, (before, after, initial, long) = scope["tokens"], scope["looks"][0]
    for i, token in enumerate(tokens):
        alike = [t[0] == token[0] for t in tokens]
        assert i == 0 or before[i, i - 1] > 0.9
        assert i == len(tokens) - 1 or after[i, i + 1] > 0.9
        assert initial[i, alike].sum() > 0.9
        assert long[i].argmax() == max(range(len(tokens)), key=lambda j: len(tokens[j]))
    for ends in (before[0], after[-1]):  # nobody to look at: evenly pale
        assert torch.allclose(ends, torch.full_like(ends, 1 / len(tokens)))


def gradients(output: Tensor, wanted):
    probe = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return torch.autograd.grad((output * probe).sum(), wanted)


def packed(ours, grads):
    """Our parameters' gradients, in W_q, W_k, W_v, W_o order, put as torch packs them."""
    by_name = dict(zip([n for n, _ in ours.named_parameters()], grads, strict=True))
    kinds = [kind for kind in ("weight", "bias") if f"W_q.{kind}" in by_name]
    inner = [torch.cat([by_name[f"W_{x}.{kind}"] for x in "qkv"]) for kind in kinds]
    return inner + [by_name[f"W_o.{kind}"] for kind in kinds]


@PRECISION
@SIZES
@pytest.mark.parametrize("bias", [True, False])
def test_our_module_equals_torchs_module(B, n_q, n_k, d_model, num_heads, dtype, within, bias):
    ours, theirs = pair(d_model, num_heads, dtype, bias)
    x = inputs(B, n_q, n_k, d_model, dtype)
    output, weights = ours(*x)
    their_output, their_weights = theirs(*x, average_attn_weights=False)
    assert largest_gap([output, weights], [their_output, their_weights]) <= within
    grads = gradients(output, [*x, *ours.parameters()])
    their_parameters = [theirs.in_proj_weight, *([theirs.in_proj_bias] if bias else [])]
    their_parameters += [theirs.out_proj.weight, *([theirs.out_proj.bias] if bias else [])]
    their_grads = gradients(their_output, [*x, *their_parameters])
    scale = max(1.0, *(float(g.abs().max()) for g in grads))
    assert largest_gap([*grads[:3], *packed(ours, grads[3:])], their_grads) <= within * scale


@SIZES
def test_numpy_and_plain_numbers_agree(B, n_q, n_k, d_model, num_heads):
    x = [t.detach() for t in inputs(B, n_q, n_k, d_model)]
    for b in range(B):
        found = ref.multi_head_numpy(*(t[b].numpy() for t in x), num_heads)
        by_hand = by_plain_numbers(*(t[b].tolist() for t in x), num_heads)
        assert np.abs(found - by_hand).max() < 1e-12


def test_gradients_are_those_of_finite_differences():
    ours, _ = pair(4, 2)
    mask = torch.tensor([1.0, 0.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *x: ours(*x, head_mask=mask), inputs(1, 2, 3, 4))


# --- multi_head_numpy ---------------------------------------------------------------------------


def test_numpy_keeps_the_dtype_and_stands_large_scores():
    x = np.random.RandomState(0).standard_normal((3, 4)).astype("float32")
    assert ref.multi_head_numpy(x, x, x, 2).dtype == np.float32
    whole = np.arange(8).reshape(2, 4)
    assert ref.multi_head_numpy(whole, whole, whole, 2).dtype == np.float64
    assert np.isfinite(ref.multi_head_numpy(1e4 * x, x, x, 2)).all()


# --- MultiHeadAttention -------------------------------------------------------------------------


@pytest.mark.parametrize("num_heads", [1, 2, 4])
def test_the_output_is_a_sum_over_the_heads(num_heads):
    """Concat(heads) W_o = Σ_h head_h W_o[h]: head masks add up."""
    ours, _ = pair(8, num_heads)
    x = inputs(2, 3, 5, 8)
    none = ours(*x, head_mask=torch.zeros(num_heads))[0]
    assert largest_gap([none], [ours.W_o.bias.expand_as(none)]) == 0.0
    alone = sum(ours(*x, head_mask=one)[0] - none for one in torch.eye(num_heads))
    assert largest_gap([alone + none], [ours(*x)[0]]) < 1e-12


def test_a_head_mask_leaves_the_returned_weights_alone():
    ours, _ = pair(6, 3)
    x = inputs(2, 3, 4, 6)
    assert torch.equal(ours(*x, head_mask=torch.tensor([0.0, 0.5, 2.0]))[1], ours(*x)[1])


def test_dropout_acts_on_the_weights_in_training_only():
    ours, _ = pair(4, 2)
    ours.dropout.p = 0.5
    with torch.no_grad():
        for layer in (ours.W_v, ours.W_o):
            layer.weight.copy_(torch.eye(4))
            layer.bias.zero_()
    query, key, _ = (t.detach() for t in inputs(1, 3, 4, 4))
    value = torch.eye(4, dtype=torch.float64)[None]
    still, weights = ours.eval()(query, key, value)
    assert torch.equal(still, ours(query, key, value)[0])
    ours.train()
    draws = torch.stack([ours(query, key, value)[0] for _ in range(2000)])
    ratio = draws / still
    assert bool(((ratio.abs() < 1e-9) | ((ratio - 2).abs() < 1e-9)).all())
    assert abs(float((ratio == 0).double().mean()) - 0.5) < 0.02  # 24000 draws: 6 standard errors
    assert torch.equal(ours(query, key, value)[1], weights)


# --- load_torch_weights and head_importance -----------------------------------------------------


def test_the_copy_is_a_copy():
    ours, theirs = pair(6, 2)
    before = [p.detach().clone() for p in ours.parameters()]
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(1.0)
    assert all(torch.equal(a, b) for a, b in zip(before, ours.parameters(), strict=True))
    assert all(p.requires_grad and p.is_leaf for p in ours.parameters())


def test_importance_is_the_length_of_what_a_head_adds():
    ours, _ = pair(6, 3)
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    importance = ref.head_importance(ours, x)
    assert not importance.requires_grad
    with torch.no_grad():
        _, weights = ours(x, x, x)
        v = ours.W_v(x)
        for h, found in enumerate(importance.tolist()):
            own = slice(2 * h, 2 * h + 2)
            lengths = []
            for b, i in product(range(2), range(4)):
                mixed = sum(weights[b, h, i, j] * v[b, j, own] for j in range(4))
                lengths.append(float((ours.W_o.weight[:, own] @ mixed).norm()))
            assert found == pytest.approx(sum(lengths) / 8, abs=1e-12)
