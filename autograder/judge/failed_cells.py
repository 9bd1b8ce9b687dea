"""Cells that fail: what they import and is not here costs them only that.

TRUST BOUNDARY. Trusted code of the judging process. What a cell says it raised may be forged: it
decides only which of the student's own statements run, and what the verdict says beside the marks.
"""

import ast
import re
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from autograder.judge.runner import CellFailure, Runner, died
from autograder.notebook.names import in_their_lines, parse
from autograder.notebook.reading import conflict_in
from autograder.sandbox.outputs import Output, clean
from autograder.student.engine.verdict import CORRECT, Verdict

_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_CHANGING = ("numpy", "torch")  # which drop names
_OF_A_VERSION = re.compile(
    rf"SyntaxError|module '({'|'.join(_CHANGING)})[\w.]*' has no attribute|"
    rf"cannot import name '\w+' from '({'|'.join(_CHANGING)}|typing)\b"
)
_OTHERS = "(Files beside the one handed in are not read.)"
_LINE = 160  # characters of what a cell raised


class MissingModules:
    """What a submission's cells lack: the names they import from missing packages, and the first
    cell that failed."""

    def __init__(self, notes: list[str]):
        self.notes, self.names, self.first = notes, set[str](), ""

    def execute(self, runner: Runner, source: str) -> tuple[list[Output], CellFailure | None]:
        """Run a cell; what lacks a package in it is passed over, and the rest is run."""
        outputs, failure = runner.execute(source)
        try:
            statements = in_their_lines(source) if failure is not None and not died(failure) else []
        except SyntaxError:
            statements = []
        while statements and failure is not None and self._lacks(failure, statements):
            failure = None
            while statements and failure is None:
                more, failure = runner.execute(statements[0])
                outputs = [*outputs, *more]
                if failure is None:
                    del statements[0]
        if failure is not None and "SyntaxError" in failure.note and (wrong := conflict_in(source)):
            failure = replace(failure, note=f"The cell {wrong}")
        if failure is not None and not self.first:
            self.first = clean(failure.note.partition(" raised ")[2] or failure.note)[:_LINE]
        return outputs, failure

    def _lacks(self, failure: CellFailure, statements: list[str]) -> bool:
        """Whether a cell failed for want of a package; `statements` are then those left to run."""
        if found := _MISSING.search(failure.note):
            package = found[1]
            wanting = {n for n, text in enumerate(statements) if package in _imported(text)}
            if wanting:
                del statements[: min(wanting)]
                self.names |= _imported(statements[0])[package]
                statements[:1] = _without(package, statements[0])
                note = f"{package} is not here: what needs it was passed over. {_OTHERS}"
                if note not in self.notes:
                    self.notes.append(note)
                return True
        if (found := _UNKNOWN.search(failure.note)) and found[1] in self.names:
            uses = {n for n, text in enumerate(statements) if found[1] in text}
            del statements[: min(uses, default=-1) + 1]
            return bool(uses)
        return False

    def told(self, verdict: Verdict) -> Verdict:
        """The verdict on an answer that lacks a name; it says what failed before, and with which
        versions it is graded where these may be the cause."""
        texts = " ".join(filter(None, [verdict.note, *(a.message for a in verdict.aspects)]))
        found = _UNKNOWN.search(texts)
        lost = verdict.exercise in self.names or bool(found and found[1] in self.names)
        if verdict.verdict != CORRECT and _OF_A_VERSION.search(f"{texts} {self.first}"):
            verdict = replace(verdict, remark=" ".join(filter(None, (verdict.remark, _versions()))))
        if verdict.verdict == CORRECT or not (found or lost):
            return verdict
        packages = [note.partition(" ")[0] for note in self.notes if " is not here: " in note]
        if not lost and not self.first:
            return verdict
        why = f"{', '.join(packages)}: not here. {_OTHERS}" if lost else f"It raised {self.first}"
        text = f"Missing {why}" if lost else f"A cell above had failed first. {why}"
        return replace(verdict, remark=" ".join(filter(None, (verdict.remark, text))))


def _versions() -> str:
    """What grades: a name or syntax of other versions may be missing there."""
    found = [f"Python {sys.version_info[0]}.{sys.version_info[1]}"]
    for name in _CHANGING:
        with suppress(PackageNotFoundError):  # a course may do without
            found.append(f"{name} {version(name).partition('+')[0]}")
    return f"It is graded with {', '.join(found)}."


def _without(package: str, source: str) -> list[str]:
    """What is left of a statement that imports a package: what else its lines import or do."""
    left: list[str] = []
    for node in parse(source).body:
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.partition(".")[0] != package]
            left += [ast.unparse(ast.Import(names))] if names else []
        elif package not in _imported(text := ast.unparse(node)):
            left.append(text)
    return ["\n".join(left)] if left else []


def _imported(source: str) -> dict[str, set[str]]:
    """The packages that a statement imports, and the names that it gives to what is in them."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                found.setdefault(root, set()).add(alias.asname or root)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {alias.asname or alias.name for alias in node.names}
            found.setdefault(node.module.partition(".")[0], set()).update(names)
    return found
