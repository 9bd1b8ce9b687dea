"""`check(answer)`: tells a student at once what is right, what is wrong, and why.

TRUST BOUNDARY. This runs in the student's own process, for the student's own use. Its result does
not count when grading, where the judge repeats the runs with fresh inputs, from another process.
"""

import ast
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from difflib import get_close_matches
from typing import Any

from autograder.device import device
from autograder.engine.probe import probe
from autograder.engine.records import on_device
from autograder.engine.verdict import CORRECT, MISSING, Verdict, decide, operations_told, withheld
from autograder.exercises import chapters, exercises_of, find_exercise
from autograder.expected import digest, expected_of, fixed_runs
from autograder.table import headline, table_html, table_text


def check(answer: Any, exercise: str | None = None) -> None:
    """Check an answer, show a table of what is right and wrong, and raise if something is wrong.

    `answer` is the function or class itself, not its result: `check(softmax)`. `exercise` names
    the exercise if neither the call nor the answer's own name does. Raises `AssertionError` unless
    the answer earns full marks, `ValueError` if no exercise has that name.
    """
    if isinstance(answer, str) and exercise is None:
        raise _short(ValueError(f"pass the answer itself, without quotes: check({answer[:40]})"))
    named = getattr(answer, "__name__", None) or type(answer).__name__
    verdict = verdict_on(answer, str(exercise or _name_in_call() or named))
    advice = _ready_made(verdict) or _advice(answer, verdict)
    _show(verdict, advice)
    if verdict.verdict != CORRECT:
        why = verdict.cause or verdict.note or advice
        raise _short(AssertionError(headline(verdict) + (f". {why}" if why else "")))


def verdict_on(answer: Any, name: str) -> Verdict:
    """The verdict on an answer for the fixed inputs. Raises `ValueError` for an unknown name."""
    try:
        slug, exercise = find_exercise(name)
    except KeyError:
        raise _short(ValueError(_unknown(name))) from None
    runs = fixed_runs(exercise)
    entry = expected_of(slug)[name]
    if digest(runs) != entry.digest:
        raise RuntimeError(
            f"the expected values of {name} belong to another version of the exercise: "
            "download the course's files again (authors: run `autograder release`)"
        )
    if not callable(answer):
        kind = "a class" if runs[0][0].init else "a function"
        note = f"{name} is {_brief(answer)}, not {kind}."
        return withheld(exercise, MISSING, note)
    if runs[0][0].init and not isinstance(answer, type) and type(answer).__name__ == name:
        note = f"Pass the class itself, not an instance of it: check({name})."
        return withheld(exercise, MISSING, note)
    where = str(device())
    records = [[probe(answer, run, where, exercise.watched) for run in row] for row in runs]
    expected = [[on_device(record, where) for record in row] for row in entry.reference]
    return decide(exercise, runs, records, expected, lambda: entry.mistakes)


def _brief(answer: Any) -> str:
    return "None" if answer is None else f"of type {type(answer).__name__}"


def _unknown(name: str) -> str:
    known = [e.name for slug in chapters() for e in exercises_of(slug)]
    close = get_close_matches(name, known, 3, 0.6)
    calls = " or ".join(f"check({n})" for n in close) or "one of " + ", ".join(known)
    return f"no exercise is called {name!r}. Pass the function or class itself: {calls}"


def _advice(answer: Any, verdict: Verdict) -> str | None:
    """A note on an answer to another exercise that this one calls and that is wrong itself."""
    if verdict.verdict in (CORRECT, MISSING) or verdict.mistake:
        return None
    slug, _ = find_exercise(verdict.exercise)
    others = {e.name for e in exercises_of(slug)} - {verdict.exercise}
    for name, helper in _called(answer):
        if name in others and callable(helper):
            with redirect_stdout(io.StringIO()):
                found = verdict_on(helper, name)
            if found.verdict != CORRECT:
                return f"It calls your {name}, which does not pass its own check: fix that first."
    return None


def _ready_made(verdict: Verdict) -> str | None:
    """Why grading would withhold the points: a ready-made answer was used."""
    if not (verdict.score and verdict.ran):
        return None
    return (
        f"It runs {operations_told(verdict.ran)}. In this exercise you write that yourself: "
        "when it is graded, the points are withheld until a person has looked at the answer."
    )


def _called(answer: Any) -> Iterator[tuple[str, Any]]:
    """The global names that a function or a class's methods use, and what they refer to."""
    methods = vars(answer).values() if isinstance(answer, type) else [answer]
    for method in methods:
        code, scope = getattr(method, "__code__", None), getattr(method, "__globals__", {})
        for name in code.co_names if code else ():
            if name in scope:
                yield name, scope[name]


def _name_in_call() -> str | None:
    """The name in the parentheses of the call, as in `check(softmax)`, if it is an exercise."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    try:
        info = inspect.getframeinfo(caller, context=1)
        line = "".join(info.code_context or [])
    except (OSError, TypeError, IndexError):
        return None
    finally:
        del frame, caller
    found = re.search(r"\bcheck\(\s*([A-Za-z_]\w*)\s*[,)]", line)
    if found is None:
        return None
    try:
        ast.parse(found[1], mode="eval")
        find_exercise(found[1])
    except (SyntaxError, KeyError):
        return None
    return found[1]


def _show(verdict: Verdict, advice: str | None = None) -> None:
    text = table_text(verdict, advice)
    display = _notebook_display()
    if display is None:
        print(text)
    else:
        display({"text/html": table_html(verdict, advice), "text/plain": text}, raw=True)


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's `display` where there is a front end that shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or type(shell).__name__ == "TerminalInteractiveShell":
        return None
    from IPython.display import display

    return display


def _short(error: Exception) -> Exception:
    """The error, which IPython shows on one line, without the frames of this file."""
    text = f"{type(error).__name__}: {error}"
    error._render_traceback_ = lambda: [text]  # IPython looks for this name
    return error
