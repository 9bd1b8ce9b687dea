"""Which of our modules a set of files needs, followed from import to import.

The book that comes with this package has pictures, models and data of its own beside the engine.
What students of another course download leaves out whatever none of its code imports.

TRUST BOUNDARY. Reads our own files and the course's, and runs none of them.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.judge.names import parse

PACKAGE = "autograder"


def imports_of(source: str) -> set[str]:
    """The modules, or names in modules, that a text in Python imports, wherever in it.

    Raises `SyntaxError` if it is not Python; IPython's own lines count as empty.
    """
    found = set()
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def needed(sources: Iterable[str], files: Mapping[str, Path]) -> set[str]:
    """The keys of those `files` that texts in Python import, or that these import in turn.

    Keys are paths inside the package, "engine/runs.py". A module's packages are imported with it.
    """
    found: set[str] = set()
    waiting = [*sources]
    while waiting:
        for name in imports_of(waiting.pop()):
            top, *parts = name.split(".")
            if top != PACKAGE:
                continue
            folders = ["/".join([*parts[:i], "__init__.py"]) for i in range(len(parts) + 1)]
            modules = [f"{'/'.join(parts[:i])}.py" for i in range(1, len(parts) + 1)]
            for key in {*folders, *modules} & files.keys() - found:
                found.add(key)
                waiting.append(files[key].read_text(encoding="utf-8"))
    return found
