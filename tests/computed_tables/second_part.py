"""Tables of the second part: before, beside and after."""

import math
from datetime import timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from . import computes

# --- chapter 8 ---


@computes
def one_unit() -> list:
    """The state as the sum over all inputs, each halved once for every step since."""
    x, rows = np.array([0, 8, 0, 0, 4]), []
    halves = np.tril(0.5 ** np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    for t, state in enumerate(halves @ x):
        rows.append([state - x[t], state, halves[t, 1] * x[1]])
    return rows[1:]  # the first is given


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
    return [rows[2], rows[3][1:]]  # the other numbers stand there


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
        rows.append(row)
    return rows


@computes
def a_context() -> list:
    """By torch's attention, whose softmax has e in place of 2."""
    states, scores = torch.tensor([[4.0, 0], [0, 4], [4, 8]]), torch.tensor([[0.0, 0, 1]])
    eye, by_two = torch.eye(3), scores * torch.log(torch.tensor(2.0))
    look = torch.nn.functional.scaled_dot_product_attention
    weights, context = (look(by_two, eye, values, scale=1.0)[0] for values in (eye, states))
    return [[*weights.tolist(), tuple(context.tolist())]]


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
    return rows[1:]  # the first is given


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
    return [*rows[1:], [len(["d", *name.split()])]]  # the first stands there


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
def cut_and_kept() -> list:
    shares = {"the": Fraction(1, 2), "well": Fraction(1, 4), "deep": Fraction(1, 4)}
    words, found = [*shares], []
    for n in range(1, 4):  # all texts of so many words, in order: a text begins where others end
        text = ("the", "deep", "well")[:n]
        every = [(w, math.prod(shares[x] for x in w)) for w in product(words, repeat=n)]
        found.append(
            (sum(p for w, p in every[: [w for w, _ in every].index(text)]), dict(every)[text])
        )
    return [*([float(a), float(b)] for a, b in found), [-math.log2(found[-1][1])]]


@computes
def what_it_takes() -> list:
    """A small layer's products and Adam's state, as torch counts them, for each parameter."""
    layer = torch.nn.Linear(16, 8, bias=False)
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(4, 16, requires_grad=True)).sum().backward()
    adam = torch.optim.Adam(layer.parameters())
    adam.step()
    held = sum(x.nbytes for x in adam.state[layer.weight].values() if x.ndim) / layer.weight.numel()
    each, rows = counter.get_total_flops() / 4 / layer.weight.numel(), []
    for parameters, tokens in ((124_000_000, 10_000_000_000), (62_000_000, 5_000_000_000)):
        operations = each * parameters * tokens
        days = timedelta(seconds=operations / 40e12) / timedelta(days=1)
        rows.append((operations / 1e18, days, held * parameters / 1024 / 1024))
    (whole, _, means), (half, *_) = rows  # the other numbers stand there
    return [[whole, half], [means]]


ADJECTIVES = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)]


def normed(p: list[Fraction]) -> list[Fraction]:
    return [x / sum(p) for x in p]


def needed(p: list[Fraction], share: float) -> int:
    return next(k for k in range(1, 5) if sum(p[:k]) >= share)


def first(p: list[Fraction], k: int) -> list[Fraction]:
    return normed([*p[:k], *[Fraction(0)] * (4 - k)])


@computes
def four_adjectives() -> list:
    p, cold = ADJECTIVES, normed([x * x for x in ADJECTIVES])
    kept = needed(p, 0.8)
    return [[*map(float, cold)], [*map(float, first(p, kept))], [float(sum(p[:kept]))]]


@computes
def cut_and_cold() -> list:
    cold = normed([x * x for x in ADJECTIVES])
    return [[*map(float, q)] for q in (first(ADJECTIVES, 2), first(cold, needed(cold, 0.8)))]
