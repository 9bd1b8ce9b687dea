"""Chapter 9's probabilities, writing and grouped queries: by hand, by chance, and beside torch."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import PRECISION, assert_parity, close, some_mask
from torch import nn

from attention_by_hand import blocks
from solutions import language_model as ref

OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H = 8, 2
pytestmark = pytest.mark.seed(31)


# --- choosing the next token --------------------------------------------------------------------

FOUR = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64)


@OURS
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [0.1, 0.4, 0.2, 0.3]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),  # the squares
        ({"temperature": 0}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 9}, [0.1, 0.4, 0.2, 0.3]),
        ({"top_p": 0.39}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.69}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.71}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"top_p": 1.0}, [0.1, 0.4, 0.2, 0.3]),
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),  # 4/7 is more than a half, 4/10 is not
        ({"temperature": 0.5, "top_p": 0.5}, [0, 1, 0, 0]),  # and so is 16/30
    ],
)
def test_the_chances_by_hand(ours, how, expected):
    found = ours.next_token_probabilities(FOUR.log() + 5.0, **how)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


@OURS
def test_of_equal_tokens_the_lower_ids_stay(ours):
    flat = torch.zeros(6)
    third = [1 / 3] * 3 + [0.0] * 3
    for how in ({"top_k": 3}, {"top_p": 0.45}):
        assert ours.next_token_probabilities(flat, **how).tolist() == pytest.approx(third)
    zero = ours.next_token_probabilities(torch.tensor([1.0, 2.0, 2.0]), 0.0)
    assert zero.tolist() == [0, 1, 0]


@OURS
@pytest.mark.parametrize(
    "how", [{"temperature": -0.5}, {"top_k": 0}, {"top_k": -2}, {"top_p": 0.0}, {"top_p": 1.25}]
)
def test_numbers_that_make_no_sense_are_named(ours, how):
    (number,) = how.values()
    with pytest.raises(ValueError, match=str(number).replace(".", r"\.")):
        ours.next_token_probabilities(FOUR, **how)


@settings(max_examples=80)
@given(
    st.lists(st.integers(-8, 8), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    st.sampled_from([None, 1, 3, 20]),
    st.sampled_from([None, 0.2, 0.613, 1.0]),
)
def test_reference_and_block_agree(row, temperature, top_k, top_p):
    logits = torch.tensor([row, row[::-1]], dtype=torch.float64) / 3
    a, b = (m.next_token_probabilities(logits, temperature, top_k, top_p) for m in (ref, blocks))
    assert close(a, b, 1e-9)
    assert close(a.sum(-1), torch.ones(2, dtype=torch.float64), 1e-9)


# --- writing ------------------------------------------------------------------------------------


class TraceRecorder(nn.Module):
    """Counts up: after token t comes t + 1. Remembers what it was given, and how."""

    context_size = 4

    def __init__(self):
        super().__init__()
        self.part, self.seen = nn.Dropout(), []

    def forward(self, ids):
        self.seen.append((ids.tolist(), self.training, self.part.training, torch.is_grad_enabled()))
        return 50.0 * F.one_hot((ids + 1) % 10, 10).float()


def test_writing_goes_on_from_the_end_and_reads_what_fits():
    model = TraceRecorder().train()
    model.part.eval()
    ids = torch.tensor([[1, 2, 3], [6, 7, 8]])
    written = ref.generate(model, ids, 4)
    assert written.tolist() == [[1, 2, 3, 4, 5, 6, 7], [6, 7, 8, 9, 0, 1, 2]]
    assert [given[0][0] for given in model.seen] == [
        [1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6],
    ]  # fmt: skip
    assert {given[1:] for given in model.seen} == {(False, False, False)}
    assert (model.training, model.part.training) == (True, False)
    assert ref.generate(model, ids, 0).tolist() == ids.tolist()


def test_a_generator_draws_alone_and_moves_on():
    model, ids = blocks.GPT(9, 8, D, H, 1), torch.zeros(4, 1, dtype=torch.long)
    before = torch.get_rng_state()
    first, second = (torch.Generator().manual_seed(5) for _ in range(2))
    texts = [ref.generate(model, ids, 7, generator=g) for g in (first, first, second)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(texts[0], texts[2])
    assert not torch.equal(texts[0], texts[1])
    ref.generate(model, ids, 1)
    assert not torch.equal(before, torch.get_rng_state())


def test_what_is_drawn_is_drawn_with_the_models_chances():
    model = blocks.GPT(5, 4, D, H, 1)
    nn.init.normal_(model.tokens.weight)
    ids = torch.zeros(8000, 1, dtype=torch.long)
    with torch.no_grad():
        p = model(ids[:1])[0, -1].softmax(-1)
    drawn = ref.generate(model, ids, 1, generator=torch.Generator().manual_seed(1))[:, 1]
    shares = torch.bincount(drawn, minlength=5) / len(drawn)
    assert ((shares - p).abs() < 5 * (p * (1 - p) / len(drawn)).sqrt() + 1e-3).all()


# --- grouped queries ----------------------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize("masked", [False, True])
def test_with_as_many_key_heads_as_heads_it_is_multi_head_attention(dtype, within, masked):
    ours = ref.GroupedQueryAttention(D, 4, 4).to(dtype)
    block = blocks.MultiHeadAttention(D, 4, bias=False).to(dtype)
    block.load_state_dict(ours.state_dict())
    mask = some_mask(2, 1, 5, 5) if masked else None
    x = torch.randn(2, 5, D, dtype=dtype)
    assert_parity(
        ours,
        block,
        [x],
        within,
        call=lambda x: ours(x, mask)[0],
        their_call=lambda x: block(x, x, x, mask=mask)[0],
    )
    assert close(ours(x, mask)[1], block(x, x, x, mask=mask)[1], within)


@PRECISION
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_with_fewer_it_is_torchs_grouped_attention(dtype, within, kv_heads):
    ours = ref.GroupedQueryAttention(D, 4, kv_heads).to(dtype)
    x, mask = torch.randn(2, 5, D, dtype=dtype), some_mask(2, 1, 5, 5)
    q = ours.W_q(x).view(2, 5, 4, -1).transpose(1, 2)
    k, v = (layer(x).view(2, 5, kv_heads, -1).transpose(1, 2) for layer in (ours.W_k, ours.W_v))
    heads = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    expected = ours.W_o(heads.transpose(1, 2).reshape(2, 5, D))
    assert close(ours(x, mask)[0], expected, 10 * within)


def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients():
    ours, x = ref.GroupedQueryAttention(D, 4, 2), torch.randn(1, 3, D, requires_grad=True)
    mask = torch.tensor([[True, False, False], [False] * 3, [True] * 3])
    out, weights = ours(x, mask)
    assert (out[0, 1] == 0).all()
    assert (weights[0, :, 1] == 0).all()
    assert torch.autograd.grad(out.sum() + weights.square().sum(), x)[0].isfinite().all()


@pytest.mark.parametrize(("sizes", "named"), [((8, 3, 1), (8, 3)), ((8, 4, 3), (4, 3))])
def test_sizes_that_do_not_divide_are_named(sizes, named):
    both = "".join(rf"(?=.*\b{number}\b)" for number in named)
    with pytest.raises(ValueError, match=f"(?s){both}"):
        ref.GroupedQueryAttention(*sizes)
