"""Whether right answers depend on luck: every one in the bank, judged on many sets of fresh inputs.

Run: python -m benchmarks.luck [SLUG …] [--only EXERCISE …] [--times 200] [--jobs 2] [--again]. What
has been judged is kept in `luck.json` after every few sets, and a second run continues from there;
`--again` starts afresh.

An answer that loses no mark may have come close to it. So each is judged once more with a tenth of
the tolerances: if that costs marks, rounding is amplified, or the answer is not quite right. What a
GPU would refuse (`elsewhere`) is the same for all inputs of a shape, so it is only tried on the
first set.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from autograder.bank import banks
from autograder.judge.reference import reference
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.compare import TOLERANCE
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Exercise, Run
from autograder.student.engine.verdict import CORRECT, decide

TIMES = 200
CHUNK = 20  # sets after which the results are saved
TIGHTER = 10.0
CLOSE = "with a tenth of the tolerances"
RESULT = Path(__file__).with_suffix(".json")


class Unlucky(NamedTuple):
    """A right answer that loses marks on some inputs: in which aspects, and what is said."""

    answer: str
    time: int
    lost: list[tuple[str, str | None]]
    tighter: bool = False  # only with a tenth of the tolerances


def answers(slug: str, name: str) -> dict[str, Callable[..., Any]]:
    """The right answers to an exercise, the reference among them."""
    return {"the reference": reference(slug, name), **banks(slug)[name].rights}


def unlucky(slug: str, name: str, times: range, *, tighter: bool = False) -> Iterator[Unlucky]:
    """The right answers that lose marks, with the number of the inputs on which they do.

    With `tighter`, also those that would with a tenth of the tolerances.
    """
    exercise = find_exercise(name)[1]
    with preserve_generators(), np.errstate(all="ignore"):
        for i in times:
            runs = exercise.runs(f"luck {i}".encode())
            right = reference(slug, name)
            expected = [[probe_within(right, run) for run in row] for row in runs]
            for title, answer in answers(slug, name).items():
                # The same function has the same records, and a device is not a matter of luck.
                made = [
                    [
                        theirs
                        if answer is right or run.simulated and i
                        else probe_within(answer, run)
                        for run, theirs in zip(*rows, strict=True)
                    ]
                    for rows in zip(runs, expected, strict=True)
                ]
                lost = _lost(exercise, runs, made, expected)
                if lost:
                    yield Unlucky(title, i, lost)
                elif tighter:
                    with _tighter():
                        lost = _lost(exercise, runs, made, expected)
                    if lost:
                        yield Unlucky(title, i, lost, True)


Rows = Sequence[Sequence[Any]]


def _lost(
    exercise: Exercise, runs: Sequence[Sequence[Run]], made: Rows, expected: Rows
) -> list[tuple[str, str | None]]:
    """The aspects in which an answer loses marks, with what is said of them."""
    verdict = decide(exercise, runs, made, expected)
    if verdict.verdict == CORRECT and verdict.score == verdict.points:
        return []
    return [(a.title, a.message) for a in verdict.aspects if not a.passed] or [("", verdict.note)]


@contextmanager
def _tighter() -> Iterator[None]:
    """Judge with a tenth of the tolerances."""
    before = dict(TOLERANCE)
    TOLERANCE.update({d: (r / TIGHTER, a / TIGHTER) for d, (r, a) in before.items()})
    try:
        yield
    finally:
        TOLERANCE.update(before)


def judged(slug: str, name: str, times: range) -> tuple[dict[str, Any], float]:
    """What some sets of inputs show of an exercise's right answers, and the seconds of CPU it took.

    Called in a process of its own.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start = time.process_time()
    found: dict[str, Any] = {"lost": {}, CLOSE: {}}
    for one in unlucky(slug, name, times, tighter=True):
        row = found[CLOSE if one.tighter else "lost"]
        for title, message in one.lost:
            entry = row.setdefault(f"{one.answer}: {title}", {"times": 0, "first": message})
            entry["times"] += 1
    return found, time.process_time() - start


def _add(result: dict[str, Any], found: dict[str, Any]) -> None:
    """Add to an exercise's results what more sets of inputs have shown."""
    for kind in ("lost", CLOSE):
        for title, more in found[kind].items():
            entry = result[kind].setdefault(title, {"times": 0, "first": more["first"]})
            entry["times"] += more["times"]


def main() -> int:
    """Exit status 1 if a right answer loses marks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.luck", description=__doc__)
    parser.add_argument("slugs", nargs="*", help="chapters; all, if none is named")
    parser.add_argument("--only", nargs="*", help="judge the answers to these exercises only")
    parser.add_argument("--times", type=int, default=TIMES, help="sets of inputs for each")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="processes side by side")
    parser.add_argument("--again", action="store_true", help="start afresh")
    given = parser.parse_args()
    result = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    asked = [
        (slug, exercise.name)
        for slug in given.slugs or chapters()
        for exercise in exercises_of(slug)
        if not given.only or exercise.name in given.only
    ]
    for slug, name in asked:
        many = len(answers(slug, name))
        if given.again or name not in result or result[name]["answers"] != many:
            result[name] = {"answers": many, "times": 0, "lost": {}, CLOSE: {}}
    seconds = 0.0
    with ProcessPoolExecutor(given.jobs) as pool:
        for first in range(0, given.times, CHUNK):  # all exercises get equally far
            times = range(first, min(first + CHUNK, given.times))
            waiting = [(slug, name) for slug, name in asked if result[name]["times"] == first]
            runs = {pool.submit(judged, slug, name, times): name for slug, name in waiting}
            for done in as_completed(runs):
                found, took = done.result()
                _add(result[runs[done]], found)
                result[runs[done]]["times"] = times.stop
                seconds += took
                _save(result)
            print(f"{times.stop} sets, {seconds:.0f} s of CPU", flush=True)
    rows = [result[name] for _, name in asked]
    count = sum(one["answers"] * one["times"] for one in rows)
    failed = sum(len(one["lost"]) for one in rows)
    print(
        f"{count} judgements of right answers; {failed} answers lost marks; {seconds:.0f} s of CPU"
    )
    return int(failed > 0)


def _save(result: dict[str, Any]) -> None:
    order = [exercise.name for slug in chapters() for exercise in exercises_of(slug)]
    ordered = {name: result[name] for name in order if name in result}
    text = json.dumps(ordered, indent=1, ensure_ascii=False) + "\n"
    RESULT.with_suffix(".tmp").write_text(text, encoding="utf-8")
    RESULT.with_suffix(".tmp").replace(RESULT)


if __name__ == "__main__":
    sys.exit(main())
