"""The answers of the tables to fill in, each computed again by another way than the author's."""

import itertools
import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import computed_ten
import numpy as np
import pytest
import torch

from autograder import pencil
from autograder.publishing import pencils
from solutions import multi_head

ROOT = Path(__file__).resolve().parents[1]
TABLES = pencils.tables(ROOT)
COMPUTED: dict[str, Callable[[], list]] = {}


def computes(function: Callable[[], list]) -> Callable[[], list]:
    """Register the rows of the table that has the function's name, as plain numbers or words."""
    COMPUTED[function.__name__] = function
    return function


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_answers_are_what_a_computation_gives(name):
    assert name in COMPUTED, f"compute the table {name} here"
    rows = COMPUTED[name]()
    assert [len(row) for row in rows] == [len(row.answers) for row in TABLES[name].rows]
    for row, computed in zip(TABLES[name].rows, rows, strict=True):
        for answer, value in zip(row.answers, computed, strict=True):
            assert pencil.judge(answer, pencil.written(value)) == "right", (
                row.label,
                answer,
                value,
            )


def test_no_computation_is_left_over():
    assert sorted(COMPUTED) == sorted(TABLES)


def softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


# --- chapter 1 ---

HOURS, WARMTH = [0, 1, 2], [12, 21, 15]


def counts(query: Fraction) -> list[float]:
    return [2.0 ** -float((query - hour) ** 2) for hour in HOURS]


@computes
def noon() -> list:
    found = [Fraction(c) for c in counts(Fraction(0))]
    shares = [c / sum(found) for c in found]
    parts = [share * t for share, t in zip(shares, WARMTH, strict=True)]
    rows = [
        [hour, hour**2, c, 16 * c, share, part]
        for hour, c, share, part in zip(HOURS, found, shares, parts, strict=True)
    ]
    return [*rows, [sum(found), 16 * sum(found), sum(shares), sum(parts)]]


@computes
def two_more() -> list:
    rows = []
    for query in (Fraction(1), Fraction(1, 2)):
        weights = np.array(counts(query)) / sum(counts(query))
        rows.append([*weights, weights @ WARMTH])
    return rows


@computes
def three_scores() -> list:
    scores = np.log([1.0, 2.0, 5.0])
    return [[*np.exp(scores), np.exp(scores).sum()], [*softmax(scores), 1]]


@computes
def two_kernels() -> list:
    rows = []
    for query, epanechnikov in itertools.product((0.5, 0.0), (False, True)):
        u = np.abs(query - np.array(HOURS))
        found = np.maximum(0, 1 - u**2) if epanechnikov else (u <= 1).astype(float)
        rows.append(list(found / found.sum()))
    return rows


@computes
def well_sung() -> list:
    weights = softmax(np.log([1.0, 6.0, 1.0]))
    heard = weights * [0, 1, 0]
    rows = [list(row) for row in zip([1, 6, 1], weights, heard, strict=True)]
    deep = softmax(np.log([1.0, 1.0, 1.0, 5.0])) @ [0, 0, 0, -1]
    return [*rows, [8, weights.sum(), heard.sum()], [deep]]


@computes
def leave_each_out() -> list:
    rows, squares = [], []
    for left in range(3):
        kept = [i for i in range(3) if i != left]
        weights = np.array([0.5 ** ((HOURS[left] - HOURS[i]) ** 2) for i in kept])
        told = weights @ np.array(WARMTH)[kept] / weights.sum()
        squares.append((WARMTH[left] - told) ** 2)
        rows.append([told, WARMTH[left] - told, squares[-1]])
    return [*rows, [np.mean(squares)]]


@computes
def slope() -> list:
    def loss(p):
        return (3 * p - 12) ** 2

    return [[loss(1)], [round((loss(1 + 1e-6) - loss(1 - 1e-6)) / 2e-6, 4)]]


# --- chapter 2 ---


@computes
def first_query() -> list:
    key = np.array([[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    value = np.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    scores = key @ [1, 0, 2]
    grown = np.exp(scores - 4.0)
    weights = softmax(scores.astype(float))
    rows = [[s, s - 4, g, w] for s, g, w in zip(scores, grown, weights, strict=True)]
    return [*rows, [grown.sum(), weights.sum()], [tuple(weights @ value)]]


@computes
def sixteen_patterns() -> list:
    sums = [sum(signs) for signs in itertools.product((1, -1), repeat=4)]
    squares = [s * s for s in sums]
    return [[sums.count(s) for s in (4, 2, 0, -2, -4)], [sum(sums) / 16], [sum(squares) / 16]]


@computes
def small_additive() -> list:
    return [[2 * math.tanh(0)], [2 * math.tanh(math.atanh(0.5))]]


@computes
def views_of_a_sentence() -> list:
    words = torch.eye(3, 2)
    maps = torch.tensor([[0.0, math.log(2), 8.0], [1.0, 0.0, 4.0]])
    query, key, value = (words @ maps).split(1, dim=1)
    views = [[q.item(), v.item()] for q, v in zip(query, value, strict=True)]
    attend = torch.nn.functional.scaled_dot_product_attention
    outputs = attend(query[None], key[None], value[None])[0]
    grown = (query @ key.T).exp()
    return [*views, *([*grown[i].tolist(), outputs[i].item()] for i in (1, 0))]


@computes
def two_lengths() -> list:
    a, b = complex(3, 4), complex(4, 3)
    dot = (a * b.conjugate()).real
    return [[abs(a), abs(b)], [dot], [dot / (abs(a) * abs(b))]]


# --- chapter 3 ---


def head_by_hand(scores: list[float], value: list[int]) -> list:
    grown, weights = np.exp(scores), softmax(np.array(scores))
    rows = [list(row) for row in zip(grown, weights, weights * value, strict=True)]
    return [*rows, [grown.sum(), weights.sum(), weights @ value]]


@computes
def head_who() -> list:
    return head_by_hand([math.log(5), math.log(2), 0.0], [16, 8, 0])


@computes
def head_how() -> list:
    return head_by_hand([0.0, 0.0, math.log(6)], [0, 8, 16])


@computes
def shapes_of_a_call() -> list:
    module, seen = multi_head.MultiHeadAttention(10, 2), {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        getattr(module, name).register_forward_hook(
            lambda _, inputs, output, name=name: seen.update({name: (inputs[0], output)})
        )
    key = torch.zeros(1, 4, 10)
    output, weights = module(torch.zeros(1, 3, 10), key, key)
    q, k, v = (multi_head.split_heads(seen[name][1], 2) for name in ("W_q", "W_k", "W_v"))
    steps = [seen["W_q"][1], q.transpose(1, 2), q, k, q @ k.mT, weights, weights @ v]
    steps += [(weights @ v).transpose(1, 2), seen["W_o"][0], output]
    return [[tuple(step.shape)] for step in steps]


@computes
def same_letter() -> list:
    first = [word[0] for word in ("sitting", "by", "her", "sister")]
    scores = [[float(one == other) for other in first] for one in first]
    sums = [sum(4**score for score in row) for row in scores]
    return [[*row, total, 4 / total] for row, total in zip(scores, sums, strict=True)]


# --- chapter 4 ---

GROWN, PRICES = np.array([1, 2, 1, 4]), np.array([12, 24, 6, 30])


def masked_by_hand(seen: list[int]) -> list:
    weights = GROWN * seen / (GROWN @ seen)
    rows = [[w, w * price] for w, price in zip(weights, PRICES, strict=True)]
    return [*rows, [GROWN @ seen, weights.sum(), weights @ PRICES]]


@computes
def four_words() -> list:
    return masked_by_hand([1, 1, 1, 1])


@computes
def three_words() -> list:
    return masked_by_hand([1, 1, 1, 0])


@computes
def no_future() -> list:
    return [[GROWN[:n].sum(), np.average(PRICES[:n], weights=GROWN[:n])] for n in (1, 2, 3, 4)]


@computes
def two_of_four() -> list:
    return [["✓" if key <= 2 + query else "✗" for key in range(4)] for query in range(2)]


@computes
def four_calls() -> list:
    """Counted cell by cell: each call's new queries, and each query's keys."""
    again = [torch.ones(call, call) for call in (1, 2, 3, 4)]
    cached = [torch.ones(1, call) for call in (1, 2, 3, 4)]
    rows = [
        [len(full), len(new), full.numel(), new.numel()]
        for full, new in zip(again, cached, strict=True)
    ]
    return [*rows, [sum(column) for column in zip(*rows, strict=True)]]


# --- chapter 5 ---


@computes
def two_hands() -> list:
    angles = [(math.radians(90 * p), math.radians(30 * p)) for p in range(5)]
    rows = [[math.sin(f), math.cos(f), math.sin(s), math.cos(s)] for f, s in angles]
    products = [
        sum(math.cos(a - b) for a, b in zip(*pair, strict=True))
        for pair in itertools.pairwise(angles)
    ]
    return [*np.round(rows, 9).tolist(), np.round(products[:3], 9).tolist()]


@computes
def what_well_asks() -> list:
    learnt, rows = {-1: (0, 1), 0: (1, 0), 1: (2, 1)}, []
    for key in range(4):
        distance = sorted((-1, 2 - key, 1))[1]
        rows.append([distance, distance + 1, np.dot((3, 1), learnt[distance])])
    return rows


@computes
def quarter_turns() -> list:
    rows = []
    for query, key in ((1, 2), (5, 6), (3, 5), (4, 6)):
        a, b = 1j**query, 1j**key
        product = (a * b.conjugate()).real
        rows.append([(a.real, a.imag), (b.real, b.imag), product])
    return rows


@computes
def halved_by_each_step() -> list:
    back, content = np.array([3, 2, 1, 0]), np.log([1.0, 8.0, 1.0, 1.0])
    scores = content - math.log(2) * back  # ALiBi, slope ln 2
    factor, product = np.exp(-math.log(2) * back), np.exp(scores)
    rows = [list(row) for row in zip(factor, product, softmax(scores), strict=True)]
    even = next(k for k in range(9) if math.isclose(math.log(8) - k * math.log(2), 0))
    ten = math.exp(0 - (math.log(8) - 10 * math.log(2)))
    return [*rows, [product.sum(), 1], [even], [ten]]


# --- chapter 6 ---


@computes
def three_layers() -> list:
    """Every path through three layers: at each, around it (1) or through it (½)."""
    ways = [
        [p for p in itertools.product((1, 0.5), repeat=3) if p.count(0.5) == n] for n in range(4)
    ]
    rows = [[len(paths), math.prod(paths[0]), sum(map(math.prod, paths))] for paths in ways]
    return [*rows, [sum(map(len, ways)), 1.5**3]]


@computes
def three_norms() -> list:
    rows = []  # one for each token, and a column for it in the table
    for token in ([1, 7, 9, 15], [3, 3, 5, 5], [30, 30, 50, 50]):
        mean, root = statistics.mean(token), statistics.pstdev(token)
        away = tuple(x - mean for x in token)
        rows.append([mean, away, statistics.pvariance(token), root, tuple(a / root for a in away)])
    return [*zip(*rows, strict=True)]


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


# --- chapter 7 ---

NEXT = {"": {"A": 0.6, "B": 0.4}, "A": {"": 0.5, "A": 0.4, "B": 0.1}, "B": {"B": 0.9, "A": 0.1}}


def chance(text: str) -> float:
    """The probability of a text of one or two letters, as a product along its letters."""
    p = math.prod(NEXT[text[:i]][letter] for i, letter in enumerate(text))
    return p * NEXT[text][""] if len(text) == 1 else p


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
    return [[*found, sum(found)], [text == greedy for text in texts]]


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


# --- chapter 8 ---


@computes
def one_unit() -> list:
    """The state as the sum over all inputs, each halved once for every step since."""
    x, rows = np.array([0, 8, 0, 0, 4]), []
    halves = np.tril(0.5 ** np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    for t, state in enumerate(halves @ x):
        rows.append([state - x[t], state, halves[t, 1] * x[1]])
    return rows


@computes
def gates() -> list:
    """Torch's cell, undone: the gates' sums are set so that σ gives r and z, and tanh is undone."""
    rows = []
    for h, r, z, x in ((8, 1, 1, 4), (8, 0, 0, 4), (4, 1, 0.5, 2), (5, 0, 1, 100)):
        small = 1e-4  # where tanh changes nothing
        cell = torch.nn.GRUCell(1, 1).double()
        logit = {0: -40.0, 0.5: 0.0, 1: 40.0}
        with torch.no_grad():
            for name, parameter in cell.named_parameters():
                parameter.copy_(torch.zeros(3, *parameter.shape[1:]))
                if name.startswith("weight"):
                    parameter[2] = 1.0
            cell.bias_ih[:2] = torch.tensor([logit[r], logit[z]])
            new = cell(torch.tensor([[x * small]]).double(), torch.tensor([[h * small]]).double())
            cell.bias_ih[1] = -40.0  # lets the proposal through
            proposal = cell(
                torch.tensor([[x * small]]).double(), torch.tensor([[h * small]]).double()
            )
        rows.append([round(float(number) / small, 2) for number in (proposal, new)])
    return rows


@computes
def how_far() -> list:
    """Torch's convolutions of ones: how far an impulse at each place still reaches output 0."""
    rows = []
    for layers in (1, 2, 3, 4):
        row = []
        for steps in ([1] * layers, [1, 2, 4, 8][:layers]):
            signal = torch.eye(16)[:, None]  # an impulse at each place, one a row
            for step in steps:
                signal = torch.nn.functional.conv1d(
                    signal, torch.ones(1, 1, 3), padding=step, dilation=step
                )
            row.append(int(signal[:, 0, 0].nonzero().max()))
        rows.append([*row, 15])
    return rows


@computes
def running_sums() -> list:
    """The output as a weighted average over the keys so far."""
    keys, values, query = np.array([[1, 0], [0, 1], [1, 1]]), np.array([6, 3, 9]), [2, 1]
    rows = []
    for count in (1, 2, 3):
        weights = keys[:count] @ query / (keys[:count] @ query).sum()
        S = tuple(int(n) for n in values[:count] @ keys[:count])
        z = tuple(int(n) for n in keys[:count].sum(0))
        rows.append([S, z, weights @ values[:count]])
    return rows


# --- chapter 9 ---


@computes
def joined_pairs() -> list:
    """The most frequent pair, found by searching the words as texts with spaces between pieces."""
    counts = {"w e l l": 4, "w e l l s": 2, "b e l l": 3, "d e e p": 5}
    rows, name = [], "w e l l s"
    for _ in range(4):
        pairs = {
            (a, b) for word in counts for a, b in zip(word.split(), word.split()[1:], strict=False)
        }

        def often(pair: tuple[str, str], counts: dict[str, int] = counts) -> int:
            return sum(n * f" {word} ".count(f" {' '.join(pair)} ") for word, n in counts.items())

        best = min(pairs, key=lambda pair: (-often(pair), pair))
        rows.append(["".join(best), often(best)])
        counts = {word.replace(" ".join(best), "".join(best)): n for word, n in counts.items()}
        name = name.replace(" ".join(best), "".join(best))
        rows[-1].append(len(name.split()))
    return [*rows, [len(["d", *name.split()])]]


@computes
def one_to_the_right() -> list:
    text = ["the", "well", "is", "deep"]
    table = torch.tensor([[1, 2, 1, 4], [1, 1, 4, 2], [4, 2, 1, 1]]) / 8
    bits = torch.nn.functional.nll_loss(table.log2(), torch.arange(1, 4), reduction="none")
    return [*zip(text[1:], bits.tolist(), strict=True), [bits.sum().item()]]


@computes
def two_rulers() -> list:
    size = len(b"The well is deep.")
    bits = {5: 5 + 3 + 4 + 4 + 1, size: 34}
    per = [total / n for n, total in bits.items()]
    return [[bits[5]], per, [2**x for x in per], [total / size for total in bits.values()]]


@computes
def four_adjectives() -> list:
    p = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)]

    def normed(q: list[Fraction]) -> list[Fraction]:
        return [x / sum(q) for x in q]

    def share(q: list[Fraction], least: float) -> int:
        return next(k for k in range(1, 5) if sum(q[:k]) >= least)

    def first(q: list[Fraction], k: int) -> list[Fraction]:
        return normed([*q[:k], *[Fraction(0)] * (4 - k)])

    cold = normed([x * x for x in p])
    ways = [cold, first(p, 2), *(first(p, share(p, least)) for least in (0.7, 0.8))]
    ways.append(first(cold, share(cold, 0.8)))
    kept = [float(sum(p[: share(p, least)])) for least in (0.7, 0.8)]
    return [*([float(x) for x in q] for q in ways), *([whole] for whole in kept)]


# --- chapter 10 ---

for table in computed_ten.TABLES:
    computes(table)
