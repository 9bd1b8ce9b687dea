"""Says, as JSON, which exercises `check` refuses here, or does not give its reference all marks.

Run with an environment in which other code computes, such as a processor without AVX-512. With
`moved`, all floats that were drawn for the inputs are the next ones above. Further arguments name
the exercises.
"""

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.judge.reference import reference
from autograder.student import expected
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.runs import Array, Recipe, Run, Step, StridedArray
from autograder.student.engine.verdict import CORRECT


def moved(value: Any) -> Any:
    """A run, or a part of it, with the next float above in place of each."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f":
            return value
        finite = np.where(np.isfinite(value), value, 0)
        drawn = finite * 2.0**8 % 1 != 0  # not a constant, such as 1 or 0.5
        return np.where(drawn, np.nextafter(value, np.inf, dtype=value.dtype), value)
    if isinstance(value, Array):
        return replace(value, data=moved(value.data))
    if isinstance(value, StridedArray):
        return StridedArray(moved(value.array))
    if isinstance(value, Recipe):
        return replace(value, args=moved(value.args), state=moved(value.state))
    if isinstance(value, Step):
        return replace(value, args=moved(value.args), kwargs=moved(dict(value.kwargs)))
    if isinstance(value, Run):
        parts = {"steps": value.steps, "init": value.init, "state": value.state}
        return replace(value, **{name: moved(part) for name, part in parts.items()})
    if isinstance(value, dict):
        return {name: moved(part) for name, part in value.items()}
    return tuple(map(moved, value)) if isinstance(value, tuple) else value


def main(how: str, *names: str) -> None:
    found = {}
    for slug in chapters():
        for exercise in exercises_of(slug):
            if names and exercise.name not in names:
                continue
            if how == "moved":
                runs = [[moved(run) for run in row] for row in expected.fixed_runs(exercise)]
                print_of = expected.fingerprint(runs)
                expected._FIXED[id(exercise)] = (runs, print_of, exercise)
            try:
                verdict = verdict_on(reference(slug, exercise.name), exercise.name)
            except RuntimeError as error:
                found[exercise.name] = str(error)
                continue
            if verdict.verdict != CORRECT:
                failed = [f"{a.title}: {a.message}" for a in verdict.aspects if not a.passed]
                found[exercise.name] = "; ".join(failed)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
