"""Answers written as a student's file is, and where the pointer sees them go astray."""

import itertools
import linecache
import textwrap
from typing import Any

from autograder.student import pointing

HEAD = "import math\nimport numpy as np\nimport torch\nfrom torch import nn\n"
_COUNT = itertools.count()


def written(source: str, name: str, more: str = "") -> Any:
    """What a file of a student's defines; its source can be looked up, as a notebook's cell can."""
    text = HEAD + more + textwrap.dedent(source)
    file = f"<a student's file {next(_COUNT)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "answer"}
    exec(compile(text, file, "exec"), names)
    return names[name]


def pointed(source: str, name: str, more: str = "") -> str:
    """The pointer of a wrong answer, as if no mistake had a name."""
    return pointing.pointer_on(written(source, name, more), name) or ""
