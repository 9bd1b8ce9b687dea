"""Tables of chapters 6 and 7, to the whole Transformer."""

import itertools
import math
import statistics

import numpy as np
import torch

from . import computes

# --- chapter 6 ---


@computes
def three_layers() -> list:
    """Every path through three layers: at each, around it (1) or through it (½)."""
    ways = [
        [p for p in itertools.product((1, 0.5), repeat=3) if p.count(0.5) == n] for n in range(4)
    ]
    rows = [[len(paths), math.prod(paths[0]), sum(map(math.prod, paths))] for paths in ways]
    assert (rows[0], rows[3], sum(map(len, ways))) == ([1, 1, 1], [1, 1 / 8, 1 / 8], 8), "given"
    return [*rows[1:3], [1.5**3]]


@computes
def three_norms() -> list:
    columns = []  # one for each token but *she*
    for token in ([3, 3, 5, 5], [30, 30, 50, 50]):
        mean, root = statistics.mean(token), statistics.pstdev(token)
        away = tuple(x - mean for x in token)
        result = tuple(a / root for a in away)
        columns.append([mean, away, statistics.pvariance(token), root, result])
    sings, well = columns
    assert well[:-1] == [40, (-10, -10, 10, 10), 100, 10], "given"
    return [*([row] for row in sings[:-1]), [sings[-1], well[-1]]]


@computes
def two_cheaper_norms() -> list:
    tokens = [torch.tensor(token).double() for token in ([1, 7, 1, 7], [11, 17, 11, 17])]
    rms = [torch.nn.functional.rms_norm(token, (4,)).tolist() for token in tokens]
    layer = [torch.nn.functional.layer_norm(token, (4,), eps=1e-12).tolist() for token in tokens]
    squares = [float(token @ token) / 4 for token in tokens]
    return [squares, [*map(tuple, np.round(rms, 9))], [*map(tuple, np.round(layer, 9))]]


@computes
def back_through_a_norm() -> list:
    sings = torch.tensor([3.0, 3.0, 5.0, 5.0], dtype=torch.float64, requires_grad=True)
    arriving = torch.tensor([8.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    normed = torch.nn.functional.layer_norm(sings, (4,), eps=1e-12)
    (result,) = torch.autograd.grad(normed, sings, arriving)
    mean, along = arriving.mean().item(), (arriving * normed).mean().item()
    second = (-normed * along).tolist()
    return [[mean], [along], [-mean] * 4, second, np.round(result.numpy(), 9).tolist()]


@computes
def exactly_one() -> list:
    """By the network as torch computes it, from the average of two votes."""
    votes = torch.tensor([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
    average = votes.mean(1, keepdim=True)
    shifts = torch.tensor([0, -0.5])
    bends = torch.relu(torch.nn.functional.linear(average, torch.ones(2, 1), shifts))
    assert average[:, 0].tolist() == [0, 0.5, 1], "given"
    assert bends.T.tolist() == [[0, 0.5, 1], [0, 0, 0.5]], "given"
    return [(bends @ torch.tensor([2.0, -4.0])).tolist()]


@computes
def two_alike() -> list:
    tokens = torch.tensor([(1, -1, 1, -1), (-1, 1, -1, 1)]) + torch.tensor([7.0, 7, -7, -7])
    after = torch.nn.functional.layer_norm(tokens, (4,), eps=1e-12)
    assert not tokens.mean(1).any()
    variances = tokens.var(1, correction=0).tolist()
    assert tokens[:, 1:].tolist() == [[6, -6, -8], [8, -8, -6]] and variances[1] == 50, "given"
    return [tokens[:, 0].tolist(), variances[:1], [(after[0, 0] - after[1, 0]).item()]]


# --- chapter 7 ---

NEXT = {"": {"A": 0.6, "B": 0.4}, "A": {"": 0.5, "A": 0.4, "B": 0.1}, "B": {"B": 0.9, "A": 0.1}}


def chance(text: str) -> float:
    """The probability of a text of one or two letters, as a product along its letters."""
    p = math.prod(NEXT[text[:i]][letter] for i, letter in enumerate(text))
    return p * NEXT[text][""] if len(text) == 1 else p


@computes
def one_layer() -> list:
    """Attention, add, norm; feed-forward, add, norm, with torch's layers and matrices."""

    def norm(row: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(row, (4,), eps=1e-12)

    values = torch.tensor([(0.0, 4, 0, -4), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)])
    well, weights = torch.tensor([2.0, 0, 0, 2]), torch.tensor([0.5, 0.5, 0, 0])
    brought = weights @ values
    once = norm(well + brought)
    hidden = torch.relu(torch.tensor([0.0, 0, 1, 1]) @ once - 1)
    worked = hidden * torch.tensor([-6.0, 0, 0, 6])
    rows = [brought, well + brought, once, hidden, norm(once + worked)]
    return [[round(r.item()) if r.ndim == 0 else tuple(np.round(r.tolist(), 6))] for r in rows]


@computes
def the_bridge() -> list:
    """By torch's attention; the value of *well* is what the table before it ends with."""
    values = torch.zeros(4, 4)
    values[1] = torch.tensor(one_layer()[-1][0])
    scores = torch.tensor([[1.0, 3, 1, 1]]).log()
    attend = torch.nn.functional.scaled_dot_product_attention
    brought = attend(scores, torch.eye(4), values, scale=1.0)[0]
    rows = {"Brunnen": torch.tensor([1.0, 0, 0, -1]), "gut": torch.tensor([-1.0, 0, 0, 1])}
    logits = {word: round((row @ brought).item(), 6) for word, row in rows.items()}
    weight = round(torch.softmax(scores[0], 0)[1].item(), 6)
    written = max(logits, key=logits.get)
    return [
        [weight],
        [tuple(np.round(brought.tolist(), 6))],
        *([x] for x in logits.values()),
        [written],
    ]


@computes
def one_step_late() -> list:
    target = np.array([5, 8, 6, 2, 0])
    reads = np.roll(target, 1)
    reads[0] = 1
    return [reads.tolist(), target[:-1].tolist()]


@computes
def softer_truth() -> list:
    p = np.array([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    truth = (1 - 1 / 5) * np.eye(4)[0] + 1 / 5 / 4
    surprise = -np.log2(p)
    return [surprise, truth, [*(truth * surprise), truth @ surprise]]


@computes
def five_texts() -> list:
    texts = ["A", "AA", "AB", "BB", "BA"]
    greedy = ""
    while len(greedy) < 2:
        letter = max(NEXT[greedy], key=NEXT[greedy].get)
        if not letter:
            break
        greedy += letter
    found = [chance(text) for text in texts]
    return [*([p, text == greedy] for p, text in zip(found, texts, strict=True)), [sum(found)]]


@computes
def two_beams() -> list:
    rows, beginnings = [], {"": 1.0}
    for _ in range(2):
        every = {
            (text + letter, not letter): p * q
            for text, p in beginnings.items()
            for letter, q in NEXT[text].items()
        }
        best = sorted(every.items(), key=lambda item: -item[1])[:2]
        beginnings = {text: p for (text, ended), p in best if not ended}
        rows.append([*(p for _, p in best), 2 - len(beginnings), len(beginnings)])
    return rows


@computes
def three_masks() -> list:
    every = np.ones((8, 8), dtype=int)
    past = np.tril(every)
    source = past.copy()
    source[:, :5] = 1
    return [[int(mask.sum())] for mask in (every, past, source)]
