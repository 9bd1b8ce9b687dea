"""What chapter 2's page says of its own cells: its example, its mistakes, the divisors compared."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.page_cells import cell_of

FILE = Path(__file__).parents[2] / "book" / "02_attention_scoring.md"
PAGE = FILE.read_text("utf-8")
Q = np.array([[1.0, 0, 2], [2, 2, 2], [2, 1, 3]])
K = np.array([[0.0, 1, 1], [4, 4, 0], [2, 3, 1]])
V = np.array([[1.0, 2, 3], [2, 8, 0], [2, 6, 3]])
DIVISORS = (lambda d: 1.0, math.sqrt, float)


def functions(first_line, **scope):
    """The functions of the cell that has this line; what the cell prints or draws is left out."""
    code = "\n\n".join(re.findall(r"^def .*?(?=^\S|\Z)", cell_of(FILE, first_line), re.M | re.S))
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


def test_one_fruit_takes_nearly_all_that_the_second_shopper_gives():
    fruits = np.array([[3, 1, 0], [2, 2, 0], [1, 3, 2]])
    scores = fruits @ [4, 0, 0]
    weights = np.exp(scores) / np.exp(scores).sum()
    assert "With scores of {}, {} and {}, one fruit takes nearly everything".format(*scores) in PAGE
    assert f"enough for {weights.max():.0%} of the weight" in PAGE


@pytest.fixture(scope="module")
def saturation():
    return functions("def saturation(d, divide_by):", torch=torch)["saturation"]


def test_the_typical_sensitivity_of_the_weights_is_as_told(saturation):
    plain, scaled, mean = ([saturation(d, by(d)) for d in (16, 256, 4096)] for by in DIVISORS)
    assert plain[-1][1] < 1e-9  # "below a billionth"
    assert plain[-1][0] > 0.98
    for typical in zip(*scaled, strict=True):  # √d_k: the same at every size
        assert max(typical) < 1.1 * min(typical)
    for (_, before, _), (_, after, _) in zip(mean, mean[1:], strict=False):
        assert before / after == pytest.approx(4, rel=0.1)  # as 1/√d_k
    assert mean[-1][0] == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("d", [1, 6, 40])
def test_a_sensitivity_is_the_norm_of_a_querys_own_derivatives(saturation, d, divisor):
    torch.manual_seed(d)
    queries, keys = torch.randn(500, d), torch.randn(d, 10)
    largest, norms = [], []
    for query in queries:
        weights = (query @ keys / divisor(d)).softmax(0)
        away = keys.T - weights @ keys.T  # each key, less their average
        largest.append(weights.max())
        norms.append((weights[:, None] * away / divisor(d)).norm())
    right = [torch.stack(norms).median(), torch.stack(norms).mean()]
    assert saturation(d, divisor(d)) == pytest.approx(
        [torch.stack(largest).mean().item(), *(n.item() for n in right)], rel=1e-4
    )


def test_queries_descend_along_their_own_gradients():
    """One step of plain descent for three seeds at once, against the formula, a query at a time."""
    first_line = "def fetch(d, divide_by, optimiser, seeds=(1, 2, 3), steps=200):"
    fetch = functions(first_line, torch=torch, F=torch.nn.functional)["fetch"]
    before, after, begun = fetch(6, 2.0, lambda p: torch.optim.SGD(p, lr=3.0), steps=1)
    assert before.shape == after.shape == begun.shape == (3, 32)
    for row, seed in enumerate((1, 2, 3)):
        torch.manual_seed(seed)
        keys, values = torch.randn(10, 6), torch.randn(10, 4)
        wanted, queries = torch.randint(10, (32,)), torch.randn(32, 6)
        for i, (query, key) in enumerate(zip(queries, wanted, strict=True)):
            weights = (keys @ query / 2.0).softmax(0)
            off = weights @ values - values[key]
            assert before[row, i].item() == pytest.approx(off.square().mean().item(), abs=1e-5)
            assert begun[row, i].item() == pytest.approx(weights[key].item(), abs=1e-6)
            by_weight = 2 * values @ off / 4 / 32  # the mean of 32 queries is what descends
            slope = weights * (by_weight - weights @ by_weight) @ keys / 2.0
            weights = (keys @ (query - 3.0 * slope) / 2.0).softmax(0)
            found = (weights @ values - values[key]).square().mean().item()
            assert after[row, i].item() == pytest.approx(found, abs=1e-5)


def test_the_gaussians_number_matters_as_told():
    code = functions("def without_the_number(tokens, W_query, W_key):", torch=torch)
    torch.manual_seed(0)
    tokens = torch.nn.functional.layer_norm(torch.randn(200, 64), (64,))
    spread, moved = code["without_the_number"](tokens, torch.eye(64), torch.eye(64))
    assert spread == pytest.approx(0, abs=1e-5)
    assert moved == pytest.approx(0, abs=1e-5)
    moved = []
    for seed in range(10, 20):
        torch.manual_seed(seed)
        tokens = torch.nn.functional.layer_norm(torch.randn(200, 64), (64,))
        moved += [code["without_the_number"](tokens, *torch.randn(2, 64, 64) / 8)[1]]
    (told,) = re.findall(r"(\d+)% of the weight moves", PAGE)
    assert np.mean(moved) == pytest.approx(int(told) / 100, abs=0.03)


def test_the_slider_opens_with_scores_of_the_size_that_is_told():
    (seed,) = re.findall(r"manual_seed\((\d+)\)\none_query, eight_keys", PAGE)
    torch.manual_seed(int(seed))
    query, keys = torch.randn(1024).double(), torch.randn(8, 1024).double()
    scores = keys[:, :64] @ query[:64]
    assert scores.square().mean().sqrt() == pytest.approx(8, rel=0.05)  # √64
    assert scores.softmax(0).max() > 0.9  # "has made up its mind"


def test_a_typical_querys_weights_move_about_an_eighth_as_far():
    """At 256 features without the scale: the middle eight of ten sets of keys, and the median."""
    most = "(with most sets of keys, a fifth to a twelfth)"
    assert f"only about an eighth as far as with the scale {most}" in PAGE
    torch.manual_seed(4)
    shares = []
    for _ in range(200):
        queries, keys = torch.randn(500, 256), torch.randn(256, 10)
        moves = []
        for divisor in (1.0, 16.0):
            weights = (queries @ keys / divisor).softmax(-1)
            slopes = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
            moves.append((slopes @ keys.T / divisor).flatten(1).norm(dim=1).median())
        shares.append(moves[0] / moves[1])
    low, middle, high = torch.stack(shares).quantile(torch.tensor([0.1, 0.5, 0.9]))
    assert 1 / 9 < middle < 1 / 6
    assert 1 / 15 < low < 1 / 11
    assert 1 / 6 < high < 1 / 4
