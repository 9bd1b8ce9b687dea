"""No pointer at a place where nothing is wrong, and no name of what an answer does not do."""

import math

import pytest
import torch
from pointer_cases import pointed
from torch import nn

from autograder.student.check import verdict_on

pytestmark = pytest.mark.usefixtures("plenty_of_time")


ENCODING = """
    def sinusoidal_encoding(max_len, d_model, base=10000.0):
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        pos = torch.arange(max_len, dtype=torch.float64)
        for j in range(d_model):
            angle = pos * math.exp(-math.log(base) * (j - j % 2) / (d_model - 1))
            pe[:, j] = angle.cos() if j % 2 else angle.sin()
        return pe.float()
"""


def test_what_is_left_as_it_was_has_not_been_computed_twice():
    told = pointed(ENCODING, "sinusoidal_encoding")
    assert "computed before" not in told


ATTENTION = """
    def simple_attention(query, key, value):
        s = query @ np.swapaxes(key, -1, -2)
        s = np.exp(s - s.max(-1, keepdims=True)) + 1e-4
        w = s / s.sum(-1, keepdims=True)
        return w @ value, w
"""


def test_nearly_a_right_answers_numbers_are_no_multiple_of_them():
    told = pointed(ATTENTION, "simple_attention")
    assert "times some other number" not in told


MASKED = """
    def masked_attention(query, key, value, mask=None):
        s = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
        if mask is None:
            mask = s.new_ones((), dtype=torch.bool)
        s = s.masked_fill({mask}, {low})
        w = s.softmax(-1) * mask
        return torch.einsum("...qk,...kv->...qv", w, value), w
"""


def test_a_mask_turned_round_is_not_where_the_fill_goes_wrong():
    told = pointed(MASKED.format(mask="mask.logical_not()", low="0.0"), "masked_attention")
    assert "call of `masked_fill`" in told


def test_an_operation_that_is_wrong_in_other_runs_for_another_reason_is_needed():
    low = "torch.finfo(s.dtype).min"
    told = pointed(MASKED.format(mask="mask", low=low), "masked_attention")
    assert "without this operation" not in told


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + 1e-5), self.weight)


def test_a_mistake_is_certain_though_other_rounding_passes_where_a_property_is_judged():
    assert verdict_on(LayerNorm, "LayerNorm").mistake == "eps_always_the_default"


def rotary_embedding(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    rates = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    places = torch.arange(offset, offset + n, dtype=torch.float64, device=x.device)
    angles = torch.outer(places, rates)
    u, v = x.double().unflatten(-1, (d // 2, 2)).unbind(-1)
    turned = (u * angles.cos() - v * angles.sin(), u * angles.sin() + v * angles.cos())
    return torch.stack(turned, -1).flatten(-2)


def test_a_result_in_float64_is_not_likened_to_one_in_float32():
    verdict = verdict_on(rotary_embedding, "rotary_embedding")
    assert verdict.mistake is None
    assert not any("float32" in name for name in verdict.suspected_mistakes)
    assert math.isclose(verdict.score, verdict.points - 0.25)
