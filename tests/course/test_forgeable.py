"""What an answer could gain by forging what the probe sees beside the values that come back.

A *look* is all that is judged and does not follow from results: the arguments that a call changed,
the global state that it left different, what a module says that its parameters are, and whatever a
function of ours finds in an object after the answer has had it. So is where a tensor says it is, on
the device that only pretends.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograder.publishing.expected_values import make_expected
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.runs import (
    APPLY,
    Aspect,
    Exercise,
    Previous,
    RaisedException,
    Recipe,
    Record,
    Run,
    Trial,
)
from autograder.student.engine.simulated_device import TOO_MANY, TWO_DEVICES
from autograder.student.engine.state import MEMORY, MODES
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import decide
from autograder.student.expected import ExpectedValues, expected_of, fixed_runs

EXERCISES = [
    pytest.param(slug, exercise, id=exercise.name)
    for slug in chapters()
    for exercise in exercises_of(slug)
]
EFFECTS = (
    *("NumPy's random state", "Python's random state", "NumPy's error handling"),
    *("torch's random state", "torch's default dtype", "torch's grad mode", MODES, MEMORY),
)
CALLS = {  # functions of ours that begin a task, or compute numbers with what it made or after it
    *("projected", "attend", "descended", "enlarge", "with_optimizer"),
    *("parameters_of", "length_of", "state_of", "steps_of", "of_another"),
}


def looking(run: Run) -> Iterator[int]:
    """The steps in which a function of ours looks at, or acts on, what an answer may have had."""
    for i, step in enumerate(run.steps):
        if step.method == APPLY and isinstance(step.args[0], Recipe) and step.args[0].args is None:
            name = step.args[0].name.rpartition(":")[2]
            if name not in CALLS and any(isinstance(arg, Previous) for arg in step.args[1:]):
                yield i


def told(run: Run, record: Record, told_of: Record) -> Record:
    """A record with all looks as another record has them."""
    if run.simulated:
        return told_of
    values = list(record.values)
    for i in looking(run):
        if i < min(len(values), len(told_of.values)):
            values[i] = told_of.values[i]
    return replace(
        record, values=tuple(values), changed=told_of.changed, side_effects=told_of.side_effects
    )


def entry(slug: str, exercise: Exercise) -> ExpectedValues:
    """What is on file for an exercise; where nothing is, it is computed."""
    return expected_of(slug)[exercise.name] if exercise.recorded else make_expected(slug, exercise)


def refused(run: Run) -> Record:
    """What the simulated device says of two devices, or of a tensor that is too large."""
    return Record((), RaisedException((TOO_MANY if run.most else TWO_DEVICES,), "refused"))


def judged(aspect: Aspect, exercise: Exercise, *rows: Any) -> bool:
    trials = [Trial(*row, exercise.arguments) for row in zip(*rows, strict=True)]
    return aspect.judge(trials).passed


def test_looks_are_a_tenth_of_an_exercise_and_a_twentieth_of_all_at_most():
    every = [exercise for slug in chapters() for exercise in exercises_of(slug)]
    for exercise in every:
        assert exercise.forgeable_points <= exercise.points / 10 + 1e-9, exercise.name
    looks = math.fsum(exercise.forgeable_points for exercise in every)
    assert 0 < looks <= math.fsum(exercise.points for exercise in every) / 20


def test_these_aspects_are_looks():
    every = [a for slug in chapters() for e in exercises_of(slug) for a in e.aspects]
    assert {aspect.title for aspect in every if aspect.forgeable} == {
        "leaves its inputs untouched",
        "leaves global state alone",
        "runs on the device of its inputs",
        "no table of queries and keys",
        "no table of all queries and keys, no state for each position",
        "a step for each chunk, not for each position",
        "never more than chunk_size positions at a time",
        "nothing is dropped before attention",
        "dropout on the patches: once, on the sum",
        "no sublayer reads what was dropped",
        "the sublayer reads nothing that was dropped",
        "four layers of their own",
        "a new cell",
        "context_size, and eval mode",
        "the mode is the caller's",
        "h(1 + q + k) parameters",
        "one parameter, W",
        "three projections, no biases",
    }


@pytest.mark.share(12)
@pytest.mark.parametrize(("slug", "exercise"), EXERCISES)
def test_no_other_aspect_goes_by_what_the_probe_saw(slug, exercise):
    """Whatever was changed, left different or found: what is no look stays as it was judged."""
    rows = zip(
        exercise.aspects, fixed_runs(exercise), entry(slug, exercise).reference,
        strict=True,
    )  # fmt: skip
    for aspect, runs, records in rows:
        assert judged(aspect, exercise, runs, records, records), aspect.title
        changed = {f"{i}.0": Array(np.zeros(1)) for i in range(12)}
        anything = Record(("found",) * 20, None, {}, changed, EFFECTS)
        lied = [
            told(run, record, refused(run) if run.simulated else anything)
            for run, record in zip(runs, records, strict=True)
        ]
        of_parameters = "parameter" in aspect.title or "projections" in aspect.title
        holds = not aspect.forgeable or of_parameters
        assert judged(aspect, exercise, runs, lied, records) == holds, aspect.title


def gains(exercise: Exercise, entry: ExpectedValues) -> Iterator[tuple[str, float]]:
    """What each known mistake would gain if all that the probe sees of it were forged."""
    runs = fixed_runs(exercise)
    for mistake in entry.mistakes:
        forged = [
            [told(*row) for row in zip(*rows, strict=True)]
            for rows in zip(runs, mistake.records, entry.reference, strict=True)
        ]
        plain, better = (
            decide(exercise, runs, records, entry.reference).score
            for records in (mistake.records, forged)
        )
        yield mistake.name, better - plain


@pytest.mark.share(24)
@pytest.mark.parametrize(("slug", "exercise"), EXERCISES)
def test_no_known_mistake_gains_more_than_a_tenth_by_forging(slug, exercise):
    gained = dict(gains(exercise, entry(slug, exercise)))
    assert max(gained.values()) <= exercise.forgeable_points + 1e-9, gained
