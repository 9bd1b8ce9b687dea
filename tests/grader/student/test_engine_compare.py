"""The engine alone: comparing."""

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st

from autograder.student.engine.aspects import compare, not_rows_of_one
from autograder.student.engine.compare import TOLERANCE, agrees
from autograder.student.engine.probe import snapshot
from autograder.student.engine.runs import Array
from autograder.student.engine.values import decode, encode

NAN, INF = float("nan"), float("inf")


def given(value: object) -> object:
    """A value as a probe would report it."""
    return snapshot(value)


@pytest.mark.parametrize("shape", [(), (3,), (2, 5, 6)])
@pytest.mark.parametrize("slack", [1.0, 10.0])
def test_the_same_bits_are_told_of_as_the_same_numbers_in_other_bits_are(shape, slack):
    numbers = np.random.default_rng(1).normal(0, 20, shape).astype(np.float32)
    wanted, wider = given(numbers), given(numbers.astype(np.float64))
    found = compare(given(numbers.copy()), wanted, slack=slack)
    assert found == compare(wider, wanted, slack=slack) and found.passed


# --- compare ------------------------------------------------------------------------------------

SAME = {
    "itself": (np.array([1.0, 2.0]), np.array([1.0, 2.0])),
    "another order of operations": (np.array([0.1 + 0.2]), np.array([0.3])),
    "another dtype, the same numbers": (np.array([1, 2]), np.array([1.0, 2.0])),
    "float32 of a float32 reference": (np.float64(1 / 3), np.float32(1 / 3)),
    "NaN for NaN, infinity for infinity": (np.array([NAN, INF, -INF]), np.array([NAN, INF, -INF])),
    "no numbers at all": (np.zeros((0, 3)), np.zeros((0, 3))),
    "a NumPy number for a float": (np.float64(2.5), 2.5),
    "an array without axes for a float": (np.array(2.5), 2.5),
    "an int for a float": (2, 2.0),
    "a list for a tuple": ([np.ones(2), 3.0], (np.ones(2), 3.0)),
    "tensors": (torch.ones(2), torch.ones(2)),
    "a tensor that is part of a graph": (torch.ones(2, requires_grad=True) * 2, 2 * torch.ones(2)),
    "a view": (np.arange(6.0)[::2], np.array([0.0, 2.0, 4.0])),
    "None": (None, None),
    "text": ("causal", "causal"),
}

DIFFERENT = {
    "off by more than rounding": (np.array([1.0, 2.00001]), np.array([1.0, 2.0])),
    "float32 where float64 was at hand": (np.float32(1 / 3), np.float64(1 / 3)),
    "a whole number that float64 has no room for": (np.array([2**53 + 1]), np.array([2**53])),
    "NaN for a number": (np.array([1.0, NAN]), np.array([1.0, 2.0])),
    "a number for NaN": (np.array([1.0, 2.0]), np.array([1.0, NAN])),
    "infinity for a number": (np.array([INF]), np.array([1e300])),
    "the other infinity": (np.array([INF]), np.array([-INF])),
    "all NaN": (np.full(3, NAN), np.zeros(3)),
    "a shape that would broadcast": (np.ones((1, 3)), np.ones((2, 3))),
    "one number for many": (1.0, np.ones(3)),
    "a flattened table": (np.ones(6), np.ones((2, 3))),
    "no numbers for some": (np.zeros(0), np.zeros(1)),
    "a list for an array": ([1.0, 2.0], np.array([1.0, 2.0])),
    "None for an array": (None, np.ones(2)),
    "text for an array": ("1.0", np.ones(1)),
    "a function for an array": (len, np.ones(1)),
    "a set for an array": ({1.0}, np.ones(1)),
    "a dict for a tuple": ({0: np.ones(1), 1: np.ones(1)}, (np.ones(1), np.ones(1))),
    "an array of objects": (np.array([1.0, None], dtype=object), np.ones(2)),
    "complex numbers": (np.array([1 + 0j]), np.ones(1)),
    "a complex tensor": (torch.ones(2, dtype=torch.complex64), torch.ones(2)),
    "a sparse tensor": (torch.eye(2).to_sparse(), torch.eye(2)),
    "a tensor without numbers": (torch.ones(2, device="meta"), torch.ones(2)),
    "an integer too large for any array": (10**5000, 1.0),
    "an integer too large for any float": (10**400, np.ones(())),
    "a tensor for an array": (torch.ones(2), np.ones(2)),
    "an array for a tensor": (np.ones(2, dtype="float32"), torch.ones(2)),
    "one part too few": ((np.ones(2),), (np.ones(2), np.ones(2))),
    "one part too many": ((np.ones(2),) * 3, (np.ones(2), np.ones(2))),
    "parts the other way round": ((np.ones(2), np.zeros(2)), (np.zeros(2), np.ones(2))),
    "an array in place of a tuple": (np.ones((2, 2)), (np.ones(2), np.ones(2))),
    "a number for True": (1, True),
    "another text": ("casual", "causal"),
}


@pytest.mark.parametrize(("value", "expected"), SAME.values(), ids=SAME)
def test_compare_takes_for_the_same(value, expected):
    assert compare(given(value), given(expected)).passed
    assert agrees(given(value), given(expected))


@pytest.mark.parametrize(("value", "expected"), DIFFERENT.values(), ids=DIFFERENT)
def test_compare_tells_apart_and_says_why(value, expected):
    for reported in (given(value), decode(encode(given(value)))):
        finding = compare(reported, given(expected), "the output")
        assert not finding.passed
        assert "the output" in finding.message
        assert not agrees(reported, given(expected))


# Numbers that tell tolerances apart: none, just below and above them, overflow, nothing at all.
NEAR = [0.0, 1e-9, 1.1e-9, 1e-8, 2e-6, 2.1e-6, 1e-4, 1.0, 1 + 1e-8, 1 + 1.2e-8, 1 + 1e-4, 1.0003]
NEAR += [-1.0, 1e300, -1e300, 1.7e308, -1.7e308, NAN, INF, -INF]


@drawn(
    st.lists(st.tuples(*[st.sampled_from(NEAR)] * 2), max_size=4),
    *[st.sampled_from(sorted(TOLERANCE))] * 2,
    st.sampled_from(["cpu", "cuda"]),
    st.sampled_from([1.0, 10.0]),
)
def test_agreeing_is_passing_the_comparison(pairs, one, other, device, slack):
    columns = np.array(pairs).reshape(-1, 2).T
    value = Array(columns[0], "torch", one)
    expected = Array(columns[1], "torch", other, device)
    told = [(value, expected), ((value, 3), (expected, 3)), ([value], [expected])]
    for a, b in told:
        assert agrees(a, b, slack=slack) == compare(a, b, slack=slack).passed


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.s_[:, 2:], "; right up to index 1 of axis 1"),
        (np.s_[:, 0], "; index 0 of axis 1 alone is wrong"),
        (np.s_[1, 1:], "; right up to index 0 of axis 1"),
        (np.s_[[0, 1], [1, 3], [0, 2]], ""),
        (np.s_[..., 3:], "; right up to index 2 of axis 2"),
        (np.s_[...], ""),
    ],
)
def test_compare_says_how_far_numbers_are_right(wrong, told):
    expected = np.arange(40.0).reshape(2, 4, 5)
    value = expected.copy()
    value[wrong] += 1.0
    assert compare(given(value), given(expected)).message.partition(";")[1:] == (told[:1], told[1:])


def test_compare_says_where_how_far_off_and_what_was_allowed():
    expected = np.arange(6.0).reshape(2, 3)
    value = expected.copy()
    value[1, 2] += 0.25
    value[0, 0] += 1e-12
    finding = compare(given(value), given(expected))
    where = "; index 2 of axis 1 alone is wrong"
    assert finding.message == "the result at [1, 2]: expected 5, got 5.25" + where
    assert finding.error == pytest.approx(0.25)
    assert 0 < finding.tolerance < 1e-6


@pytest.mark.parametrize(
    ("rest", "error", "same"),
    [
        (10, 3e-6, True),
        (10, 5e-5, False),
        (0.1, 3e-6, False),
        (1e6, 3e-3, False),
        (NAN, 3e-6, False),
    ],
)
def test_what_is_left_of_large_terms_may_be_off_as_they_are(rest, error, same):
    """A number near 0 is compared with the others in its row, up to a limit."""
    expected = np.array([[0.005, rest, -rest], [9, 9, 9]], dtype=np.float32)
    value = expected + np.array([error, 0, 0], dtype=np.float32) * [[1], [0]]
    assert compare(given(value.astype(np.float32)), given(expected)).passed == same


def test_compare_shows_as_many_digits_as_tell_the_numbers_apart():
    finding = compare(given(np.array([0.12345678])), given(np.array([0.12345699])))
    assert finding.message == "the result at [0]: expected 0.12345699, got 0.12345678"


def test_compare_says_both_shapes():
    finding = compare(given(np.ones((3, 1))), given(np.ones((3, 4))))
    assert "(3, 1)" in finding.message
    assert "(3, 4)" in finding.message


def test_the_tolerance_grows_as_the_dtype_gets_coarser_and_on_a_gpu():
    names = ("float64", "float32", "float16", "bfloat16")
    allowed = [compare(a, a).tolerance for a in (Array(np.ones(1), "torch", n) for n in names)]
    assert allowed == sorted(allowed)
    assert allowed[0] < 1e-6
    on_gpu = Array(np.ones(1), "torch", "float32", "cuda")
    assert compare(on_gpu, on_gpu).tolerance > allowed[1]


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([[0.5, 0.5], [1.0, 0.0]], None),
        ([[0.5, 0.6]], "sums to 1"),
        ([[1.5, -0.5]], "negative"),
        ([[NAN, 1.0]], "not finite"),
        (0.5, "a single number"),
    ],
)
def test_weights_are_positive_and_sum_to_1(weights, problem):
    found = not_rows_of_one(given(np.array(weights)))
    assert found is None if problem is None else problem in found


def test_what_is_no_weights_at_all_is_named():
    assert "None" in not_rows_of_one(None)


# --- strings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected", "told"),
    [
        ([("a", "b")], [("a", "b")], None),
        ([["a", "b"]], [("a", "b")], None),  # a pair may be a list, to this aspect
        ([("a", "c")], [("a", "b")], "the result[0]: expected ('a', 'b'), got ('a', 'c')"),
        (["ab"], [("a", "b")], "the result[0]: expected a tuple of 2, got 'ab'"),
        (["lo", "w"], ["l", "ow"], "the result[0]: expected 'l', got 'lo'"),
        (["low"], ["lo", "w"], "the result: expected ['lo', 'w'], got ['low']"),
        (["a"] * 9, ["a"] * 10, "the result: expected a list of 10, got a list of 9"),
        ([("a", 1)], [("a", "b")], "the result[0]: expected ('a', 'b'), got a tuple of 2"),
    ],
)
def test_strings_are_shown_where_they_are_few(value, expected, told):
    assert compare(decode(encode(value)), expected).message == told
