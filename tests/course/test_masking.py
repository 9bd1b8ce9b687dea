"""Chapter 4's masks and softmax against numbers by hand, plain Python, and torch's own."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from parity import close, some_mask
from scoring import softmax_of_some
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention, additive_mask
from solutions import masking as ref

INF = float("inf")
FLOATS = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
pytestmark = pytest.mark.seed(23)


# --- the masks ----------------------------------------------------------------------------------


def test_padding_mask_of_three_sequences_by_hand():
    mask = ref.padding_mask(torch.tensor([3, 1, 0]), 4)
    assert mask.dtype == torch.bool
    assert mask.int().tolist() == [[[[1, 1, 1, 0]]], [[[1, 0, 0, 0]]], [[[0, 0, 0, 0]]]]


@pytest.mark.parametrize("max_len", [None, 5, 9])
def test_a_padding_mask_counts_as_many_tokens_as_there_are(max_len):
    lengths = torch.tensor([2, 5, 1, 4])
    mask = ref.padding_mask(lengths, max_len)
    assert mask.shape == (4, 1, 1, max_len or 5)
    assert mask.sum(dim=(1, 2, 3)).tolist() == lengths.tolist()
    assert not (mask[..., 1:] & ~mask[..., :-1]).any(), "a token after padding"


def test_a_length_above_max_len_is_an_error_that_names_both_numbers():
    with pytest.raises(ValueError, match=r"(?=.*\b17\b)(?=.*\b8\b)"):
        ref.padding_mask(torch.tensor([3, 17]), 8)


@pytest.mark.parametrize(("n_q", "n_k"), [*product(range(1, 6), repeat=2)])
def test_causal_mask_cell_by_cell(n_q, n_k):
    mask = ref.causal_mask(n_q, n_k)
    assert mask.shape == (n_q, n_k)
    assert mask.dtype == torch.bool
    assert mask[-1].all()
    for i, j in product(range(n_q), range(n_k)):
        steps_before_the_last_query, steps_before_the_last_key = n_q - 1 - i, n_k - 1 - j
        assert mask[i, j] == (steps_before_the_last_key >= steps_before_the_last_query)


def test_causal_mask_is_torchs_own_turned_round():
    theirs = nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.bool)
    assert torch.equal(ref.causal_mask(6), ~theirs)
    assert torch.equal(ref.causal_mask(6), ref.causal_mask(6, 6))


def test_causal_mask_goes_where_it_is_told():
    assert ref.causal_mask(2, 3, "meta").device.type == "meta"


@pytest.mark.parametrize(
    ("dtype", "least"),
    [
        (torch.float16, -65504.0),
        (torch.bfloat16, -(2.0**127) * (2 - 2**-7)),
        (torch.float32, -(2.0**127) * (2 - 2**-23)),
        (torch.float64, -(2.0**1023) * (2 - 2**-52)),
    ],
)
def test_additive_mask_in_numbers(dtype, least):
    mask = additive_mask(torch.tensor([[True, False], [False, True]]), dtype)
    assert mask.dtype == dtype
    assert mask.tolist() == [[0.0, least], [least, 0.0]]


@FLOATS
def test_additive_and_boolean_masks_agree_where_something_may_be_seen(dtype):
    scores, mask = 3 * torch.randn(4, 6, dtype=dtype), some_mask(4, 6)
    added = torch.softmax(scores + additive_mask(mask, dtype), dim=-1)
    assert torch.equal(added, ref.masked_softmax(scores, mask))


def test_finite_numbers_for_infinity_leak_do_not_fit_or_add_up():
    assert torch.tensor(-1e4).half().item() == -1e4
    assert torch.tensor(-1e9).half().item() == -INF
    for number, ahead in ((-100.0, 120.0), (-1e4, 10_020.0)):
        weights = F.softmax(torch.tensor([0.0, ahead + number]), dim=-1)
        assert weights[1] > 0.99, "the hidden key has taken all the weight"
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        least = additive_mask(torch.tensor(False), dtype)
        assert least.isfinite() and (least + least).item() == -INF


def test_two_additive_masks_show_a_query_what_it_must_not_see():
    padding = torch.tensor([False, False, True, True])  # on the left
    row = (additive_mask(padding) + additive_mask(ref.causal_mask(4)))[0]
    assert F.softmax(row, dim=-1).tolist() == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3])
    assert not (padding & ref.causal_mask(4))[0].any()


def ask(attend):
    """The output over values 1 and 2 of equal scores: with the second key False, with both hidden.

    `attend` takes a boolean mask `(1, 2)`.
    """
    first = attend(torch.tensor([[True, False]])).item()
    return first, attend(torch.tensor([[first != 1.0] * 2])).item()


def test_the_libraries_at_hand_answer_as_the_page_says():
    one, two = torch.zeros(1, 1, 1), torch.tensor([[[1.0], [2.0]]])
    module = nn.MultiheadAttention(1, 1, bias=False, batch_first=True).eval()
    block = MultiHeadAttention(1, 1, bias=False).eval()
    for parameter in (*module.parameters(), *block.parameters()):
        nn.init.ones_(parameter)

    def fused(mask):
        return F.scaled_dot_product_attention(one, two, two, attn_mask=mask)

    may_attend, is_hidden = 1.0, 2.0
    assert ask(lambda mask: ref.masked_attention(one, two, two, mask)[0]) == (may_attend, 0.0)
    assert ask(lambda mask: block(one, two, two, mask=mask)[0]) == (may_attend, 0.0)
    assert ask(fused) == (may_attend, 0.0)
    assert ask(lambda mask: fused(torch.zeros(1, 2).masked_fill(~mask, -INF)))[1] == 0.0
    assert ask(lambda mask: fused(additive_mask(mask)))[1] == 1.5
    polarity, nothing = ask(lambda mask: module(one, two, two, attn_mask=mask)[0])
    assert polarity == is_hidden and math.isnan(nothing)
    quick = ask(lambda mask: module(one, two, two, attn_mask=mask, need_weights=False)[0])
    assert quick == (is_hidden, 0.0)


def test_nan_comes_back_through_a_sum_and_not_through_masked_fill():
    hidden = torch.tensor([[False, True], [True, True]])
    infinite = torch.zeros(2, 2).masked_fill(hidden, -INF)
    for hide, second_row in (
        (lambda scores: scores + infinite, [True, True]),
        (lambda scores: scores.masked_fill(hidden, -INF), [False, False]),
    ):
        scores = torch.zeros(2, 2, requires_grad=True)
        F.softmax(hide(scores), dim=-1).nan_to_num(0.0)[0, 0].backward()
        assert scores.grad[0].isfinite().all()
        assert scores.grad[1].isnan().tolist() == second_row


# --- masked_softmax -----------------------------------------------------------------------------


def test_masked_softmax_row_by_row_in_plain_python():
    scores, mask = torch.randn(3, 2, 4, 5, dtype=torch.float64), some_mask(3, 1, 4, 5)
    mask[1, :, 2] = False
    weights = ref.masked_softmax(scores, mask)
    for index in product(range(3), range(2), range(4)):
        allowed = mask.expand_as(scores)[index].tolist()
        row = torch.tensor(softmax_of_some(scores[index].tolist(), allowed), dtype=torch.float64)
        assert close(weights[index], row, 1e-15)


@FLOATS
def test_what_is_forbidden_gets_exactly_nothing_and_may_be_anything(dtype):
    scores, mask = torch.randn(5, 7).to(dtype), some_mask(5, 7)
    weights = ref.masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert (weights[~mask] == 0).all()
    for anything in (1e4, -1e4, INF, -INF, math.nan):
        assert torch.equal(ref.masked_softmax(scores.masked_fill(~mask, anything), mask), weights)


@pytest.mark.parametrize("offset", [1e4, -1e4, 1e300])
def test_the_visible_scores_may_all_be_shifted(offset):
    scores, mask = torch.zeros(3, 4, dtype=torch.float64) + offset, some_mask(3, 4)
    expected = mask.double() / mask.sum(-1, keepdim=True)
    assert close(ref.masked_softmax(scores, mask), expected, 1e-15)


def test_nothing_to_attend_to_gives_zeros_forward_and_backward():
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True, True], [False] * 4, [False] * 4])
    weights = ref.masked_softmax(scores, mask)
    assert (weights[1:] == 0).all()
    assert close(weights[0].sum(), torch.tensor(1.0, dtype=torch.float64), 1e-12)
    (grad,) = torch.autograd.grad((weights * torch.randn(3, 4)).sum(), scores)
    assert (grad[1:] == 0).all()
    assert (grad[0, [0, 2, 3]] != 0).all()
    assert grad[0, 1] == 0
    assert ref.masked_softmax(torch.full((2, 3), -INF)).tolist() == [[0.0] * 3] * 2


def test_masked_softmax_passes_gradcheck_with_fully_masked_rows():
    mask = some_mask(2, 1, 3, 4)
    mask[0, 0, 1] = mask[1] = False
    scores = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: ref.masked_softmax(s, mask), scores)
