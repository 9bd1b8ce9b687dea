"""What chapter 2's page says of its own cells: its example, its mistakes, the divisors compared."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

PAGE = (Path(__file__).parents[1] / "book" / "02_attention_scoring.md").read_text("utf-8")
Q = np.array([[1.0, 0, 2], [2, 2, 2], [2, 1, 3]])
K = np.array([[0.0, 1, 1], [4, 4, 0], [2, 3, 1]])
V = np.array([[1.0, 2, 3], [2, 8, 0], [2, 6, 3]])
DIVISORS = (lambda d: 1.0, math.sqrt, float)


def functions(first_line, **scope):
    """The functions of the cell that has this line; what the cell prints or draws is left out."""
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", PAGE, re.M | re.S)
    (cell,) = [cell for cell in cells if first_line in cell.splitlines()]
    code = "\n\n".join(re.findall(r"^def .*?(?=^\S|\Z)", cell, re.M | re.S))
    exec(code, scope)
    return scope


def test_the_folklores_rounding_is_told_with_the_right_numbers():
    weights = [1 / (1 + 2 * math.e**2)] + [1 / (math.e**-2 + 2)] * 2
    told = re.search(r"The numbers are ([\d., ]+) and \[([\d., ]+)\]", PAGE)
    for text, exact in zip(told.groups(), (weights, weights @ V), strict=True):
        assert [float(number) for number in text.split(", ")] == pytest.approx(exact, abs=5e-4)
    assert f"the key with {weights[0]:.0%} of" in PAGE


def test_the_example_hides_transposed_scores_and_the_other_query_does_not():
    rowwise = functions("def rowwise(a, axis=1):", np=np)["rowwise"]
    other = np.array([[1.0, 0, 0], *Q[1:]])
    right, transposed = (rowwise(a) @ V for a in (Q @ K.T, (Q @ K.T).T))
    assert np.array_equal(right, transposed)
    right, transposed = (rowwise(a) @ V for a in (other @ K.T, (other @ K.T).T))
    assert np.abs(right - transposed)[0].max() > 0.5


@pytest.fixture(scope="module")
def saturation():
    return functions("def saturation(d, divide_by):", torch=torch)["saturation"]


def test_the_typical_sensitivity_of_the_weights_is_as_told(saturation):
    plain, scaled, mean = ([saturation(d, by(d)) for d in (16, 256, 4096)] for by in DIVISORS)
    assert plain[-1][1] < 1e-9  # "below a billionth"
    assert plain[-1][0] > 0.98
    for top, middle, _ in scaled:
        assert middle == pytest.approx(0.34, abs=0.02)
        assert top == pytest.approx(0.32, abs=0.02)
    for (_, before, _), (_, after, _) in zip(mean, mean[1:], strict=False):
        assert before / after == pytest.approx(4, rel=0.1)  # as 1/√d_k
    assert mean[-1][0] == pytest.approx(0.1, abs=0.005)


def test_the_mean_sensitivity_would_say_the_opposite(saturation):
    for d in (4, 16, 64, 256, 1024, 4096):
        assert saturation(d, 1.0)[2] > saturation(d, math.sqrt(d))[2]


def test_only_the_root_learns_with_one_rate_and_a_fitting_rate_saves_the_mean_only():
    first_line = "def fetch(d, divide_by, optimiser, seeds=(1, 2, 3), steps=200):"
    scope = functions(first_line, torch=torch, F=torch.nn.functional)

    def runs(d, by):
        found = (scope["fetch"](d, by(d), way) for way in scope["ways_down"](d, by(d)))
        return [(after.mean(1).tolist(), after, begun) for _, after, begun in found]

    (one, fit, adam), (root, _, _), (slow, mended, hidden) = (
        [errors for errors, _, _ in runs(1024, by)] for by in DIVISORS
    )
    assert min(one + fit + adam) > 1.0  # no scale: none of the three ways
    assert max(root) < 0.05
    assert min(slow) > 0.5
    assert max(mended + hidden) < 0.01
    even = scope["fetch"](1024, math.inf, scope["ways_down"](1024, 1.0)[0], steps=0)[0].mean(1)
    assert min(one + fit + adam) > even.max()  # "end above the average"
    for _, after, begun in runs(16, DIVISORS[0]):  # whose doing it is that no scale loses at 16
        assert after[begun < 0.001].mean() > 4 * after[begun >= 0.001].mean()


def test_the_gaussians_number_matters_as_told():
    code = functions("def without_the_number(tokens, W_query, W_key):", torch=torch)
    torch.manual_seed(0)
    tokens = torch.nn.functional.layer_norm(torch.randn(200, 64), (64,))
    spread, moved = code["without_the_number"](tokens, torch.eye(64), torch.eye(64))
    assert spread == pytest.approx(0, abs=1e-5)
    assert moved == pytest.approx(0, abs=1e-5)
    projections = torch.randn(2, 64, 64) / 8
    _, moved = code["without_the_number"](tokens, *projections)
    assert 0.1 < moved < 0.4


def test_a_typical_querys_weights_move_a_fifth_to_a_twentieth_as_far_by_the_keys():
    """At 256 features without the scale: the middle eight of ten sets of keys, and the median."""
    assert "only a fifth to a twentieth as far as with the scale" in PAGE
    torch.manual_seed(4)
    shares = []
    for _ in range(40):
        queries, keys = torch.randn(500, 256), torch.randn(256, 10)
        moves = []
        for divisor in (1.0, 16.0):
            weights = (queries @ keys / divisor).softmax(-1)
            slopes = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
            moves.append((slopes @ keys.T / divisor).flatten(1).norm(dim=1).median())
        shares.append(moves[0] / moves[1])
    low, middle, high = torch.stack(shares).quantile(torch.tensor([0.1, 0.5, 0.9]))
    assert 1 / 30 < low < middle < high < 1 / 4
    assert 1 / 20 < middle < 1 / 5
