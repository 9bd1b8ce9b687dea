"""Which course this is: the one that comes with this package, or another in a folder of its own.

Another course is a folder with `exercises/contents.py`, which says what it is (that of this package
shows how), `solutions/`, `book/` and `expected/`. It counts wherever work goes on in it, or where
`AUTOGRADER_COURSE` names it. Its exercises are then those in `attention_by_hand.exercises`.

TRUST BOUNDARY. The folder is the author's. In a sandbox the variable is set by the grader.
"""

import os
import sys
from functools import cache
from pathlib import Path

VARIABLE = "AUTOGRADER_COURSE"
HOME = Path(__file__).resolve().parents[1]
ROOMS = ("exercises", "expected")  # of a course, whose public part they are
_MARK = Path("exercises", "contents.py")


@cache
def root() -> Path:
    """The course's folder. Raises `ValueError` if `AUTOGRADER_COURSE` names none."""
    named = os.environ.get(VARIABLE)
    if named:
        if not (Path(named) / _MARK).is_file():
            raise ValueError(f"{VARIABLE} is {named}, where there is no {_MARK}")
        return Path(named).resolve()
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it has been removed
        return HOME
    return next((f for f in (here, *here.parents) if (f / _MARK).is_file()), HOME)


def is_home() -> bool:
    """Whether this is the course that comes with the package."""
    return root() == HOME


def room(name: str) -> Path:
    """The folder of one of the `ROOMS` of the course."""
    return (HOME / "autograder" if is_home() else root()) / name


def make_importable() -> None:
    """Let the course's own `solutions` be found: no package brings them."""
    if (root() / "solutions").is_dir() and str(root()) not in sys.path:
        sys.path.insert(0, str(root()))
