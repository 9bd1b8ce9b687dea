"""A notebook in an archive, and which of several counts.

TRUST BOUNDARY. Names come from outside; they are compared here, and shown by `shown`.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from autograder.lms.record import Origin
from autograder.lms.system import ArchiveEntry
from autograder.notebook.archive import Member, shown

LESS = "its answers are as they were released, and the archive has one with answers"


@dataclass(frozen=True)
class CollectedNotebook:
    """A notebook in an archive: whose, which, and when it came, if that is known."""

    entry: ArchiveEntry
    assignment: str
    member: Member
    effort: int  # see `notebook.effort`
    moment: datetime | None = None
    stated_time: str = ""  # a time that cannot be read


def newness(found: CollectedNotebook) -> tuple[int, bool, float, int, bool, tuple[int, str]]:
    """Sort a student's notebooks: by effort, by time, by Canvas's number, by name."""
    one = found.entry
    copies = re.findall(r"(?:-|\((?=\d+\)))(\d{1,4})\)?\.ipynb$", one.filename)
    moment = found.moment.timestamp() if found.moment else 0.0
    exact = one.filename == f"{found.assignment}.ipynb" or bool(copies)
    return (
        found.effort,
        not one.filename.casefold().endswith(".py"),
        moment,
        one.file_number,
        exact,
        (int(copies[0]) if copies else 0, one.filename),
    )


def why_other(other: CollectedNotebook, best: CollectedNotebook) -> str:
    """Why another notebook of the same student counts in place of this one."""
    taken = shown(best.entry.filename)
    if other.effort < best.effort:
        return f"{LESS}, {taken}"
    if (other.moment, other.entry.file_number) != (best.moment, best.entry.file_number):
        return f"the archive has a newer one, {taken}"
    return f"{taken} was taken, by its name: it is not known which is newer"


def is_older(found: CollectedNotebook, at: datetime | None, before: Origin | None) -> bool:
    """Whether a notebook was handed in before the one that is there, as far as that is known."""
    if found.moment and at:
        return found.moment < at
    numbers = (found.entry.file_number, before.file_number if before else 0)
    return all(numbers) and numbers[0] < numbers[1]
