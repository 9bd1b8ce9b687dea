"""Canvas: its archive of submissions, its gradebook, its way to take feedback.

Canvas puts all files into one folder: `kingada_4711_99001_notebook.ipynb` has the sortable name
*King, Ada* in lower case, of which only letters and digits are left, the user's id, which is the
same in all assignments, the id of the file, which grows, and its name; `_LATE` stands before the
user's id if Canvas counts the file as late. One that was handed in again under the same name ends
in `-1.ipynb`. A group's file has the group's name and the id of one of its members. Texts and links
have no file id: `kingada_4711_text.html`. Anonymous submissions are called `anon_` and a code.

The *gradebook* has Student, ID, SIS User ID, SIS Login ID, Section and a column for each
assignment, whose heading ends in its id, *Chapter 1 (815)*; the row *Points Possible* comes first.
Canvas takes the table in *Import* of the gradebook, and pages in *Upload submissions* of the
assignment, where a page is shown under the name of the file that was handed in.

Sources: Canvas LMS, `lib/content_zipper.rb` (`get_filename`, `add_upload_submission`),
`app/models/abstract_assignment.rb` (`infer_comment_context_from_filename`),
`lib/gradebook_exporter.rb`, `lib/gradebook_importer.rb`, and the Canvas instructor guides, *How do
I download all student submissions for an assignment?*, and on exporting and importing grades.

TRUST BOUNDARY. Names and tables come from outside. They are taken apart here, and no file is opened
by them.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from unicodedata import normalize

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

_NUMBER = re.compile(r"[0-9]{1,18}")
_ID = re.compile(r"(.*)\((\d+)\)\s*", re.DOTALL)
_HEAD = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]


class Canvas(System):
    name, title, table = "canvas", "Canvas", "gradebook"
    example = "kingada_4711_99001_…"
    column = "Chapter 1 (815)"

    def entry_of(self, member: Member) -> ArchiveEntry | None:
        parts = member.parts[-1].split("_") if member.parts else [""]
        if parts[0] == "anon" or parts[:2] == ["LATE", "anon"]:
            return None
        numbers = [n for n, part in enumerate(parts) if n and _NUMBER.fullmatch(part)]
        if not numbers:
            return None
        at = numbers[0]
        late = at > 1 and parts[at - 1] == "LATE"
        label, rest = "_".join(parts[: at - late]), parts[at + 1 :]
        if len(rest) > 1 and _NUMBER.fullmatch(rest[0]):
            prefix = "_".join(parts[: at + 2]) + "_"
            return ArchiveEntry(self, label, parts[at], FILE, "_".join(rest[1:]), prefix,
                                file_number=int(rest[0]), late=late)  # fmt: skip
        if rest in (["text.html"], ["link.html"]):
            prefix = "_".join(parts[: at + 1]) + "_"
            kind = rest[0].removesuffix(".html")
            return ArchiveEntry(self, label, parts[at], kind, rest[0], prefix, late=late)
        return None

    def new_id(self, found: ArchiveEntry) -> str:
        return f"{found.label}-{found.number}"

    def prefix_of(self, found: ArchiveEntry, name: str, number: str) -> str:
        return f"{found.label}_{number}_{found.file_number}_"

    def recognises(self, sheet: Worksheet) -> bool:
        head = sheet.head
        return "Section" in head and (head[:2] == ["Student", "ID"] or head[2:3] == ["ID"])

    def read(self, sheet: Worksheet, zone: tzinfo) -> None:
        head = sheet.head
        sheet.columns = columns_found(
            user=head.index("ID"),
            section=head.index("Section"),
            **{w: column_named(head, w) for w in ("name", "first", "last", "code", "group")},
            login=head.index("SIS Login ID") if "SIS Login ID" in head else None,
        )
        for row in range(len(sheet.rows)):
            number = sheet.cell(row, "user")
            if number.isdecimal():  # not the rows that give points, or say that marks are hidden
                sheet.people.append(row_of_person(sheet, row, number))

    def marks_in(self, sheet: Worksheet, title: str) -> tuple[int, float | None]:
        after = sheet.columns["section"] + 1
        titled = {n: _ID.fullmatch(sheet.head[n]) for n in range(after, len(sheet.head))}
        there = {n: (found[1], found[2]) for n, found in titled.items() if found}
        at = one_column(sheet, title, there)
        said = [row[at] for row in sheet.rows if row[0].strip() == "Points Possible"]
        return at, number_in(said[0]) if said else None

    def is_column(self, title: str) -> bool:
        return _ID.fullmatch(title) is not None

    def page_name(self, page: str, place: Origin | None, listed: SheetRow | None) -> str | None:
        return f"{place.prefix}{page}" if place is not None else None

    def new_table(self, title: str, marks: Sequence[tuple[Origin, GivenMark]]) -> list[list[str]]:
        points = marks[0][1].points if marks else "0"
        table = [[*_HEAD, title], ["    Points Possible", "", "", "", "", points]]
        for place, mark in marks:
            who = [place.name or place.label, place.number, "", place.login, ""]
            table.append([*who, mark.grade])
        return table

    def fill_sheet(
        self, sheet: Worksheet, at: int, marks: Mapping[int, GivenMark]
    ) -> list[list[str]]:
        return only_column(sheet, sheet.columns["section"] + 1, at, marks)


def one_column(sheet: Worksheet, title: str, there: Mapping[int, tuple[str, str]]) -> int:
    """The column of an assignment, by its heading, its title or its id (`there`, by column).

    Raises `ValueError` unless there is exactly one.
    """
    wanted = _plain(title)
    forms = {n: {_plain(sheet.head[n]), _plain(name), id_} for n, (name, id_) in there.items()}
    hits = [n for n, each in forms.items() if wanted in each]
    if len(hits) != 1:
        named = ", ".join(repr(sheet.head[n]) for n in there) or "none"
        raise ValueError(
            f"{sheet.name}: name the assignment's column by --column; there are {named}"
        )
    return hits[0]


def _plain(name: str) -> str:
    return re.sub(r"\W+|_", "", normalize("NFKC", name).casefold())
