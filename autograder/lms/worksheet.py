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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from math import isfinite
from pathlib import Path
from typing import Any
from unicodedata import normalize

from autograder.gradebook.times import NONE, moment_in
from autograder.lms.formats import CANVAS, MOODLE
from autograder.notebook.archive import shown
from autograder.notebook.export import guarded

MAX_BYTES = 20_000_000
_HEADINGS = {
    "number": ("participant", "canvas_user_id", "lms_user_id", "user id"),
    "login": ("username", "login", "sis login id", "student_id", "id", "login id", "login_id"),
    "code": ("id number", "idnumber", "sis user id", "matriculation number", "user_id"),
    "first": ("first name", "first_name", "firstname", "given name", "vorname"),
    "last": ("last name", "last_name", "lastname", "surname", "family name", "nachname"),
    "name": ("full name", "name", "student", "vollständiger name"),
    "email": ("email address", "email", "e-mail", "e-mail-adresse", "mail"),
    "group": ("group", "group_name", "gruppe", "groupe", "grupo", "gruppo", "groep"),
}
_STATUS = ("Status", "Statut", "Estado", "Stato", "Estatus")  # Moodle's heading
_CANVAS_ID = re.compile(r"(.*)\((\d+)\)\s*", re.DOTALL)


@dataclass(frozen=True)
class SheetRow:
    """A row: what the system knows about a student. `number` is the one in file names.

    `said` is a time that cannot be read.
    """

    row: int
    number: str = ""
    name: str = ""
    first: str = ""
    last: str = ""
    email: str = ""
    logins: tuple[str, ...] = ()
    group: str = ""
    moment: datetime | None = None
    said: str = ""


@dataclass
class Worksheet:
    """A table as it was read, with the columns that matter; a column that is missing is None.

    `problems` has a line for each row that is not, or not wholly, understood. `participant` is the
    word in front of a participant's number, where the table gives no names.
    """

    name: str
    system: str | None
    head: list[str]
    rows: list[list[str]]
    delimiter: str = ","
    columns: Mapping[str, int] = field(default_factory=dict)
    people: list[SheetRow] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of the rows, in the file
    problems: list[str] = field(default_factory=list)
    participant: str = ""

    def tell(self, row: int, what: str) -> None:
        self.problems.append(f"{self.name}, line {self.lines[row]}: {what}")

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
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    text = text.replace("\0", "")
    first, _, rest = text.partition("\n")
    before = re.fullmatch(r"sep=([,;\t])\s*", first)  # a line that Excel writes
    if before:
        text = rest
    delimiter = before[1] if before else max(",;\t", key=first.count)
    csv.field_size_limit(MAX_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    table: list[tuple[int, list[str]]] = []
    try:
        table.extend((reader.line_num + bool(before), row) for row in reader if any(row))
    except csv.Error as error:
        line = reader.line_num + bool(before)
        raise ValueError(f"{path.name}, line {line}: not a table in CSV ({error})") from None
    if not table or len(table[0][1]) < 2:
        raise ValueError(f"{path.name}: expected a table with a row of headings")
    head = [normalize("NFC", heading).strip() for heading in table[0][1]]
    rows = [[*row, *[""] * (len(head) - len(row))][: len(head)] for _, row in table[1:]]
    sheet = Worksheet(path.name, None, head, rows, delimiter)
    sheet.lines = [line for line, _ in table[1:]]
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
    _refuse_doubles(sheet)
    return sheet


def _refuse_doubles(sheet: Worksheet) -> None:
    """Take away the number of rows that share one and are not the same person's."""
    by_number: dict[str, list[SheetRow]] = {}
    for one in sheet.people:
        by_number.setdefault(one.number, []).append(one)
    for number, several in by_number.items():
        if number and len({(one.name, one.first, one.last, one.email) for one in several}) > 1:
            for one in several:
                sheet.tell(one.row, f"the number {number} belongs to others, too; passed over")
                sheet.people.remove(one)


def _named(head: Sequence[str], what: str) -> int | None:
    lower = [heading.casefold() for heading in head]
    return next((lower.index(name) for name in _HEADINGS[what] if name in lower), None)


def _found(**columns: int | None) -> dict[str, int]:
    return {what: at for what, at in columns.items() if at is not None}


def _list(sheet: Worksheet) -> None:
    sheet.columns = _found(**{what: _named(sheet.head, what) for what in _HEADINGS})
    sheet.people = [_listed(sheet, row) for row in range(len(sheet.rows))] * bool(sheet.columns)


def _listed(sheet: Worksheet, row: int, number: str = "", **time: Any) -> SheetRow:
    told = {what: normalize("NFC", sheet.cell(row, what)) for what in _HEADINGS}
    name, first, last = told["name"], told["first"], told["last"]
    if not first and not last and ", " in name:  # Canvas: King, Ada
        last, _, first = name.partition(", ")
    logins = tuple(filter(None, (told["login"], told["code"])))
    number = number or told["number"]
    return SheetRow(row, number, name, first, last, told["email"], logins, told["group"], **time)


# --- Canvas ---------------------------------------------------------------------------------------


def _is_canvas(head: Sequence[str]) -> bool:
    return "Section" in head and (head[:2] == ["Student", "ID"] or head[2:3] == ["ID"])


def _canvas(sheet: Worksheet) -> None:
    head = sheet.head
    sheet.system = CANVAS
    sheet.columns = _found(
        user=head.index("ID"),
        section=head.index("Section"),
        **{what: _named(head, what) for what in ("name", "first", "last", "code", "group")},
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


_IDENTIFIER = re.compile(r"(\D+)\s(\d{1,18})\s*")


def _is_moodle(sheet: Worksheet) -> bool:
    """Whether the first column holds identifiers: the same words and a number in most rows."""
    found = [_IDENTIFIER.fullmatch(row[0]) for row in sheet.rows]
    words = Counter(m[1] for m in found if m and any(map(str.isalpha, m[1])))
    return len(sheet.head) > 4 and 2 * max(words.values(), default=0) > len(found)


def _moodle(sheet: Worksheet, zone: tzinfo) -> None:
    sheet.system = MOODLE
    head, columns = sheet.head, range(1, len(sheet.head))
    found = [_IDENTIFIER.fullmatch(row[0]) for row in sheet.rows]
    ((word, _),) = Counter(match[1] for match in found if match).most_common(1)
    right = [n for n, match in enumerate(found) if match and match[1] == word]

    def all_of(test: Callable[[str], bool]) -> list[int]:
        return [n for n in columns[1:] if all(test(sheet.rows[row][n].strip()) for row in right)]

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
    is_blind = maximum == 3 or (head[1] in _STATUS and not _named(head, "email"))
    submitted = heading("Last modified (submission)")
    if submitted is None and len(times) == 2:
        submitted = times[0]
    address = next((n for n in columns if any("@" in row[n] for row in sheet.rows)), None)
    sheet.columns = _found(
        identifier=0,
        name=None if is_blind else 1,
        group=_named(head, "group"),
        email=_named(head, "email") or address,
        login=_named(head, "login"),
        code=_named(head, "code"),
        grade=grade,
        maximum=maximum,
        submitted=submitted,
        comments=heading("Feedback comments"),
    )
    sheet.participant = word if is_blind else ""
    for row in range(len(sheet.rows)):
        match = found[row]
        if row not in right or match is None:
            got = shown(sheet.rows[row][0])
            sheet.tell(row, f"expected an identifier such as {shown(word)} 12345, got {got!r}")
            continue
        number = match[2]
        said = sheet.cell(row, "submitted")
        moment = moment_in(said, zone)
        unread = said if moment is None and said not in NONE else ""
        if unread:
            whose = shown(f"{word} {number} {sheet.cell(row, 'name')}".strip())
            sheet.tell(
                row,
                "expected a time such as Monday, 3 March 2025, 10:15 AM, or 2025-03-03 10:15, got "
                f"{shown(said)!r}: whether {whose} came late is not known",
            )
        sheet.people.append(_listed(sheet, row, number, moment=moment, said=unread))


def _column(sheet: Worksheet, at: int) -> set[str]:
    return {row[at].strip() for row in sheet.rows}


def number_in(text: str) -> float | None:
    """A number as Moodle writes it, with a decimal point or comma."""
    try:
        found = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    return found if isfinite(found) else None


def maximum_in(sheet: Worksheet) -> float | None:
    """The most points that the system gives for the assignment, if its worksheet says so."""
    found = Counter(number_in(sheet.cell(person.row, "maximum")) for person in sheet.people)
    most = max(found, key=found.__getitem__, default=None)  # one row may be damaged
    return most if most and most > 0 else None


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
