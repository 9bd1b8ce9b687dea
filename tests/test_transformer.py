"""Chapter 7's references against torch's own layers, exhaustive search, and numbers by hand."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, assert_parity, assert_same_gradients, our_names
from torch import nn

from autograder import blocks
from solutions import transformer as ref

ORDER = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H, D_FF = 8, 2, 12


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(29)


def close(a, b, within):
    return a.shape == b.shape and torch.allclose(a, b, rtol=0.0, atol=within)


# --- layers: torch's own with our parameters ----------------------------------------------------


def copied(ours, theirs):
    """Ours gets the parameters of torch's, whose norms and biases are made random first."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() == 1:
                nn.init.normal_(parameter, mean=0.5, std=0.3)
    ours.load_state_dict(our_names(theirs.state_dict()))


def masked_somewhere(*shape):
    """A boolean mask, True = may attend, in which every query sees something."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return mask


@OURS
@PRECISION
@ORDER
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal", "both"])
def test_an_encoder_layer_is_torchs_forward_and_backward(ours, dtype, within, norm_first, masked):
    layer = ours.EncoderLayer(D, H, D_FF, norm_first=norm_first).to(dtype)
    theirs = nn.TransformerEncoderLayer(
        D, H, D_FF, 0.0, batch_first=True, norm_first=norm_first, dtype=dtype
    )
    copied(layer, theirs)
    x = torch.randn(3, 5, D, dtype=dtype)
    real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    padding = {"padding": real, "both": real}.get(masked)
    causal = {"causal": past, "both": past}.get(masked)
    mask = torch.ones(1, dtype=torch.bool)
    mask = mask if padding is None else mask & padding[:, None, None]
    mask = mask if causal is None else mask & causal
    theirs_masks = {  # torch's polarity: True = may NOT attend
        "src_mask": None if causal is None else ~causal,
        "src_key_padding_mask": None if padding is None else ~padding,
    }
    assert_parity(
        layer,
        theirs,
        [x],
        within,
        call=lambda x: layer(x, None if masked == "nothing" else mask),
        their_call=lambda x: theirs(x, **theirs_masks),
    )


@OURS
@PRECISION
@ORDER
@pytest.mark.parametrize("masked", [False, True])
def test_a_decoder_layer_is_torchs_forward_and_backward(ours, dtype, within, norm_first, masked):
    layer = ours.DecoderLayer(D, H, D_FF, norm_first=norm_first).to(dtype)
    theirs = nn.TransformerDecoderLayer(
        D, H, D_FF, 0.0, batch_first=True, norm_first=norm_first, dtype=dtype
    )
    copied(layer, theirs)
    x, memory = (torch.randn(3, n, D, dtype=dtype) for n in (4, 6))
    masks, theirs_masks = (), {}
    if masked:
        past, real = torch.ones(4, 4, dtype=torch.bool).tril(), masked_somewhere(3, 6)
        masks = (past, real[:, None, None])
        theirs_masks = {"tgt_mask": ~past, "memory_key_padding_mask": ~real}
    assert_parity(
        layer,
        theirs,
        [x, memory],
        within,
        call=lambda x, memory: layer(x, memory, *masks),
        their_call=lambda x, memory: theirs(x, memory, **theirs_masks),
    )


def larger_eps(layer):
    layer.norm2.eps *= 2


def a_weight_a_little_off(layer):
    layer.linear2.weight.data[0, 0] += 1e-4


def another_gradient(layer):
    layer.linear1.weight.register_hook(lambda grad: grad * 1.0001)


def nothing_past_the_values(layer):
    layer.self_attn.W_v.register_forward_hook(lambda part, args, out: out.detach() + 0 * out)


@pytest.mark.parametrize(
    "fault", [larger_eps, a_weight_a_little_off, another_gradient, nothing_past_the_values]
)
@PRECISION
def test_parity_tells_a_small_fault(fault, dtype, within):
    """The comparison above is not blind: in values and, with the same values, in gradients."""
    layer = ref.EncoderLayer(D, H, D_FF).to(dtype)
    theirs = nn.TransformerEncoderLayer(D, H, D_FF, 0.0, batch_first=True, dtype=dtype)
    copied(layer, theirs)
    x = torch.randn(3, 5, D, dtype=dtype)
    assert_parity(layer, theirs, [x], within)
    fault(layer)
    with pytest.raises(AssertionError, match="off by"):
        assert_parity(layer, theirs, [x], within)


@OURS
@ORDER
def test_in_training_dropout_halves_what_a_layer_adds_or_doubles_it(ours, norm_first):
    layer = ours.EncoderLayer(D, H, D_FF, 0.5, norm_first)
    x = torch.randn(2, 3, D)
    layer.eval()
    still = layer(x)
    assert torch.equal(still, layer(x))
    layer.train()
    assert not close(layer(x), layer(x), 1e-3)
    if norm_first:  # the mean over many draws of a sum of dropped terms; attention alone moves
        layer.linear2.weight.data.zero_()
        samples = torch.stack([layer(x) for _ in range(4000)]).detach()
        layer.eval()
        error = (samples.mean(0) - layer(x).detach()).abs() / (samples.std(0) / math.sqrt(4000))
        assert float(error.max()) < 6


# --- the embedding ------------------------------------------------------------------------------


@OURS
def test_an_embedding_by_hand(ours):
    embedding = ours.TokenEmbedding(3, 4)
    with torch.no_grad():
        embedding.weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0], [1, 1, 1, 1]]))
    assert embedding(torch.tensor([[2, 1]])).tolist() == [[[2, 2, 2, 2], [0, 4, 0, 0]]]
    assert embedding.logits(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 4, 10]
    assert [name for name, _ in embedding.named_parameters()] == ["weight"]


@OURS
def test_embedded_tokens_are_about_as_large_as_positions_to_begin_with(ours):
    embedding = ours.TokenEmbedding(500, 64)
    size = embedding(torch.arange(500)).square().mean().sqrt().item()
    assert 0.95 < size < 1.05
    assert 0.45 < blocks.sinusoidal_encoding(500, 64).square().mean().item() < 0.55


# --- the Transformer ----------------------------------------------------------------------------


def small(norm_first=False, num_layers=2, pad_id=0, dropout=0.1, **kwargs):
    model = ref.Transformer(9, 7, D, H, num_layers, D_FF, dropout, pad_id, norm_first, **kwargs)
    return model.eval()


def tokens(*shape, vocab=7):
    return torch.randint(1, vocab, shape)


class Torchs(nn.Module):
    """nn.Transformer between our embeddings."""

    def __init__(self, model, norm_first):
        super().__init__()
        body = nn.Transformer(D, H, 2, 2, D_FF, 0.0, batch_first=True, norm_first=norm_first)
        self.encoder, self.decoder = body.encoder, body.decoder
        self.source_embedding = blocks.TokenEmbedding(9, D)
        self.target_embedding = blocks.TokenEmbedding(7, D)
        if not norm_first:  # torch's stacks always end with a norm; behind post-norm we have none
            self.encoder.norm = self.decoder.norm = None
        copied(model, self)

    def forward(self, source, target):
        position = blocks.sinusoidal_encoding(6, D).to(self.source_embedding.weight)
        x, y = (
            F.embedding(ids, table.weight) * math.sqrt(D) + position[: ids.shape[1]]
            for table, ids in ((self.source_embedding, source), (self.target_embedding, target))
        )
        n = target.shape[1]
        hidden = self.decoder(
            y,
            self.encoder(x, src_key_padding_mask=source == 0),
            tgt_mask=torch.ones(n, n, dtype=torch.bool).triu(1),
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=source == 0,
        )
        return hidden @ self.target_embedding.weight.T


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch on its own defaults
@PRECISION
@ORDER
def test_the_whole_model_is_torchs_transformer_between_the_embeddings(dtype, within, norm_first):
    model = small(norm_first)
    theirs = Torchs(model, norm_first).to(dtype)
    source, target = tokens(3, 6), tokens(3, 4)
    source[1, 4:], source[2, 2:], target[0, 3:] = 0, 0, 0
    assert_parity(model.to(dtype), theirs, [source, target], within)


def test_the_blocks_transformer_is_ours_without_pre_norm():
    model = small(pad_id=3)
    block = blocks.Transformer(9, 7, D, H, 2, D_FF, pad_id=3).eval()
    block.load_state_dict(model.state_dict())
    source, target = torch.randint(0, 9, (4, 6)), torch.randint(0, 7, (4, 5))
    assert close(block(source, target), model(source, target), 1e-6)
    block.train()
    assert not close(block(source, target), block(source, target), 1e-3)


@ORDER
def test_the_state_dict_holds_the_named_parts_and_nothing_else(norm_first):
    attention = {f"{w}.{kind}" for w in ("W_q", "W_k", "W_v", "W_o") for kind in ("weight", "bias")}
    two = ("weight", "bias")
    names = {"source_embedding.weight", "target_embedding.weight"}
    for stack, attentions in (("encoder", 1), ("decoder", 2)):
        for i in range(2):
            for part in ("self_attn", "cross_attn")[:attentions]:
                names |= {f"{stack}_layers.{i}.{part}.{name}" for name in attention}
            parts = ["linear1", "linear2", *(f"norm{j + 1}" for j in range(attentions + 1))]
            names |= {f"{stack}_layers.{i}.{part}.{kind}" for part in parts for kind in two}
        names |= {f"{stack}_norm.{kind}" for kind in two} if norm_first else set()
    assert set(small(norm_first).state_dict()) == names


@ORDER
def test_a_change_in_the_target_moves_nothing_before_it(norm_first):
    model = small(norm_first)
    source, target = tokens(2, 5), tokens(2, 6)
    before = model(source, target)
    for position in range(6):
        other = target.clone()
        other[:, position] = target[:, position] % 6 + 1
        moved = (model(source, other) - before).abs().amax((0, 2))
        assert (moved[:position] < 1e-6).all()
        assert (moved[position:] > 1e-5).all()


@pytest.mark.parametrize("pad_id", [0, 4])
def test_padding_changes_nothing(pad_id):
    model = small(pad_id=pad_id)
    source, target = tokens(2, 4, vocab=4), tokens(2, 3, vocab=4)
    wide_source = F.pad(source, (0, 3), value=pad_id)
    wide_target = F.pad(target, (0, 2), value=pad_id)
    logits = model(source, target)
    assert close(model(wide_source, target), logits, 1e-6)
    assert close(model(wide_source, wide_target)[:, :3], logits, 1e-6)
    assert close(model.encode(wide_source)[:, :4], model.encode(source), 1e-6)


def test_a_source_of_nothing_but_padding_gives_finite_numbers_and_gradients():
    model = small()
    source = tokens(2, 4)
    source[1] = 0
    logits = model(source, tokens(2, 3))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@ORDER
def test_gradients_reach_every_parameter_but_the_keys_biases(norm_first):
    """A key's bias adds the same to all scores of a query, which the softmax does not see."""
    model = small(norm_first)
    logits = model(tokens(2, 5), tokens(2, 4))
    (logits * torch.randn_like(logits)).sum().backward()
    for name, parameter in model.named_parameters():
        largest = parameter.grad.abs().max()
        assert (largest < 1e-5) if name.endswith("W_k.bias") else (largest > 1e-5), name


def test_the_table_of_positions_grows_and_follows_the_model():
    model = small(num_layers=0, dropout=0.0)
    ids = torch.ones(1, 700, dtype=torch.long)
    long = model.encode(ids)
    plain = model.source_embedding(ids)
    assert close(long - plain, blocks.sinusoidal_encoding(700, D)[None], 1e-5)
    assert close(model.encode(ids[:, :3]), long[:, :3], 0.0)
    assert model.double().encode(ids).dtype == torch.float64
    later = model.embed(model.source_embedding, ids[:, :2], offset=5)
    assert close(later.float(), long[:, 5:7], 1e-6)


def test_dropout_acts_on_the_sum_of_embedding_and_position():
    model = small(num_layers=0, dropout=0.5).train()
    ids = tokens(40, 20)
    kept = model.encode(ids) / model.eval().encode(ids)
    assert set(kept.detach().round(decimals=3).unique().tolist()) == {0.0, 2.0}
    assert 0.45 < (kept == 0).float().mean() < 0.55


def parameters(source_vocab, target_vocab, d, d_ff, n, norm_first=False):
    """Counted by hand: biases everywhere, two numbers a feature in a norm, no output layer."""
    attention = 4 * (d * d + d)
    feed_forward = 2 * d * d_ff + d_ff + d
    encoder = attention + feed_forward + 2 * 2 * d
    decoder = 2 * attention + feed_forward + 3 * 2 * d
    final = 4 * d if norm_first else 0
    return (source_vocab + target_vocab) * d + n * (encoder + decoder) + final


@pytest.mark.parametrize(  # N, d_model, d_ff of the rows; what a row leaves out is as in the base
    ("d", "heads", "d_ff", "n", "millions"),
    [
        (512, 8, 2048, 6, 65),
        (512, 8, 2048, 2, 36),
        (512, 8, 2048, 4, 50),
        (512, 8, 2048, 8, 80),
        (256, 8, 2048, 6, 28),
        (1024, 8, 2048, 6, 168),
        (512, 8, 1024, 6, 53),
        (512, 8, 4096, 6, 90),
        (1024, 16, 4096, 6, 213),
    ],
)
def test_parameters_of_the_papers_table_3(d, heads, d_ff, n, millions):
    """With one table of 37,000 tokens for both sides, as in the paper, its counts within 7 %."""
    with torch.device("meta"):
        model = ref.Transformer(37_000, 37_000, d, heads, n, d_ff)
    count = sum(p.numel() for p in model.parameters())
    assert count == parameters(37_000, 37_000, d, d_ff, n)
    model.source_embedding = model.target_embedding
    shared = sum(p.numel() for p in model.parameters())
    assert shared == count - 37_000 * d
    assert shared / 1e6 == pytest.approx(millions, rel=0.07)


# --- shift_right --------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(3, 99), min_size=4, max_size=4), min_size=1, max_size=3))
def test_what_the_decoder_reads_is_always_one_behind(rows):
    target = torch.tensor(rows)
    shifted = ref.shift_right(target, 1)
    assert shifted.tolist() == [[1, *row[:-1]] for row in rows]
    assert target.tolist() == rows


# --- the loss -----------------------------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("pad_id", [0, 3, -100])
def test_the_loss_is_torchs_forward_and_backward(dtype, within, smoothing, pad_id):
    logits = torch.randn(3, 5, 6, dtype=dtype, requires_grad=True)
    target = torch.randint(0, 6, (3, 5))
    target[0, 3:], target[1, 1:] = pad_id, pad_id
    ours = ref.label_smoothed_cross_entropy(logits, target, smoothing, pad_id)
    theirs = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
    assert close(ours, theirs, within)
    mine, wanted = (torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs))
    assert_same_gradients({"logits": mine}, {"logits": wanted}, within)
    assert (mine[target == pad_id] == 0).all()


def test_the_loss_by_hand():
    """Two tokens of equal logits and one that is certain: −log ½, and 0 but for the smoothing."""
    logits = torch.tensor([[[0.0, 0.0], [5.0, 5.0]]], dtype=torch.float64)
    loss = ref.label_smoothed_cross_entropy(logits, torch.tensor([[1, 1]]), 0.1)
    assert loss.item() == pytest.approx(math.log(2))
    logits = torch.tensor([[0.0, math.log(3.0)]], dtype=torch.float64)  # p = ¼, ¾
    loss = ref.label_smoothed_cross_entropy(logits, torch.tensor([1]), 0.2)
    assert loss.item() == pytest.approx(-0.9 * math.log(0.75) - 0.1 * math.log(0.25))


def test_the_smoothed_loss_is_least_at_the_smoothed_probabilities():
    shares = torch.full((4,), 0.1 / 4, dtype=torch.float64)
    shares[2] += 0.9
    target = torch.tensor([2])
    best = ref.label_smoothed_cross_entropy(shares.log()[None], target).item()
    entropy = -(shares * shares.log()).sum().item()
    assert best == pytest.approx(entropy)
    for _ in range(50):
        other = shares.log() + 0.1 * torch.randn(4, dtype=torch.float64)
        assert ref.label_smoothed_cross_entropy(other[None], target).item() > best


def test_nothing_but_padding_costs_nothing():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = ref.label_smoothed_cross_entropy(logits, torch.zeros(2, 3, dtype=torch.long))
    assert loss.item() == 0.0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


# --- the rate -----------------------------------------------------------------------------------


def test_the_rate_by_hand():
    assert ref.noam_rate(4, 16, 4) == pytest.approx(1 / 8)  # 16^−½ · 4^−½
    assert ref.noam_rate(1, 16, 4) == pytest.approx(1 / 32)
    assert ref.noam_rate(16, 16, 4) == pytest.approx(1 / 16)
    assert ref.noam_rate(4000, 512) == pytest.approx(6.987712e-4)  # (512 · 4000)^−½


@settings(max_examples=60)
@given(st.integers(1, 5000), st.integers(1, 300))
def test_the_rate_rises_to_its_peak_at_warmup_and_falls(step, warmup):
    here, after = ref.noam_rate(step, 64, warmup), ref.noam_rate(step + 1, 64, warmup)
    assert (after > here) == (step < warmup)
    assert here <= ref.noam_rate(warmup, 64, warmup) * (1 + 1e-12)


@pytest.mark.parametrize("step", [0, -3])
def test_there_is_no_step_before_the_first(step):
    with pytest.raises(ValueError, match=str(step)):
        ref.noam_rate(step, 512)


# --- decoding -----------------------------------------------------------------------------------


class Table(nn.Module):
    """Log-probabilities of the next token by all that is written: a random table of histories."""

    def __init__(self, vocab, depth, seed, pad_id=-1, sharp=1.5):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.vocab, self.pad_id, self.calls = vocab, pad_id, 0
        self.tables = [
            sharp * torch.randn(vocab**n, vocab, generator=generator) for n in range(depth)
        ]

    def forward(self, source, ids):
        assert len(source) == len(ids)
        self.calls += 1
        out = []
        for n in range(ids.shape[1]):
            place = torch.zeros(len(ids), dtype=torch.long)
            for i in range(1, n + 1):
                place = place * self.vocab + ids[:, i].clamp(min=0)
            out.append(self.tables[n][place])
        return torch.stack(out, 1)


def texts(vocab, eos, max_len):
    """Every text there is: it ends with eos, or is max_len long."""
    for n in range(1, max_len + 1):
        for ids in itertools.product(range(vocab), repeat=n):
            if eos not in ids[:-1] and (ids[-1] == eos or n == max_len):
                yield ids


def scored(model, ids, alpha):
    """log p of a text, token by token, over the length penalty."""
    total = 0.0
    for i, token in enumerate(ids):
        written = torch.tensor([[0, *ids[:i]]])
        total += model(torch.zeros(1, 1), written)[0, -1].log_softmax(-1)[token].item()
    return total / ((5 + len(ids)) / 6) ** alpha


SOURCE = torch.zeros(1, 1, dtype=torch.long)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("max_len", [1, 2, 3])
def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_three_tokens(seed, max_len):
    """Three tokens, three beams: exhaustive by construction up to two steps.

    With three steps, one of nine beginnings is not followed; it never held the best text here.
    """
    model = Table(3, 3, seed)
    best = max(texts(3, 2, max_len), key=lambda ids: scored(model, ids, 0.6))
    ids, score = ref.beam_search(model, SOURCE, 0, 2, max_len, beam_size=3)[0]
    assert ids.tolist() == [*best]
    assert score == pytest.approx(scored(model, best, 0.6), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_wider_than_everything_returns_all_texts_in_order(seed, alpha):
    model = Table(3, 3, seed)
    every = sorted(texts(3, 1, 3), key=lambda ids: -scored(model, ids, alpha))
    found = ref.beam_search(model, SOURCE, 0, 1, 3, beam_size=99, length_penalty=alpha)
    assert [tuple(ids.tolist()) for ids, _ in found] == every
    for ids, score in found:
        assert score == pytest.approx(scored(model, tuple(ids.tolist()), alpha), abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_one_beam_is_greedy(seed):
    model = Table(5, 6, seed)
    greedy = ref.greedy_decode(model, SOURCE, 0, 3, 6)
    ((ids, _),) = ref.beam_search(model, SOURCE, 0, 3, 6, beam_size=1)
    assert ids.tolist() == greedy[0].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_one_beam_is_greedy_with_a_transformer_too(seed):
    torch.manual_seed(seed)
    model = ref.Transformer(9, 7, D, H, 1, D_FF)
    for source in tokens(4, 1, 5):
        greedy = ref.greedy_decode(model, source, 1, 2, 8)
        ((ids, score),) = ref.beam_search(model, source, 1, 2, 8, beam_size=1, length_penalty=0.0)
        assert ids.tolist() == greedy[0].tolist()
        read = F.pad(ids[:-1], (1, 0), value=1)[None]
        log_p = model.eval()(source, read)[0].log_softmax(-1)
        assert score == pytest.approx(log_p.gather(-1, ids[:, None]).sum().item(), abs=1e-5)


def test_two_beams_see_past_a_tempting_first_word():
    """p(a) = 0.6 but then 0.5 at best: 0.3. p(b) = 0.4, then 0.9: 0.36."""
    model = Table(4, 3, 0)
    never = 1e-9
    model.tables[0] = torch.tensor([[never, 0.6, 0.4, never]]).log()
    model.tables[1] = torch.full((4, 4), 0.25).log()
    model.tables[1][1] = torch.tensor([0.5, 0.5, never, never]).log()
    model.tables[1][2] = torch.tensor([0.9, 0.1, never, never]).log()
    assert ref.greedy_decode(model, SOURCE, 0, 3, 2)[0].tolist()[0] == 1
    ids, score = ref.beam_search(model, SOURCE, 0, 3, 2, beam_size=2, length_penalty=0.0)[0]
    assert ids.tolist() == [2, 0]
    assert score == pytest.approx(math.log(0.36), abs=1e-5)


def test_greedy_rows_do_not_see_each_other_and_stop_together():
    model = ref.Transformer(9, 7, D, H, 1, D_FF)
    source = tokens(6, 5)
    together = ref.greedy_decode(model, source, 1, 2, 8)
    for row, one in zip(together.tolist(), source, strict=True):
        alone = ref.greedy_decode(model, one[None], 1, 2, 8)[0].tolist()
        assert row == alone + [0] * (len(row) - len(alone))


class Clock(nn.Module):
    """Row i writes eos (2) as its token number `ends[i]`, and 5 before; counts its calls."""

    def __init__(self, ends):
        super().__init__()
        self.ends, self.pad_id, self.calls, self.seen = torch.tensor(ends), 7, 0, []
        self.inside = nn.Dropout()

    def forward(self, source, ids):
        self.calls += 1
        self.seen.append((self.training, torch.is_grad_enabled()))
        due = self.ends[:, None] == torch.arange(1, ids.shape[1] + 1)
        return F.one_hot(torch.where(due, 2, 5), 8).float()


def test_greedy_pads_behind_eos_and_asks_no_more_than_it_must():
    model = Clock([2, 1, 3])
    ids = ref.greedy_decode(model, torch.zeros(3, 1), 1, 2, 99)
    assert ids.tolist() == [[5, 2, 7], [2, 7, 7], [5, 5, 2]]
    assert ids.dtype == torch.long
    assert model.calls == 3
    assert ref.greedy_decode(Clock([9]), torch.zeros(1, 1), 1, 2, 4).tolist() == [[5, 5, 5, 5]]


@pytest.mark.parametrize("training", [True, False])
def test_decoding_is_done_in_eval_mode_and_every_mode_comes_back(training):
    for decode in (ref.greedy_decode, ref.beam_search):
        model = Clock([3]).train(training)
        model.inside.train(not training)
        decode(model, torch.zeros(1, 1), 1, 2, 5)
        assert set(model.seen) == {(False, False)}
        assert (model.training, model.inside.training) == (training, not training)
        assert torch.is_grad_enabled()


def test_a_model_that_learns_to_copy_decodes_what_it_has_learnt():
    model = ref.Transformer(8, 8, 16, 2, 1, 32, dropout=0.0)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 251):
        source = torch.randint(3, 8, (32, 3))
        target = F.pad(source, (0, 1), value=2)
        logits = model(source, ref.shift_right(target, 1))
        for group in optimiser.param_groups:
            group["lr"] = 0.4 * ref.noam_rate(step, 16, 60)
        optimiser.zero_grad()
        ref.label_smoothed_cross_entropy(logits, target).backward()
        optimiser.step()
    source = torch.randint(3, 8, (20, 3))
    right = F.pad(source, (0, 1), value=2)
    assert (ref.greedy_decode(model, source, 1, 2, 6)[:, :4] == right).float().mean() > 0.9


# --- shapes and types ---------------------------------------------------------------------------


def test_signatures_hold_for_what_goes_in_and_comes_out():
    check = jaxtyped(typechecker=beartype)
    assert check(ref.shift_right)(tokens(2, 3), 1).shape == (2, 3)
    assert check(ref.noam_rate)(3, 16) > 0
    loss = check(ref.label_smoothed_cross_entropy)
    assert loss(torch.randn(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)).shape == ()
    with pytest.raises(TypeCheckError):
        loss(torch.randn(2, 3, 5), torch.zeros(2, 4, dtype=torch.long))
    model = small()
    for name, args, shape in (
        ("encode", (tokens(2, 5),), (2, 5, D)),
        ("decode", (tokens(2, 3), torch.randn(2, 5, D), tokens(2, 5)), (2, 3, D)),
        ("forward", (tokens(2, 5), tokens(2, 3)), (2, 3, 7)),
    ):
        method = check(getattr(ref.Transformer, name))
        assert method(model, *args).shape == shape
    with pytest.raises(TypeCheckError):
        check(ref.Transformer.decode)(model, tokens(2, 3), torch.randn(2, 5, D), tokens(2, 4))
    decoded = check(ref.greedy_decode)(model, tokens(2, 5), 1, 2, 3)
    assert decoded.shape[0] == 2
    pairs = check(ref.beam_search)(model, tokens(1, 5), 1, 2, 3)
    assert all(isinstance(score, float) for _, score in pairs)
