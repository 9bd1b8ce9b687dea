"""`check.all()` and `check.hint(softmax)`: how far a notebook is, and what helps next.

TRUST BOUNDARY. This runs in the student's own process, for the student's own use. Nothing that it
tells counts when grading.
"""

import sys
from collections.abc import Mapping
from html import escape
from textwrap import shorten
from traceback import walk_tb
from typing import TYPE_CHECKING

from autograder.student import course
from autograder.student.captured_output import STYLE, CapturedOutput
from autograder.student.check import newest_verdict
from autograder.student.console import notebook, on_one_line, show
from autograder.student.course import chapters, exercises_of, find_exercise, is_exercise
from autograder.student.engine.arrays import Value
from autograder.student.engine.verdict import CORRECT, WRONG, Verdict
from autograder.student.source import remember_failure
from autograder.student.table import headline, number

if TYPE_CHECKING:
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

_TOLD: dict[str, int] = {}  # hints so far, by exercise


def check_all() -> None:
    """Check all answers of a notebook; show the points so far, what is next and what is unwritten.

    It shows no reasons, which `check(softmax)` does, and raises nothing about wrong answers.
    """
    answers = _answers(sys._getframe(1).f_globals)
    slug = max(chapters(), key=lambda slug: sum(e.name in answers for e in exercises_of(slug)))
    exercises = exercises_of(slug)
    given = {e.name: _quietly(answers[e.name], e.name)[0] for e in exercises if e.name in answers}
    rows = []
    for exercise in exercises:
        verdict = given.get(exercise.name)
        mark = "✓" if verdict and verdict.verdict == CORRECT else "✗"
        told = headline(verdict) + _state(verdict) if verdict else f"{exercise.name}: not there yet"
        rows.append(f"{mark} {told}")
    score = number(sum(verdict.score for verdict in given.values()))
    points = number(sum(exercise.points for exercise in exercises))
    rows.append(f"{score} of {points} points so far; a person reads the written questions.")
    wrong = [e.name for e, row in zip(exercises, rows, strict=False) if row[0] == "✗"]
    rows.append(f"Next: {wrong[0]}." if wrong else "All of it is right.")
    _tell("\n".join(rows))


def shorten_missing_name_errors() -> None:
    """From now on, a notebook's cell that needs what is not there fails on one line: an exercise
    that is not written or not defined yet, or a library that is not installed."""
    shell = notebook()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NotImplementedError, NameError, ModuleNotFoundError), _lacking)
        shell.events.register("post_run_cell", remember_failure)


def _lacking(
    shell: "InteractiveShell",
    kind: type,
    error: BaseException,
    trace: "TracebackType",
    tb_offset: int | None = None,
) -> None:
    frame = [frame for frame, _ in walk_tb(trace)][-1]
    here = frame.f_code.co_qualname.partition(".")[0]
    name = getattr(error, "name", None) or ""
    told = None
    if isinstance(error, NotImplementedError):
        told = f"{here} is not written yet" if is_exercise(here) and not error.args else None
    elif frame.f_globals is shell.user_global_ns:
        if isinstance(error, ModuleNotFoundError) and "." not in name:
            told = f"{name} is not installed: cells that need it fail, all others run without it"
        elif is_exercise(name) and str(error).endswith("is not defined"):
            told = f"{error}: the cell that defines it has not run, or has failed"
    error = on_one_line(kind(told)) if told else error
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _answers(scope: Mapping[str, Value]) -> dict[str, Value]:
    """The answers in a namespace: the course's own blocks are none."""
    names = {exercise.name for slug in chapters() for exercise in exercises_of(slug)}
    return {
        name: scope[name]
        for name in names & scope.keys()
        if not str(getattr(scope[name], "__module__", "")).startswith(f"{course.package()}.")
    }


def _quietly(answer: Value, name: str) -> tuple[Verdict, bool]:
    try:
        with CapturedOutput().silence():
            return newest_verdict(answer, name)
    except KeyboardInterrupt as stopped:
        raise on_one_line(KeyboardInterrupt(str(stopped) or "check was stopped")) from None


def _state(verdict: Verdict) -> str:
    """Why an answer has not all points, in a few words."""
    if verdict.verdict == CORRECT:
        return f" ({_brief(verdict.remark)})" if verdict.remark else ""
    if verdict.verdict == WRONG:
        passed = sum(aspect.passed for aspect in verdict.aspects)
        return f" ({passed} of {len(verdict.aspects)} checks pass)"
    return f" ({_brief(verdict.note)})"


def _brief(note: str | None) -> str:
    return shorten((note or "").partition(". ")[0], 90, placeholder=" …").rstrip(".")


def hint(answer: Value, exercise: str | None = None) -> None:
    """Tell the next hint for an answer: one more each time, of those for what fails, in order."""
    own: str = getattr(answer, "__name__", type(answer).__name__)
    name = exercise or own
    verdict, failed = _quietly(answer, name)
    if failed:
        _tell(f"{name}: {verdict.note}")
        return
    pairs = zip(find_exercise(name)[1].aspects, verdict.aspects, strict=True)
    hints = {a.hint: a.title for a, v in pairs if a.hint and not v.passed}
    if not hints:
        _tell(f"{headline(verdict)}: there is no hint left.")
        return
    at = _TOLD.get(name, 0) % len(hints)
    _TOLD[name] = at + 1
    text, title = [*hints.items()][at]
    _tell(f"{name}, hint {at + 1} of {len(hints)}, on “{title}”: {text}")


def _tell(text: str) -> None:
    show(text, lambda: f'<pre style="{STYLE};white-space:pre-wrap">{escape(text)}</pre>')
