"""Chapter 10's references against torch's own layer, exact chances, and numbers worked by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, close, double, our_names, shaken, some_mask, tokens
from scipy.stats import chi2
from torch import nn

from attention_by_hand import blocks
from attention_by_hand.exercises.bert import masking_inputs
from solutions import bert as ref

OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H = 8, 2
pytestmark = pytest.mark.seed(37)


# --- what BERT reads ----------------------------------------------------------------------------


def test_embeddings_worked_by_hand():
    """(1, 2, 0, 1) + (0, 0, 3, 2) + (0, 0, 0, 1) has the mean 5/2 and the variance 5/4."""
    layer = blocks.BertEmbeddings(3, 4, max_len=2).double()
    with torch.no_grad():
        layer.tokens.weight[2] = double(1, 2, 0, 1)
        layer.positions.weight[0] = double(0, 0, 3, 2)
        layer.segments.weight[1] = double(0, 0, 0, 1)
        layer.segments.weight[0] = double(3, 2, 0, -3)  # with it, the sum is (4, 4, 3, 0)
    both = layer(torch.tensor([[2], [2]]), torch.tensor([[1], [0]]))[:, 0]
    assert close(both[0], double(-3, -1, 1, 3) / 5**0.5, 1e-11)
    assert close(both[1], double(5, 5, 1, -11) / 43**0.5, 1e-11)  # mean 11/4, variance 43/16
    assert torch.equal(layer(torch.tensor([[2]]))[0, 0], both[1])


def test_a_text_longer_than_the_positions_is_refused():
    layer = blocks.BertEmbeddings(7, D, 5)
    assert layer(tokens(1, 5)).shape == (1, 5, D)
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b6\b)(?=.*\b5\b)"):
        layer(tokens(1, 6))


# --- the layer ----------------------------------------------------------------------------------


def torchs_names(state):
    """Torch's names by ours: its self_attn is our attention."""
    return {name.replace("self_attn", "attention"): t for name, t in our_names(state).items()}


def torchs_layer(dtype, dropout=0.0):
    """torch's post-norm layer with the exact GELU and BERT's eps."""
    sizes = (D, H, 4 * D, dropout, "gelu")
    layer = nn.TransformerEncoderLayer(
        *sizes, layer_norm_eps=1e-12, batch_first=True, norm_first=False, dtype=dtype
    )
    return shaken(layer)


@OURS
@PRECISION
@pytest.mark.parametrize("chunk_size", [0, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_is_torchs_post_norm_layer_with_gelu(ours, dtype, within, masked, chunk_size):
    theirs = torchs_layer(dtype).eval()
    layer = ours.BertLayer(D, H, 4 * D, chunk_size=chunk_size).to(dtype)
    layer.load_state_dict(torchs_names(theirs.state_dict()))
    real = some_mask(3, 5)
    x = torch.randn(3, 5, D, dtype=dtype)
    out = layer(x, real[:, None, None]) if masked else layer(x)
    expected = theirs(x, src_key_padding_mask=~real) if masked else theirs(x)
    assert close(out, expected, 5 * within)
    probe = torch.randn_like(out) / out[..., 0].numel()
    grads = torch.autograd.grad((out * probe).sum(), [*layer.parameters()])
    named = dict(zip((n for n, _ in layer.named_parameters()), grads, strict=True))
    their_parameters = dict(theirs.named_parameters())
    their_grads = torch.autograd.grad((expected * probe).sum(), [*their_parameters.values()])
    expected_grads = torchs_names(dict(zip(their_parameters, their_grads, strict=True)))
    assert named.keys() == expected_grads.keys()
    largest = max(g.abs().max() for g in expected_grads.values())
    for name, grad in named.items():
        assert (grad - expected_grads[name]).abs().max() <= 10 * within * largest, name


@OURS
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_in_chunks_the_layer_is_the_whole(ours, size):
    whole = shaken(ours.BertLayer(D, H, 12).double()).eval()
    chunked = ours.BertLayer(D, H, 12, chunk_size=size).double().eval()
    chunked.load_state_dict(whole.state_dict())
    x, mask = torch.randn(3, 7, D, dtype=torch.float64), some_mask(3, 1, 7, 7)
    assert close(chunked(x, mask), whole(x, mask), 1e-12)


@OURS
def test_dropout_is_that_of_torchs_layer_apart_from_the_one_inside(ours):
    """With p = 1 in training, both return what two norms make of x."""
    theirs = torchs_layer(torch.float64, dropout=1.0)
    layer = ours.BertLayer(D, H, 4 * D, dropout=1.0).double()
    layer.load_state_dict(torchs_names(theirs.state_dict()))
    x = torch.randn(2, 4, D, dtype=torch.float64)
    assert close(layer.train()(x), theirs.train()(x), 1e-12)
    weights = layer.attention(x, x, x)
    assert torch.equal(weights[0], layer.attention.W_o.bias.expand_as(x))


# --- blanks -------------------------------------------------------------------------------------


def tails(found, trials, chance):
    """The exact chances of so few hits or fewer, and of so many or more."""
    k = torch.arange(trials + 1, dtype=torch.float64)
    ways = math.lgamma(trials + 1) - torch.lgamma(k + 1) - torch.lgamma(trials - k + 1)
    pmf = (ways + k * math.log(chance) + (trials - k) * math.log1p(-chance)).exp()
    return pmf[: found + 1].sum().item(), pmf[found:].sum().item()


def likely(where, chance):
    return min(tails(int(where.sum()), where.numel(), chance)) > 1e-6


def test_the_tails_of_a_coin():
    """Of three tosses, none or one is heads in 4 of 8 cases, one or more in 7."""
    assert tails(1, 3, 0.5) == pytest.approx((4 / 8, 7 / 8))


def test_blanks_come_as_often_as_they_should():
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(10, 1_000, (400, 500), generator=generator)
    ids[:, 0], ids[:, -1] = 1, 2
    inputs, labels = ref.mask_tokens(ids, 3, 1_000, (1, 2), generator=generator)
    chosen = labels != -100
    assert not chosen[:, [0, -1]].any()
    assert likely(chosen[:, 1:-1], 0.15)
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    became, truth = inputs[chosen], ids[chosen]
    assert likely(became == 3, 0.8 + 0.1 / 1_000)
    assert likely(became == truth, 0.1 + 0.1 / 1_000)
    assert likely((became != 3) & (became != truth), 0.1 * (1 - 2 / 1_000))
    assert not likely(chosen[:, 1:-1], 0.14)  # so many draws can tell


def test_all_ids_come_as_often():
    ids = torch.zeros(300, 400, dtype=torch.long)
    generator = torch.Generator().manual_seed(6)
    inputs, labels = ref.mask_tokens(ids, 7, 4, (2,), 1.0, generator)
    assert not labels.any()
    assert likely(inputs == 7, 0.8)
    assert likely(inputs == 0, 0.1 + 0.1 / 4)
    for token in (1, 2, 3):
        assert likely(inputs == token, 0.1 / 4)


def test_neighbours_are_chosen_independently():
    ids = torch.ones(500, 401, dtype=torch.long)
    generator = torch.Generator().manual_seed(7)
    chosen = ref.mask_tokens(ids, 0, 9, (), 0.3, generator)[1] == 1
    both = [chosen[:, 1::2] & chosen[:, :-1:2], chosen[1::2] & chosen[::2]]
    assert all(likely(pairs, 0.3**2) for pairs in both)


def test_the_same_state_gives_the_same_blanks_and_torchs_own_moves_on_only_without_one():
    ids = tokens(20, 30, vocab=50)
    first, second = (torch.Generator().manual_seed(8) for _ in range(2))
    before = torch.random.get_rng_state()
    made = [ref.mask_tokens(ids, 0, 50, generator=g) for g in (first, second, first)]
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(made[0], made[1], strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(made[0][1], made[2][1])
    ref.mask_tokens(ids, 0, 50)
    assert not torch.equal(torch.random.get_rng_state(), before)


def test_the_loss_worked_by_hand():
    """Probabilities 3/4, 1/2 and 1/4 for three blanks: the mean of −log is log(32/3) / 3."""
    row = [math.log(3.0), 0.0]
    logits = torch.tensor([[row, row], [[0.0, 0.0], row]], dtype=torch.float64)
    loss = ref.masked_loss(logits, torch.tensor([[0, -100], [1, 1]]))
    assert loss.item() == pytest.approx(math.log(32 / 3) / 3, abs=1e-14)


def test_without_blanks_the_loss_is_0_and_so_is_its_gradient():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = ref.masked_loss(logits, torch.full((2, 3), -100))
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(2, 3, 5))


def test_the_gradient_at_a_blank_is_softmax_minus_one_hot():
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    ref.masked_loss(logits, torch.tensor([[-100, 2, -100], [4, -100, -100]])).backward()
    expected = torch.zeros(2, 3, 5, dtype=torch.float64)
    for b, i, token in ((0, 1, 2), (1, 0, 4)):
        expected[b, i] = logits[b, i].detach().softmax(-1)
        expected[b, i, token] -= 1
    assert close(logits.grad, expected / 2, 1e-15)


# --- relevance ----------------------------------------------------------------------------------


def test_relevance_is_the_sum_over_all_paths():
    """Entry (i, j) sums over all ways from j to i through the layers, where staying put is one."""
    n, weights = 3, [torch.rand(1, 2, 3, 3, dtype=torch.float64) for _ in range(3)]
    gradients = [torch.randn(1, 2, 3, 3, dtype=torch.float64) for _ in weights]
    steps = [
        (w[0] * g[0]).clamp(min=0).mean(0) + torch.eye(n).double()
        for w, g in zip(weights, gradients, strict=True)
    ]
    total = torch.zeros(n, n, dtype=torch.float64)
    for i, a, b, j in itertools.product(range(n), repeat=4):
        total[i, j] += steps[2][i, a] * steps[1][a, b] * steps[0][b, j]
    assert close(ref.attention_relevance(weights, gradients)[0], total, 1e-12)


# --- pruning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_pruned_attention_is_attention_with_the_heads_masked(bias):
    attention = shaken(blocks.MultiHeadAttention(12, 4, bias=bias).double())
    before = {name: t.clone() for name, t in attention.state_dict().items()}
    x, mask = torch.randn(2, 5, 12, dtype=torch.float64), some_mask(2, 1, 5, 5)
    for number in range(4):
        for heads in itertools.combinations(range(4), number):
            layers = ref.prune_heads(attention, heads)
            smaller = blocks.MultiHeadAttention(12, 4, bias=bias)
            for name, layer in layers.items():
                setattr(smaller, name, layer)
            smaller.num_heads = 4 - number
            head_mask = torch.tensor([float(h not in heads) for h in range(4)])
            masked = attention(x, x, x, mask, head_mask)[0]
            assert close(smaller(x, x, x, mask)[0], masked, 1e-12)
            size = 3 * (4 - number) * (12 + bias) * 3 + 12 * 3 * (4 - number) + 12 * bias
            assert sum(p.numel() for p in smaller.parameters()) == size
    assert all(torch.equal(t, before[name]) for name, t in attention.state_dict().items())


def test_heads_that_are_cut_twice_are_gone():
    """What is left can be pruned again, with the numbers that the heads have then."""
    attention = shaken(blocks.MultiHeadAttention(12, 4))
    for name, layer in ref.prune_heads(attention, [1]).items():
        setattr(attention, name, layer)
    attention.num_heads = 3
    again = ref.prune_heads(attention, [0, 2])
    assert again["W_q"].weight.shape == (3, 12)
    assert torch.equal(again["W_q"].weight, attention.W_q.weight[3:6])


@pytest.mark.parametrize("heads", [[4], [-1], [0, 1, 2, 3], [0, 9]])
def test_heads_that_do_not_exist_and_none_left_are_refused(heads):
    with pytest.raises(ValueError, match="heads"):
        ref.prune_heads(blocks.MultiHeadAttention(8, 4), heads)


# --- how long a check takes ---------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_an_exact_count_is_told_from_draws(exact):
    """24 calls on 160 tokens: the counts of honest draws have the variance of a binomial."""
    rng = np.random.default_rng(5)
    calls = rng.random((200, 24, 160)) < 0.4
    if exact:
        calls = rng.permuted(np.broadcast_to(np.arange(160) < 64, calls.shape), axis=-1)
    assert {masking_inputs.hardly_varies([*some]) for some in calls} == {exact}
    assert chi2(23).cdf(0.1 * 23) < 1 / 70e6  # the false alarms, but that counts are whole


@pytest.mark.parametrize("shares", [(0.81, 0.1), (0.79, 0.1), (0.8, 0.11), (0.8, 0.09)])
def test_shares_that_are_off_by_a_hundredth_are_seen(shares):
    rng = np.random.default_rng(3)
    ids, truth = np.full((240, 300), 7), np.zeros((240, 300))
    for (masked, kept), right in ((shares, False), ((0.8, 0.1), True)):
        fate, other = rng.random(ids.shape), rng.integers(0, 100, ids.shape)
        inputs = np.where(fate < masked, 3, np.where(fate < masked + kept, ids, other))
        assert (masking_inputs.unlike_fates(ids, inputs, truth, 3, 100) is None) == right


@pytest.mark.parametrize("seconds, tokens_drawn", [(0.0, 600_000), (1e-3, 9_000)])
def test_an_answer_that_takes_long_over_a_token_is_not_summed_up(
    monkeypatch, seconds, tokens_drawn
):
    """A summary of many draws only serves to tell known mistakes apart; it can take a minute."""
    now, drawn = [0.0], [0]

    def slow(ids, *others):
        now[0] += seconds * ids.numel()
        drawn[0] += ids.numel()
        return ref.mask_tokens(ids, *others)

    monkeypatch.setattr(masking_inputs.time, "process_time", lambda: now[0])
    told = masking_inputs.summary(slow, 1)
    assert bool(told) == (not seconds)
    assert drawn[0] == pytest.approx(tokens_drawn, rel=0.1)


# --- signatures ---------------------------------------------------------------------------------


def test_signatures_hold_for_what_goes_in_and_comes_out():
    check = jaxtyped(typechecker=beartype)
    ids, x = tokens(2, 3), torch.randn(2, 3, D)
    layer = ref.BertLayer(D, H, 4)
    assert check(ref.BertLayer.forward)(layer, x).shape == x.shape
    inputs, labels = check(ref.mask_tokens)(ids, 0, 7, [0])
    assert check(ref.masked_loss)(torch.randn(2, 3, 7), labels).shape == ()
    assert check(ref.fill_gaps)(lambda ids: torch.randn(2, 3, 7), ids, 0, 2).shape == ids.shape
    maps = [torch.rand(2, H, 3, 3)]
    assert check(ref.attention_relevance)(maps, maps).shape == (2, 3, 3)
    assert check(ref.prune_heads)(layer.attention, [0]).keys() == {"W_q", "W_k", "W_v", "W_o"}
    with pytest.raises(TypeCheckError):
        check(ref.BertLayer.forward)(layer, torch.randn(3, D))
    assert inputs.shape == ids.shape
