"""`chunked_linear_attention` beside a sum over pairs of positions, in plain Python."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from solutions.recurrence_convolution import chunked_linear_attention, linear_attention_step


def features(x):
    return [a + 1 if a > 0 else math.exp(a) for a in x]


def by_pairs(query, key, value):
    """Row by row: each earlier value by its share of the weights."""
    rows = []
    for i, q in enumerate(query):
        weights = [
            sum(a * b for a, b in zip(features(q), features(k), strict=True)) for k in key[: i + 1]
        ]
        columns = zip(*value[: i + 1], strict=True)
        mean = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in columns]
        rows.append([total / sum(weights) for total in mean])
    return rows


def text(n, d_k=3, d_v=2):
    torch.manual_seed(n)
    return [torch.randn(n, d, dtype=torch.float64) for d in (d_k, d_k, d_v)]


@pytest.mark.parametrize("n", [1, 6, 11])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 11, 20])
def test_whatever_the_chunks_each_row_is_a_mean_over_earlier_ones(n, chunk):
    given = text(n)
    found, (S, z) = chunked_linear_attention(*given, chunk)
    wanted = by_pairs(*(x.tolist() for x in given))
    assert found.tolist() == [pytest.approx(row, abs=1e-12) for row in wanted]
    _, key, value = (x.tolist() for x in given)
    sums = [sum(column) for column in zip(*map(features, key), strict=True)]
    assert z.tolist() == pytest.approx(sums)
    first = sum(features(k)[0] * v[1] for k, v in zip(key, value, strict=True))
    assert S[0, 1].item() == pytest.approx(first)


def test_a_state_goes_on_where_a_step_left_it_and_the_other_way_round():
    query, key, value = (x[None] for x in text(9))
    whole, last = chunked_linear_attention(query, key, value, 4)
    _, state = chunked_linear_attention(query[:, :5], key[:, :5], value[:, :5], 2)
    output, state = linear_attention_step(query[:, 5], key[:, 5], value[:, 5], state)
    rest, state = chunked_linear_attention(query[:, 6:], key[:, 6:], value[:, 6:], 3, state)
    torch.testing.assert_close(torch.cat([output[:, None], rest], 1), whole[:, 5:])
    for ours, theirs in zip(state, last, strict=True):
        torch.testing.assert_close(ours, theirs)


class Largest(TorchDispatchMode):
    numbers = calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.calls += 1
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


def test_memory_and_steps_are_those_of_chunks():
    """No tensor is larger than the text, and larger chunks take fewer operations."""
    given, taken = text(128), {}
    for chunk in (2, 16):
        with Largest() as counted:
            chunked_linear_attention(*given, chunk)
        assert counted.numbers <= 128 * 3
        taken[chunk] = counted.calls
    assert taken[16] < taken[2] / 6
