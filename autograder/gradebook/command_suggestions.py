"""Checks what `grade` is called on: unless it is the right folder, an error names the right call.

TRUST BOUNDARY. Names of folders come from outside; they are compared and quoted, never opened.
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from unicodedata import normalize

EXPECTED = "<student>/<assignment>/<assignment>.ipynb"
MANY = 4  # more names than these are not repeated in a sentence


def check_folder(given: Path, release: Path, assignments: Sequence[str]) -> None:
    """Make sure that `given` can be the folder of all submissions.

    Raises `ValueError` with the call that was probably meant.
    """
    here = given.absolute()
    if not given.is_dir():
        raise ValueError(_instead_of_a_folder(given, assignments))
    if here.resolve() == release.resolve():
        what = "holds the released notebooks, not what was handed in"
        raise ValueError(f"{given} {what}: {_call(_parent_of(given) / 'submitted')}")
    if here.name in assignments:
        call = _call(
            _parent_of(_parent_of(given)), "--student", here.parent.name, "--assignment", here.name
        )
        raise ValueError(f"{given} is one submission: {call}")
    inside = {path.name for path in given.iterdir()}
    others = inside - {"submitted", "collected", "returned", release.name}  # as a course has
    if any(os.path.lexists(given / name / a) for name in others for a in assignments):
        return  # whatever else is there, it holds students
    if not inside.isdisjoint(assignments):
        call = _call(_parent_of(given), "--student", here.name)
        raise ValueError(f"{given} is the folder of one student: {call}")
    if (given / "submitted").is_dir():
        raise ValueError(f"{given} is the folder of the course: {_call(given / 'submitted')}")
    if any(name.endswith(".ipynb") for name in inside):
        raise ValueError(f"{given} holds notebooks, but no students: expected {given}/{EXPECTED}")


def _instead_of_a_folder(given: Path, assignments: Sequence[str]) -> str:
    name = given.name
    if given.suffix == ".ipynb" and given.is_file():
        here = given.absolute()
        alone = f"a file on its own: `autograder judge {shlex.quote(str(given))}`"
        if here.parent.name not in assignments:
            return f"{given} is a notebook, not the folder of all submissions; {alone}"
        student, assignment = here.parent.parent.name, here.parent.name
        folder = _parent_of(_parent_of(_parent_of(given)))
        call = _call(folder, "--student", student, "--assignment", assignment)
        return f"{given} is one submission: {call}; {alone}"
    if len(given.parts) == 1 and Path("submitted", name).is_dir():
        return f"no folder {given}; for one student: `autograder grade --student {_quote(name)}`"
    found = assignment_named(name, assignments) if len(given.parts) == 1 else None
    if found:
        return f"no folder {given}; for one chapter: `autograder grade --assignment {found}`"
    there = sorted(p.name for p in given.parent.glob("*/")) if given.parent.is_dir() else []
    close = get_close_matches(name, there, 1)
    if close:
        return f"no folder {given}; did you mean {_call(given.with_name(close[0]))}?"
    return f"no folder {given}: expected the one that holds {EXPECTED}"


def instead_of_many(given: Path, more: Sequence[str], chapters: Sequence[str]) -> str:
    """What a call with more than one folder should have been."""
    names = [Path(word).name for word in more]
    folder = given if given.is_dir() else Path("submitted")
    if given.is_dir() and given.absolute().with_name(names[0]).is_dir():  # `submitted/*`
        folder = given.parent
    if folder != given:
        names = [given.name, *names]
    words: list[object] = [folder]
    for name in names if len(names) <= MANY else ():
        slug = name.partition("_")[2] if name[:1].isdigit() else name
        words += ["--assignment" if slug in chapters else "--student", name]
    return f"`grade` takes one folder, that of all submissions: {_call(*words)}"


def assignment_named(name: str, assignments: Sequence[str]) -> str | None:
    """The assignment with this name or slug."""
    return next((a for a in assignments if name in (a, a.partition("_")[2])), None)


def select(
    asked: Sequence[str] | None, there: Sequence[str], what: str, aliases: bool = False
) -> set[str] | None:
    """Those that were asked for, out of those that are there; None means all.

    Raises `ValueError` for one that is not there.
    """
    if not asked:
        return None
    found = set()
    for name in asked:
        plain = normalize("NFC", name)
        match = assignment_named(plain, there) if aliases else plain if plain in there else None
        if match is None:
            close = get_close_matches(plain, there, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            listed = f"; there are {', '.join(there)}" if aliases else ""
            raise ValueError(f"no {what} {name}{hint or listed}")
        found.add(match)
    return found


def nothing_there(
    folder: Path,
    students: Sequence[str] | None,
    assignments: Sequence[str] | None,
    withdrawn: Iterable[str],
) -> str:
    """Why there is nothing to grade. `withdrawn` are those who were left out for that."""
    left = sorted(set(withdrawn))
    if left:
        return f"nothing to grade: {', '.join(left)} withdrawn, as course.toml says"
    if assignments:
        of_whom = f" of {', '.join(students)}" if students else ""
        return f"nothing to grade: no {', '.join(assignments)}{of_whom} in {folder}"
    return f"nothing to grade: expected {folder}/{EXPECTED}"


def _parent_of(path: Path) -> Path:
    return path / ".." if path.name in ("", "..") else path.parent


def _quote(name: str) -> str:
    return shlex.quote(name)


def _call(*words: object) -> str:
    return "`autograder grade " + " ".join(shlex.quote(str(word)) for word in words) + "`"
