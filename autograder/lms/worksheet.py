"""Tables that a learning management system exports and imports: people and marks.

Those that a system makes are read by `moodle`, `canvas` and `blackboard`. Any other list, such as
Moodle's of participants or nbgrader's own, is read by its headings.

TRUST BOUNDARY. Names and addresses come from outside. What is written is guarded as in the export
(`gradebook.export`): a field that a spreadsheet would take for a formula gets an apostrophe.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any
from unicodedata import normalize

from autograder.gradebook.export import escape_formula
from autograder.gradebook.times import NONE

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


@dataclass(frozen=True)
class SheetRow:
    """A row: what the system knows about a student. `number` is the one in file names.

    `stated_time` is a time that cannot be read.
    """

    row: int
    number: str = ""
    name: str = ""
    first: str = ""
    last: str = ""
    email: str = ""
    logins: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()  # that it may name
    moment: datetime | None = None
    stated_time: str = ""


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


def read_table(path: Path) -> Worksheet:
    """Read a table, but not yet whom it lists. Raises `ValueError` if it is none.

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
    return sheet


def refuse_doubles(sheet: Worksheet) -> None:
    """Take away the number of rows that share one and are not the same person's."""
    by_number: dict[str, list[SheetRow]] = {}
    for one in sheet.people:
        by_number.setdefault(one.number, []).append(one)
    for number, several in by_number.items():
        if number and len({(one.name, one.first, one.last, one.email) for one in several}) > 1:
            for one in several:
                sheet.tell(one.row, f"the number {number} belongs to others, too; passed over")
                sheet.people.remove(one)


def key(text: str) -> str:
    """A name without what systems write differently: case, spaces, punctuation, Unicode's form."""
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    return "".join(letter for letter in folded if letter.isalnum())


def column_named(head: Sequence[str], what: str) -> int | None:
    """The column whose heading is one of those for a login, a name, …"""
    lower = [heading.casefold() for heading in head]
    return next((lower.index(name) for name in _HEADINGS[what] if name in lower), None)


def columns_found(**columns: int | None) -> dict[str, int]:
    """Columns by what they hold, without those that a table lacks."""
    return {what: at for what, at in columns.items() if at is not None}


def read_list(sheet: Worksheet) -> None:
    """Read whom a table of no particular system lists."""
    sheet.columns = columns_found(**{what: column_named(sheet.head, what) for what in _HEADINGS})
    sheet.people = [row_of_person(sheet, row) for row in range(len(sheet.rows))] * bool(
        sheet.columns
    )


def row_of_person(sheet: Worksheet, row: int, number: str = "", **time: Any) -> SheetRow:
    told = {what: normalize("NFC", sheet.cell(row, what)) for what in _HEADINGS}
    name, first, last = told["name"], told["first"], told["last"]
    if not first and not last and ", " in name:  # Canvas: King, Ada
        last, _, first = name.partition(", ")
    logins = tuple(filter(None, (told["login"], told["code"])))
    others = [cell for at, cell in enumerate(sheet.rows[row]) if at not in sheet.columns.values()]
    groups = [told["group"]] if "group" in sheet.columns else others  # under any heading
    groups = [part.strip() for cell in groups for part in {cell, *cell.split(",")}]
    number = number or told["number"]
    return SheetRow(row, number, name, first, last, told["email"], logins, tuple(groups), **time)


def number_in(text: str) -> float | None:
    """A number as Moodle writes it, with a decimal point or comma."""
    try:
        found = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    return found if isfinite(found) else None


# --- Writing --------------------------------------------------------------------------------------


def write_table(path: Path, rows: Iterable[Sequence[str]], delimiter: str = ",") -> None:
    """Write a table that the system reads and a spreadsheet can open without harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerows([_defuse(cell) for cell in row] for row in rows)


def _defuse(cell: str) -> str:
    """A field without formulas; numbers, and the lone dash for none, are left unchanged."""
    return cell if cell.strip() in NONE or number_in(cell) is not None else escape_formula(cell)
