"""`check(answer)`: tells a student at once what is right, what is wrong, and why.

TRUST BOUNDARY. This runs in the student's own process, for the student's own use. Its result does
not count when grading, where the judge repeats the runs with fresh inputs, from another process.
"""

import ast
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from difflib import get_close_matches
from time import process_time
from traceback import walk_tb
from types import FrameType, FunctionType
from typing import Any

from autograder.student.captured_output import CapturedOutput
from autograder.student.console import notebook, on_one_line, show
from autograder.student.course import chapters, exercises_of, find_exercise, is_exercise
from autograder.student.device import device_to_check_on
from autograder.student.engine.arrays import Value
from autograder.student.engine.probe import make_calls, materialise, own_lines, probe
from autograder.student.engine.records import on_device
from autograder.student.engine.runs import SECONDS, Exercise, Record, Run, lost_record, made_once
from autograder.student.engine.settings import as_fresh
from autograder.student.engine.verdict import (
    CORRECT,
    MISSING,
    TIMEOUT,
    Verdict,
    decide,
    describe_operations,
    no_marks,
)
from autograder.student.engine.words import describe_call, one_line
from autograder.student.expected import entry_of, fixed_digest, fixed_runs
from autograder.student.expected.fingerprints import same_runs
from autograder.student.limit import VARIABLE, Limit, seconds_allowed
from autograder.student.source import call_in, definition_not_in_use, named_by
from autograder.student.table import MOST_LINES, headline, table_html, table_text
from autograder.student.versions import missing_where_graded


def check(answer: Value, exercise: str | None = None) -> None:
    """Check an answer, show a table of what is right and wrong, and raise if something is wrong.

    `answer` is the function or class itself, not its result: `check(softmax)`. `exercise` names
    the exercise if neither the call nor the answer's own name does. A class that is written in
    steps can be checked step by step: `check(Model.embed)`. `check.all()` checks all answers
    of a notebook; `check.hint(softmax)` tells one hint more.

    Raises `AssertionError` unless the answer earns full marks, or is still to be written in a
    notebook that nbgrader does not validate; `ValueError` if no exercise has that name;
    `RuntimeError` if torch cannot use the device.
    """
    if isinstance(answer, str) and exercise is None:
        told = f"pass the answer itself, without quotes: check({answer[:40]})"
        raise on_one_line(ValueError(told))
    name, called = _named_in(sys._getframe(1))
    if called and exercise is None and not callable(answer):
        told = f"pass the answer itself, without the parentheses: check({name})"
        raise on_one_line(ValueError(told))
    owner, step = _step_of(answer) if exercise is None else (None, "")
    answer = owner if step else answer
    own = getattr(answer, "__name__", None) or type(answer).__name__
    said = CapturedOutput()
    try:
        with said.silence():
            name = own if step else str(exercise or name or own)
            verdict, broken = newest_verdict(answer, name, step, pointing=True, said=said)
            helper = _wrong_helper(answer, verdict)
            lacking = missing_where_graded(answer) if verdict.verdict != MISSING else None
    except KeyboardInterrupt as stopped:
        raise on_one_line(KeyboardInterrupt(str(stopped) or "check was stopped")) from None
    advice = _FIX_FIRST.format(helper.exercise) if helper else None
    if helper:
        verdict = replace(verdict, pointer=None)
    if helper and not (helper.aspects[0].passed and verdict.cause):
        verdict = replace(
            verdict, mistake=None, cause=None, other_problems=None, suspicion=None
        )  # which lies there, not in this answer
    if lacking:
        verdict = replace(verdict, remark=" ".join(filter(None, (verdict.remark, lacking))))
    if verdict.verdict == TIMEOUT:
        if said.lines():
            show(said.as_text().strip("\n"), said.as_html)
        raise on_one_line(AssertionError(f"{verdict.exercise}: {verdict.note}"))
    _show(verdict, _ready_made(verdict) or advice, said)
    defined = isinstance(answer, FunctionType | type)
    unwritten = verdict.verdict == MISSING and defined and not broken
    if verdict.verdict != CORRECT and not (unwritten and _goes_on()):
        raise on_one_line(AssertionError(f"{headline(verdict)} (see above)"))


def _goes_on() -> bool:
    """Whether what runs goes on where an exercise is not written yet: a notebook does, unless
    nbgrader runs it, which takes a cell that raises nothing for one that passes."""
    return notebook() is not None and "NBGRADER_EXECUTION" not in os.environ


_SLOW = (
    "The calls took {:.3g} s. When it is graded, they have {:g} s together, and what is not "
    "reached by then earns nothing."
)
_FIX_FIRST = "It calls your {}, which does not pass its own check: fix that first."


@as_fresh()
def verdict_on(
    answer: Value,
    name: str,
    step: str = "",
    *,
    pointing: bool = False,
    said: CapturedOutput | None = None,
) -> Verdict:
    """The verdict on an answer for the fixed inputs, or on one step of it.

    With `pointing`, it says where a wrong answer goes astray, if that can be told; `said` gets what
    the answer prints. Raises `ValueError` for an unknown name, `RuntimeError` for a device that
    torch cannot use, `KeyboardInterrupt`, with the place, when the student interrupts it.
    """
    try:
        slug, exercise = find_exercise(name)
    except KeyError:
        raise on_one_line(ValueError(_unknown(name))) from None
    runs = fixed_runs(exercise)
    entry = entry_of(slug, exercise)
    if not same_runs(fixed_digest(exercise), entry.digest):
        raise RuntimeError(
            f"the expected values of {name} belong to another version of the exercise: "
            "download the course's files again (authors: run `autograder release`)"
        )
    if not callable(answer):
        kind = "a class" if runs[0][0].init else "a function"
        note = f"{name} is {_brief(answer)}, not {kind}."
        return no_marks(exercise, MISSING, note)
    if runs[0][0].init and not isinstance(answer, type) and type(answer).__name__ == name:
        note = f"Pass the class itself, not an instance of it: check({name})."
        return no_marks(exercise, MISSING, note)
    known = entry.mistakes
    reference = entry.reference
    if step:
        rows = [i for i, aspect in enumerate(exercise.aspects) if aspect.step == step]
        exercise = replace(
            exercise, name=f"{name}.{step}", aspects=tuple(exercise.aspects[i] for i in rows)
        )
        runs, reference = [runs[i] for i in rows], [reference[i] for i in rows]
        known = [replace(m, records=[m.records[i] for i in rows]) for m in known]
    try:
        where = device_to_check_on()
        materialise([runs[0][0].state, runs[0][0].steps[0].args], where)
    except RuntimeError as error:
        raise on_one_line(error) from None
    except ModuleNotFoundError as absent:
        return no_marks(exercise, MISSING, f"{name} needs {absent.name}, which is not installed.")
    started = process_time()
    try:
        records = _records(answer, exercise, runs, where, said)
    except TimeoutError as late:
        return no_marks(exercise, TIMEOUT, str(late))
    seconds = process_time() - started
    expected = [[on_device(record, where) for record in row] for row in reference]

    def make(run: Run) -> Record:
        try:
            return _records(answer, exercise, [[run]], where, None)[0][0]
        except TimeoutError as late:
            return lost_record(str(late))

    verdict = decide(exercise, runs, records, expected, lambda: known, make=make)
    if seconds > SECONDS:
        remarks = filter(None, (verdict.remark, _SLOW.format(seconds, SECONDS)))
        verdict = replace(verdict, remark=" ".join(remarks))
    if pointing and verdict.verdict != CORRECT:
        from autograder.student.pointing import pointer

        found = pointer(answer, verdict, runs, records, expected, where)
        verdict = replace(verdict, pointer=found)
    return verdict


def _records(
    answer: Value,
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    where: str,
    said: CapturedOutput | None,
) -> list[list[Record]]:
    """What an answer does. Raises `TimeoutError` or `KeyboardInterrupt`, with place and call."""
    try:
        seconds = seconds_allowed()
    except ValueError as error:
        raise on_one_line(error) from None
    limit, run = Limit(seconds, make_calls.__code__), None

    def make(each: Run) -> Record:
        nonlocal run
        run = each  # told below
        return probe(answer, each, where, exercise.watch_patterns)

    try:
        with limit, said.listening() if said else nullcontext():
            return made_once(runs, make)
    except KeyboardInterrupt as stopped:
        limit.stop()
        frames = [f for f, _ in walk_tb(stopped.__traceback__) if f.f_code is make_calls.__code__]
        step = len(frames[0].f_locals["values"]) if frames else None
        call = run and describe_call(run, exercise.arguments, step)
        line = own_lines(stopped).rpartition("\n")[2]
        place = (f" in {line}" if line else "") + (f" (called {call})" if call else "")
        if not limit.reached:
            raise KeyboardInterrupt(one_line(f"{exercise.name} was stopped{place}")) from None
        told = f"stopped after {limit.reached}{place}. To let it run longer, set {VARIABLE}."
        raise TimeoutError(told) from None


def _step_of(answer: Value) -> tuple[Value, str]:
    """The class that a method belongs to and its name, if the method has a check of its own."""
    name, _, method = getattr(answer, "__qualname__", "").rpartition(".")
    owner = getattr(answer, "__globals__", {}).get(name)
    try:
        steps = find_exercise(name)[1].steps()
    except KeyError:
        return None, ""
    return (owner, method) if isinstance(owner, type) and method in steps else (None, "")


def _brief(answer: Value) -> str:
    return "None" if answer is None else f"of type {type(answer).__name__}"


def _unknown(name: str) -> str:
    known = [e.name for slug in chapters() for e in exercises_of(slug)]
    close = " or ".join(f"check({n})" for n in get_close_matches(name, known, 3, 0.6))
    whole = f"Pass the function or class itself: {close}" if close else _SAY_WHICH
    return f"no exercise is called {name!r}. {whole}"


_SAY_WHICH = "Say which one it answers: check(answer, 'name of the exercise')"


def newest_verdict(
    answer: Value, name: str, step: str = "", **options: Any
) -> tuple[Verdict, bool]:
    """The verdict on an answer, which says so if a newer cell holds another that is not in use;
    and whether that cell has failed, so that nothing is judged. Raises what `verdict_on` raises."""
    own = getattr(answer, "__name__", name)
    told, failed = (is_exercise(name) and definition_not_in_use(own, answer)) or ("", False)
    if failed:
        return no_marks(find_exercise(name)[1], MISSING, told), True
    verdict = verdict_on(answer, name, step, **options)
    return replace(verdict, remark=" ".join(filter(None, (told, verdict.remark))) or None), False


def _wrong_helper(answer: Value, verdict: Verdict) -> Verdict | None:
    """The verdict on the first wrong answer to another exercise that a wrong answer calls."""
    if verdict.verdict in (CORRECT, MISSING, TIMEOUT):
        return None
    name = verdict.exercise.partition(".")[0]
    slug, _ = find_exercise(name)
    others = {e.name for e in exercises_of(slug)} - {name}
    for name, helper in named_by(answer):
        if name in others:
            others.remove(name)
            found = verdict_on(helper, name)
            if found.verdict != CORRECT:
                return found
    return None


def _ready_made(verdict: Verdict) -> str | None:
    """Why grading would withhold the points: a ready-made answer was used."""
    if not (verdict.score and verdict.forbidden_operations):
        return None
    return (
        f"It runs {describe_operations(verdict.forbidden_operations)}. In this exercise you write "
        "that yourself: when it is graded, the points are withheld until a person has looked at "
        "the answer."
    )


def _named_in(caller: FrameType) -> tuple[str | None, bool]:
    """The name in the parentheses of the call, as in `check(softmax)`, if it is an exercise; and
    whether that is called itself, as in `check(softmax(x))`."""
    call = call_in(caller)
    given = call.args[0] if call and call.args else None
    called = isinstance(given, ast.Call)
    given = given.func if isinstance(given, ast.Call) else given
    name = given.id if isinstance(given, ast.Name) else ""
    return (name, called) if is_exercise(name) else (None, False)


def _show(verdict: Verdict, advice: str | None, said: CapturedOutput) -> None:
    table = table_text(verdict, advice, below=int(said.has_warning))
    text = table + said.as_text(room=MOST_LINES - len(table.splitlines()))
    show(text, lambda: table_html(verdict, advice) + said.as_html())
