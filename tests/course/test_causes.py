"""What a cause claims is so: computed from what the mistake does, where that can be computed."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch

from autograder.bank import banks, cause
from autograder.judge.reference import records, reference
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.mistakes.match import same_values
from autograder.student.engine.runs import Record, Run
from autograder.student.engine.values import Array
from autograder.student.expected import expected_of, fixed_runs
from autograder.student.expected.fingerprints import fingerprint, same_runs

Trio = tuple[Run, Record, Record]  # a run, what the mistake gives and what the reference gives


@cache
def causes() -> list[tuple[str, str, str, str]]:
    """Of every mistake: chapter, exercise, name, cause."""
    return [
        (slug, exercise.name, name, cause(wrong))
        for slug in chapters()
        for exercise in exercises_of(slug)
        for name, wrong in banks(slug)[exercise.name].mistakes.items()
    ]


@cache
def rows(slug: str, exercise: str, name: str) -> list[list[Trio]]:
    """What a mistake gives on the inputs of `check`, aspect by aspect, without random runs."""
    runs = fixed_runs(find_exercise(exercise)[1])
    entry = expected_of(slug).get(exercise)
    fresh = entry is None or not same_runs(
        entry.digest, fingerprint(runs)
    )  # changed since the last release
    stored = {} if fresh else {mistake.name: mistake.records for mistake in entry.mistakes}
    given = stored.get(name) or records(banks(slug)[exercise].mistakes[name], runs)
    right = records(reference(slug, exercise), runs) if fresh else entry.reference
    made = zip(runs, given, right, strict=True)
    return [[trio for trio in zip(*row, strict=True) if not trio[0].random] for row in made]


def numbers(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, dict):
        yield from numbers([*value.values()])


def has_nan(record: Record) -> bool:
    arrays = numbers([*record.values, dict(record.gradients)])
    return any(np.isnan(array.data.astype(float)).any() for array in arrays) or any(
        isinstance(value, float) and np.isnan(value) for value in record.values
    )


# --- claims that many causes make ---------------------------------------------------------------


def first_part(record: Record) -> Record:
    value = record.values[0] if record.values else None
    return Record((value[0],) if isinstance(value, tuple) else (value,), record.raised)


def is_right_at_first(given: list[list[Trio]]) -> bool:
    return all(same_values(Record(m.values, m.raised), Record(e.values)) for _, m, e in given[0])


def has_the_right_first_part(given: list[list[Trio]]) -> bool:
    return all(same_values(first_part(m), first_part(e)) for _, m, e in given[0])


def somewhere(holds: Callable[[Run, Record, Record], bool]) -> Callable[[list[list[Trio]]], bool]:
    return lambda given: any(holds(*trio) for row in given for trio in row)


def changes_an_argument(run: Run, mine: Record, right: Record) -> bool:
    refused = mine.raised is not None and re.search("in-?place", mine.raised.message)
    return bool({*mine.changed} - {*right.changed}) or bool(refused)


def loses_a_gradient(run: Run, mine: Record, right: Record) -> bool:
    wanted = [name for name, slope in right.gradients.items() if slope is not None]
    return mine.raised is None and any(mine.gradients.get(name) is None for name in wanted)


def dtypes(dtype: str) -> Callable[[Run, Record, Record], bool]:
    def other(run: Run, mine: Record, right: Record) -> bool:
        pairs = zip(numbers([*mine.values]), numbers([*right.values]), strict=False)
        return any(a.dtype == dtype != b.dtype for a, b in pairs)

    return other


def raises(*types: str) -> Callable[[Run, Record, Record], bool]:
    return lambda run, mine, right: mine.raised is not None and mine.raised.types[0] in types


PHRASES = {
    r"^Right\b(?!, but an error| and wrong)": is_right_at_first,
    r"^The (results?|predictions?|error|number|scores) (is|are) right\b(?! but padded)": (
        is_right_at_first
    ),
    r"^The output is right\b": has_the_right_first_part,
    r"\bthe caller's\b.*\b(changed|overwritten|divided)\b|writes into the caller's": somewhere(
        changes_an_argument
    ),
    r"\b[Nn]o gradient (reaches|flows)\b": somewhere(loses_a_gradient),
    r"\b(gives?|is|are|becomes?|spreads?) NaN\b(?! after)(?<!root is NaN)": somewhere(
        lambda run, mine, right: mine.raised is None and has_nan(mine) and not has_nan(right)
    ),
    r"always float32|float32 whatever": somewhere(dtypes("float32")),
    r"always float64|float64 whatever": somewhere(dtypes("float64")),
    r"raises? an AssertionError": somewhere(raises("AssertionError")),
    r"raises the KeyError": somewhere(raises("KeyError")),
    r"\bwith a RuntimeError|ends in a RuntimeError": somewhere(raises("RuntimeError")),
    r"\bends in an error\b|\braises an error\b(?! as)|an error for any other|an error without": (
        somewhere(lambda run, mine, right: mine.raised is not None and right.raised is None)
    ),
    r"left changed|seeds the random numbers|stay off for the whole program": somewhere(
        lambda run, mine, right: bool({*mine.side_effects} - {*right.side_effects})
    ),
    r"(instead of|raises no|should raise) (a )?(TypeError|ValueError)": somewhere(
        lambda run, mine, right: (
            right.raised is not None
            and (mine.raised is None or mine.raised.types[0] != right.raised.types[0])
        )
    ),
}
# What cannot be seen in the runs that are looked at here.
ELSEWHERE = {
    ("DropPath", "x_changed_in_place"),  # the next call of the same run gets the changed x
    ("chunked_feed_forward", "called_twice"),  # the layer shows how often it is called
    ("bug_in_masking", "minus_infinity_in_it"),  # NaN arises in the function that has the bug
    ("rotary_attention", "always_float32"),  # the runs for dtypes have random results
    ("rotary_embedding", "always_float32"),  # likewise
    ("prune_heads", "always_float32"),  # the results are layers, not arrays
}


@pytest.mark.share(4)
@pytest.mark.parametrize("phrase", PHRASES)
def test_what_many_causes_claim_is_so(phrase):
    claimed = [c for c in causes() if re.search(phrase, c[3]) and c[1:3] not in ELSEWHERE]
    assert claimed, "no cause says so"
    wrong = [c[1:3] for c in claimed if not PHRASES[phrase](rows(*c[:3]))]
    assert not wrong


# --- numbers that single causes claim -----------------------------------------------------------


def both(slug: str, exercise: str, mistake: str) -> tuple[Any, Any]:
    """A mistake and the reference."""
    return banks(slug)[exercise].mistakes[mistake], reference(slug, exercise)


SCORES = np.random.RandomState(0).standard_normal((4, 6))
X, Y = (np.random.RandomState(i).standard_normal(9) for i in (1, 2))
TOKENS = torch.linspace(-3, 5, 24, dtype=torch.float64).reshape(3, 8).sin()


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-4))


def normed(layer: type) -> torch.Tensor:
    with torch.no_grad():
        return layer(8).double()(TOKENS)


def embedded(layer: type, times: int = 1) -> torch.Tensor:
    torch.manual_seed(0)
    made = layer(5, 16)
    with torch.no_grad():
        return [made(torch.tensor([[0, 1, 4]])) for _ in range(times)][-1]


def slowest(table: Callable, base: float) -> float:
    """By how much the last pair's angle grows in one step."""
    row = table(2, 64, base)[1]
    return float(torch.atan2(row[-2], row[-1]))


def largest(values: Any) -> float:
    return float(np.abs(np.asarray(values, dtype=float)).max())


LINE = torch.linspace(-6, 6, 10_001, dtype=torch.float64)
CH1, CH5, CH6, CH7 = "kernel_regression", "positional_encoding", "residual_layernorm", "transformer"
NUMBERS = {
    (CH1, "softmax", "normalised_over_queries"): lambda w, r: (
        close(w(SCORES).sum(0), 1) and not close(w(SCORES).sum(1), 1)
    ),
    (CH1, "softmax", "normalised_over_everything"): lambda w, r: close(w(SCORES).sum(), 1),
    (CH1, "softmax", "mean_for_sum"): lambda w, r: close(w(SCORES).sum(1), 6),
    (CH1, "softmax", "sign_flipped"): lambda w, r: (w(SCORES).argmax(1) == SCORES.argmin(1)).all(),
    (CH1, "gaussian_scores", "half_forgotten"): lambda w, r: close(w(X, Y), 2 * r(X, Y)),
    (CH1, "gaussian_scores", "w_not_squared"): lambda w, r: (
        close(w(X, Y, 2.0), 2 * w(X, Y, 1.0)) and close(r(X, Y, 2.0), 4 * r(X, Y, 1.0))
    ),
    (CH1, "gaussian_scores", "exp_taken"): lambda w, r: (
        (w(X, Y) > 0).all() and (w(X, Y) <= 1).all() and close(np.log(w(X, Y)), r(X, Y))
    ),
    (CH1, "gaussian_scores", "sign_and_half_forgotten"): lambda w, r: close(w(X, Y), -2 * r(X, Y)),
    (CH1, "leave_one_out_mse", "sum_for_mean"): lambda w, r: close(w(X, Y, 2.0), 9 * r(X, Y, 2.0)),
    (CH1, "leave_one_out_mse", "halved"): lambda w, r: close(w(X, Y, 2.0), r(X, Y, 2.0) / 2),
    (CH1, "leave_one_out_mse", "root_taken"): lambda w, r: close(w(X, Y, 2.0) ** 2, r(X, Y, 2.0)),
    (CH1, "leave_one_out_mse", "divided_by_n_minus_1"): lambda w, r: close(
        w(X, Y, 2.0) * 8, r(X, Y, 2.0) * 9
    ),
    (CH5, "sinusoidal_encoding", "exponent_halved"): lambda w, r: (
        0.8 < slowest(w, 1e4) / slowest(r, 1e4) / 1e4**0.5 < 1.0
    ),
    (CH5, "sinusoidal_encoding", "positions_as_columns"): lambda w, r: (
        w(3, 8, 1e4).shape == (8, 3) and close(w(3, 8, 1e4), r(3, 8, 1e4).T)
    ),
    (CH5, "relative_positions", "sign_reversed"): lambda w, r: close(
        w(5, 5, 9) - 9, 9 - r(5, 5, 9)
    ),
    (CH5, "relative_positions", "raised_by_one_too_many"): lambda w, r: (
        int(w(9, 9, 3).min()) == 1 and int(r(9, 9, 3).max()) == 6
    ),
    (CH5, "relative_positions", "floats_for_indices"): lambda w, r: w(3, 3, 2).is_floating_point(),
    (CH5, "permutation_gap", "input_not_permuted"): lambda w, r: (
        w(lambda x: x.cumsum(1), TOKENS[None], torch.tensor([2, 0, 1])) == 0
        and r(lambda x: x.cumsum(1), TOKENS[None], torch.tensor([2, 0, 1])) > 0
    ),
    (CH6, "LayerNorm", "unbiased_std"): lambda w, r: close(normed(w), normed(r) * sqrt(7 / 8)),
    (CH6, "LayerNorm", "divided_by_the_length"): lambda w, r: close(normed(w) * sqrt(8), normed(r)),
    (CH6, "LayerNorm", "eps_outside_the_root"): lambda w, r: 280 < sqrt(r(4).eps) / w(4).eps < 320,
    (CH6, "LayerNorm", "parameters_are_buffers"): lambda w, r: (
        not [*w(4).parameters()] and {*w(4).state_dict()} == {"weight", "bias"}
    ),
    (CH6, "LayerNorm", "parameters_detached"): lambda w, r: len([*w(4).parameters()]) == 2,
    (CH6, "gelu", "tanh_gelu"): lambda w, r: 4e-4 < largest(w(LINE) - r(LINE)) < 5e-4,
    (CH6, "gelu", "sigmoid_gelu"): lambda w, r: 0.019 < largest(w(LINE) - r(LINE)) < 0.021,
    (CH6, "gelu", "half_forgotten"): lambda w, r: close(w(LINE[-99:]), 2 * LINE[-99:]),
    (CH6, "gelu", "relu"): lambda w, r: close(w(LINE), LINE.clamp(min=0)),
    (CH7, "TokenEmbedding", "root_forgotten"): lambda w, r: close(4 * embedded(w), embedded(r)),
    (CH7, "TokenEmbedding", "times_d_model"): lambda w, r: close(embedded(w), 4 * embedded(r)),
    (CH7, "TokenEmbedding", "weight_scaled_in_place"): lambda w, r: close(
        embedded(w, 2), 4 * embedded(w)
    ),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("claim", NUMBERS, ids=lambda claim: ".".join(claim[1:]))
def test_what_one_cause_claims_is_so(claim):
    with np.errstate(all="ignore"):
        assert NUMBERS[claim](*both(*claim))


def test_a_factor_in_a_cause_is_the_factor_in_the_numbers():
    """“too small by √d_model”: the lengths are averages of √(mean of squares)."""
    wrong, right = both("multi_head", "head_importance", "mean_under_the_root")
    attention = torch.nn.Module()
    attention.num_heads, attention.train_ = 2, False

    def call(*args, head_mask=None):
        mask = torch.ones(2) if head_mask is None else head_mask
        return TOKENS[None].float() * mask.repeat_interleave(4), None

    attention.forward = call
    x = TOKENS[None].float()
    assert close(wrong(attention, x) * sqrt(8), right(attention, x))
