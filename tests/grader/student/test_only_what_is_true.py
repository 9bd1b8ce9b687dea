"""`check` says no name, cause or pointer that is not true of this answer."""

from functools import wraps

import numpy as np
import pytest
import torch

from autograder.judge.reference import reference
from autograder.student.check import verdict_on
from autograder.student.course import find_exercise
from autograder.student.engine.aspects import dtypes_kept, equals_reference
from autograder.student.engine.compare import in_fewer_digits
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Exercise, call
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import Mistake, decide

pytestmark = pytest.mark.usefixtures("plenty_of_time")


# --- guesses --------------------------------------------------------------------------------------


def _judged(exercise, answer, right, *known):
    runs = exercise.runs(b"true")
    records = {f: [[probe(f, run) for run in row] for row in runs] for f in (answer, right, *known)}
    bank = [Mistake(f.__name__, f.__doc__, records[f]) for f in known]
    return decide(exercise, runs, records[answer], records[right], lambda: bank)


def _exercise(name, *lengths):
    made = [
        equals_reference(f"{n} numbers", 1.0, "…", lambda draw, n=n: [call(draw.normal(n))])
        for n in lengths
    ]
    return Exercise(name, "Numbers", ("x",), tuple(made))


def squares(x):
    return x * x


def doubled(x):
    """Twice the square."""
    return 2 * x * x


@pytest.mark.parametrize(("alike", "suspected"), [(2, ()), (3, ()), (4, ("doubled",))])
def test_a_guess_agrees_on_nearly_all_runs_that_tell_it_from_a_right_answer(alike, suspected):
    def answer(x):
        return doubled(x) if len(x) <= alike else 3 * x * x

    exercise = _exercise("squares", 1, 2, 3, 4, 5)
    assert _judged(exercise, answer, squares, doubled).suspected_mistakes == suspected


@pytest.mark.parametrize(("wrong", "suspected"), [(1, ("doubled",)), (2, ())])
def test_a_guess_explains_the_aspect_that_fails_first(wrong, suspected):
    def answer(x):
        return 3 * x * x if len(x) == wrong else doubled_from_two_on(x)

    def doubled_from_two_on(x):
        """Twice the square, of two numbers or more."""
        return doubled(x) if len(x) > 1 else squares(x)

    doubled_from_two_on.__name__ = "doubled"
    exercise = _exercise("squares", *([2, 3, 4, 5, 6, 1] if wrong == 1 else [2, 3, 4, 5, 6, 7, 8]))
    assert _judged(exercise, answer, squares, doubled_from_two_on).suspected_mistakes == suspected


def test_numbers_that_are_a_right_answers_do_not_speak_for_a_mistake():
    def summed(x):
        return x * x, float(x.sum())

    def never_summed(x):
        """There is no sum."""
        return x * x, 0.0 if len(x) > 2 else float(x.sum())

    def given_up(x):
        if len(x) == 2:
            raise AttributeError("two")
        return x * x, 0.0

    exercise = _exercise("sums", 2, 3, 4)
    assert _judged(exercise, given_up, summed, never_summed).suspected_mistakes == ()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (TypeError, "Every call raised TypeError: short"),
        (ValueError, "Every call raises an exception. The first raised TypeError: short"),
    ],
)
def test_calls_that_do_not_end_alike_are_not_told_as_if_they_did(second, said):
    def answer(x):
        raise (TypeError if len(x) < 4 else second)("short")

    assert _judged(_exercise("squares", 3, 4), answer, squares).note.startswith(said)


# --- digits and dtypes ----------------------------------------------------------------------------


def test_another_dtype_is_told_where_the_numbers_are_those_of_another():
    right = Array(np.linspace(0.1, 1.3, 7) ** 2)
    for dtype in ("float32", "float16"):
        assert in_fewer_digits(Array(right.data.astype(dtype).astype(float)), right)
    assert not in_fewer_digits(Array(right.data * (1 - 1e-8)), right)
    assert not in_fewer_digits(right, right)
    assert not in_fewer_digits(Array(np.ones(3)), Array(np.ones(3)))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda x: x * x + 1e-7, False),
        (lambda x: squares(x.astype(np.float32)).astype(x.dtype), True),
    ],
    ids=["a small number", "float32"],
)
def test_a_small_number_is_not_taken_for_another_dtype(answer, told):
    some = _exercise("squares", 3).aspects[0]
    rounded = lambda draw: [call(draw.normal(3, dtype="float32"))]  # noqa: E731
    first = equals_reference(some.title, 1.0, "…", rounded)
    exercise = Exercise("squares", "…", ("x",), (first, dtypes_kept(0.5, "…", some.runs)))
    (failed,) = [a for a in _judged(exercise, answer, squares).aspects if not a.passed]
    assert (failed.title == "dtype") == ("of another" in (failed.hint or "")) == told


def test_float32_is_charged_where_the_dtype_is_and_not_for_its_digits_as_well():
    def narrow(x):
        return squares(x.astype(np.float32))

    some = _exercise("squares", 3).aspects[0]
    rounded = lambda draw: [call(draw.normal(3, dtype="float32"))]  # noqa: E731
    first = equals_reference(some.title, 1.0, "…", rounded)
    aspects = (
        first,
        equals_reference("digits", 1.0, "…", some.runs),
        dtypes_kept(0.5, "…", some.runs),
    )
    exercise = Exercise("squares", "…", ("x",), aspects)
    lost = [a.title for a in _judged(exercise, narrow, squares).aspects if not a.passed]
    assert lost == ["dtype"]
    wrong = lambda x: narrow(x) + 1e-4  # noqa: E731
    assert not _judged(exercise, wrong, squares).aspects[1].passed


# --- causes ---------------------------------------------------------------------------------------


def _rebuilt(given):
    if isinstance(given, tuple):
        return tuple(map(_rebuilt, given))
    return torch.tensor(given.tolist(), dtype=given.dtype)


def _narrow(given):
    return torch.tensor(given.tolist())


CUT = {
    "no_grad": torch.no_grad(),
    "inference_mode": torch.inference_mode(),
    "rebuilt": lambda f: wraps(f)(lambda *args, **kwargs: _rebuilt(f(*args, **kwargs))),
}


def _changed(name, change):
    right = reference(find_exercise(name)[0], name)
    if not isinstance(right, type):
        return change(right)
    return type(name, (right,), {"forward": change(right.forward)})


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("KernelRegression", "no_gradient"),
        ("GRUCell", "no_gradient"),
        ("contrastive_loss", "no_gradient"),
        ("caption_loss", "no_gradient"),
        ("masked_loss", "no_gradient"),
        ("BilinearAttention", None),  # a known one has another parameter
    ],
)
@pytest.mark.parametrize("way", CUT)
def test_what_is_cut_off_from_the_graph_has_one_cause_whatever_cuts_it(name, mistake, way):
    verdict = verdict_on(_changed(name, CUT[way]), name)
    assert (verdict.mistake, verdict.other_problems, verdict.suspected_mistakes) == (
        mistake,
        None,
        (),
    )


@pytest.mark.parametrize("name", ["caption_loss", "masked_loss", "next_token_loss"])
def test_a_cut_in_some_runs_is_not_the_cause_of_one_in_all(name):
    narrow = lambda f: lambda *args, **kwargs: _narrow(f(*args, **kwargs))  # noqa: E731
    verdict = verdict_on(_changed(name, narrow), name)
    told = f"{verdict.cause} {verdict.other_problems}"
    assert "cut off from the graph" in told and "float32" in told


class DropPath(torch.nn.Module):
    """Draws once for a whole batch."""

    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return torch.zeros_like(x) if torch.rand(()) < self.p else x / (1 - self.p)


def test_a_cut_that_fails_no_aspect_is_not_the_cause_of_what_does():
    verdict = verdict_on(DropPath, "DropPath")
    assert 0 < verdict.score < verdict.points
    assert verdict.mistake is None and verdict.cause is None


def _begun(name, begin):
    right = reference(find_exercise(name)[0], name)

    def init(self, *args, **kwargs):
        right.__init__(self, *args, **kwargs)
        with torch.no_grad():
            for parameter in self.parameters():
                begin(parameter)

    return type(name, (right,), {"__init__": init})


def _small(parameter):
    torch.nn.init.normal_(parameter, std=0.01) if parameter.dim() > 1 else parameter.zero_()


@pytest.mark.parametrize(
    ("name", "begin", "mistake"),
    [
        ("GRUCell", _small, None),
        ("GRUCell", lambda p: p.uniform_(0, 32**-0.5), None),
        ("GRUCell", torch.Tensor.zero_, "begins_with_zeros"),
        ("TokenEmbedding", lambda p: p.mul_(0.02 * p.shape[1] ** 0.5), None),
        ("BilinearAttention", lambda p: p.fill_(1.0), None),
        ("BilinearAttention", lambda p: p.normal_(std=0.01), None),
    ],
)
def test_draws_of_another_kind_get_no_name_that_is_not_theirs(name, begin, mistake):
    verdict = verdict_on(_begun(name, begin), name)
    assert verdict.score < verdict.points and verdict.mistake == mistake
    assert "CPU" not in (verdict.cause or "")


def test_the_mode_that_a_model_is_left_in_is_not_taken_for_another_call():
    right = reference("transformer", "greedy_decode")

    def greedy_decode(model, *args, **kwargs):
        found = right(model, *args, **kwargs)
        model.train()
        return found

    verdict = verdict_on(greedy_decode, "greedy_decode")
    assert verdict.mistake == "left_in_training_mode"
    assert next(a for a in verdict.aspects if a.title.startswith("stops")).passed


@pytest.mark.parametrize("fixed", [1e-8, 1e-12])
def test_a_fixed_eps_is_not_one_for_the_product(fixed):
    right = reference("attention_scoring", "cosine_scores")
    verdict = verdict_on(lambda query, key, eps=0: right(query, key, fixed), "cosine_scores")
    assert verdict.mistake == "eps_a_fixed_number"
