"""The grades as a CSV file that a spreadsheet can open without harm.

TRUST BOUNDARY. Names, addresses and ids in the gradebook come from outside. A field that a
spreadsheet would take for a formula gets an apostrophe in front, and the csv module does the
quoting, so that no field can break out of its column.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin

from autograder.gradebook.course_file import CourseFile, read_course

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "complete",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def escape_formula(value: object) -> str:
    """A field of text, with an apostrophe in front if it could be a formula."""
    text = "" if value is None else str(value)
    risky = text.startswith(FORMULA) or text.lstrip().startswith(FORMULA)
    return "'" + text if risky else text


def rows(
    gradebook: Gradebook, assignments: list, students: list, course: CourseFile
) -> Iterator[list[str]]:
    """One row per assignment and student; an empty list selects all but the withdrawn."""
    for assignment in gradebook.assignments:
        if assignments and assignment.name not in map(str, assignments):
            continue
        for student in gradebook.students:
            chosen = student.id in map(str, students)
            if not chosen and (students or course.withdrawn(student.id)):
                continue
            try:
                found = gradebook.find_submission(assignment.name, student.id)
            except MissingEntry:
                timestamp, raw, penalty, complete = None, 0.0, 0.0, "nothing handed in"
            else:
                timestamp, raw = found.timestamp, found.score
                penalty = found.late_submission_penalty or 0.0
                complete = "marks are missing" if found.needs_manual_grade else "yes"
            text = [assignment.name, assignment.duedate, timestamp, student.id]
            text += [student.last_name, student.first_name, student.email]
            marks = [raw, penalty, max(0.0, raw - penalty), assignment.max_score]
            yield [*map(escape_formula, text), *(f"{float(mark):.6g}" for mark in marks), complete]


class SafeCsv(ExportPlugin):
    """nbgrader's CSV, quoted, and guarded against formulas."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the grades to the file named by `--to`, or to grades.csv."""
        path = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", path)
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            coursedir = getattr(self.parent, "coursedir", None)
            course = read_course(Path(coursedir.root if coursedir else "."))
            writer.writerows(rows(gradebook, self.assignment, self.student, course))
