"""Chapter 7's references against torch's own layers, exhaustive search, and numbers by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, assert_parity, close, our_names, some_mask, tokens
from torch import nn

from attention_by_hand import blocks
from solutions import transformer as ref

ORDER = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H, D_FF = 8, 2, 12
pytestmark = pytest.mark.seed(29)


def copied(ours, theirs):
    """Ours gets the parameters of torch's, whose norms and biases are made random first."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() == 1:
                nn.init.normal_(parameter, mean=0.5, std=0.3)
    ours.load_state_dict(our_names(theirs.state_dict()))


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
        past, real = torch.ones(4, 4, dtype=torch.bool).tril(), some_mask(3, 6)
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


@pytest.mark.share(4)
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


def test_signatures_hold_for_what_goes_in_and_comes_out():
    check = jaxtyped(typechecker=beartype)
    assert check(ref.shift_right)(tokens(2, 3), 1).shape == (2, 3)
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
