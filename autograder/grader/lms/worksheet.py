"""Tables that a learning management system exports and imports: people and marks.

Moodle's *grading worksheet* has a row for each participant: Identifier (*Participant 12345*), Full
name, further columns such as Email address, Status, Grade, Maximum Grade, Grade can be changed,
Last modified (submission), Last modified (grade), Feedback comments. Its headings are in the
site's language; their order is the same everywhere. Moodle imports a table with its own headings
for the identifier, the grade and the grade's last change, and ignores a grade above the maximum.
Canvas's *gradebook* has Student, ID, SIS User ID, SIS Login ID, Section and a column for each
assignment, whose heading ends in its id, *Chapter 1 (815)*; the row *Points Possible* comes first.
Any other list, such as Moodle's of participants or nbgrader's own, is read by its headings.

Sources: Moodle's `mod/assign/gradingtable.php`, `mod/assign/feedback/offline/importgradeslib.php`
and MoodleDocs, *Offline grading worksheet*; Canvas LMS, `lib/gradebook_exporter.rb`,
`lib/gradebook_importer.rb`, and the instructor guides on exporting and importing grades.

TRUST BOUNDARY. Names and addresses come from outside. What is written is guarded as in the export
(`notebook.export`): a field that a spreadsheet would take for a formula gets an apostrophe.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from unicodedata import normalize

from autograder.grader.lms.formats import CANVAS, MOODLE
from autograder.grader.lms.times import NONE, moment_in
from autograder.grader.notebook.export import guarded

MAX_BYTES = 20_000_000
_HEADINGS = {
    "number": ("participant", "user id", "lms_user_id"),
    "login": ("username", "login", "sis login id", "student_id", "id", "login id"),
    "code": ("id number", "idnumber", "sis user id", "matriculation number"),
    "first": ("first name", "first_name", "firstname", "given name", "vorname"),
    "last": ("last name", "last_name", "lastname", "surname", "family name", "nachname"),
    "name": ("full name", "name", "student", "vollständiger name"),
    "email": ("email address", "email", "e-mail", "e-mail-adresse", "mail"),
}
_CANVAS_ID = re.compile(r"(.*)\((\d+)\)\s*", re.DOTALL)


@dataclass(frozen=True)
class Listed:
    """A row: what the system knows about a student. `number` is the one in file names."""

    row: int
    number: str = ""
    name: str = ""
    first: str = ""
    last: str = ""
    email: str = ""
    logins: tuple[str, ...] = ()
    moment: datetime | None = None


@dataclass
class Worksheet:
    """A table as it was read, with the columns that matter; a column that is missing is None."""

    name: str
    system: str | None
    head: list[str]
    rows: list[list[str]]
    delimiter: str = ","
    columns: Mapping[str, int] = field(default_factory=dict)
    people: list[Listed] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # times that could not be read

    def cell(self, row: int, what: str) -> str:
        at = self.columns.get(what)
        return self.rows[row][at].strip() if at is not None else ""


def read_worksheet(path: Path, zone: tzinfo) -> Worksheet:
    """Read a table; times without a zone are `zone`'s. Raises `ValueError` if it is unusable.

    The delimiter is a comma, a semicolon or a tab; the text UTF-8, or else Windows-1252.
    """
    if not path.is_file():
        raise ValueError(f"no file {path}: expected the table of the learning management system")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} has more than {MAX_BYTES // 10**6} MB")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        table = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if r]
    except csv.Error as error:
        raise ValueError(f"{path.name} is not a table in CSV ({error})") from None
    if not table or len(table[0]) < 2:
        raise ValueError(f"{path.name}: expected a table with a row of headings")
    head = [normalize("NFC", heading).strip() for heading in table[0]]
    rows = [[*row, *[""] * (len(head) - len(row))][: len(head)] for row in table[1:]]
    sheet = Worksheet(path.name, None, head, rows, delimiter)
    if _is_canvas(head):
        _canvas(sheet)
    elif _is_moodle(sheet):
        _moodle(sheet, zone)
    else:
        _list(sheet)
    if not sheet.people:
        raise ValueError(
            f"{path.name}: expected a column of names, addresses or ids, got {', '.join(head[:8])}"
        )
    return sheet


def _named(head: Sequence[str], what: str) -> int | None:
    lower = [heading.casefold() for heading in head]
    return next((lower.index(name) for name in _HEADINGS[what] if name in lower), None)


def _found(**columns: int | None) -> dict[str, int]:
    return {what: at for what, at in columns.items() if at is not None}


def _list(sheet: Worksheet) -> None:
    sheet.columns = _found(**{what: _named(sheet.head, what) for what in _HEADINGS})
    sheet.people = [_listed(sheet, row) for row in range(len(sheet.rows))] * bool(sheet.columns)


def _listed(sheet: Worksheet, row: int, number: str = "", moment: datetime | None = None) -> Listed:
    told = {what: normalize("NFC", sheet.cell(row, what)) for what in _HEADINGS}
    name, first, last = told["name"], told["first"], told["last"]
    if not first and not last and ", " in name:  # Canvas: King, Ada
        last, _, first = name.partition(", ")
    logins = tuple(filter(None, (told["login"], told["code"])))
    number = number or told["number"]
    return Listed(row, number, name, first, last, told["email"], logins, moment)


# --- Canvas ---------------------------------------------------------------------------------------


def _is_canvas(head: Sequence[str]) -> bool:
    return "Section" in head and (head[:2] == ["Student", "ID"] or head[2:3] == ["ID"])


def _canvas(sheet: Worksheet) -> None:
    head = sheet.head
    sheet.system = CANVAS
    sheet.columns = _found(
        user=head.index("ID"),
        section=head.index("Section"),
        **{what: _named(head, what) for what in ("name", "first", "last", "code")},
        login=head.index("SIS Login ID") if "SIS Login ID" in head else None,
    )
    for row in range(len(sheet.rows)):
        number = sheet.cell(row, "user")
        if number.isdecimal():  # not the rows that give points, or say that marks are hidden
            sheet.people.append(_listed(sheet, row, number))


def canvas_column(sheet: Worksheet, names: Iterable[str]) -> int:
    """The column of an assignment, by its heading, its title or its id.

    Raises `ValueError` unless there is exactly one.
    """
    wanted = {_plain(name) for name in names}
    after = sheet.columns["section"] + 1
    titled = {n: _CANVAS_ID.fullmatch(sheet.head[n]) for n in range(after, len(sheet.head))}
    there = {n: found for n, found in titled.items() if found}
    hits = [
        n
        for n, found in there.items()
        if {_plain(sheet.head[n]), _plain(found[1]), found[2]} & wanted
    ]
    if len(hits) != 1:
        named = ", ".join(repr(sheet.head[n]) for n in there) or "none"
        raise ValueError(
            f"{sheet.name}: name the assignment's column by --column; there are {named}"
        )
    return hits[0]


def _plain(name: str) -> str:
    return re.sub(r"\W+|_", "", normalize("NFKC", name).casefold())


# --- Moodle ---------------------------------------------------------------------------------------


def _is_moodle(sheet: Worksheet) -> bool:
    """Whether the first column holds identifiers: the same words and a number in each row."""
    found = [re.fullmatch(r"(\D+)\s\d+\s*", row[0]) for row in sheet.rows]
    return len(sheet.head) > 4 and all(found) and len({match[1] for match in found}) == 1


def _moodle(sheet: Worksheet, zone: tzinfo) -> None:
    sheet.system = MOODLE
    head, columns = sheet.head, range(2, len(sheet.head))

    def all_of(test: Callable[[str], bool]) -> list[int]:
        return [
            n for n in columns if sheet.rows and all(test(row[n].strip()) for row in sheet.rows)
        ]

    def heading(name: str) -> int | None:
        return head.index(name) if name in head else None

    maximum = heading("Maximum Grade")
    if maximum is None:  # in another language: the first column in which all have the same number
        same = [
            n for n in all_of(lambda c: number_in(c) is not None) if len(_column(sheet, n)) == 1
        ]
        maximum = next((n for n in same if n > 2), None)
    grade = heading("Grade")
    if grade is None and maximum is not None:
        grade = maximum - 1
    times = [n for n in all_of(lambda c: c in NONE or moment_in(c, zone) is not None)
             if n > (maximum or 0) and _column(sheet, n) != {""}]  # fmt: skip
    submitted = heading("Last modified (submission)")
    if submitted is None and len(times) == 2:
        submitted = times[0]
    address = next((n for n in columns if any("@" in row[n] for row in sheet.rows)), None)
    sheet.columns = _found(
        identifier=0,
        name=1,
        email=_named(head, "email") or address,
        login=_named(head, "login"),
        code=_named(head, "code"),
        grade=grade,
        maximum=maximum,
        submitted=submitted,
        comments=heading("Feedback comments"),
    )
    for row in range(len(sheet.rows)):
        number = re.search(r"(?<!\d)(\d+)\s*$", sheet.rows[row][0])[1]
        said = sheet.cell(row, "submitted")
        moment = moment_in(said, zone)
        if moment is None and said not in NONE:
            sheet.unread.append(said)
        sheet.people.append(_listed(sheet, row, number, moment))


def _column(sheet: Worksheet, at: int) -> set[str]:
    return {row[at].strip() for row in sheet.rows}


def number_in(text: str) -> float | None:
    """A number as Moodle writes it, with a decimal point or comma."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def maximum_in(sheet: Worksheet) -> float | None:
    """The most points that the system gives for the assignment, if its worksheet says so."""
    found = {number_in(sheet.cell(person.row, "maximum")) for person in sheet.people}
    return found.pop() if len(found) == 1 else None


# --- Writing --------------------------------------------------------------------------------------


def write_table(path: Path, rows: Iterable[Sequence[str]], delimiter: str = ",") -> None:
    """Write a table that the system reads and a spreadsheet can open without harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerows([_defused(cell) for cell in row] for row in rows)


def _defused(cell: str) -> str:
    """A field without formulas; numbers, and the lone dash for none, are left unchanged."""
    return cell if cell.strip() in NONE or number_in(cell) is not None else guarded(cell)
