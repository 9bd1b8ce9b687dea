"""Moodle: its archive of submissions, its grading worksheet, its way to take feedback.

Moodle gives each student a folder, `Ada King_12345_assignsubmission_file_/`, since version 4.1
without the last underscore; with *Download submissions in folders* switched off, the same text
comes before the file's own name. The number is the participant's in this one assignment, the one
that the grading worksheet calls *Participant 12345*; a name's underscores have become spaces, and
characters that file systems reject are gone. A text typed into the page comes as
`…_assignsubmission_onlinetext…`. With anonymous marking, *Participant* stands in place of the name.

Where groups hand in, the folder has the group's name and id, `Team A_17_assignsubmission_file`; the
default group, of all who are in none, has no id. Before version 4.1, there is a copy for each
member, `Team A-Ada King_12345_…`, with the participant's number. The worksheet then has a column
for the group's name, between Status and Grade.

The *grading worksheet* has a row for each participant: Identifier (*Participant 12345*), Full name,
further columns such as Email address, Status, Grade, Maximum Grade, Grade can be changed, Last
modified (submission), Last modified (grade), Feedback comments. Its headings are in the site's
language; their order is the same everywhere. Moodle imports a table with its own headings for the
identifier, the grade and the grade's last change, and ignores a grade above the maximum. It takes
pages in *Upload multiple feedback files in a zip*, the table in *Upload grading worksheet*.

Sources: Moodle's `mod/assign/classes/downloader.php` (`get_student_prefix`,
`load_submissionplugin_filelist`), `mod/assign/feedback/file/importziplib.php`
(`is_valid_filename_for_import`), `mod/assign/gradingtable.php` and
`mod/assign/feedback/offline/importgradeslib.php`; MoodleDocs, *Using Assignment* and *Offline
grading worksheet*.

TRUST BOUNDARY. Names and tables come from outside. They are taken apart here, and no file is opened
by them.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

from autograder.gradebook.times import NONE, moment_in
from autograder.lms.record import Origin
from autograder.lms.system import ArchiveEntry, GivenMark, System
from autograder.lms.worksheet import (
    SheetRow,
    Worksheet,
    column_named,
    columns_found,
    key,
    number_in,
    row_of_person,
)
from autograder.notebook.archive import Member, shown

_SUBMISSION = re.compile(r"([^_]*)(?:_(\d{1,18}))?_assignsubmission_([a-z]+)(?:_(.*))?", re.DOTALL)
_IDENTIFIER = re.compile(r"(\D+)\s(\d{1,18})\s*")
_STATUS = {  # the heading
    "Status", "Statut", "Estado", "Estatus", "Stato", "Estat", "Stare", "Stav", "Tila", "Durum",
    "Állapot", "Состояние", "Статус", "Стан", "Κατάσταση",
}  # fmt: skip
_PARTICIPANT = {
    "participant", "teilnehmer", "teilnehmerin", "participante", "partecipante", "deelnemer",
    "deltagare", "deltager", "uczestnik", "katılımcı", "participanta", "osallistuja",
}  # fmt: skip
_HEAD = [
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
]  # fmt: skip


class Moodle(System):
    name, title, table = "moodle", "Moodle", "grading worksheet"
    example = "Ada King_12345_assignsubmission_file_/…"
    numbers_last = False
    in_folders = True
    above_maximum = "Moodle passes over it: raise the maximum there"

    def entry_of(self, member: Member) -> ArchiveEntry | None:
        for place, part in enumerate(member.parts):
            if found := _SUBMISSION.fullmatch(part):
                label, number, kind, rest = found.groups(default="")
                inside = member.parts[place + 1 :]
                filename = inside[-1] if inside else rest
                prefix = part if inside else part[: len(part) - len(rest)]
                return ArchiveEntry(self, label, number, kind, filename, prefix, bool(inside))
        return None

    def names_in(self, label: str) -> list[str]:
        cuts = range(1, label.count("-") + 1)  # `Team A-Ada King`
        return [label, *(label.split("-", n)[n] for n in cuts)]

    def is_anonymous(self, label: str, sheet: Worksheet | None) -> bool:
        words = {key(sheet.participant)} - {""} if sheet else set[str]()
        return key(label.rpartition("-")[2]) in (words or _PARTICIPANT)

    def prefix_of(self, found: ArchiveEntry, name: str, number: str) -> str:
        return f"{_in_a_name(name)}_{number}_assignsubmission_file_"

    def recognises(self, sheet: Worksheet) -> bool:
        """Whether the first column holds identifiers: the same words and a number in most rows."""
        found = [_IDENTIFIER.fullmatch(row[0]) for row in sheet.rows]
        words = Counter(m[1] for m in found if m and any(map(str.isalpha, m[1])))
        return len(sheet.head) > 4 and 2 * max(words.values(), default=0) > len(found)

    def read(self, sheet: Worksheet, zone: tzinfo) -> None:
        found = [_IDENTIFIER.fullmatch(row[0]) for row in sheet.rows]
        ((word, _),) = Counter(match[1] for match in found if match).most_common(1)
        right = [n for n, match in enumerate(found) if match and match[1] == word]
        is_blind = _find_columns(sheet, right, zone)
        sheet.participant = word if is_blind else ""
        for row in range(len(sheet.rows)):
            match = found[row]
            if row not in right or match is None:
                got = shown(sheet.rows[row][0])
                told = f"expected an identifier such as {shown(word)} 12345, got {got!r}"
                sheet.tell(row, told)
                continue
            number = match[2]
            said = sheet.cell(row, "submitted")
            moment = moment_in(said, zone)
            unread = said if moment is None and said not in NONE else ""
            if unread:
                whose = shown(f"{word} {number} {sheet.cell(row, 'name')}".strip())
                sheet.tell(
                    row,
                    "expected a time such as Monday, 3 March 2025, 10:15 AM, or 2025-03-03 10:15, "
                    f"got {shown(said)!r}: whether {whose} came late is not known",
                )
            sheet.people.append(
                row_of_person(sheet, row, number, moment=moment, stated_time=unread)
            )

    def marks_in(self, sheet: Worksheet, title: str) -> tuple[int, float | None]:
        if "grade" not in sheet.columns:
            raise ValueError(f"{sheet.name}: expected a column Grade beside Maximum Grade")
        found = Counter(number_in(sheet.cell(person.row, "maximum")) for person in sheet.people)
        most = max(found, key=found.__getitem__, default=None)  # one row may be damaged
        return sheet.columns["grade"], most if most and most > 0 else None

    def page_name(self, page: str, place: Origin | None, listed: SheetRow | None) -> str | None:
        if place is not None:
            return f"{place.prefix}/{page}" if place.in_folder else f"{place.prefix}{page}"
        if listed is not None:
            return f"{_in_a_name(listed.name)}_{listed.number}_assignfeedback_file_/{page}"
        return None

    def new_table(self, title: str, marks: Sequence[tuple[Origin, GivenMark]]) -> list[list[str]]:
        table = [_HEAD]
        for place, mark in marks:
            who = [f"Participant {place.number}", place.name or place.label, place.email, ""]
            table.append([*who, mark.grade, mark.points, "Yes", "-", "-", mark.comment])
        return table

    def fill_sheet(
        self, sheet: Worksheet, at: int, marks: Mapping[int, GivenMark]
    ) -> list[list[str]]:
        """Moodle's own worksheet, with our marks; comments only where there were none."""
        comments, table = sheet.columns.get("comments"), [sheet.head]
        for n, before in enumerate(sheet.rows):
            cells = list(before)
            if n in marks:
                cells[at] = marks[n].grade
                if comments is not None and not cells[comments].strip():
                    cells[comments] = marks[n].comment
            table.append(cells)
        return table


def _in_a_name(name: str) -> str:
    return "".join(c for c in name if c.isalnum() or c in " .-")


def _are_times(values: set[str], zone: tzinfo) -> bool:
    """Whether most of what a column says are times, or it says only that there is none."""
    said = values - {*NONE}
    read = sum(moment_in(cell, zone) is not None for cell in said)
    return 2 * read >= len(said) if said else values != {""}


def _find_columns(sheet: Worksheet, right: Sequence[int], zone: tzinfo) -> bool:
    """Find the columns by heading or, in other languages, by what stands in the rows that are
    right; whether there are no names among them."""
    head, columns = ["", *sheet.head[1:]], range(1, len(sheet.head))  # ID heads the identifiers

    def all_of(test: Callable[[str], bool]) -> list[int]:
        return [n for n in columns[1:] if all(test(sheet.rows[row][n].strip()) for row in right)]

    def heading(name: str) -> int | None:
        return head.index(name) if name in head else None

    def values(at: int) -> set[str]:
        return {row[at].strip() for row in sheet.rows}

    maximum = heading("Maximum Grade")
    if maximum is None:  # in another language: the first column in which all have the same number
        same = [n for n in all_of(lambda c: number_in(c) is not None) if len(values(n)) == 1]
        maximum = next((n for n in same if n > 2), None)
    grade = heading("Grade")
    if grade is None and maximum is not None:
        grade = maximum - 1
    times = [n for n in columns if n > (maximum or 0) and _are_times(values(n), zone)]
    is_blind = maximum == 3 or (head[1] in _STATUS and not column_named(head, "email"))
    submitted = heading("Last modified (submission)")
    if submitted is None and len(times) == 2:
        submitted = times[0]
    address = next((n for n in columns if any("@" in row[n] for row in sheet.rows)), None)
    sheet.columns = columns_found(
        identifier=0,
        name=None if is_blind else 1,
        group=column_named(head, "group"),
        email=column_named(head, "email") or address,
        login=column_named(head, "login"),
        code=column_named(head, "code"),
        grade=grade,
        maximum=maximum,
        submitted=submitted,
        comments=heading("Feedback comments"),
    )
    return is_blind
