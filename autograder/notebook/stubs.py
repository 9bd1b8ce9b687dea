"""What a student sees of a reference: its source with the solution taken out.

The page and the notebook both show this. In the notebook, nbgrader's `ClearSolutions` does the
clearing; `clear` gives exactly the same result, and a test compares the two.
"""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from autograder.student import course

BEGIN = "BEGIN SOLUTION"
END = "END SOLUTION"
CODE_STUB = "raise NotImplementedError"
TEXT_STUB = "*Write your answer here.*"
INSTRUCTOR = "instructor"  # the tag of a cell that students do not get


def source(slug: str, name: str) -> str:
    """The whole source of one reference, solution included. For instructors' eyes.

    Raises `ModuleNotFoundError` for an unknown chapter, `LookupError` for an unknown name.
    """
    course.package()  # so that its references can be imported
    module = import_module(f"solutions.{slug}")
    reference: Any = getattr(module, name, None)
    if getattr(reference, "__module__", None) != module.__name__:
        raise LookupError(f"solutions/{slug}.py defines no {name}")
    return inspect.getsource(reference).rstrip("\n")


def stub(reference: Callable) -> str:
    """Signature, docstring and `raise NotImplementedError`: the source without the solution."""
    return clear(inspect.getsource(reference)).rstrip("\n")


def clear(text: str) -> str:
    """Replace each solution by the code stub. Raises `ValueError` for unpaired marks."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        if BEGIN in line or END in line:
            if (BEGIN in line) == inside:
                raise ValueError(f"unpaired solution mark: {line.strip()}")
            inside = not inside
            if inside:
                kept.append(line[: len(line) - len(line.lstrip())] + CODE_STUB)
        elif not inside:
            kept.append(line)
    if inside:
        raise ValueError(f"no {END} after the last {BEGIN}")
    return "\n".join(kept)


def solution_lines(text: str) -> Iterator[str]:
    """The lines that `clear` removes, without indentation, comments and blank lines."""
    inside = False
    for line in text.split("\n"):
        if BEGIN in line or END in line:
            inside = BEGIN in line
        elif inside and (code := line.split("  #")[0].strip()) and not code.startswith("#"):
            yield code
