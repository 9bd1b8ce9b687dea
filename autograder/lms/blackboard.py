"""Blackboard: its archive of submissions, its Grade Center, and what it takes back.

*Assignment File Download* puts all files into one folder, named by the assignment, the username,
the time of the attempt and the student's own name for the file:
`Chapter 1_aking_attempt_2030-03-01-10-15-30_notebook.ipynb`. Beside the files of each attempt is a
text, `Chapter 1_aking_attempt_2030-03-01-10-15-30.txt`, with what was typed.

*Work Offline* downloads the Grade Center, as a comma-separated table or, in UTF-16, a table with
tabs: Last Name, First Name, Username, Student ID and more, and a column for each assignment, whose
heading says its points and its id, *Chapter 1 [Total Pts: 25 Score] |1281892*. It takes such a
table back; a column without the id becomes a new one, of text. It takes no archive of pages.

Sources: Blackboard's instructor help, *Uploading or Downloading Grade Center Items for Working
Offline* and *Download Assignments*, and scripts that read such archives and tables.

TRUST BOUNDARY. Names and tables come from outside. They are taken apart here, and no file is opened
by them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from os.path import commonprefix

from autograder.lms.canvas import one_column
from autograder.lms.record import Origin
from autograder.lms.system import FILE, ArchiveEntry, GivenMark, System, only_column
from autograder.lms.worksheet import (
    SheetRow,
    Worksheet,
    column_named,
    columns_found,
    number_in,
    row_of_person,
)
from autograder.notebook.archive import Member

_ATTEMPT = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)(?:_(.+)|\.txt)", re.DOTALL)
_HEAD = ["Last Name", "First Name", "Username"]


class Blackboard(System):
    name, title, table = "blackboard", "Blackboard", "Grade Center table"
    example = "Chapter 1_aking_attempt_2030-03-01-10-15-30_…"
    column = "Chapter 1 [Total Pts: 25 Score] |1281892"
    takes_pages = False

    def entry_of(self, member: Member) -> ArchiveEntry | None:
        whole = member.parts[-1] if member.parts else ""
        who, _, rest = whole.partition("_attempt_")  # with the assignment's name in front
        found = _ATTEMPT.fullmatch(rest)
        if found is None:
            return None
        day, hour, minute, second, name = found.groups(default="")
        prefix = whole[: len(whole) - len(name)] if name else ""
        kind, time = FILE if name else "text", f"{day} {hour}:{minute}:{second}"
        return ArchiveEntry(self, who, who, kind, name or whole, prefix, time=time)

    def tell_apart(
        self, entries: Sequence[ArchiveEntry], known: Collection[str]
    ) -> Sequence[ArchiveEntry]:
        """Usernames may hold underscores, as an assignment's name may: what all names begin with is
        the assignment, unless a table knows better."""
        whole = sorted({entry.number for entry in entries})
        users = [name.rpartition("_")[2] for name in whole]
        assignment = commonprefix(whole).rpartition("_")[0] if len(whole) > 1 else ""
        if assignment:
            users = [name[len(assignment) + 1 :] for name in whole]
        elif len({*users}) < len(whole):
            users = whole
        user = dict(zip(whole, users, strict=True))
        for one in sorted(known, key=len):
            user |= {name: one for name in whole if name == one or name.endswith(f"_{one}")}
        return [replace(one, label=user[one.number], number=user[one.number]) for one in entries]

    def prefix_of(self, found: ArchiveEntry, name: str, number: str) -> str:
        return f"{number}_"

    def recognises(self, sheet: Worksheet) -> bool:
        return sheet.head[:3] == _HEAD

    def read(self, sheet: Worksheet, zone: tzinfo) -> None:
        sheet.columns = columns_found(
            last=0, first=1, login=2, code=column_named(sheet.head, "code")
        )
        for row in range(len(sheet.rows)):
            if username := sheet.cell(row, "login"):
                sheet.people.append(row_of_person(sheet, row, username))

    def marks_in(self, sheet: Worksheet, title: str) -> tuple[int, float | None]:
        parts = {n: heading.partition("[Total Pts:") for n, heading in enumerate(sheet.head)}
        there = {n: (name, _id_in(rest)) for n, (name, found, rest) in parts.items() if found}
        at = one_column(sheet, title, there)
        words = (number_in(word.rstrip("]")) for word in parts[at][2].split())
        return at, next((points for points in words if points is not None), None)

    def is_column(self, title: str) -> bool:
        return bool(_id_in(title))

    def page_name(self, page: str, place: Origin | None, listed: SheetRow | None) -> str | None:
        number = place.number if place is not None else listed.number if listed else ""
        return f"{number}_{page}" if number else None

    def new_table(self, title: str, marks: Sequence[tuple[Origin, GivenMark]]) -> list[list[str]]:
        rows = [["", place.name or place.label, place.number, mark.grade] for place, mark in marks]
        return [[*_HEAD, title], *rows]

    def fill_sheet(
        self, sheet: Worksheet, at: int, marks: Mapping[int, GivenMark]
    ) -> list[list[str]]:
        return only_column(sheet, len(_HEAD), at, marks)


def _id_in(heading: str) -> str:
    found = heading.rpartition("|")[2].strip()
    return found if found.isdecimal() else ""
