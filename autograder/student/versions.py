"""What an answer uses that is missing where it is graded: newer syntax, names of another NumPy.

Which versions grade is written into the archive that students get; without that file, nothing is
known of them, and nothing is said.

TRUST BOUNDARY. This runs in the student's own process, for `check`.
"""

import ast
import json
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.student.engine.arrays import Value
from autograder.student.newer_syntax import newer_line
from autograder.student.source import functions_of, named_by

FILE = Path(__file__).with_name("graded_with.json")


def versions_here() -> dict[str, object]:
    """The versions of Python and NumPy that run here, and NumPy's public names."""
    import numpy as np

    names = [name for name in dir(np) if not name.startswith("_")]
    return {"python": sys.version_info[:2], "numpy": np.__version__, "names": names}


def missing_where_graded(answer: Value) -> str | None:
    """What of an answer, or of its cells, does not run with the versions that grade it."""
    if not FILE.is_file():
        return None
    graded = json.loads(FILE.read_text(encoding="utf-8"))
    python = "Python " + ".".join(map(str, graded["python"]))
    own = [thing for _, thing in named_by(answer) if _module(thing) == _module(answer)]
    functions = [f for thing in (answer, *own) for f in functions_of(thing)]
    for file in dict.fromkeys(function.__code__.co_filename for function in functions):
        text = "".join(linecache.getlines(file))
        if sys.version_info[:2] > (*graded["python"],):
            line = newer_line(text, (*graded["python"],))
            if line:
                shown = text.splitlines()[line - 1].strip()
                return f"It is graded with {python}, which does not understand this line: {shown}"
        for function in functions:
            if function.__code__.co_filename == file:
                for name in _names_of_numpy(text, function.__globals__):
                    if name not in graded["names"]:
                        numpy = f"NumPy {graded['numpy']}"
                        return f"It is graded with {numpy}, which has no `{name}`."
    return None


def _module(thing: Value) -> object:
    return getattr(thing, "__module__", None)


def _names_of_numpy(text: str, scope: dict[str, object]) -> Iterator[str]:
    """The public names of NumPy that a text uses, which are there in the NumPy that runs."""
    import numpy as np

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if scope.get(node.value.id) is np and hasattr(np, node.attr):
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
            yield from (alias.name for alias in node.names if alias.name != "*")
