"""What pages and benchmarks compute like a reference is compared with it: chapters 8 to 12.

Inputs are random, in batches of 1 and 3; `test_second_copies.py` lists what is checked where.
"""

import copy
import math
import re
from itertools import pairwise, product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from second_copies import BATCH, near, of_page
from torch import nn

from attention_by_hand.data import dates
from benchmarks import mixing, sequence_models
from benchmarks.bert import page_definitions
from solutions import attention_scoring, language_model, recurrence_convolution, vision_transformer
from solutions.bert import prune_heads

pytestmark = pytest.mark.seed(53)


@BATCH
def test_chapter_8s_attentions_and_windows(batch):
    x, project = torch.randn(batch, 6, 8), nn.Linear(8, 24, bias=False)
    q, k, v = project(x).chunk(3, -1)
    right = attention_scoring.scaled_dot_product_attention(q, k, v)[0].detach()
    page = of_page("08_recurrence_convolution", "attention", "window", "last_seen", d=8,
                   project=project)  # fmt: skip
    page["distance"] = (torch.arange(16)[:, None] - torch.arange(16)).abs()
    near(page["attention"](x).detach(), right)
    layer, linear = mixing.Attention(8), mixing.LinearAttention(8)
    layer.project = linear.project = project
    near(layer(x).detach(), right)
    near(linear(x).detach(), recurrence_convolution.linear_attention(q, k, v).detach())
    for n, width in ((8, 3), (8, 5), (5, 9)):
        band = [[abs(i - j) <= width // 2 for j in range(n)] for i in range(n)]
        assert page["window"](n, width).tolist() == band
    steps = recurrence_convolution.layers_to_see_all(page["window"](16, 3))
    assert page["last_seen"](*[1] * steps) == 15 > page["last_seen"](*[1] * (steps - 1))
    assert page["last_seen"](1, 2, 4, 8) == 15


@BATCH
def test_the_recurrent_translator_with_attention_is_the_reference(batch):
    made = sequence_models.Recurrent(9, 9, 12, attends=True).eval()
    source, target = torch.randint(3, 9, (batch, 5)), torch.randint(3, 9, (batch, 4))
    source[-1, 3:] = dates.PAD
    reader, states = nn.GRU(64, 12, batch_first=True), []
    reader.load_state_dict(made.reader.state_dict())
    for row in source:  # one after the other, without padding
        states.append(reader(made.table(row[row != dates.PAD])[None])[0][0])
    memory = nn.utils.rnn.pad_sequence(states, batch_first=True)
    memory = F.pad(memory, (0, 0, 0, 5 - memory.shape[1]))
    last = torch.stack([row[-1] for row in states])
    right = made.writer(target, memory, last, source != dates.PAD)[0]
    near(made(source, target).detach(), right.detach())
    assert isinstance(made.writer, recurrence_convolution.AttentionDecoder)


@BATCH
def test_chapter_9s_texts_searches_and_sums(batch):
    model = language_model.GPT(6, 16, 8, 2, 1).eval()
    page = of_page("09_language_model", "log_p", "beam", "encode", "decode", model=model,
                   tokens=[*"abcdef"])  # fmt: skip
    ids = torch.randint(6, (batch, 7))
    with torch.no_grad():
        sums = page["log_p"](ids, 1)
        assert -sums.mean().item() / 6 == pytest.approx(
            language_model.next_token_loss(model(ids), ids).item(), abs=1e-5
        )
        start, every = ids[:1, :3], torch.cartesian_prod(torch.arange(6), torch.arange(6))
        all_of = torch.cat([start.expand(36, 3), every], 1)
        best = all_of[page["log_p"](all_of, 3).argmax()]
    assert torch.equal(page["beam"](start, 2, size=6)[0], best), "so many beams miss nothing"
    merges = language_model.byte_pair_merges({"lower": 3, "low": 5, " new": 4, "newer": 2}, 6)
    page["tokens"] = ["", *map(chr, range(256)), *(a + b for a, b in merges)]
    page |= {"id_of": {t: i for i, t in enumerate(page["tokens"])}, "cut": {}, "merges": merges}
    page |= {"WORD": re.compile(r" ?\w+| ?[^\w\s]+|\s+"), **vars(language_model)}
    text = "lower newer, ét low"
    assert page["decode"](page["encode"](text.encode().decode("latin-1"))) == text


@pytest.mark.parametrize("chapter", ["10_bert", "11_vision_transformer"])
def test_ranks_are_scipys(chapter):
    ranks = of_page(chapter, "ranks")["ranks"]
    for _ in range(5):
        x, y = torch.randint(6, (2, 20)).float()
        wanted = spearmanr(x, y).statistic
        assert np.corrcoef(ranks(x), ranks(y))[0, 1] == pytest.approx(wanted)
        if chapter == "10_bert":
            found = of_page(chapter, "ranks", "rank_correlation")["rank_correlation"](x, y)
            assert found == pytest.approx(wanted)


@BATCH
def test_chapter_10s_other_weights_and_fewer_heads(batch):
    model = page_definitions()["Bert"](30, 16, 4, 2).eval()
    page = of_page("10_bert", "with_weights", "without", copy=copy, prune_heads=prune_heads)
    ids = torch.randint(30, (batch, 7))
    with torch.no_grad():
        for number, layer in enumerate(model.layers):
            x = model.embeddings(ids)
            for below in model.layers[:number]:
                x = below(x)
            own = layer.attention(x, x, x)[1]
            near(page["with_weights"](model, ids, number, own), model(ids))
        small, mask = page["without"](model, [(0, 1), (0, 3), (1, 2)]), torch.ones(4)
        first = small.layers[0].attention
        mask[[1, 3]] = 0.0
        x = model.embeddings(ids)
        near(first(x, x, x)[0], model.layers[0].attention(x, x, x, head_mask=mask)[0])
    assert [layer.attention.num_heads for layer in small.layers] == [2, 3]


@BATCH
def test_chapter_11s_moves_covers_and_looks(batch):
    names = ("moved", "covered", "maps", "distances", "likeness")
    grid = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0))
    page = of_page("11_vision_transformer", *names, SIDE=10, PATCH=2, GRID=5,
                   between=torch.cdist(grid, grid))  # fmt: skip
    images = torch.rand(batch, 1, 10, 10)
    down, right = torch.randint(-2, 3, (2, batch))
    each = zip(images, down.tolist(), right.tolist(), strict=True)
    rolled = torch.stack([image.roll((a, b), (1, 2)) for image, a, b in each])
    near(page["moved"](images, down, right), rolled)
    hidden = page["covered"](images, torch.zeros(1, 10, 10))
    for b, patch in product(range(batch), range(25)):
        wanted, (row, column) = images[b].clone(), (2 * (patch // 5), 2 * (patch % 5))
        wanted[:, row : row + 2, column : column + 2] = 0.0
        assert torch.equal(hidden[b, patch], wanted)
    model = vision_transformer.VisionTransformer(10, 2, 1, 10, 16, 4, 2).eval()
    kept, hooks = [], []
    for block in model.blocks:
        hooks.append(block.attn.register_forward_hook(lambda *x: kept.append(x)))
    with torch.no_grad():
        model(images)
        for hook in hooks:
            hook.remove()
        found = page["maps"](model, images)
        for weights, (attention, (x,), output) in zip(found, kept, strict=True):
            value = attention.qkv(x).chunk(3, -1)[2].unflatten(-1, (4, 4)).transpose(1, 2)
            near(attention.proj((weights @ value).transpose(1, 2).flatten(2)), output)
        far, shared = page["distances"](model, images)
    wanted = []
    for looks in found[1][:, 2, 1:, 1:].flatten(0, 1):
        i = len(wanted) % 25
        steps = [look.item() * math.dist(grid[i], grid[j]) for j, look in enumerate(looks)]
        wanted.append(sum(steps) / looks.sum().item())
    assert far[1, 2].item() == pytest.approx(np.mean(wanted), abs=1e-4)
    rows = model.positions[0, 1:].detach()
    centred = rows - rows.mean(0)
    wanted = F.cosine_similarity(centred[3], centred[7], dim=0)
    near(page["likeness"](model.positions)[3, 7], wanted)


def test_chapter_9_reads_a_text_the_same_by_two_ways():
    lengths = torch.randint(1, 4, (20,))
    page = of_page("09_language_model", "held_out", "bits_of", byte_lengths=lengths,
                   **vars(language_model))  # fmt: skip
    model = language_model.GPT(20, 16, 8, 2, 1).eval()
    for length in (9, 17, 45):
        ids = torch.randint(20, (length,))
        size = lengths[ids[1:]].sum().item()
        assert page["held_out"](model, ids) * size == pytest.approx(
            page["bits_of"](model, ids).sum()
        )


def test_chapter_10s_counts_are_those_of_a_loop():
    train = torch.randint(5, (9, 12))
    page = of_page("10_bert", "by_counting", train=train, letters="abcde")
    rows, right = train.tolist(), [0, 0, 0]
    single = [sum(row.count(x) for row in rows) + 0.01 for x in range(5)]
    inner = [sum(row[1:-1].count(x) for row in rows) for x in range(5)]
    pairs = [
        [sum(p == (x, y) for r in rows for p in pairwise(r)) for y in range(5)] for x in range(5)
    ]

    def after(x, y):
        return (pairs[x][y] + 3 * single[y] / sum(single)) / (sum(pairs[x]) + 3)

    def before(x, y):  # the same, where x is the letter looked for: all of its letters count
        return (pairs[x][y] + 3 * single[y] / sum(single)) / (single[x] + 3)

    for row in rows:
        for i in range(1, 11):
            scores = (
                inner,
                [after(row[i - 1], x) for x in range(5)],
                [after(row[i - 1], x) * before(x, row[i + 1]) for x in range(5)],
            )
            right = [n + (s.index(max(s)) == row[i]) for n, s in zip(right, scores, strict=True)]
    near([*page["by_counting"](train).values()], [n / 90 for n in right])
