"""What pages and benchmarks compute like a reference is compared with it: chapters 1 to 7.

Inputs are random, in batches of 1 and 3; `test_second_copies.py` lists what is checked where.
"""

import math
from itertools import product

import numpy as np
import pytest
import torch
from second_copies import BATCH, near, of_page
from torch import nn

from attention_by_hand import blocks
from benchmarks import decoding, depth, one_token, readings, training
from benchmarks import warm_up as stacks
from solutions import (
    attention_scoring,
    kernel_regression,
    masking,
    multi_head,
    positional_encoding,
    residual_layernorm,
)

pytestmark = pytest.mark.seed(53)


@pytest.mark.parametrize("n_q", [1, 3])
def test_chapter_1s_scores_and_rows(n_q):
    draw = np.random.default_rng(n_q)
    page = of_page("01_kernel_regression", "rms", "around_the_clock", "squared_distances",
                   "dot_product_score", "by_rows")  # fmt: skip
    query, key, places = draw.uniform(0, 12, n_q), draw.uniform(0, 12, 5), draw.normal(size=(5, 2))
    scores = kernel_regression.gaussian_scores(query, key, 1.0)
    near(page["around_the_clock"](query, key), scores)
    near(page["around_the_clock"](query + 24, key), scores)
    near(-0.5 * page["squared_distances"](query[:, None], key[:, None]), scores)
    near(page["by_rows"](np.exp(scores)), kernel_regression.softmax(scores))
    asked = draw.normal(size=(n_q, 2))
    far = np.array([[np.linalg.norm(q - k) for k in places] for q in asked])
    near(
        kernel_regression.softmax(page["dot_product_score"](asked, places, 2.0)),
        kernel_regression.softmax(-0.5 * (2.0 * far) ** 2),
    )
    assert page["rms"](query) == pytest.approx(np.linalg.norm(query) / math.sqrt(n_q))


@BATCH
def test_chapter_2s_attentions(batch):
    page = of_page("02_attention_scoring", "with_a_pencil", "pencilled", "fused", "rowwise",
                   "bilinear_variance")  # fmt: skip
    q, k, v = torch.randn(batch, 4, 6), torch.randn(batch, 5, 6), torch.randn(batch, 5, 3)
    right = attention_scoring.scaled_dot_product_attention(q, k, v)[0]
    near(page["pencilled"](q, k, v), right)
    near(page["fused"](q, k, v), right)
    for one in range(batch):
        arrays = [x[one].numpy() for x in (q, k, v)]
        outputs, weights, _ = page["with_a_pencil"](*(x.tolist() for x in arrays))
        near(outputs, attention_scoring.simple_attention(*arrays)[0])
        near(weights, attention_scoring.simple_attention(*arrays)[1])
        near(page["rowwise"](arrays[0]), kernel_regression.softmax(arrays[0]))
    for left, right in ((64, 64), (256, 16)):  # geometric by arithmetic mean of the sizes
        found = page["bilinear_variance"](left, right, nn.init.xavier_uniform_)
        assert found == pytest.approx(2 * math.sqrt(left * right) / (left + right), rel=0.1)


@BATCH
def test_chapter_3s_heads(batch):
    names = ("looped", "einsummed", "fused", "rows", "cut", "join", "variant", "merge_heads")
    given = [np.random.default_rng(batch).normal(size=(3, 2)) for _ in range(3)]
    page = of_page("03_multi_head", *names, **dict(zip(("asks", "found_by", "worth"), given)))  # noqa: B905
    q, k, v = torch.randn(batch, 4, 6), torch.randn(batch, 5, 6), torch.randn(batch, 5, 6)
    cut = [multi_head.split_heads(x, 3) for x in (q, k, v)]
    right = blocks.merge_heads(attention_scoring.scaled_dot_product_attention(*cut)[0])
    for way in names[:3]:
        near(page[way](q, k, v, 3), right)
    near(page["merge_heads"](cut[0]), q)
    near(page["variant"](), multi_head.multi_head_numpy(*given, 2))


@BATCH
def test_chapter_4s_masks_caches_and_counts(batch):
    page = of_page("04_masking", "average_of", "divided_again", "in_chunks", "off_by", "work",
                   "hidden_weight", "fused", "ours", "of_block", **vars(masking),
                   MultiHeadAttention=blocks.MultiHeadAttention)  # fmt: skip
    x, past = torch.randn(6, 4), masking.causal_mask(6)
    near(page["divided_again"](x, past), masking.masked_attention(x, x, x, past)[0])
    page |= {"counts": [1, 2, 1, 4], "values": [12, 24, 6, 30]}
    scores, seen = torch.tensor([page["counts"]]).log(), torch.tensor([[True, True, False, True]])
    weights = masking.masked_softmax(scores, seen)
    near(page["average_of"]([0, 1, 3]), weights[0] @ torch.tensor([12.0, 24, 6, 30]))
    page["attention"] = blocks.MultiHeadAttention(8, 2).double().eval()
    page["tokens"] = tokens = torch.randn(batch, 5, 8).double()
    page["full"] = page["attention"](tokens, tokens, tokens, masking.causal_mask(5))[0]
    near(page["in_chunks"]((2, 1, 2))[0].detach(), page["full"].detach(), 1e-12)
    assert page["off_by"]((1, 4)) < 1e-12
    for cached, positions, scored in ((True, 7, 28), (False, 28, 140)):
        assert page["work"](7, cached) == {"positions": positions, "scores": scored}
    near(page["hidden_weight"](3.0, -5.0), 1 / (1 + math.exp(2.0)))
    page |= {"one": torch.zeros(1, 1, 1), "two": torch.tensor([[[1.0], [2.0]]])}
    page["block"] = blocks.MultiHeadAttention(1, 1, bias=False).eval()
    nn.init.ones_(page["block"].W_v.weight), nn.init.ones_(page["block"].W_o.weight)
    for mask, answer in (([True, False], 1), ([False, True], 2), ([True, True], 1.5)):
        for way in ("fused", "ours", "of_block"):
            near(page[way](torch.tensor([mask])).item(), answer)


@BATCH
def test_chapter_5s_tables_and_turns(batch):
    reference = vars(positional_encoding)
    page = of_page("05_positional_encoding", "turned_score", "outputs_from", "squeezed", "table_of",
                   "best_step", "in_halves", **reference)  # fmt: skip
    rates = 10000.0 ** (-np.arange(4) / 4)
    table = page["table_of"](rates, rates, 20)
    near(table, positional_encoding.sinusoidal_encoding(20, 8), 1e-6)
    assert page["best_step"](table) < 1e-9
    assert page["best_step"](torch.rand(20, 8)) > 1e-3
    x = torch.randn(batch, 2, 5, 8)
    near(page["squeezed"](x, 1), positional_encoding.rotary_embedding(x))
    apart = positional_encoding.rotary_embedding(x[..., 2:3, :], offset=4)
    near(page["squeezed"](x, 0.5)[..., 2:3, :], apart)
    page["order"] = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    halves = page["in_halves"](x[0, 0])
    angle = torch.outer(torch.arange(5.0), torch.tensor(rates).float())
    u, w = x[0, 0].chunk(2, -1)
    near(halves[:, :4], u * angle.cos() - w * angle.sin())
    near(halves[:, 4:], u * angle.sin() + w * angle.cos())
    page["q"], page["k"], page["v"] = q, k, v = torch.randn(3, 6, 8)
    near(page["outputs_from"](7, False), positional_encoding.rotary_attention(q, k, v)[0])
    page["q"], page["k"] = q, k = torch.randn(2, 1, 8)
    scores = (positional_encoding.rotary_embedding(q.expand(9, 8))
              @ positional_encoding.rotary_embedding(k.expand(9, 8)).T)  # fmt: skip
    assert page["turned_score"](8, 3) == pytest.approx(scores[8, 3].item(), abs=1e-5)


class AsTorch(nn.Module):
    """A stack of torch's layers with the parameters of one of ours."""

    def __init__(self, ours, kind):
        super().__init__()
        self.ours, first = ours, kind == "pre"
        self.layers = nn.ModuleList()
        for gather, think in zip(ours.gather, ours.think, strict=True):
            its = nn.TransformerEncoderLayer(32, 2, 128, 0.0, batch_first=True, norm_first=first)
            training._copy_layer(
                nn.ModuleDict({
                    "self_attn": gather.sublayer.heads, "norm1": gather.norm, "norm2": think.norm,
                    "linear1": think.sublayer.linear1, "linear2": think.sublayer.linear2,
                }),
                its,
            )  # fmt: skip
            self.layers.append(its)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.ours.out(self.ours.final(x))


@BATCH
@pytest.mark.parametrize("kind", ["post", "pre"])
def test_chapter_6s_stacks_are_torchs_and_learn_like_the_scripts(batch, kind):
    names = ("SelfAttention", "Bare", "Stack", "lessons")
    page = of_page("06_residual_layernorm", *names, **vars(residual_layernorm),
                   MultiHeadAttention=blocks.MultiHeadAttention)  # fmt: skip
    x = torch.randn(batch, 5, 32)
    for made in (page["Stack"](3, kind=kind), stacks.Stack(3, 32, kind)):
        with torch.no_grad():
            near(made(x), AsTorch(made, kind)(x))
    found = page["lessons"](kind, layers=2, steps=10, seed=batch)
    assert stacks.losses(kind, batch, 10, layers=2) == [pytest.approx(np.mean(found), abs=1e-4)]
    attention = page["SelfAttention"](32, 4)
    heads, past = attention.heads, masking.causal_mask(5)
    reference = multi_head.MultiHeadAttention(32, 4)
    reference.load_state_dict(heads.state_dict())
    near(attention(x).detach(), reference(x, x, x)[0].detach())
    assert not attention(x, past)[:, 0].allclose(attention(x)[:, 0])


def test_chapter_6s_own_backward_pass_is_its_forward_passs():
    by_hand = of_page("06_residual_layernorm", "ByHand", **vars(residual_layernorm))["ByHand"]
    leaves = [torch.randn(s).double().requires_grad_() for s in ((3, 5), (5,), (5,))]
    norm = residual_layernorm.LayerNorm(5).double()
    norm.load_state_dict(dict(zip(("weight", "bias"), leaves[1:], strict=True)))
    near(by_hand.apply(*leaves).detach(), norm(leaves[0]).detach(), 1e-9)
    assert torch.autograd.gradcheck(by_hand.apply, leaves)


def test_one_stack_of_a_depth_is_the_scripts():
    _, _, _, (early, late) = depth.train(("pre-norm", 1, 0))
    found = stacks.losses("pre", 0, 400, layers=1)
    assert [early, late] == [found[14], found[39]]


@BATCH
def test_chapter_7s_moves_are_influence(batch):
    page = of_page("07_transformer", "moved")
    table, attention = nn.Embedding(9, 8), blocks.MultiHeadAttention(8, 2).eval()
    ids, past = torch.randint(9, (batch, 5)), masking.causal_mask(5)

    def attend(x):
        return attention(x, x, x, past)[0]

    x = table(ids).detach()
    right = masking.influence(lambda rows: attend(rows[None])[0], x[0], x[0] + 1)
    near(page["moved"](lambda: attend(table(ids)), table, 5), right.detach())


def test_chapter_7s_kinds_stack_and_counts():
    page = of_page("07_transformer", "kind", "through", "count", Transformer=blocks.Transformer,
                   sinusoidal_encoding=blocks.sinusoidal_encoding)  # fmt: skip
    for text, month, day in product(("3/9/27", "11/2/27"), range(1, 13), (2, 3, 9, 11, 19)):
        iso = f"2027-{month:02}-{day:02}"
        assert page["kind"](text, iso) == readings.kind(text, iso)
    page["stack"] = [blocks.EncoderLayer(32, 2, 16).eval() for _ in range(2)]
    page["table"], page["line"] = blocks.TokenEmbedding(9, 32), torch.randint(9, (1, 8))
    past = masking.causal_mask(8)
    right = page["table"](page["line"]) + positional_encoding.sinusoidal_encoding(8, 32)
    for layer in page["stack"]:
        right = layer(right, past)
    near(page["through"](past).detach(), page["table"].logits(right).detach())
    d, ff, norms = 16, 24, 2 * 16
    sizes = {"d_model": d, "num_heads": 4, "num_layers": 3, "d_ff": ff}
    attention, feed = 4 * d * (d + 1), 2 * d * ff + d + ff
    layer = 3 * attention + 2 * feed + 5 * norms  # of the encoder and of the decoder
    assert page["count"](sizes, tokens=50) == (3 * layer, 50 * d)
    narrow = 3 * 3 * 2 * (d - 4 * 2) * (d + 1)  # W_q and W_k make 2 features a head
    assert page["count"](sizes, d_k=2, tokens=50) == (3 * layer - narrow, 50 * d)


def test_a_cached_decoder_and_torchs_own_transformer_give_our_logits():
    with torch.inference_mode():
        assert decoding.check_parity() < 1e-12, "CachedDecoder"
    ours, theirs = training.models("cpu", 0.0)
    source, target = (ids[:3, :9] for ids in training.batch("cpu"))
    assert isinstance(theirs, training.Torchs)
    with torch.no_grad():
        real = target != training.PAD
        near(theirs(source, target)[real], ours(source, target)[real], 1e-4)


@pytest.mark.parametrize("text", one_token.FOLLOWED, ids=" ".join)
def test_the_followed_tokens_stages_end_where_the_model_does(text):
    model = one_token.Model().eval()
    ids, mask = one_token.batch([text, max(one_token.FOLLOWED, key=len)])
    place = text.index("well")
    with torch.no_grad():
        x = model.embedding(ids) + positional_encoding.sinusoidal_encoding(ids.shape[1], 4)
        weights = model.layer.self_attn(x, x, x, mask)[1][0, :, place]
        right = model(ids, mask)[0, place]
    stages = one_token.stages(model, text, place)
    near(stages["weights"], weights, 1e-4)
    near(stages["logits"], right, 1e-4)


def test_chapter_3s_shares_are_those_of_a_loop():
    names = ("songs", "both_right", "parted")
    page = of_page("03_multi_head", *names, FILLER=8, SINGS=6, LIKE=7, spoken=[""] * 11)
    told, looks = torch.randn(1000, 2, 6), torch.rand(1000, 2, 6)

    def count(hit, share):
        torch.manual_seed(7)
        sung, at, asked = page["songs"](1000)
        for row, place, names in zip(sung.tolist(), at.tolist(), asked.tolist(), strict=True):
            assert [row[place - 1], row[place + 2]] == names
            assert row[place : place + 2] == [6, 7]
        hits = [hit(i, p, names) for i, (p, names) in enumerate(zip(at.tolist(), asked.tolist()))]  # noqa: B905
        torch.manual_seed(7)
        assert page[share](lambda sung, at: (told, looks)) == pytest.approx(np.mean(hits))

    count(lambda i, _, names: told[i].argmax(-1).tolist() == names, "both_right")
    count(lambda i, p, _: {*looks[i].argmax(-1).tolist()} == {p - 1, p + 2}, "parted")
