"""Names that survive a second slip: what is certain, what is likely, and what has no name."""

import numpy as np
import pytest
import torch

from autograder.bank import banks, cause
from autograder.judge.judgement import GRADED, Judgement
from autograder.student.check import verdict_on
from autograder.student.engine.aspects import (
    dtypes_kept,
    equals_reference,
    inputs_untouched,
    no_side_effects,
)
from autograder.student.engine.deviations import deviations
from autograder.student.engine.exception_aspect import raises
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.mistakes.match import same_values
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Exercise, RaisedException, Record, call
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import Mistake, Verdict, decide
from autograder.student.table import table_html, table_text
from solutions import kernel_regression

# Answers that round to float16, where large squares overflow.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")


def _some(draw):
    return [call(draw.normal(3)), call(draw.normal(2, 2, dtype="float32"))]


SQUARES = Exercise(
    "squares",
    "Squares",
    ("x",),
    (
        equals_reference("numbers", 1.0, "…", lambda draw: [call(draw.normal(n)) for n in (3, 4)]),
        equals_reference("negative numbers", 1.0, "…", lambda draw: [call(-abs(draw.normal(5)))]),
        equals_reference("large numbers", 1.0, "…", lambda draw: [call(draw.normal(4, scale=1e6))]),
        raises("nothing", 0.5, "…", lambda draw: [call(np.zeros(0))], ValueError),
        dtypes_kept(0.5, "…", _some),
        inputs_untouched(0.25, _some),
        no_side_effects(0.25, _some),
    ),
)
RUNS = SQUARES.runs(b"squares")


def squares(x):
    if not len(x):
        raise ValueError("nothing to square")
    return x * x


def doubled(x):
    """Twice the square."""
    return 2 * squares(x)


def one_more(x):
    """One is added."""
    return squares(x) + 1


def sign_kept(x):
    """The sign is kept."""
    return squares(x) * np.sign(x) if (x <= 0).all() else squares(x)


def halved(x):
    """Large numbers are halved."""
    return np.where(squares(x) > 1e4, squares(x) / 2, squares(x))


def widened(x):
    """The result is float64."""
    return squares(x).astype(np.float64)


def seeding(x):
    """A seed is set."""
    np.random.seed(1)
    return squares(x)


BANK = (doubled, one_more, sign_kept, halved, widened, seeding)


def judged(answer, bank=BANK) -> Verdict:
    def records(one):
        return [[probe(one, run) for run in row] for row in RUNS]

    known = [Mistake(m.__name__, cause(m), records(m)) for m in bank]
    return decide(SQUARES, RUNS, records(answer), records(squares), lambda: known)


@pytest.mark.parametrize("mistake", BANK)
def test_a_mistake_alone_is_named_and_nothing_stands_besides(mistake):
    verdict = judged(mistake)
    assert (verdict.mistake, verdict.other_problems, verdict.suspected_mistakes) == (
        mistake.__name__,
        None,
        (),
    )


def in_place(x):
    result = doubled(x)
    x *= 0
    return result


def another_error(x):
    if not len(x):
        raise TypeError("nothing to square")
    return doubled(x)


@pytest.mark.parametrize(
    ("answer", "besides"),
    [
        (lambda x: doubled(x).astype(np.float64), "the result is float64"),
        (lambda x: doubled(x).astype(np.float16).astype(np.float64), None),
        (in_place, "the call changes x in place"),
        (lambda x: (doubled(x), np.random.seed(0))[0], "the call changes NumPy's random state"),
        (another_error, "another error is raised than expected, TypeError"),
    ],
    ids=["float64", "other numbers", "in place", "a seed", "another error"],
)
def test_what_stands_beside_the_values_does_not_hide_a_name(answer, besides):
    verdict = judged(answer)
    assert verdict.mistake == (None if besides is None else "doubled")
    assert (verdict.other_problems or "") == (f"Besides, {besides}." if besides else "")
    for shown in (table_text(verdict), table_html(verdict)):
        assert ("Twice the square." in " ".join(shown.split())) == (besides is not None)


def test_two_slips_beside_right_values_are_both_told():
    verdict = judged(lambda x: (widened(x), np.random.seed(1))[0])
    assert verdict.mistake in ("widened", "seeding")
    both = f"{verdict.cause} {verdict.other_problems}"
    assert "The result is float64." in both and "A seed is set." in both


def test_a_dtype_that_the_cause_does_not_speak_of_has_no_name():
    verdict = judged(lambda x: squares(x).astype(np.float16))
    assert verdict.mistake is None and not verdict.suspected_mistakes


def narrowed_for_three(x):
    """Twice the square, and for three numbers float32."""
    result = doubled(x)
    return result.astype(np.float32) if len(x) == 3 else result


def test_a_dtype_on_runs_on_which_the_mistake_keeps_it_is_told_besides():
    verdict = judged(lambda x: doubled(x).astype(np.float32), (narrowed_for_three,))
    assert verdict.mistake == "narrowed_for_three"
    assert verdict.other_problems == "Besides, the result is float32 in other calls as well."


@pytest.mark.parametrize("answer", [squares, doubled])
def test_a_name_is_not_certain_where_the_answer_keeps_a_dtype_that_the_mistake_changes(answer):
    def always(x):
        """The result is always float32."""
        return answer(x).astype(np.float32)

    verdict = judged(lambda x: always(x) if len(x) == 3 else answer(x), (always,))
    assert (verdict.mistake, verdict.suspected_mistakes) == (None, ("always",))


def test_a_name_that_most_runs_speak_for_is_likely_and_says_so():
    verdict = judged(lambda x: doubled(x) if len(x) != 4 or x.max() > 100 else doubled(x) + 3)
    assert (verdict.mistake, verdict.cause, verdict.suspected_mistakes) == (
        None,
        None,
        ("doubled",),
    )
    assert "looks like a known mistake, though not everything fits: Twice" in verdict.suspicion
    assert "Twice the square." in " ".join(table_text(verdict).split())


def test_two_mistakes_that_show_in_different_runs_are_both_likely():
    verdict = judged(lambda x: halved(x) if x.max() > 0 else sign_kept(x))
    assert set(verdict.suspected_mistakes) == {"sign_kept", "halved"}
    assert "two known mistakes at once" in verdict.suspicion


def test_numbers_of_one_mistake_alone_speak_against_another_that_would_change_them():
    def also_halved(x):
        """Large numbers are halved, and the signs of negative ones are doubled."""
        return halved(x) if x.max() > 1e3 else 2 * sign_kept(x) if (x < 0).all() else squares(x)

    answer = lambda x: halved(x) if x.max() > 1e3 else sign_kept(x)  # noqa: E731
    assert judged(answer, (sign_kept, also_halved)).suspected_mistakes == ("sign_kept",)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: doubled(x) if (x < 0).all() else squares(x),  # right where the mistake is not
        lambda x: 3 * squares(x),
        lambda x: np.full(len(x), np.nan),
        lambda x: None,
        lambda x: 1 / 0 if x.size else squares(x),
    ],
    ids=["contradicted", "another factor", "nan", "None", "raises"],
)
def test_what_no_mistake_explains_has_no_name(answer):
    verdict = judged(answer)
    assert (verdict.mistake, verdict.suspected_mistakes, verdict.suspicion) == (None, (), None)


def test_several_mistakes_that_explain_as_much_leave_it_open():
    def also_doubled_here(x):
        """Twice, for three numbers."""
        return doubled(x) if len(x) == 3 else one_more(x)

    answer = lambda x: doubled(x) if len(x) == 3 else 7 + squares(x)  # noqa: E731
    assert not judged(answer, (doubled, also_doubled_here)).suspected_mistakes


def test_aspects_tell_values_apart_that_are_equal_within_tolerances():
    """A weight of 1e-12 for a key of −inf equals 0 within the tolerance, and is not exactly 0."""
    known = banks("kernel_regression")["softmax"].mistakes

    def softmax(scores, axis=-1):
        return known["small_number_added"](scores, axis).astype(np.float64)

    verdict = verdict_on(softmax, "softmax")
    assert verdict.mistake == "small_number_added"
    assert verdict.other_problems == "Besides, the result is float64."


def test_an_answer_of_another_style_underneath_keeps_its_name():
    def gaussian_scores(query, key, w=1.0):
        query, key = (np.asarray(a, dtype=np.float64) for a in (query, key))
        rows = [[-((q - k) ** 2) * w**2 for k in key] for q in query]
        return np.array(rows).reshape(len(query), len(key))

    assert verdict_on(gaussian_scores, "gaussian_scores").mistake == "half_forgotten"


def test_of_two_mistakes_with_the_same_errors_that_is_named_which_raises_where_the_answer_does():
    runs_of = {"nothing": np.zeros(0), "two numbers": np.zeros(2)}
    calls = {title: lambda draw, x=x: [call(x)] for title, x in runs_of.items()}
    raising = [raises(title, 1.0, "…", made, ValueError) for title, made in calls.items()]
    numbers = equals_reference("numbers", 1.0, "…", lambda draw: [call(draw.normal(3))])
    aspects = numbers, *raising, no_side_effects(0.25, lambda draw: [call(draw.normal(3))])
    exercise = Exercise("threes", "Three numbers only", ("x",), aspects)
    runs = exercise.runs(b"threes")

    def answer(*errors, seeded=False):
        def threes(x):
            if seeded:
                np.random.seed(1)
            if len(x) in (0, 2):
                raise errors[len(x) // 2]("three numbers, please")
            return x

        return [[probe(threes, run) for run in row] for row in runs]

    right = answer(ValueError, ValueError)
    known = [
        Mistake("two_alone", "For two.", answer(ValueError, IndexError)),
        Mistake("always", "For each.", answer(IndexError, IndexError)),
    ]
    for mistake, errors in zip(known, [(ValueError, IndexError), (IndexError,) * 2], strict=True):
        verdict = decide(exercise, runs, answer(*errors, seeded=True), right, lambda: known)
        assert (verdict.mistake, "random state" in verdict.other_problems) == (mistake.name, True)


def test_a_gradient_that_cannot_be_asked_for_does_not_hide_a_name():
    """Where autograd refuses, no run says that the norm's parameters get no gradient."""

    class Residual(banks("residual_layernorm")["Residual"].mistakes["norm_without_parameters"]):
        def forward(self, x, *args, **kwargs):
            result = super().forward(x, *args, **kwargs).clone()
            with torch.no_grad():
                x *= 2
            return result

    verdict = verdict_on(Residual, "Residual")
    assert verdict.mistake is None and verdict.suspected_mistakes == ("norm_without_parameters",)
    assert "changes x in place" in verdict.suspicion


def test_what_only_a_device_shows_keeps_its_name_beside_a_seed():
    mistakes, known = banks("positional_encoding")["permutation_gap"].mistakes, "through_numpy"

    def permutation_gap(attention, x, permutation):
        torch.manual_seed(0)
        return mistakes[known](attention, x, permutation)

    verdict = verdict_on(permutation_gap, "permutation_gap")
    assert verdict.mistake is None and verdict.suspected_mistakes == (known,)
    assert "torch's random state" in verdict.suspicion


def test_a_right_answer_has_no_name():
    verdict = verdict_on(kernel_regression.softmax, "softmax")
    assert (verdict.mistake, verdict.suspected_mistakes, verdict.other_problems) == (None, (), None)


# --- hostile records ----------------------------------------------------------------------------


def test_nothing_that_an_answer_made_up_is_told():
    evil = "<script>"

    def forged(record: Record) -> Record:
        return Record(
            record.values,
            record.raised and RaisedException((evil, "ValueError"), evil),
            {evil: None},
            {f"0.{evil}": np.ones(1), evil: None},
            (evil, "NumPy's random state"),
        )

    mine = [[forged(probe(doubled, run)) for run in row] for row in RUNS]
    right = [[probe(squares, run) for run in row] for row in RUNS]
    theirs = [[probe(doubled, run) for run in row] for row in RUNS]
    verdict = decide(SQUARES, RUNS, mine, right, lambda: [Mistake("doubled", "Twice.", theirs)])
    assert verdict.mistake == "doubled"
    assert "an argument" in verdict.other_problems and "global state" in verdict.other_problems
    assert evil not in verdict.other_problems


def test_records_of_any_form_can_be_compared():
    odd = [
        Record(),
        Record((None,), gradients={"0": "text"}),
        Record(((Array(np.full(2, np.nan)),) * 3, [1, 2])),
        Record((), RaisedException(("ValueError",), "x")),
        Record(({"a": 1},), changed={"": 1}, side_effects=("x",) * 5),
    ]
    for one in odd:
        for other in odd:
            assert isinstance(same_values(one, other), bool)
            assert isinstance(deviations(one, other), frozenset)


def test_a_judgement_keeps_what_is_likely():
    verdict = judged(lambda x: halved(x) if x.max() > 0 else sign_kept(x))
    kept = Judgement.from_json(Judgement(GRADED, {"squares": verdict}).to_json())
    assert kept.verdicts["squares"] == verdict


def test_a_python_number_may_have_been_computed_in_float32():
    """A log-probability added up from float32 numbers is that of float64, but for its digits."""
    run = call(1.0)
    known = Record(((2.0, -3.3449),))
    assert same_values(Record(((2.0, -3.3449 * (1 + 1e-6)),)), known)
    assert equal([[run]], [[Record((-1.5 * (1 + 1e-6),))]], [[Record((-1.5,))]])
    assert not equal([[run]], [[Record((-1.5 * (1 + 1e-3),))]], [[Record((-1.5,))]])
