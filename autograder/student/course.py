"""Which course this is: what it contains, and where.

A course is a folder with a package of its own, whose `course.py` says what the course is (the one
that `autograder new course` makes shows how) and whose `exercises/` what is judged. The
instructor's folder has `solutions/`, `book/` and `notebooks/` beside it. A course counts wherever
work goes on in its folder, where `AUTOGRADER_COURSE` names that, or beside this package.

TRUST BOUNDARY. The folder is the author's. In a sandbox the variable is set by the grader.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.student.engine.runs import Exercise

VARIABLE = "AUTOGRADER_COURSE"
_AUTOGRADER = Path(__file__).resolve().parents[1]


class NoCourse(LookupError):
    """There is no course here. The message says what to do."""


@cache
def folder(name: str = "") -> Path:
    """The folder of the course's package, or one inside. Raises `NoCourse`."""
    return _package() / name


@cache
def _package() -> Path:
    named = os.environ.get(VARIABLE)
    if named:
        found = _package_in(Path(named).resolve())
        if found is None:
            raise NoCourse(f"{VARIABLE} is {named}, where there is no course")
        return found
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it has been removed
        here = Path("/")
    places = (here, *here.parents, _AUTOGRADER.parent)
    found = next(filter(None, map(_package_in, places)), None)
    if found is None:
        raise NoCourse(
            f"there is no course here: go to a course's folder, or name it in {VARIABLE} "
            "(`autograder new course` begins one)"
        )
    return found


def _package_in(root: Path) -> Path | None:
    found = (path.parent for path in sorted(root.glob("*/course.py")))
    return next((path for path in found if (path / "exercises" / "__init__.py").is_file()), None)


def root() -> Path:
    """The course's folder. Raises `NoCourse`."""
    return folder().parent


@cache
def package() -> str:
    """The name of the course's package, which can be imported from now on; empty without one."""
    try:
        folder()
    except NoCourse:
        return ""
    if str(root()) not in sys.path:
        sys.path.insert(0, str(root()))  # no package brings `solutions`
    return folder().name


@cache
def contents() -> ModuleType:
    """What the course is: its `course.py`. Raises `NoCourse`."""
    folder()
    return import_module(f"{package()}.course")


def is_ours(path: str) -> bool:
    """Whether a source file belongs to the grader, or to the course's package."""
    return path.startswith(_ours())


@cache
def _ours() -> tuple[str, ...]:
    folders = (_AUTOGRADER, folder()) if package() else (_AUTOGRADER,)
    return tuple(os.path.join(path, "") for path in folders)


def variable(name: str) -> str:
    """The environment variable of a setting that students may change."""
    prefix = getattr(contents(), "VARIABLES", "AUTOGRADER") if package() else "AUTOGRADER"
    return f"{prefix}_{name}"


def modules_of_exercises() -> Iterator[str]:
    """The names of all modules that declare exercises, or help to."""
    places = [(_AUTOGRADER, "student/authoring")]
    places += [(folder(), "exercises")] if package() else []
    for above, inside in places:
        for path in (above / inside).rglob("*.py"):
            yield ".".join((above.name, *path.relative_to(above).with_suffix("").parts))


@cache
def blocks() -> str:
    """The module with what stands in for answers that are not right yet; empty without one."""
    return contents().BLOCKS if package() else ""


@cache
def chapters() -> tuple[str, ...]:
    """The slugs of the chapters that have exercises, in the book's order."""
    there = folder("exercises")
    return tuple(slug for slug in contents().CHAPTERS if (there / slug / "__init__.py").is_file())


def exercises_of(slug: str) -> "tuple[Exercise, ...]":
    """The exercises of one chapter. Raises `ValueError` for a slug that is none."""
    if slug not in chapters():
        raise ValueError(f"no chapter {slug!r}; there are {', '.join(chapters())}")
    return import_module(f"{package()}.exercises.{slug}").EXERCISES


def is_exercise(name: str) -> bool:
    """Whether some chapter asks for an answer of that name."""
    return any(exercise.name == name for slug in chapters() for exercise in exercises_of(slug))


def find_exercise(name: str) -> "tuple[str, Exercise]":
    """The slug and the exercise of a name. Raises `KeyError` where no chapter asks for it."""
    for slug in chapters():
        for exercise in exercises_of(slug):
            if exercise.name == name:
                return slug, exercise
    raise KeyError(name)
