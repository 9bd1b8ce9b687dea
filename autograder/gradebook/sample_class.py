"""Grades a course's sample class, and compares the marks with those that each student deserves.

A course may have one in `solutions/sample_class`: the slug of its chapter (`SLUG`), what each
student hands in (`submissions`) and deserves (`EXPECTED`).
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import nbformat

from autograder.gradebook.classroom import ClassResult, Progress, grade
from autograder.judge.judgement import GRADED
from autograder.student import course

_SAMPLE = "solutions.sample_class"
CELL_SECONDS, PROBE_SECONDS = 12.0, 6.0  # so that its endless loop does not cost minutes


# --- What each deserves ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpectedMarks:
    """The marks that a sample student deserves, the mistakes to be named, and the reasoning."""

    why: str
    marks: Mapping[str, float]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    status: str = GRADED

    @property
    def score(self) -> float:
        return round(sum(self.marks.values()), 6)


@cache
def sample() -> ModuleType:
    """The course's sample class. Raises `ValueError` if it has none."""
    course.package()  # lets it be found
    if find_spec(_SAMPLE) is None:
        raise ValueError(f"{course.contents().TITLE} has no sample class")
    return import_module(_SAMPLE)


def make_sample_class(release_dir: Path, dest: Path) -> list[Path]:
    """Write the sample class under `dest`/submitted; return the students' folders.

    Files that are already up to date are left unchanged. Raises `FileNotFoundError` if the
    chapter is not released.
    """
    found = sorted(Path(release_dir).glob(f"*_{sample().SLUG}/*_{sample().SLUG}.ipynb"))
    if not found:
        raise FileNotFoundError(f"no released notebook of {sample().SLUG} in {release_dir}")
    assignment = found[0].stem
    files = sample().submissions(nbformat.read(found[0], as_version=4))
    places = []
    for name in sample().EXPECTED:
        place = dest / "submitted" / name
        folder = place / assignment
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{assignment}{' (1)' * (name in sample().DOWNLOADED_TWICE)}.ipynb"
        data = files.get(name)
        if data is not None and not (path.is_file() and path.read_bytes() == data):
            path.write_bytes(data)
        places.append(place)
    strays = {p for p in (dest / "submitted").iterdir() if p.name not in sample().EXPECTED}
    for stray in strays:
        shutil.rmtree(stray)
    return places


# --- Grading it -----------------------------------------------------------------------------------


def grade_sample(
    release_dir: Path, dest: Path, *, jobs: int | None = None, progress: Progress | None = None
) -> ClassResult:
    """Make the sample class in `dest` and grade it there.

    It starts afresh if graded cells have been added or removed since it was made: nbgrader's
    gradebook keeps the cells that its submissions have.
    """
    note, cells = dest / "cells.txt", _graded_cells(release_dir)
    if dest.is_dir() and not (note.is_file() and note.read_text(encoding="utf-8") == cells):
        shutil.rmtree(dest)
    make_sample_class(release_dir, dest)
    note.write_text(cells, encoding="utf-8")
    return grade(
        dest / "submitted",
        jobs=jobs,
        release=release_dir,
        cell_seconds=CELL_SECONDS,
        probe_seconds=PROBE_SECONDS,
        progress=progress,
    )


def _graded_cells(release_dir: Path) -> str:
    """The names of the cells that are graded, and their points, a line each."""
    found = [
        cell.metadata["nbgrader"]
        for path in sorted(Path(release_dir).glob(f"*_{sample().SLUG}/*_{sample().SLUG}.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    ]
    return "".join(f"{cell['grade_id']} {cell['points']}\n" for cell in found)


def compare(result: ClassResult) -> dict[str, list[str]]:
    """By student, how the marks differ from those deserved; an empty list if they agree."""
    rows = {row.student: row for row in result.rows}
    told: dict[str, list[str]] = {}
    for name, deserved in sample().EXPECTED.items():
        row = rows.get(name)
        if row is None:
            told[name] = ["was not graded"]
            continue
        told[name] = [] if row.status == deserved.status else [f"{row.status}: {row.reason}"]
        for exercise, points in deserved.marks.items():
            mark = row.marks.get(f"check_{exercise}")
            given = mark.score if mark else None
            if given is None or abs(given - points) > 1e-9:
                told[name].append(f"{exercise}: {given} instead of {points:g}")
            named = row.verdicts[exercise].mistake if exercise in row.verdicts else None
            wanted = deserved.mistakes.get(exercise)
            if wanted and named != wanted:
                told[name].append(f"{exercise}: named {named} instead of {wanted}")
    return told
