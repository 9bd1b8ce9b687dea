"""The engine alone: gradients, and the probe."""

import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from autograder.student.engine.aspects import compare, gradients_match
from autograder.student.engine.exception_aspect import raises
from autograder.student.engine.probe import probe, snapshot
from autograder.student.engine.runs import (
    Exercise,
    Previous,
    RaisedException,
    Record,
    StridedArray,
    Trial,
    call,
    module,
    tensor,
)
from autograder.student.engine.verdict import CORRECT, WRONG, Mistake, Verdict, decide


def given(value: object) -> object:
    """A value as a probe would report it."""
    return snapshot(value)


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
    assert gradients_of(answer).aspects[0].message.startswith("no gradient reaches parameter w")


def test_another_gradient_is_not_taken_for_none():
    verdict = gradients_of(Skewed, (Cut,))
    assert (verdict.verdict, verdict.mistake) == (WRONG, None)
    assert "the gradient of parameter w" in verdict.aspects[0].message
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


def in_place(x):
    x *= 2
    return x


def test_each_run_gets_its_own_copy_of_the_arguments():
    run = call(np.ones(3))
    record = probe(in_place, run)
    assert record.changed["0.0"].data.tolist() == [2.0, 2.0, 2.0]
    assert run.steps[0].args[0].tolist() == [1.0, 1.0, 1.0]
    assert probe(in_place, run).value.data.tolist() == [2.0, 2.0, 2.0]


def test_a_strided_argument_is_not_contiguous_and_watched_as_well():
    record = probe(lambda x: x.flags.c_contiguous, call(StridedArray(np.ones((2, 3)))))
    assert record.value is False
    assert list(probe(in_place, call(StridedArray(np.ones(3)))).changed) == ["0.0"]


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
from autograder.student.engine.probe import preserve_generators
beside = threading.Thread(target=__import__, args=("torch",))
beside.start()
while "torch" not in sys.modules:
    pass
half = not hasattr(sys.modules["torch"], "get_rng_state")
with preserve_generators():
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
    record = Record(raised=RaisedException(("ValueError", "Exception"), message))
    assert aspect.judge([Trial(call(14, 4), record)]).passed == named


def add_a_word(words):
    words["more"] = 1


def count_up(words):
    words["low"] += 1


def drop_the_last(pairs):
    pairs.pop()


def another_pair(pairs):
    pairs[0] = ("x", "y")


WORDS, PAIRS = {"low": 5, "lower": 2}, [("l", "o"), ("lo", "w")]


@pytest.mark.parametrize(
    ("answer", "argument", "changed"),
    [
        (add_a_word, WORDS, True),
        (count_up, WORDS, True),
        (drop_the_last, PAIRS, True),
        (another_pair, PAIRS, True),
        (len, WORDS, False),
        (len, PAIRS, False),
    ],
)
def test_a_dict_or_list_that_is_changed_is_noticed_and_each_run_gets_its_own(
    answer, argument, changed
):
    for _ in range(2):
        assert (set(probe(answer, call(argument)).changed) == {"0.0"}) is changed
    assert (WORDS, PAIRS) == ({"low": 5, "lower": 2}, [("l", "o"), ("lo", "w")])
