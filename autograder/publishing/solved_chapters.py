"""Chapters with their solutions, for students to compare with once nobody may hand in any more.

TRUST BOUNDARY. What is written here holds the references and model answers. It is written only for
chapters whose deadline, with everybody's extension, is over; who publishes it earlier gives the
answers away.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.gradebook.course_file import FILE, CourseFile, read_course
from autograder.notebook.stubs import BEGIN, END, INSTRUCTOR
from autograder.publishing.bookindex import BookIndex
from autograder.publishing.release import chapter_files, instructor_notebook


def release_solved(
    root: Path, wanted: Sequence[str] | None = None, now: datetime | None = None
) -> list[Path]:
    """Write `build/solved/NAME.ipynb` for some chapters (None: all that are over); their paths.

    Raises `ValueError` where a chapter that was asked for, or every one, is not over yet.
    """
    course = read_course(root, [path.stem for path in chapter_files(root)])
    waits = {path: _waits(course, path.stem, now) for path in chapter_files(root, wanted)}
    refused = [told for told in waits.values() if told]
    if refused and (wanted is not None or len(refused) == len(waits)):
        raise ValueError(refused[0])
    book, written = BookIndex(root), []
    for path in (path for path, told in waits.items() if not told):
        made = root / "build" / "solved" / f"{path.stem}.ipynb"
        made.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(without_grading(instructor_notebook(path, book)), made)
        written.append(made)
    return written


def _waits(course: CourseFile, name: str, now: datetime | None) -> str | None:
    """Why the solutions of a chapter are not to be released yet."""
    if name not in course.due:
        return f"{name} has no deadline in {FILE} ([due]): its solutions are released after one"
    extensions = (p.extension.get(name, timedelta()) for p in course.people.values())
    last = course.due[name] + max(extensions, default=timedelta())
    if (now or datetime.now(UTC)) >= last:
        return None
    return (
        f"{name} can be handed in until {last.astimezone(course.zone):%Y-%m-%d %H:%M}, says {FILE}"
    )


def without_grading(notebook: NotebookNode) -> NotebookNode:
    """An instructor's notebook as one to read: nothing in it is marked for grading."""
    cells = [cell for cell in notebook.cells if INSTRUCTOR not in cell.metadata.get("tags", ())]
    for cell in cells:
        lines = cell.source.split("\n")
        cell.source = "\n".join(line for line in lines if BEGIN not in line and END not in line)
        cell.metadata.pop("nbgrader", None)
    notebook.cells = cells
    return notebook
