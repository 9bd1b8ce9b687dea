"""Chapter 12's references against torch's modules, exact chances, and numbers worked by hand."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, close, double, our_names, shaken, some_mask
from torch import nn

from attention_by_hand import blocks
from attention_by_hand.exercises import bugs
from autograder.student.check import verdict_on
from solutions import captioning as ref

OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, E, H = 8, 6, 2
pytestmark = pytest.mark.seed(41)


# --- attention to another width -----------------------------------------------------------------


def torchs_attention(dtype, d_encoder=E):
    made = nn.MultiheadAttention(D, H, kdim=d_encoder, vdim=d_encoder, batch_first=True)
    return shaken(made.to(dtype)).eval()


def with_weights_of(theirs, attention):
    """Our module, with the numbers of torch's, which keeps three biases in one."""
    query, key, value = theirs.in_proj_bias.chunk(3)
    if theirs.in_proj_weight is None:
        weights = theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight
    else:
        weights = theirs.in_proj_weight.chunk(3)
    state = dict(zip(("W_q.weight", "W_k.weight", "W_v.weight"), weights, strict=True))
    state |= {"W_q.bias": query, "W_k.bias": key, "W_v.bias": value}
    state |= {f"W_o.{name}": p for name, p in theirs.out_proj.named_parameters()}
    attention.load_state_dict(state)
    return attention


@OURS
@PRECISION
@pytest.mark.parametrize("d_encoder", [3, D, 13])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_torchs_with_keys_and_values_of_another_width(
    ours, dtype, within, d_encoder, masked
):
    theirs = torchs_attention(dtype, d_encoder)
    attention = with_weights_of(theirs, ours.CrossAttention(D, d_encoder, H).to(dtype))
    x, memory = torch.randn(3, 4, D, dtype=dtype), torch.randn(3, 5, d_encoder, dtype=dtype)
    real = some_mask(3, 5) if masked else None
    out, weights = attention(x, memory, None if real is None else real[:, None, None])
    hidden = None if real is None else ~real
    expected = theirs(x, memory, memory, hidden, average_attn_weights=False)
    assert close(out, expected[0], 2 * within) and close(weights, expected[1], within)


@OURS
def test_who_may_look_at_nothing_gets_nothing_and_learns_nothing(ours):
    attention = shaken(ours.CrossAttention(D, E, H).double())
    x = torch.randn(2, 3, D, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(2, 4, E, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(2, 1, 3, 4, dtype=torch.bool)
    mask[1] = False
    mask[0, 0, 2] = False
    out, weights = attention(x, memory, mask)
    assert not out[1].any() and not out[0, 2].any() and out[0, :2].abs().min() > 0
    assert not weights[1].any() and not weights[0, :, 2].any()
    grads = torch.autograd.grad(out.square().sum() + weights.square().sum(), (x, memory))
    assert all(g.isfinite().all() and not g[1].any() and g[0].any() for g in grads)


@OURS
@pytest.mark.parametrize(("d_model", "heads"), [(7, 2), (10, 4)])
def test_heads_that_do_not_divide_are_refused(ours, d_model, heads):
    with pytest.raises(ValueError, match=rf"(?s)(?=.*\b{d_model}\b)(?=.*\b{heads}\b)"):
        ours.CrossAttention(d_model, 5, heads)
    assert ours.CrossAttention(8, 5, 4)(torch.randn(1, 2, 8), torch.randn(1, 3, 5))


# --- the layer ----------------------------------------------------------------------------------


def torchs_decoder(dtype):
    sizes = (D, H, 12, 0.0, "gelu")
    return shaken(nn.TransformerDecoderLayer(*sizes, batch_first=True, dtype=dtype))


def copied(theirs, layer):
    """Our layer, with the numbers of torch's, whose cross-attention is called otherwise."""
    layer.load_state_dict(our_names(theirs.state_dict()))
    return layer


@OURS
@PRECISION
@pytest.mark.parametrize("masked", [False, True])
def test_the_layer_is_torchs_decoder_layer_where_the_widths_agree(ours, dtype, within, masked):
    theirs = torchs_decoder(dtype).eval()
    layer = copied(theirs, ours.CaptionLayer(D, D, H, 12).to(dtype))
    x, memory = torch.randn(3, 4, D, dtype=dtype), torch.randn(3, 5, D, dtype=dtype)
    past, real = torch.ones(4, 4, dtype=torch.bool).tril(), some_mask(3, 5)
    out = layer(x, memory, past, real[:, None, None]) if masked else layer(x, memory)
    told = {"tgt_mask": ~past, "memory_key_padding_mask": ~real} if masked else {}
    assert close(out, theirs(x, memory, **told), 5 * within)


@OURS
@PRECISION
def test_without_a_memory_it_is_torchs_encoder_layer(ours, dtype, within):
    decoder = torchs_decoder(dtype).eval()
    layer = copied(decoder, ours.CaptionLayer(D, D, H, 12).to(dtype))
    encoder = nn.TransformerEncoderLayer(D, H, 12, 0.0, "gelu", batch_first=True, dtype=dtype)
    parts = decoder.state_dict()
    kept = {n: parts[n.replace("norm2", "norm3")] for n in encoder.state_dict()}
    encoder.load_state_dict(kept)
    x = torch.randn(3, 4, D, dtype=dtype)
    encoder.eval()
    assert close(layer(x), encoder(x), 5 * within)


@OURS
def test_the_picture_matters_only_where_there_is_one(ours):
    layer = shaken(ours.CaptionLayer(D, E, H, 12).double())
    x = torch.randn(2, 3, D, dtype=torch.float64)
    layer(x).sum().backward()
    silent = {n for n, p in layer.named_parameters() if p.grad is None or not p.grad.any()}
    assert silent == {n for n, _ in layer.named_parameters() if n.startswith(("cross_", "norm2"))}
    memory = torch.randn(2, 5, E, dtype=torch.float64)
    assert (layer(x, memory) - layer(x, memory.flip(2))).abs().max() > 0.01


# --- the contrastive loss -----------------------------------------------------------------------


def test_the_contrastive_loss_worked_by_hand():
    """Directions at right angles: similarities 1, 0 and 0, 1, so log(1 + 1/e) both ways; and with
    one text for both pictures, log 2 each way of the rows."""
    images, texts = double(2, 0, 0, 3).view(2, 2), double(5, 0, 0, 0.1).view(2, 2)
    assert close(ref.contrastive_loss(images, texts, 1.0), double(math.log1p(1 / math.e))[0], 1e-12)
    same = double(1, 0, 4, 0).view(2, 2)
    rows = math.log(2)  # the texts are alike to each picture
    columns = (math.log1p(math.exp(-1)) + math.log1p(math.exp(1))) / 2
    expected = double((rows + columns) / 2)[0]
    assert close(ref.contrastive_loss(images, same, 1.0), expected, 1e-12)


@pytest.mark.parametrize(("B", "d"), list(itertools.product((2, 3, 8), (2, 5))))
def test_the_two_batches_show_the_bug_and_hide_it(B, d):
    shows, hides = ref.bug_in_contrast(B, d)
    apart = [bugs.wrong_contrast(*pair) - bugs.right_contrast(*pair) for pair in (shows, hides)]
    assert apart[0].abs() > 0.02 and apart[1].abs() < 1e-6
    for pair in (shows, hides):
        assert close(bugs.right_contrast(*pair), ref.contrastive_loss(*pair, 1.0), 1e-6)


# --- hard negatives -----------------------------------------------------------------------------


def test_negatives_come_as_often_as_the_softmax_without_the_partner_says():
    """Rows 1, 2, 3: of chances e⁰ : e¹ for the two others, 1/(1 + e) and e/(1 + e)."""
    table = torch.tensor([[9.0, 0.0, 1.0], [1.0, 9.0, 0.0], [0.0, 1.0, 9.0]])
    draws = [ref.hard_negatives(table) for _ in range(2000)]
    texts, images = (torch.stack(part) for part in zip(*draws, strict=True))
    likelier = math.e / (1 + math.e)
    off = 5 * math.sqrt(likelier * (1 - likelier) / 2000)  # once in two million
    for drawn, often in ((texts, (2, 0, 1)), (images, (1, 2, 0))):
        for place, index in enumerate(often):
            share = (drawn[:, place] == index).double().mean().item()
            assert abs(share - likelier) < off
            assert not (drawn[:, place] == place).any()


def test_the_same_state_gives_the_same_negatives_and_torchs_own_moves_on_only_without_one():
    table = torch.randn(20, 20)
    seeded = [torch.Generator().manual_seed(3) for _ in range(2)]
    before = torch.random.get_rng_state()
    first, again = (ref.hard_negatives(table, g) for g in seeded)
    second = ref.hard_negatives(table, seeded[0])
    assert torch.equal(before, torch.random.get_rng_state())
    for a, b, c in zip(first, again, second, strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)
    ref.hard_negatives(table)
    assert not torch.equal(before, torch.random.get_rng_state())


def test_one_pair_has_no_negatives():
    with pytest.raises(ValueError):
        ref.hard_negatives(torch.ones(1, 1))


# --- the caption loss ---------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", range(7))
def test_the_caption_loss_is_torchs_with_prompt_and_padding_ignored(prompt):
    logits, ids = torch.randn(3, 6, 5, dtype=torch.float64), torch.randint(1, 5, (3, 6))
    ids[1, 4:] = 0
    labels = ids.clone()
    labels[:, :prompt] = 0
    scores = logits[:, :-1].mT
    expected = F.cross_entropy(scores, labels[:, 1:], ignore_index=0, reduction="sum")
    number = max(int((labels[:, 1:] != 0).sum()), 1)
    assert close(ref.caption_loss(logits, ids, prompt, 0), expected / number, 1e-12)


def test_with_nothing_to_score_the_loss_is_0_and_so_is_its_gradient():
    logits = torch.randn(2, 4, 5, requires_grad=True)
    loss = ref.caption_loss(logits, torch.randint(0, 5, (2, 4)), 4, 0)
    loss.backward()
    assert loss.item() == 0 and not logits.grad.any()


# --- who finds whom -----------------------------------------------------------------------------


def test_recall_worked_by_hand():
    """Rows 0, 1, 2 have their partner second, first, third; the columns first, second, second."""
    table = torch.tensor([[5.0, 7.0, 1.0], [0.0, 6.0, 2.0], [4.0, 3.0, 1.5]])
    thirds = pytest.approx((1 / 3, 1 / 3)), pytest.approx((2 / 3, 1.0)), (1.0, 1.0)
    assert [ref.recall_at(table, k) for k in (1, 2, 3)] == [*thirds]


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 2), (7, 4), (3, 9)])
def test_where_all_are_alike_the_first_k_are_found(n, k):
    assert ref.recall_at(torch.zeros(n, n), k) == pytest.approx((min(k / n, 1),) * 2)


def test_shares_that_are_means_in_single_precision_earn_full_marks():
    def recall_at(similarity, k):
        if k < 1:
            raise ValueError(f"k is {k}")

        def share(rows):
            order = rows.argsort(dim=1, descending=True, stable=True)[:, :k]
            own = torch.arange(len(rows), device=rows.device)[:, None]
            return (order == own).any(1).float().mean().item()

        return share(similarity), share(similarity.T)

    verdict = verdict_on(recall_at, "recall_at")
    assert (verdict.verdict, verdict.score) == ("correct", verdict.points)


@pytest.mark.parametrize("k", [0, -3])
def test_k_below_one_is_refused(k):
    with pytest.raises(ValueError, match=rf"{k}\b"):
        ref.recall_at(torch.eye(3), k)


# --- writing ------------------------------------------------------------------------------------


class Script(nn.Module):
    """Writes what a table says: picture i's text, whatever was written before."""

    pad_id = 0

    def __init__(self, texts):
        super().__init__()
        self.texts, self.encoded, self.decoded = texts, 0, 0

    def encode(self, images):
        self.encoded += 1
        return images

    def decode(self, ids, memory):
        self.decoded += 1
        place = ids.shape[1]
        rows = [self.texts[int(i)] for i in memory]
        nexts = torch.tensor([row[place] if place < len(row) else 9 for row in rows])
        return F.one_hot(nexts, 10).float()[:, None].expand(-1, place, -1)


def test_captions_worked_by_hand():
    model = Script([[7, 4, 2], [7, 5, 6, 8, 2], [7, 2]])
    images = torch.tensor([0, 1, 2, 0])
    written = ref.write_caption(model, images, torch.tensor([7]), 2, 9)
    by_hand = [[7, 4, 2, 0, 0], [7, 5, 6, 8, 2], [7, 2, 0, 0, 0], [7, 4, 2, 0, 0]]
    assert written.tolist() == by_hand
    assert (model.encoded, model.decoded) == (1, 4)
    assert ref.write_caption(model, images, torch.tensor([7]), 2, 3).tolist() == [
        row[:3] for row in by_hand
    ]
    long = torch.tensor([7, 4, 4, 4])
    assert ref.write_caption(model, images[:2], long, 2, 3).tolist() == [[7, 4, 4]] * 2


# --- signatures ---------------------------------------------------------------------------------


def test_signatures_hold_for_what_goes_in_and_comes_out():
    held = {
        name: jaxtyped(typechecker=beartype)(getattr(ref, name))
        for name in ("contrastive_loss", "hard_negatives", "caption_loss", "recall_at")
    }
    table, pair = torch.randn(4, 4), (torch.randn(4, 3), torch.randn(4, 3))
    held["contrastive_loss"](*pair)
    held["hard_negatives"](table)
    held["recall_at"](table, 2)
    held["caption_loss"](torch.randn(2, 3, 5), torch.ones(2, 3, dtype=torch.long), 1, 0)
    with pytest.raises(TypeCheckError):
        held["contrastive_loss"](pair[0], torch.randn(4, 2))
    with pytest.raises(TypeCheckError):
        held["caption_loss"](torch.randn(2, 3, 5), torch.ones(2, 3), 1, 0)
