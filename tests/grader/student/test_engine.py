"""The engine alone: the kinds of aspect, the verdict."""

from collections.abc import Callable

import numpy as np
import pytest

from autograder.student.authoring import Declaration
from autograder.student.engine.aspects import (
    dtypes_kept,
    equals_reference,
    inputs_untouched,
    no_side_effects,
)
from autograder.student.engine.exception_aspect import raises
from autograder.student.engine.probe import probe
from autograder.student.engine.records import record_from, record_tree
from autograder.student.engine.runs import (
    Array,
    Draw,
    Exercise,
    Previous,
    RaisedException,
    Record,
    Run,
    StridedArray,
    call,
    made_once,
    module,
    tensor,
)
from autograder.student.engine.values import Opaque, decode, encode
from autograder.student.engine.verdict import (
    CORRECT,
    CRASH,
    MISSING,
    WRONG,
    Mistake,
    Verdict,
    decide,
)

NAN = float("nan")


def runs_of_numbers(draw) -> list[Run]:
    return [call(draw.normal(3)), call(draw.normal(2, 2, dtype="float32"))]


def runs_without_any(draw) -> list[Run]:
    return [call(np.zeros(0))]


TWICE = Exercise(
    "twice",
    "Twice as much",
    ("x",),
    (
        equals_reference("the numbers", 1.0, "Add x to itself.", lambda d: [call(d.normal(3))]),
        raises("nothing to double", 0.5, "Refuse it.", runs_without_any, ValueError),
        dtypes_kept(0.25, "Keep the dtype.", runs_of_numbers),
        inputs_untouched(0.25, runs_of_numbers),
        no_side_effects(0.5, runs_of_numbers),
    ),
)
RUNS = TWICE.runs(b"a seed")


def test_what_a_function_draws_is_made_once_for_all_aspects():
    declared = Declaration("twice", "Twice as much", ("x",))

    @declared.equals("the numbers", 1.0)
    def _numbers(draw):
        """Add x to itself."""
        return [*[call(draw.normal(3))] * 2, call(draw.normal(2))]

    @declared.equals("others", 1.0)
    def _others(draw):
        """Add x to itself."""
        return [call(draw.normal(3))]

    declared.leaves_inputs_alone(0.5, _numbers, _others)
    numbers, others, untouched, further = declared.exercise().runs(b"a seed")
    assert [*map(id, untouched)] == [*map(id, [*numbers, *others])]
    drawn = {run.steps[0].args[0].tobytes() for run in (*numbers, *others, *further)}
    assert len(drawn) == 2 + 1 + 2  # a call of the same numbers again is made again
    made = []
    records = made_once([numbers, others, untouched], lambda run: made.append(run) or len(made))
    assert records == [[1, 2, 3], [4], [1, 2, 3, 4]]


def twice(x):
    if not len(x):
        raise ValueError("nothing to double")
    return 2 * x


def thrice(x):
    """Three times as much."""
    return twice(x) + x


def records_of(answer: object) -> list[list[Record]]:
    return [[probe(answer, run) for run in row] for row in RUNS]


def judged(answer: object, *mistakes: Callable) -> Verdict:
    known = [Mistake(m.__name__, m.__doc__ or "", records_of(m)) for m in mistakes]
    return decide(TWICE, RUNS, records_of(answer), records_of(twice), lambda: known)


def passed(verdict: Verdict) -> list[bool]:
    return [aspect.passed for aspect in verdict.aspects]


def refusing(answer: Callable) -> Callable:
    """The answer, made to refuse what `twice` refuses."""
    return lambda x: answer(x) if len(x) else twice(x)


def in_place(x):
    x *= 2
    return x


def widened(x):
    return 2 * x.astype(np.float64)


def rounded(x):
    return (2 * x).astype(np.float16).astype(x.dtype) if x.dtype == np.float32 else 2 * x


def seeding(x):
    np.random.seed(1)
    return 2 * x


def test_every_aspect_holds_for_a_right_answer():
    verdict = judged(lambda x: x + x if len(x) else twice(x))
    assert (verdict.verdict, verdict.score, verdict.points) == (CORRECT, 2.5, 2.5)
    assert not [a for a in verdict.aspects if a.hint or a.message]


@pytest.mark.parametrize(
    ("answer", "holds", "said"),
    [
        (refusing(in_place), [True, True, True, False, True], "changed its argument x"),
        (refusing(widened), [True, True, False, True, True], "expected float32, got float64"),
        (refusing(rounded), [True, True, False, True, True], "the result at"),
        (refusing(seeding), [True, True, True, True, False], "NumPy's random state"),
        (lambda x: 2 * x, [True, False, True, True, True], "expected a ValueError, got an array"),
        (
            lambda x: 2 * x[:, None][:, 0] if x.sum() else x[0],
            [True, False, True, True, True],
            "IndexError",
        ),
        (refusing(lambda x: 0 * x), [False, True, False, False, False], ": expected "),
    ],
    ids=[
        "in place",
        "dtype",
        "precision",
        "side effect",
        "no exception",
        "another exception",
        "wrong",
    ],
)
def test_an_answer_keeps_the_marks_of_the_aspects_that_hold(answer, holds, said):
    verdict = judged(answer)
    assert passed(verdict) == holds
    assert verdict.verdict == WRONG
    assert verdict.score == sum(
        a.points for a in TWICE.aspects if passed(verdict)[TWICE.aspects.index(a)]
    )
    assert any(said in (a.message or "") for a in verdict.aspects)


def test_doing_no_harm_earns_nothing_until_the_first_aspect_holds():
    verdict = judged(lambda x: None)
    assert verdict.score == 0
    assert verdict.aspects[0].hint is None, "a hint about numbers does not help with None"
    assert "is `return` missing?" in verdict.aspects[0].message
    assert all("the numbers" in a.message for a in verdict.aspects[3:])


def test_an_exception_of_a_derived_type_is_the_one_asked_for():
    class Empty(ValueError):
        pass

    def answer(x):
        if not len(x):
            raise Empty
        return 2 * x

    assert judged(answer).verdict == CORRECT


def test_a_mistake_is_named_with_its_cause():
    verdict = judged(lambda x: x * 3 if len(x) else twice(x), thrice)
    assert (verdict.verdict, verdict.mistake, verdict.cause) == (
        WRONG,
        "thrice",
        "Three times as much.",
    )


@pytest.mark.parametrize(
    "almost",
    [
        lambda x: thrice(x) + (1e-3 if x.ndim > 1 else 0),
        lambda x: thrice(x) if x.ndim == 1 else x.tolist(),
        lambda x: thrice(x) if x.shape == (3,) else 1 / 0,
        lambda x: 3 * x,
    ],
    ids=["one run differs", "another type", "raises once", "raises less"],
)
def test_a_mistake_is_named_as_certain_only_where_every_run_agrees(almost):
    verdict = judged(almost, thrice)
    assert verdict.verdict == WRONG
    assert verdict.mistake is None


def test_mistakes_that_differ_in_dtype_or_side_effects_alone_are_kept_apart():
    def dtype(x):
        """The dtype is lost."""
        return widened(x) if len(x) else twice(x)

    def effect(x):
        """A seed is set."""
        return seeding(x) if len(x) else twice(x)

    def changed(x):
        """x is changed."""
        return in_place(x) if len(x) else twice(x)

    bank = (dtype, effect, changed)
    assert [judged(answer, *bank).mistake for answer in bank] == ["dtype", "effect", "changed"]


def test_raising_everywhere_is_a_crash_and_no_known_mistake():
    def always(x):
        """It divides by zero."""
        return 1 / 0

    verdict = judged(lambda x: [][1 // 0], always)
    assert (verdict.verdict, verdict.score, verdict.mistake) == (CRASH, 0, None)
    assert "ZeroDivisionError" in verdict.note


def test_raising_the_expected_error_everywhere_earns_nothing():
    def refuse(x):
        raise ValueError("nothing to double")

    assert judged(refuse).score == 0


def test_a_stub_is_missing_and_not_wrong():
    def stub(x):
        raise NotImplementedError

    assert (judged(stub).verdict, judged(stub).score) == (MISSING, 0)


def test_the_mistakes_are_not_looked_at_for_a_right_answer():
    def never():
        raise AssertionError("the bank was opened")

    expected = records_of(twice)
    assert decide(TWICE, RUNS, expected, expected, never).verdict == CORRECT


@pytest.mark.parametrize("answer", [twice, thrice, in_place, seeding, widened, lambda x: None])
def test_a_verdict_is_the_same_after_a_journey(answer):
    here, expected = records_of(answer), records_of(twice)
    there = [[record_from(decode(encode(record_tree(r)))) for r in row] for row in here]
    assert decide(TWICE, RUNS, there, expected) == decide(TWICE, RUNS, here, expected)


@pytest.mark.parametrize(
    "forged",
    [
        Record(),
        Record((1.0,) * 50),
        Record((Opaque("ndarray"),)),
        Record((np.ones(3),), changed={"no step": 1, "9.9": None, "0.²": None}),
        Record(({"passed": True},), gradients={"parameter w": "text"}),
        Record((), RaisedException(("ValueError",), "x" * 10_000, "y\n" * 1000, "nowhere")),
        Record((Array(np.full((3, 3), NAN), "torch", "passed", "cuda"),)),
        Record((), side_effects=("<script>",) * 9),
    ],
)
def test_forged_records_are_wrong_and_break_nothing(forged):
    verdict = decide(TWICE, RUNS, [[forged] * len(row) for row in RUNS], records_of(twice))
    assert verdict.verdict in {WRONG, CRASH}
    assert verdict.score < verdict.points


def test_the_dtype_aspect_makes_float64_runs_in_float32_too():
    x = tensor(np.ones((2, 3)), "float64")
    state = {"weight": tensor(np.ones(3), "float64"), "steps": tensor(np.ones(1, "int64"))}
    wide = module(x, state=state).then([1], mask=None, value=StridedArray(x)).then((x, Previous(0)))
    aspect = dtypes_kept(1.0, "Keep the dtype.", lambda draw: [wide, call(np.ones(2))])
    same, untouched, narrow = aspect.runs(Draw(b""))
    assert same is wide
    assert untouched.steps[0].args[0].dtype == "float64"  # NumPy's stay as they are
    first, second = narrow.steps
    arrays = (narrow.init.args[0], first.kwargs["value"].array, second.args[0][0])
    assert {array.dtype for array in (*arrays, narrow.state["weight"])} == {"float32"}
    assert {array.data.dtype.name for array in arrays} == {"float32"}
    assert (first.args, first.kwargs["mask"], second.args[0][1]) == (([1],), None, Previous(0))
    assert narrow.state["steps"].dtype == "int64"
    assert wide.init.args[0].dtype == "float64"


@pytest.mark.needs_torch
def test_an_answer_that_widens_float32_fails_the_dtype_aspect():
    exercise = Exercise(
        "double",
        "Twice",
        ("x",),
        (
            equals_reference("values", 1.0, "…", lambda draw: [call(draw.tensor(3))]),
            dtypes_kept(1.0, "Keep the dtype.", lambda draw: [call(draw.double(3))]),
        ),
    )
    runs = exercise.runs(b"")
    right = [[probe(lambda x: 2 * x, run) for run in row] for row in runs]
    for answer, passed in ((lambda x: x + x, True), (lambda x: 2 * x.double(), False)):
        given = [[probe(answer, run) for run in row] for row in runs]
        assert decide(exercise, runs, given, right).aspects[1].passed == passed
