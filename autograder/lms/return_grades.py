"""Marks and feedback, in the form in which a learning management system takes them back.

For each assignment there are two files in returned/<assignment>/: `feedback.zip`, in which each
student's page lies under the name by which the system recognises the student, and `grades.csv`.
The totals are those of console, report and export: late penalties are brought up to date first, and
each page is made again, so that it holds the marks and comments given by hand.

While a person's mark is still missing, a total is not final, and is left out unless the caller
says otherwise. The formats and their sources: `moodle`, `canvas`, `blackboard`.

TRUST BOUNDARY. Names come from outside, by way of our own record of what was collected and of a
worksheet. They are written into an archive, whose names are checked, and into a table, in which
formulas are defused; no file here is called by them.
"""

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from autograder.gradebook.command_suggestions import assignment_named
from autograder.gradebook.course_file import enter, read_course
from autograder.gradebook.rows import Row, read_class
from autograder.gradebook.submissions import assignments_in, release_folder
from autograder.gradebook.writer import Writer
from autograder.judge.judgement import FAILED
from autograder.lms.people import StudentIndex, agree, known_people
from autograder.lms.record import read_record
from autograder.lms.system import GivenMark, System
from autograder.lms.systems import NAMES, SYSTEMS, read_worksheet
from autograder.lms.worksheet import SheetRow, write_table
from autograder.notebook.archive import shown
from autograder.student.table import number

RETURNED = "returned"


@dataclass
class ReturnResult:
    """What `return_grades` wrote for an assignment, and whom it left out, each with the reason."""

    assignment: str
    files: list[Path] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def return_grades(
    root: Path,
    system: str,
    *,
    assignments: Sequence[str] | None = None,
    worksheet: Path | None = None,
    column: str | None = None,
    open_too: bool = False,
    scale: bool = False,
    db: str | None = None,
) -> list[ReturnResult]:
    """Write feedback and marks of a course for a learning management system.

    `worksheet` is the system's own table, which is filled in; without it, one is made of what was
    collected. `column` names the assignment in the system's table. `open_too` also returns totals
    that still lack marks by hand; `scale` converts the points to the system's maximum.
    Raises `ValueError` for a call that makes no sense.
    """
    if system not in SYSTEMS:
        raise ValueError(f"expected {NAMES}, got {system}")
    lms = SYSTEMS[system]
    if db is None and not (root / "gradebook.db").is_file():
        raise FileNotFoundError(f"no gradebook in {root}: run `autograder grade` first")
    release = release_folder(root)
    there = assignments_in(release)
    course = read_course(root, there)
    wanted = _choose_assignments(assignments, there, read_class(root, db))
    if (worksheet or column) and len(wanted) > 1:
        raise ValueError(f"say which --assignment the worksheet is for: {', '.join(wanted)}")
    sheet = read_worksheet(worksheet, course.zone) if worksheet else None
    if sheet is not None and sheet.system != system:
        raise ValueError(f"{sheet.name}: expected a {lms.table} of {lms.title}'s")
    roster = StudentIndex(known_people(root, course, db), sheet)
    with Writer(root, db, release, course) as writer:
        enter(writer.book, course)
        for row in read_class(root, db):
            if row.assignment in wanted and row.status != FAILED:
                writer.renew(row.student, row.assignment)
        rows, done = read_class(root, db), []
        for name in wanted:
            way = _Way(root, lms, name, roster, column, open_too, scale)
            done.append(way.write_files([row for row in rows if row.assignment == name]))
            for row in rows:
                if row.assignment == name and row.student in done[-1].totals:
                    writer.note(row, f"returned to {lms.title}")
    return done


def _choose_assignments(
    asked: Sequence[str] | None, there: Sequence[str], rows: Sequence[Row]
) -> list[str]:
    graded = sorted({row.assignment for row in rows})
    if not asked:
        if not graded:
            raise ValueError("nothing is graded: run `autograder grade` first")
        return graded
    found = []
    for name in asked:
        match = assignment_named(name, there)
        if match not in graded:
            raise ValueError(f"{name} is not graded; there are {', '.join(graded) or 'none'}")
        found.append(match)
    return sorted({*found})


class _Way:
    """Returns the marks and feedback of one assignment."""

    def __init__(
        self,
        root: Path,
        system: System,
        assignment: str,
        roster: StudentIndex,
        column: str | None,
        open_too: bool,
        scale: bool,
    ):
        self.root, self.system, self.assignment = root, system, assignment
        self.roster, self.column = roster, column
        self.open_too, self.scale = open_too, scale
        self.out = root / RETURNED / assignment
        self.places = {
            student: place
            for student, place in read_record(root, assignment).items()
            if place.system == system.name
        }
        self.listed = self._rows_by_student()
        self.result = ReturnResult(assignment)

    def _rows_by_student(self) -> dict[str, SheetRow]:
        """The worksheet's row of each student."""
        found: dict[str, SheetRow] = {}
        numbers = {place.number: student for student, place in self.places.items() if place.number}
        for row in self.roster.sheet.people if self.roster.sheet else ():
            person, student = self.roster.person(row), numbers.get(row.number)
            if student is None or not self._agree(row, self.places[student].label):
                student = person.student if person else None
            if student:
                found[normalize("NFC", student)] = row
        return found

    def _agree(self, row: SheetRow, label: str) -> bool:
        """Whether a row can be about whom a file was collected of: numbers are groups', too."""
        return agree(row, self.system, label) or self.system.is_anonymous(label, self.roster.sheet)

    def write_files(self, rows: Sequence[Row]) -> ReturnResult:
        """Write the assignment's two files."""
        there = self._is_listed if self.roster.sheet is not None else self._is_collected
        final = [row for row in rows if there(row) and self._is_final(row)]
        self._limits(final)
        self.result.totals = {row.student: row.total for row in final}
        self._tell_of_too_much(final)
        self.out.mkdir(parents=True, exist_ok=True)
        self._pages(final)
        grades, sheet = self.out / "grades.csv", self.roster.sheet
        if sheet is None or self.at is None:
            write_table(grades, self._new_table(final))
        else:
            rows_of = {self.listed[normalize("NFC", row.student)].row: row for row in final}
            marks = {n: self._mark(row) for n, row in rows_of.items()}
            write_table(grades, self.system.fill_sheet(sheet, self.at, marks), sheet.delimiter)
        self.result.files.append(grades)
        return self.result

    # --- who ---

    def _is_final(self, row: Row) -> bool:
        if row.status == FAILED:
            self.result.left_out.append(f"{row.student}: no marks, grading failed")
            return False
        waits = sorted(name for name, mark in row.marks.items() if mark.by_hand)
        if waits and self.open_too:
            self.result.remarks.append(
                f"{row.student}: not final, {', '.join(waits)} waits for a mark by hand"
            )
        elif waits:
            text = f"{', '.join(waits)} waits for a mark by hand"
            self.result.left_out.append(f"{row.student}: {text}; --open-too returns it as it is")
        return self.open_too or not waits

    def _is_listed(self, row: Row) -> bool:
        there = normalize("NFC", row.student) in self.listed
        if not there:
            name = self.roster.sheet.name if self.roster.sheet else ""
            self.result.left_out.append(f"{row.student}: not found in {name}")
        return there

    def _is_collected(self, row: Row) -> bool:
        there = row.student in self.places and bool(self.places[row.student].number)
        if not there:
            text = f"not collected from {self.system.title}; a --worksheet may list them"
            self.result.left_out.append(f"{row.student}: {text}")
        return there

    # --- marks ---

    def _limits(self, final: Sequence[Row]) -> None:
        """Compare the points with the system's, which would show a wrong share, or ignore marks.

        Raises `ValueError` if they differ."""
        self.factor, points = 1.0, max((row.points for row in final), default=0.0)
        sheet = self.roster.sheet
        self.at, self.maximum = None, points
        if sheet is None:
            return
        self.at, maximum = self.system.marks_in(sheet, self.column or self.assignment)
        if maximum is None or not points:
            return
        self.maximum = maximum
        if abs(maximum - points) < 1e-6:
            return
        if not self.scale:
            raise ValueError(
                f"{sheet.name} gives {number(maximum)} points for {self.assignment}, which has "
                f"{number(points)}: change that in {self.system.title}, or use --scale"
            )
        self.factor = maximum / points

    def _tell_of_too_much(self, final: Sequence[Row]) -> None:
        for row in final:
            if row.total * self.factor > self.maximum + 1e-6:
                what = f"{self._grade(row)} is more than the maximum of {number(self.maximum)}"
                self.result.remarks.append(
                    f"{row.student}: "
                    + ", and ".join(filter(None, (what, self.system.above_maximum)))
                )

    def _grade(self, row: Row) -> str:
        return f"{row.total * self.factor:.6g}"

    def _mark(self, row: Row) -> GivenMark:
        return GivenMark(self._grade(row), number(row.points), self._comment(row))

    def _comment(self, row: Row) -> str:
        late = f", after {number(row.penalty)} off for being late" if row.penalty else ""
        open_ = "" if not any(m.by_hand for m in row.marks.values()) else "; not final yet"
        return f"{number(row.total)} of {number(row.points)} points{late}{open_}"

    # --- files ---

    def _pages(self, final: Sequence[Row]) -> None:
        path = self.out / "feedback.zip"
        fresh = path.with_name(".feedback.zip.new")
        count, missing = 0, []
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as packed:
            for row in final:
                name = self._page_name(row)
                page = self._page(row.student)
                try:
                    data = page.read_bytes() if name and os.path.isfile(page) else None
                except OSError:
                    data = None
                if name is None or data is None:
                    missing.append(row.student)
                    continue
                info = zipfile.ZipInfo(name)  # the same bytes every time
                info.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(info, data)
                count += 1
        if missing:
            self.result.remarks.append(f"no feedback page goes back to {', '.join(missing)}")
        if count and not self.system.takes_pages:
            told = "takes no archive of pages: feedback.zip is for you to hand out"
            self.result.remarks.append(f"{self.system.title} {told}")
        if count:
            fresh.replace(path)
            self.result.files.append(path)
        else:
            fresh.unlink()

    def _page(self, student: str) -> Path:
        return self.root / "feedback" / student / self.assignment / f"{self.assignment}.html"

    def _page_name(self, row: Row) -> str | None:
        """What a page is called in the archive, so that the system knows whose it is."""
        place = self.places.get(row.student)
        if place is not None and not _is_plain(place.prefix):
            place = None
        listed = self.listed.get(normalize("NFC", row.student))
        return self.system.page_name(f"{self.assignment}.html", place, listed)

    def _new_table(self, final: Sequence[Row]) -> list[list[str]]:
        """A table of our own, with the headings that the system has in English."""
        title, system = self.column or self.assignment, self.system
        if not system.is_column(title):
            self.result.remarks.append(
                f"{system.title} will make a new assignment {title}, unless --column says what its "
                f"{system.table} calls it, such as {system.column!r}, or a --worksheet does"
            )
        return system.new_table(title, [(self.places[r.student], self._mark(r)) for r in final])


def _is_plain(prefix: str) -> bool:
    """Whether a name from an archive may be one in ours."""
    return bool(prefix) and shown(prefix) == prefix and "/" not in prefix and "\\" not in prefix
