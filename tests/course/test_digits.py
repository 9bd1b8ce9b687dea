"""Float32 is charged where the dtype is, and a wrong sixth digit where the values are."""

import numpy as np
import pytest
import torch

from autograder.judge.reference import expected, records
from autograder.judge.verdicts import _task
from autograder.student.course import find_exercise
from autograder.student.engine.probe import preserve_generators
from autograder.student.engine.verdict import decide
from solutions import kernel_regression, language_model, recurrence_convolution, residual_layernorm

FACTOR = 1.00001


def lost(answer, name):
    """The titles of the aspects that fail, in `check` as in the judge."""
    slug, exercise = find_exercise(name)
    runs = exercise.runs(b"digits")
    given = records(answer, runs)
    verdict = decide(exercise, runs, given, expected(slug, name, runs))
    with preserve_generators():
        judged = decide(exercise, runs, given, _task(slug, name, b"digits", "cpu").expected)
    assert judged.aspects == verdict.aspects
    return [aspect.title for aspect in verdict.aspects if not aspect.passed]


def single_softmax(scores, axis=-1):
    weights = kernel_regression.softmax(np.asarray(scores, np.float32), axis)
    return weights.astype(scores.dtype if scores.dtype.kind == "f" else float)


class SingleNorm(residual_layernorm.LayerNorm):
    """All of it is in float32."""

    def forward(self, x):
        y = x.float()
        y = (y - y.mean(-1, keepdim=True)) / (
            y.var(-1, correction=0, keepdim=True) + self.eps
        ).sqrt()
        return (y * self.weight.float() + self.bias.float()).to(x.dtype)


class HalfSingleNorm(residual_layernorm.LayerNorm):
    """Weight and bias are not, so the result has all digits, and only some of them are right."""

    def forward(self, x):
        y = x.float()
        y = (y - y.mean(-1, keepdim=True)) / (
            y.var(-1, correction=0, keepdim=True) + self.eps
        ).sqrt()
        return (y * self.weight + self.bias).to(x.dtype)


def single_loss(logits, ids, pad_id=None):
    return language_model.next_token_loss(logits.float(), ids, pad_id).to(logits.dtype)


def single_attention(query, key, value, causal=False):
    three = (x.float() for x in (query, key, value))
    return recurrence_convolution.linear_attention(*three, causal).to(query.dtype)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("softmax", single_softmax),
        ("LayerNorm", SingleNorm),
        ("LayerNorm", HalfSingleNorm),
        ("next_token_loss", single_loss),
        ("linear_attention", single_attention),
    ],
)
def test_float32_inside_costs_the_dtype_alone(name, answer):
    assert lost(answer, name) == ["dtype"]


def test_a_wrong_sixth_digit_is_no_rounding_in_float64_or_float32():
    first = "weights of random scores"
    for softmax in (kernel_regression.softmax, single_softmax):
        found = lost(lambda *args, softmax=softmax, **kw: softmax(*args, **kw) * FACTOR, "softmax")
        assert found[:3] == [first, "any number of dimensions, any axis", "scores of ±10,000"]

    class Norm(SingleNorm):
        def forward(self, x):
            return super().forward(x) * FACTOR

    assert lost(Norm, "LayerNorm") == ["gradients reach x, weight and bias"]


def test_an_epsilon_is_no_rounding_in_float32():
    class Norm(residual_layernorm.LayerNorm):
        def forward(self, x):
            y = x.float()
            y = (y - y.mean(-1, keepdim=True)) / (y.std(-1, correction=0, keepdim=True) + self.eps)
            return (y * self.weight + self.bias).to(x.dtype)

    found = lost(Norm, "LayerNorm")
    assert found[:2] == ["ε inside the root", "gradients reach x, weight and bias"]


def test_wrong_numbers_that_only_the_dtypes_runs_show_are_charged_as_values():
    def times(logits, ids, pad_id=None):
        return language_model.next_token_loss(logits, ids, pad_id) * FACTOR

    assert lost(times, "next_token_loss") == ["the loss of random logits"]


def test_a_table_where_none_is_needed_costs_a_fifth():
    def by_a_table(query, key, value, causal=False):
        if causal:
            return recurrence_convolution.linear_attention(query, key, value, True)
        query, key = (torch.nn.functional.elu(x) + 1 for x in (query, key))
        weights = query @ key.mT
        return weights @ value / weights.sum(-1, keepdim=True)

    missing = lost(by_a_table, "linear_attention")
    assert missing == ["keys and values first", "no table of queries and keys"]
    exercise = find_exercise("linear_attention")[1]
    price = sum(aspect.points for aspect in exercise.aspects if aspect.title in missing)
    assert price >= 0.2 * exercise.points
