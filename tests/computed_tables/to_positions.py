"""Tables of the first five chapters, from kernel regression to positions."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import torch

from solutions import multi_head

from . import computes, softmax

# --- chapter 1 ---

HOURS, WARMTH = [0, 1, 2], [12, 21, 15]


def counts(query: Fraction) -> list[float]:
    return [2.0 ** -float((query - hour) ** 2) for hour in HOURS]


@computes
def noon() -> list:
    found = [Fraction(c) for c in counts(Fraction(0))]
    shares = [c / sum(found) for c in found]
    rows = [[16 * c, share] for c, share in zip(found, shares, strict=True)]
    prediction = sum(share * t for share, t in zip(shares, WARMTH, strict=True))
    return [rows[0][1:], *rows[1:], [16 * sum(found)], [prediction]]


@computes
def two_more() -> list:
    rows = []
    for query in (Fraction(1), Fraction(1, 2)):
        weights = np.array(counts(query)) / sum(counts(query))
        rows.append([*weights, weights @ WARMTH])
    return rows


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
    sung, deep = softmax(np.log([1, 6, 1])), softmax(np.log([1, 1, 1, 5]))
    return [[sung[1]], [sung @ [0, 1, 0]], [deep[3]], [deep @ [0, 0, 0, -1]]]


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
    def prediction(s):
        return 8 * softmax(np.array([0.0, -s]))[1]

    def loss(s):
        return (prediction(s) - 3) ** 2

    def derivative(f, s):
        return (f(s + 1e-6) - f(s - 1e-6)) / 2e-6

    s = math.log(3)
    rows = [prediction(s), loss(s), derivative(prediction, s), derivative(loss, s)]
    return [[round(row, 6)] for row in [*rows, s - 0.05 * rows[-1]]]


# --- chapter 2 ---


@computes
def fruit() -> list:
    scores = np.array([[3, 1, 0], [2, 2, 0], [1, 3, 2]]) @ [2, 1, -1]
    weights = softmax(scores.astype(float))
    return [[weights[0]], [scores[1], weights[1]], [weights @ [4, 3, 2]]]


@computes
def first_query() -> list:
    key = np.array([[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    value = np.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    scores = key @ [1, 0, 2]
    grown = np.exp(scores - 4.0)
    weights = softmax(scores.astype(float))
    rows = [list(row) for row in zip(scores, grown, weights, strict=True)]
    return [*rows, [grown.sum()], [tuple(weights @ value)]]


@computes
def sixteen_patterns() -> list:
    sums = [sum(signs) for signs in itertools.product((1, -1), repeat=4)]
    squares = [s * s for s in sums]
    counts = [[sums.count(score)] for score in (4, 2, 0)]
    return [*counts, [sum(sums) / 16], [sum(squares) / 16]]


@computes
def small_additive() -> list:
    return [[2 * math.tanh(0)], [2 * math.tanh(math.atanh(0.5))]]


@computes
def views_of_a_sentence() -> list:
    words = torch.eye(3, 2)
    maps = torch.tensor([[0.0, math.log(2), 1.0], [1.0, 0.0, -1.0]])
    query, key, value = (words @ maps).split(1, dim=1)
    attend = torch.nn.functional.scaled_dot_product_attention
    outputs = attend(query[None], key[None], value[None])[0]
    grown = (query @ key.T).exp()
    views = [query[0].item()], [key[1].item(), value[1].item()]
    return [*views, [grown[1, 0].item(), outputs[1].item()]]


@computes
def jacobian_of_two() -> list:
    scores = torch.tensor([8.0, 0.0])
    softmax = functools.partial(torch.softmax, dim=0)
    jacobian = torch.autograd.functional.jacobian
    return [[jacobian(softmax, scores / by)[0, 0].item() for by in (1, 8)]]


@computes
def views_of_the_cards() -> list:
    suit = torch.eye(4)
    scores = (4 * suit) @ (4 * suit).T / 2
    return [[scores[0, 0].item()], [scores[0, 1].item()], [(0, 0, 0, 0, 1)]]


@computes
def bytes_of_a_table() -> list:
    table = torch.empty(1, 512, 512)
    mib = table.numel() * table.element_size() / 2**20
    return [[mib], [64 * mib]]


@computes
def two_lengths() -> list:
    a, b = complex(3, 4), complex(4, 3)
    dot = (a * b.conjugate()).real
    return [[abs(a), abs(b)], [dot], [dot / (abs(a) * abs(b))]]


# --- chapter 3 ---


@computes
def who_and_how() -> list:
    """By torch, on a query of one feature or two; the values of the names in both orders."""
    keys = math.log(3) * torch.eye(2)
    values = torch.tensor([(16.0, 0.0), (0.0, 16.0)])
    columns = []
    for seen in ([0], [1], [0, 1]):
        weights = torch.softmax(keys[:, seen].sum(1) / math.sqrt(len(seen)), 0)
        columns.append([*weights.tolist(), *(weights @ values).tolist()])
    first, _, one = np.round(columns, 6).tolist()  # the second is given
    return [[first[0]], [first[2], one[2]], [first[3], one[3]]]


@computes
def mixed() -> list:
    found = torch.tensor([[12, 4], [4, 12]]) @ torch.tensor([[1, 1], [1, -1]])
    return [[tuple(row)] for row in found.tolist()]


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
    return [*scores, *([total, 4 / total] for total in sums)]


@computes
def step_twice() -> list:
    places, step = np.eye(4), np.eye(4, k=-1)
    scores = places @ (places[3] @ step @ step)
    return [[["sitting", "by", "her", "sister"][scores.argmax()]]]


@computes
def two_back() -> list:
    places = range(4)
    rows = [tuple(int(at == asked + 2) for at in places) for asked in places]
    queries = [tuple(int(asked == at - 2) for asked in places) for at in places]
    return [[rows[0]], *([query, row] for query, row in list(zip(queries, rows, strict=True))[1:])]


# --- chapter 4 ---

GROWN, PRICES = np.array([1, 2, 1, 4]), np.array([12, 24, 6, 30])


def masked_by_hand(seen: list[int]) -> list:
    weights = GROWN * seen / (GROWN @ seen)
    return [*([w] for w in weights), [weights @ PRICES]]


@computes
def three_words() -> list:
    return masked_by_hand([1, 1, 1, 0])


@computes
def no_future() -> list:
    return [[np.average(PRICES[:n], weights=GROWN[:n])] for n in (2, 3)]


@computes
def deep_at_38() -> list:
    """Of *is* and *deep*, under the causal mask and under one that reaches one key further."""
    louder = np.where(PRICES == 30, 38, PRICES)
    causal, further = (
        [np.average(louder, weights=GROWN * row) for row in np.tri(4, k=k)] for k in (0, 1)
    )
    return [causal[2:], further[2:]]


@computes
def one_place_on() -> list:
    text = ["⟨bos⟩", "she", "sings", "well", "⟨eos⟩"]
    seen = np.tri(4).sum(1).astype(int).tolist()
    too_far = np.tri(4, k=1).sum(1).astype(int).tolist()
    sees = "✓" if text.index("well") < too_far[2] else "✗"
    return [[too_far[2], sees], [seen[2], text[2]]]


@computes
def two_of_four() -> list:
    return [["✓" if key <= 2 + query else "✗" for key in range(4)] for query in range(2)]


@computes
def ten_calls() -> list:
    """Counted cell by cell: each call's new queries, and each query's keys."""
    again = [torch.ones(call, call) for call in range(1, 11)]
    cached = [torch.ones(1, call) for call in range(1, 11)]
    rows = [
        [len(full), len(new), full.numel(), new.numel()]
        for full, new in zip(again, cached, strict=True)
    ]
    tokens, _, scores, kept = rows[-1]
    positions, new, all_scores, all_kept = map(sum, zip(*rows, strict=True))
    assert (tokens, new, all_scores) == (10, 10, 385)
    return [[scores, kept], [positions, all_kept]]


@computes
def who_moves_whom() -> list:
    start, moved = np.cumsum([1, 2, 3]), []
    for j, other in enumerate((5, 6, 3)):
        inputs = [1, 2, 3]
        inputs[j] = other
        moved.append(abs(np.cumsum(inputs) - start).tolist())
    return [list(row) for row in zip(*moved, strict=True)]


@computes
def reads_per_product() -> list:
    """One step of one layer: its weights, and the cached numbers of each sequence."""
    d_model, past, rows = 4, 2, []
    for batch in (2, 8):
        read = torch.zeros(batch, past, d_model).numel() + torch.zeros(d_model, d_model).numel()
        products = batch * d_model**2
        rows.append([read, products, read / products])
    return rows


# --- chapter 5 ---


@computes
def two_hands() -> list:
    angles = [(math.radians(90 * p), math.radians(30 * p)) for p in range(5)]
    fast = np.round([[math.sin(f), math.cos(f)] for f, _ in angles], 9).tolist()
    products = [
        sum(math.cos(a - b) for a, b in zip(*pair, strict=True))
        for pair in itertools.pairwise(angles)
    ]
    # the first two rows are given, and the first product
    return [*fast[2:], [fast.index(fast[0], 1)], np.round(products[1:3], 9).tolist()]


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
    for query, key in ((5, 6), (3, 5), (2, 1)):
        a, b = 1j**query, 1j * 1j**key
        product = (a * b.conjugate()).real
        rows.append([(a.real, a.imag), (b.real, b.imag), product])
    return [rows[0][2:], rows[1], rows[2][2:]]


@computes
def halved_by_each_step() -> list:
    back, content = np.array([3, 2, 1, 0]), np.log([1.0, 8.0, 1.0, 1.0])
    scores = content - math.log(2) * back  # ALiBi, slope ln 2
    factor, product = np.exp(-math.log(2) * back), np.exp(scores)
    rows = [list(row) for row in zip(factor, product, softmax(scores), strict=True)]
    even = next(k for k in range(9) if math.isclose(math.log(8) - k * math.log(2), 0))
    ten = math.exp(0 - (math.log(8) - 10 * math.log(2)))
    return [*rows, [product.sum(), 1], [even], [ten]]
