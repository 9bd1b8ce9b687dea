"""What the trusted side makes of known answers, whatever else its process does meanwhile."""

import random
import warnings
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch

from autograder.judge import reference
from autograder.judge.judge_file import judge_file
from autograder.judge.reference import on_demand, records
from autograder.student.engine.runs import call
from autograder.student.engine.verdict import CourseFault

PYTHONS, NUMPYS = "Python's random state", "NumPy's random state"
RUNS = [[call(1.0), call(2.0)]]


class Beside:
    """An answer during whose first calls another thread draws, as a Dask worker's event loop does.

    `mine` is what the answer itself does in each call.
    """

    def __init__(self, times: int, mine=lambda: None):
        self.times, self.mine = times, mine

    def __call__(self, x):
        self.mine()
        if self.times:
            self.times -= 1
            for draw in (random.random, np.random.random):
                thread = Thread(target=draw)
                thread.start()
                thread.join()
        return x + 1


def effects(answer) -> list[set[str]]:
    (row,) = records(answer, RUNS)
    assert [record.values for record in row] == [(2.0,), (3.0,)]
    (lazy,) = on_demand(answer, RUNS)
    assert [record.values for record in lazy] == [(2.0,), (3.0,)]
    return [set(record.side_effects) for record in row]


def test_what_another_thread_draws_is_no_side_effect_of_an_answer():
    assert effects(Beside(1)) == [set(), set()]
    assert effects(Beside(2)) == [set(), set()]


def test_what_an_answer_seeds_is_one_beside_what_another_thread_draws():
    assert effects(Beside(0, random.seed)) == [{PYTHONS}, {PYTHONS}]
    assert effects(Beside(1, np.random.seed)) == [{NUMPYS}, {NUMPYS}]


def test_what_a_known_answer_warns_of_reaches_nobody():
    def warns(x):
        warnings.warn("by hand", stacklevel=1)
        torch.ones(1).var()
        np.array([]).mean()
        return np.float64(x) / np.float64(0) + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((first, _),) = records(warns, RUNS)
        (lazy,) = on_demand(warns, RUNS)
        assert first.raised is None and lazy[1].raised is None


def test_a_fault_of_the_course_is_nobodys_wrong_answer(monkeypatch):
    """Neither a verdict nor a mark comes of it; in a class, the submission is not graded yet."""

    def broken(*_: object) -> None:
        raise RuntimeError("dictionary changed size during iteration")

    right = Path(__file__).parents[3] / "solutions" / "kernel_regression.py"
    monkeypatch.setattr(reference, "probe_within", broken)
    with pytest.raises(CourseFault, match=r"of the course .* \(RuntimeError: dictionary changed"):
        judge_file(right, ["softmax"], seed=b"a fault")
    monkeypatch.undo()
    assert judge_file(right, ["softmax"], seed=b"a fault")["score"] == 3
