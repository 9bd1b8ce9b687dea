"""`check(answer)`: tells a student at once what is right, what is wrong, and why.

TRUST BOUNDARY. This runs in the student's own process, for the student's own use. Its result does
not count when grading, where the judge repeats the runs with fresh inputs, from another process.
"""

import ast
import dis
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from difflib import get_close_matches
from time import perf_counter
from types import CodeType
from typing import Any

from autograder.device import device
from autograder.engine.probe import probe
from autograder.engine.records import on_device
from autograder.engine.runs import SECONDS
from autograder.engine.settings import as_fresh
from autograder.engine.verdict import CORRECT, MISSING, Verdict, decide, operations_told, withheld
from autograder.exercises import chapters, exercises_of, find_exercise
from autograder.expected import entry_of, fixed_digest, fixed_runs
from autograder.expected.fingerprints import same_runs
from autograder.table import headline, table_html, table_text


def check(answer: Any, exercise: str | None = None) -> None:
    """Check an answer, show a table of what is right and wrong, and raise if something is wrong.

    `answer` is the function or class itself, not its result: `check(softmax)`. `exercise` names
    the exercise if neither the call nor the answer's own name does. A class that is written in
    steps can be checked step by step: `check(Transformer.embed)`. Raises `AssertionError` unless
    the answer earns full marks, `ValueError` if no exercise has that name.
    """
    if isinstance(answer, str) and exercise is None:
        raise _short(ValueError(f"pass the answer itself, without quotes: check({answer[:40]})"))
    name, called = _name_in_call()
    if called and exercise is None and not callable(answer):
        raise _short(ValueError(f"pass the answer itself, without the parentheses: check({name})"))
    named = getattr(answer, "__name__", None) or type(answer).__name__
    owner, step = _step_of(answer)
    if step and exercise is None:
        answer = owner
        verdict = verdict_on(owner, owner.__name__, step, pointing=True)
    else:
        verdict = verdict_on(answer, str(exercise or name or named), pointing=True)
    helper = _wrong_helper(answer, verdict)
    advice = helper and _FIX_FIRST.format(helper.exercise)
    if helper:
        verdict = replace(verdict, pointer=None)
    if helper and not (helper.aspects[0].passed and verdict.cause):
        verdict = replace(
            verdict, mistake=None, cause=None, besides=None, guess=None
        )  # which lies there, not in this answer
    _show(verdict, _ready_made(verdict) or advice)
    if verdict.verdict != CORRECT:
        raise _short(AssertionError(f"{headline(verdict)} (see above)"))


_SLOW = (
    "The calls took {:.3g} s. When it is graded, they have {:g} s together, and what is not "
    "reached by then earns nothing."
)
_FIX_FIRST = "It calls your {}, which does not pass its own check: fix that first."


@as_fresh()
def verdict_on(answer: Any, name: str, step: str = "", *, pointing: bool = False) -> Verdict:
    """The verdict on an answer for the fixed inputs, or on one step of it.

    With `pointing`, it says where a wrong answer goes astray, if that can be told. Raises
    `ValueError` for an unknown name.
    """
    try:
        slug, exercise = find_exercise(name)
    except KeyError:
        raise _short(ValueError(_unknown(name))) from None
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
        return withheld(exercise, MISSING, note)
    if runs[0][0].init and not isinstance(answer, type) and type(answer).__name__ == name:
        note = f"Pass the class itself, not an instance of it: check({name})."
        return withheld(exercise, MISSING, note)
    known = entry.mistakes
    reference = entry.reference
    if step:
        rows = [i for i, aspect in enumerate(exercise.aspects) if aspect.step == step]
        exercise = replace(
            exercise, name=f"{name}.{step}", aspects=tuple(exercise.aspects[i] for i in rows)
        )
        runs, reference = [runs[i] for i in rows], [reference[i] for i in rows]
        known = [replace(m, records=[m.records[i] for i in rows]) for m in known]
    where = _where()
    started = perf_counter()
    records = [[probe(answer, run, where, exercise.watched) for run in row] for row in runs]
    seconds = perf_counter() - started
    expected = [[on_device(record, where) for record in row] for row in reference]
    verdict = decide(exercise, runs, records, expected, lambda: known)
    if seconds > SECONDS:
        remarks = filter(None, (verdict.remark, _SLOW.format(seconds, SECONDS)))
        verdict = replace(verdict, remark=" ".join(remarks))
    if pointing and verdict.verdict != CORRECT:
        from autograder.pointing import pointer

        found = pointer(answer, verdict, runs, records, expected, where)
        verdict = replace(verdict, pointer=found)
    return verdict


def _where() -> str:
    try:
        return str(device())
    except ModuleNotFoundError:  # a course may do without torch
        return "cpu"


def _step_of(answer: Any) -> tuple[Any, str]:
    """The class that a method belongs to and its name, if the method has a check of its own."""
    name, _, method = getattr(answer, "__qualname__", "").rpartition(".")
    owner = getattr(answer, "__globals__", {}).get(name)
    try:
        steps = find_exercise(name)[1].steps()
    except KeyError:
        return None, ""
    return (owner, method) if isinstance(owner, type) and method in steps else (None, "")


def _brief(answer: Any) -> str:
    return "None" if answer is None else f"of type {type(answer).__name__}"


def _unknown(name: str) -> str:
    known = [e.name for slug in chapters() for e in exercises_of(slug)]
    close = get_close_matches(name, known, 3, 0.6)
    calls = " or ".join(f"check({n})" for n in close) or "one of " + ", ".join(known)
    return f"no exercise is called {name!r}. Pass the function or class itself: {calls}"


def _wrong_helper(answer: Any, verdict: Verdict) -> Verdict | None:
    """The verdict on the first wrong answer to another exercise that a wrong answer calls."""
    if verdict.verdict in (CORRECT, MISSING):
        return None
    name = verdict.exercise.partition(".")[0]
    slug, _ = find_exercise(name)
    others = {e.name for e in exercises_of(slug)} - {name}
    for name, helper in _called(answer):
        if name in others and callable(helper):
            with redirect_stdout(io.StringIO()):
                found = verdict_on(helper, name)
            if found.verdict != CORRECT:
                return found
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
        for name in dict.fromkeys(_globals_used(code)) if code else ():
            if name in scope:
                yield name, scope[name]


def _globals_used(code: CodeType) -> Iterator[str]:
    """The global names that code looks up: not `GRUCell` where it says `nn.GRUCell`."""
    looks_up = ("LOAD_GLOBAL", "LOAD_NAME")
    return (step.argval for step in dis.get_instructions(code) if step.opname in looks_up)


def _name_in_call() -> tuple[str | None, bool]:
    """The name in the parentheses of the call, as in `check(softmax)`, if it is an exercise; and
    whether that is called itself, as in `check(softmax(x))`."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    try:
        info = inspect.getframeinfo(caller, context=1)
        line = "".join(info.code_context or [])
    except (OSError, TypeError, IndexError):
        return None, False
    finally:
        del frame, caller
    found = re.search(r"\bcheck\(\s*([A-Za-z_]\w*)\s*([,()])", line)
    if found is None:
        return None, False
    try:
        ast.parse(found[1], mode="eval")
        find_exercise(found[1])
    except (SyntaxError, KeyError):
        return None, False
    return found[1], found[2] == "("


def _show(verdict: Verdict, advice: str | None = None) -> None:
    text = table_text(verdict, advice)
    display = _notebook_display()
    if display is None:
        _print(text)
    else:
        display({"text/html": table_html(verdict, advice), "text/plain": text}, raw=True)


# What a console that cannot show a character gets instead.
_PLAIN = {
    "✓": "+",
    "✗": "X",
    "–": "-",
    "−": "-",
    "…": "...",
    "“": '"',
    "”": '"',
    "·": "*",
    "×": "x",
    "√": "sqrt ",
    "∞": "inf",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "½": "1/2",
    "¼": "1/4",
    "ᵀ": "^T",
    "²": "^2",
    "³": "^3",
    "±": "+-",
    "→": "->",
    "α": "alpha",
    "ε": "eps",
    "σ": "sigma",
    "μ": "mu",
    "θ": "theta",
    "Φ": "Phi",
    "ℓ": "l",
}


def _print(text: str) -> None:
    """Print a table, even where the console has no UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = "".join(_fitting(c, encoding) for c in text)
    print(text)


def _fitting(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return _PLAIN.get(character, "?")
    return character


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
