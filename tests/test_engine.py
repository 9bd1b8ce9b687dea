"""The engine alone: comparing, the kinds of aspect, the verdict, the probe next to an answer."""

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from autograder.engine.aspects import (
    compare,
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects,
    not_rows_of_one,
    raises,
)
from autograder.engine.probe import probe, snapshot
from autograder.engine.records import record_from, record_tree
from autograder.engine.runs import (
    Array,
    Exercise,
    Previous,
    Raised,
    Record,
    Run,
    Strided,
    Trial,
    call,
    module,
    tensor,
)
from autograder.engine.values import Opaque, decode, encode
from autograder.engine.verdict import CORRECT, CRASH, MISSING, WRONG, Mistake, Verdict, decide

NAN, INF = float("nan"), float("inf")


def given(value: object) -> object:
    """A value as a probe would report it."""
    return snapshot(value)


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


@pytest.mark.parametrize(("value", "expected"), DIFFERENT.values(), ids=DIFFERENT)
def test_compare_tells_apart_and_says_why(value, expected):
    for reported in (given(value), decode(encode(given(value)))):
        finding = compare(reported, given(expected), "the output")
        assert not finding.passed
        assert "the output" in finding.message


def test_compare_says_where_how_far_off_and_what_was_allowed():
    expected = np.arange(6.0).reshape(2, 3)
    value = expected.copy()
    value[1, 2] += 0.25
    value[0, 0] += 1e-12
    finding = compare(given(value), given(expected))
    assert finding.message == "the result at [1, 2]: expected 5, got 5.25"
    assert finding.error == pytest.approx(0.25)
    assert 0 < finding.tolerance < 1e-6


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


# --- an exercise to try the aspects and the verdict on ------------------------------------------


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
    assert not [a for a in verdict.aspects if a.hint or a.error]


@pytest.mark.parametrize(
    ("answer", "holds", "said"),
    [
        (refusing(in_place), [True, True, True, False, True], "changed its argument x"),
        (refusing(widened), [True, True, False, True, True], "expected float32, got float64"),
        (refusing(rounded), [True, True, False, True, True], "the result at"),
        (refusing(seeding), [True, True, True, True, False], "NumPy's random state"),
        (lambda x: 2 * x, [True, False, True, True, True], "instead of raising ValueError"),
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
    assert any(said in (a.error or "") for a in verdict.aspects)


def test_doing_no_harm_earns_nothing_until_the_first_aspect_holds():
    verdict = judged(lambda x: None)
    assert verdict.score == 0
    assert verdict.aspects[0].hint is None, "a hint about numbers does not help with None"
    assert "is `return` missing?" in verdict.aspects[0].error
    assert all("the numbers" in a.error for a in verdict.aspects[3:])


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
        lambda x: (thrice(x), x.fill(0))[0],
    ],
    ids=["one run differs", "another type", "raises once", "raises less", "and changes x"],
)
def test_a_mistake_is_named_only_where_every_run_agrees(almost):
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
    assert judged(lambda x: seeding(widened(x)) if len(x) else twice(x), *bank).mistake is None


def test_a_dtype_besides_does_not_hide_a_mistake():
    assert judged(lambda x: 3 * widened(x) / 2 if len(x) else twice(x), thrice).mistake == "thrice"


def test_raising_everywhere_is_a_crash_and_no_known_mistake():
    def always(x):
        """It divides by zero."""
        return 1 / 0

    verdict = judged(lambda x: [][1 // 0], always)
    assert (verdict.verdict, verdict.score, verdict.mistake) == (CRASH, 0, None)
    assert "ZeroDivisionError" in verdict.note


def test_raising_what_is_asked_everywhere_earns_nothing():
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
        Record((), Raised(("ValueError",), "x" * 10_000, "y\n" * 1000, "nowhere")),
        Record((Array(np.full((3, 3), NAN), "torch", "passed", "cuda"),)),
        Record((), side_effects=("<script>",) * 9),
    ],
)
def test_forged_records_are_wrong_and_break_nothing(forged):
    verdict = decide(TWICE, RUNS, [[forged] * len(row) for row in RUNS], records_of(twice))
    assert verdict.verdict in {WRONG, CRASH}
    assert verdict.score < verdict.points


# --- gradients ----------------------------------------------------------------------------------


class Scale(nn.Module):
    """x times w."""

    def __init__(self, w=2.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(self, x):
        return x * self.w


class Frozen(Scale):
    def __init__(self, w=2.0):
        super().__init__(w)
        self.w.requires_grad_(False)


class Cut(Scale):
    """No gradient reaches w."""

    def forward(self, x):
        return x * self.w.item()


class Skewed(Scale):
    def forward(self, x):
        return x * self.w.detach() * (1 + self.w - self.w.detach())


GRADIENTS = Exercise(
    "Scale",
    "x times w",
    ("x",),
    (
        gradients_match(
            "gradients", 1.0, "Stay in torch.", lambda d: [module(3.0).then(d.tensor(4))]
        ),
    ),
)


def gradients_of(answer: object, bank: tuple = ()) -> Verdict:
    runs = GRADIENTS.runs(b"a seed")
    right, mine = ([[probe(a, runs[0][0])]] for a in (Scale, answer))
    known = [Mistake(m.__name__, m.__doc__, [[probe(m, runs[0][0])]]) for m in bank]
    return decide(GRADIENTS, runs, mine, right, lambda: known)


def test_gradients_of_arguments_and_parameters_are_compared():
    assert gradients_of(Scale).verdict == CORRECT
    record = probe(Scale, GRADIENTS.runs(b"a seed")[0][0])
    assert record.gradients["0"].data == pytest.approx(3 * np.cos(0.7 * np.arange(4) + 0.3))


@pytest.mark.parametrize("answer", [Cut, Frozen])
def test_a_gradient_that_is_cut_is_named_by_where_it_should_arrive(answer):
    assert gradients_of(answer).aspects[0].error.startswith("no gradient reaches parameter w")


def test_another_gradient_is_not_taken_for_none():
    verdict = gradients_of(Skewed, (Cut,))
    assert (verdict.verdict, verdict.mistake) == (WRONG, None)
    assert "the gradient of parameter w" in verdict.aspects[0].error
    assert gradients_of(Cut, (Cut,)).mistake == "Cut"


# --- probe --------------------------------------------------------------------------------------


def exits(x):
    raise SystemExit(0)


def recurses(x):
    return recurses(x)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


def mute(x):
    raise Mute


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (None, "TypeError"),
        ("twice", "TypeError"),
        (lambda: 1, "TypeError"),
        (lambda x, y: x, "TypeError"),
        (lambda x: x.no_such_thing, "AttributeError"),
        (lambda x: x @ np.ones((7, 7)), "ValueError"),
        (exits, "SystemExit"),
        (recurses, "RecursionError"),
        (mute, "Mute"),
    ],
)
def test_whatever_an_answer_raises_is_recorded(answer, raised):
    record = probe(answer, call(np.ones(3)))
    assert record.raised.types[0] == raised
    assert record.value is None


def test_the_answers_own_line_is_told():
    record = probe(lambda x: x / undefined_name, call(1.0))  # noqa: F821
    assert "undefined_name" in record.raised.traceback
    assert "autograder" not in record.raised.traceback


@pytest.mark.parametrize(
    "answer", [Scale, nn.Linear, dict, lambda x: (i for i in x), lambda x: len]
)
def test_results_that_are_no_values_are_recorded_and_wrong(answer):
    record = probe(answer, call(np.ones(3)))
    assert not compare(record.value, given(np.ones(3))).passed


@pytest.mark.parametrize("answer", [lambda w: None, lambda w: w, 3, object])
def test_something_else_for_a_class_is_recorded(answer):
    record = probe(answer, module(2.0).then(tensor([1.0, 2.0])))
    assert record.raised.types[0] == "TypeError"


def test_ctrl_c_is_the_students():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probe(interrupted, call(1.0))


def test_each_run_gets_its_own_copy_of_the_arguments():
    run = call(np.ones(3))
    record = probe(in_place, run)
    assert record.changed["0.0"].data.tolist() == [2.0, 2.0, 2.0]
    assert run.steps[0].args[0].tolist() == [1.0, 1.0, 1.0]
    assert probe(in_place, run).value.data.tolist() == [2.0, 2.0, 2.0]


def test_a_strided_argument_is_not_contiguous_and_watched_as_well():
    record = probe(lambda x: x.flags.c_contiguous, call(Strided(np.ones((2, 3)))))
    assert record.value is False
    assert list(probe(in_place, call(Strided(np.ones(3)))).changed) == ["0.0"]


def test_the_steps_of_a_run_share_one_object_and_its_earlier_results():
    class Counter(nn.Module):
        def forward(self, x):
            self.calls = getattr(self, "calls", 0) + 1
            return x + self.calls

    run = module().then(tensor([0.0])).then(Previous(0))
    assert [v.data.tolist() for v in probe(Counter, run).values] == [[1.0], [3.0]]
    assert [v.data.tolist() for v in probe(Counter, run).values] == [[1.0], [3.0]]


def test_a_state_is_loaded_and_one_that_does_not_fit_is_told():
    run = module(state={"w": tensor(5.0, "float64")}).then(tensor([2.0], "float64"))
    value = probe(Scale, run).value
    assert (value.data.tolist(), value.dtype) == ([10.0], "float64")
    record = probe(Scale, replace(run, state={"v": tensor(5.0)}))
    assert record.raised.during == "load"
    assert "v" in record.raised.message


def everything_changed(x):
    np.random.seed(0)
    np.seterr(all="ignore")
    random.seed(0)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return x


def fails_after_changing_everything(x):
    everything_changed(x)
    raise ValueError


def global_state() -> tuple:
    return (
        np.random.get_state()[1].tolist(),
        np.random.get_state()[2],
        np.geterr(),
        random.getstate(),
        torch.get_rng_state().tolist(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
    )


@pytest.mark.parametrize("answer", [everything_changed, fails_after_changing_everything])
def test_global_state_is_put_back_and_its_change_is_told(answer):
    np.random.rand(3)
    torch.rand(3)
    before = global_state()
    record = probe(answer, call(1.0))
    assert global_state() == before
    assert set(record.side_effects) == {
        "NumPy's random state",
        "NumPy's error handling",
        "Python's random state",
        "torch's random state",
        "torch's default dtype",
        "torch's grad mode",
    }


IMPORTED_BESIDE = """
import sys, threading
from autograder.engine.probe import undisturbed
beside = threading.Thread(target=__import__, args=("torch",))
beside.start()
while "torch" not in sys.modules:
    pass
half = not hasattr(sys.modules["torch"], "get_rng_state")
with undisturbed():
    print(half, hasattr(sys.modules["torch"], "get_rng_state"))
"""


def test_an_import_of_torch_in_another_thread_is_waited_for():
    told = subprocess.run(
        [sys.executable, "-c", IMPORTED_BESIDE], capture_output=True, text=True, check=False
    )
    assert (told.stdout, told.stderr) == ("True True\n", "")


def test_a_random_answer_gives_the_same_on_every_probe_of_a_run():
    def drawn(x):
        return np.random.rand(), random.random(), torch.rand(())

    first, again = (probe(drawn, call(1.0)).values for _ in range(2))
    assert compare(first, again).passed
    other = probe(drawn, replace(call(1.0), seed=1)).values
    assert not compare(first, other).passed


def test_a_module_that_is_passed_in_keeps_its_mode():
    class Trains(nn.Module):
        def forward(self, x):
            self.train()
            return x

    assert probe(Trains, module().then(tensor([1.0]))).side_effects == (
        "a module's train/eval mode",
    )


NAMED = {
    "a whole number": ("4 heads cannot share 14 features", True),
    "with its name": ("num_heads=4, d_model=14", True),
    "in a tensor": ("tensor([4]) of 14", True),
    "as a float": ("4.0 does not divide 14.0", True),
    "the end of another": ("14 is wrong", False),
    "the start of another": ("40 does not go into 14", False),
    "a part of a fraction": ("4.5 and 0.4, not 14", False),
    "not at all": ("that does not work", False),
}


@pytest.mark.parametrize(("message", "named"), NAMED.values(), ids=NAMED.keys())
def test_a_number_is_named_as_a_whole(message, named):
    aspect = raises(
        "refuses", 1.0, "", lambda d: [call(14, 4)], ValueError, naming=lambda r: r.steps[0].args
    )
    record = Record(raised=Raised(("ValueError", "Exception"), message))
    assert aspect.judge([Trial(call(14, 4), record, None)]).passed == named
