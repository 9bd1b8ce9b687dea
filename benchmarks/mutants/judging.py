"""Judges mutants by the grader's own engine, in a process that must not take forever.

A mutant is our own code, so it needs no sandbox; but a changed loop may never end, and a changed
shape may ask for more memory than there is.
"""

import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NamedTuple

import torch

from autograder.bank import banks
from autograder.bank.change import build, plain_source
from autograder.judge.reference import expected, known_mistakes, on_demand
from autograder.student.course import find_exercise
from autograder.student.engine.runs import Exercise, Record, Run
from autograder.student.engine.verdict import CORRECT, Mistake, decide, equal
from autograder.student.expected import SEED
from benchmarks.mutants.making import Mutant, normal

CPU_SECONDS = 3.0  # for one mutant; the slowest reference takes a fifth of one
WALL_SECONDS = 300.0  # without an answer, the process is killed
MEMORY = 3 << 30  # bytes, beyond what the process has at first
FRESH = b"the mutants"


class Outcome(StrEnum):
    """What comes of a mutant."""

    BROKEN = "broken"  # it does not compile, or raises on each call of the first aspect: no test
    CAUGHT = "caught"  # it loses marks with every set of inputs
    ENDLESS = "endless"  # it takes too long, for which it loses marks
    SURVIVED = "survived"  # it gets full marks with some set of inputs


class Judged(NamedTuple):
    """What came of a mutant, and the known mistake that it was taken for."""

    outcome: Outcome
    mistake: str | None = None


class Inputs(NamedTuple):
    """Runs that were drawn from a seed, and what reference and known mistakes give on them."""

    runs: Sequence[Sequence[Run]]
    expected: Sequence[Sequence[Record]]
    mistakes: Sequence[Mistake]


class _TookTooLong(KeyboardInterrupt):
    """The only kind of exception that the probe lets through."""


@cache
def inputs(slug: str, name: str) -> tuple[Inputs, Inputs]:
    """The inputs of `check`, and some that are drawn afresh."""
    sets = []
    for seed in (SEED + name.encode(), FRESH):
        runs = find_exercise(name)[1].runs(seed)
        known = [*known_mistakes(slug, name, runs)]
        sets.append(Inputs(runs, expected(slug, name, runs), known))
    return tuple(sets)


def judge(exercise: Exercise, slug: str, answer: Callable[..., Any]) -> Judged:
    """What the grader makes of an answer: with the inputs of `check`, then with fresh ones."""
    first, second = inputs(slug, exercise.name)
    given = on_demand(answer, first.runs)
    if all(record.raised for record in given[0]):
        return Judged(Outcome.BROKEN)
    if not loses_marks(exercise, first, given):
        return Judged(Outcome.SURVIVED)
    if not loses_marks(exercise, second, on_demand(answer, second.runs)):
        return Judged(Outcome.SURVIVED)
    runs = [[replace(r, random=r.random or r.simulated) for r in row] for row in first.runs]
    like = [known for known in first.mistakes if equal(runs, given, known.records)]
    if not like:
        return Judged(Outcome.CAUGHT)
    verdict = decide(exercise, first.runs, given, first.expected, lambda: like)
    return Judged(Outcome.CAUGHT, verdict.mistake)


def loses_marks(exercise: Exercise, inputs: Inputs, given: Sequence[Sequence[Record]]) -> bool:
    """Whether some aspect does not hold; those after the first such one are not tried."""
    for i in range(len(exercise.aspects)):
        some = sorted({0, i})  # whether an aspect counts may depend on the first
        part = replace(exercise, aspects=tuple(exercise.aspects[j] for j in some))
        columns = ([column[j] for j in some] for column in (inputs.runs, given, inputs.expected))
        if decide(part, *columns).verdict != CORRECT:
            return True
    return False


def answer_of(slug: str, name: str, mutant: Mutant) -> Callable[..., Any]:
    """The function or class that a mutant is. Raises `ValueError` if it does not compile."""
    bank = banks(slug)[name]
    source = normal(plain_source(getattr(bank.references, name)))
    names = vars(bank.references)
    return build(name, mutant.name, mutant.source, source, names, f"{name}, {mutant.name}")


# --- in a process of its own --------------------------------------------------------------------


def judged(slug: str, name: str, mutants: Sequence[Mutant]) -> Iterator[Judged]:
    """What comes of each mutant of an exercise, in their order."""
    done = 0
    while done < len(mutants):
        ours, theirs = get_context("fork").Pipe(duplex=False)
        inputs(slug, name)  # so that a further process need not make them again
        process = get_context("fork").Process(
            target=_work, args=(theirs, slug, name, mutants[done:]), daemon=True
        )
        process.start()
        theirs.close()
        try:
            while done < len(mutants):
                if not ours.poll(WALL_SECONDS):
                    raise EOFError
                outcome = Judged(*ours.recv())
                done += 1
                yield outcome
        except EOFError:  # it was killed, or does not respond
            done += 1
            yield Judged(Outcome.ENDLESS)
        finally:
            process.kill()
            process.join()
            ours.close()


def _work(to: Connection, slug: str, name: str, mutants: Sequence[Mutant]) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    limit = _size() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # an answer may print
        os.dup2(nowhere.fileno(), 2)
    exercise = find_exercise(name)[1]
    for mutant in mutants:
        try:
            answer = answer_of(slug, name, mutant)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            found = judge(exercise, slug, answer)
        except _TookTooLong:
            found = Judged(Outcome.ENDLESS)
        except (ValueError, SyntaxError, NameError, TypeError, AttributeError):
            found = Judged(Outcome.BROKEN)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        to.send(tuple(found))


def _stop(signal_number: int, frame: FrameType | None) -> None:
    raise _TookTooLong


def _size() -> int:
    """The bytes of address space that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
