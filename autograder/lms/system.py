"""What a learning management system is to `collect` and `return`: names of files, and tables.

Each is a class in a module of its own, which `systems` lists; nothing else asks which one it is.

TRUST BOUNDARY. Names and tables come from outside. They are taken apart here, and no file is opened
by them.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import NamedTuple

from autograder.lms.record import Origin
from autograder.lms.worksheet import SheetRow, Worksheet
from autograder.notebook.archive import Member

FILE = "file"  # the kind of a file that was handed in


@dataclass(frozen=True)
class ArchiveEntry:
    """A file in an archive: whose it is by its name there, and what the student called it.

    `number` is by what the system tells people apart. `kind` is FILE, or what else the system lets
    people hand in. `prefix` is what comes before the student's own file name, or the folder of the
    file; by it, the system recognises the student when feedback comes back. `time` is when it was
    handed in, by the clocks of the course, if the name says so.
    """

    system: "System"
    label: str
    number: str
    kind: str
    filename: str
    prefix: str
    in_folder: bool = False
    file_number: int = 0
    late: bool = False
    time: str = ""

    @property
    def owner(self) -> tuple[str, str, str]:
        """Whose it is: a number alone can be one person's and another's, or a group's."""
        return self.system.name, self.number, self.label.casefold()


class GivenMark(NamedTuple):
    """What goes back for a student: points in the system's scale, and a line about them."""

    grade: str
    points: str  # the most there are
    comment: str


class System(ABC):
    """A learning management system."""

    name: str  # in commands and records
    title: str
    example: str  # of a file's name in its archive
    table: str  # what it calls its table of marks
    column: str = ""  # how that table names an assignment, where it has a column for each
    numbers_last = True  # a person's number is the same in all assignments
    in_folders = False
    above_maximum = ""  # what becomes of a mark above the maximum, and what to do about it
    takes_pages = True  # in an archive

    @abstractmethod
    def entry_of(self, member: Member) -> ArchiveEntry | None:
        """What an archive's member is by its name; None if the system names no file so."""

    def names_in(self, label: str) -> list[str]:
        """The names of persons that the label of a file can hold."""
        return [label]

    def tell_apart(
        self, entries: Sequence[ArchiveEntry], known: Collection[str]
    ) -> Sequence[ArchiveEntry]:
        """The entries of an archive's people, an entry each, with the numbers that `known` ones
        have, where a single name does not say which part of it is the number."""
        return entries

    def is_anonymous(self, label: str, sheet: Worksheet | None) -> bool:
        """Whether a word for a participant stands where a person's name would be."""
        return False

    def new_id(self, found: ArchiveEntry) -> str:
        """What to call a student of whom the course knows no more than a file's name."""
        return found.label

    @abstractmethod
    def prefix_of(self, found: ArchiveEntry, name: str, number: str) -> str:
        """The prefix by which the system knows a member of the group whose file it is."""

    @abstractmethod
    def recognises(self, sheet: Worksheet) -> bool:
        """Whether a table is the system's own."""

    @abstractmethod
    def read(self, sheet: Worksheet, zone: tzinfo) -> None:
        """Read columns and people of a table of the system's own."""

    @abstractmethod
    def marks_in(self, sheet: Worksheet, title: str) -> tuple[int, float | None]:
        """The column of an assignment's marks, and the most points that it has there.

        Raises `ValueError` if there is no such column, or several.
        """

    def is_column(self, title: str) -> bool:
        """Whether a column of this name would not become a new assignment."""
        return True

    @abstractmethod
    def page_name(self, page: str, place: Origin | None, listed: SheetRow | None) -> str | None:
        """What a student's page is called in the archive of feedback; None if nobody knows whose
        it would be. `place` has a prefix that is safe to use."""

    @abstractmethod
    def new_table(self, title: str, marks: Sequence[tuple[Origin, GivenMark]]) -> list[list[str]]:
        """A table of our own, with the headings that the system has in English."""

    @abstractmethod
    def fill_sheet(
        self, sheet: Worksheet, at: int, marks: Mapping[int, GivenMark]
    ) -> list[list[str]]:
        """The system's own table with our marks, by their rows, in column `at`."""


def only_column(
    sheet: Worksheet, people: int, at: int, marks: Mapping[int, GivenMark]
) -> list[list[str]]:
    """The first columns, of people, and one assignment's, so that no other mark changes."""
    table = [[*sheet.head[:people], sheet.head[at]]]
    for n, cells in enumerate(sheet.rows):
        table.append([*cells[:people], marks[n].grade if n in marks else cells[at]])
    return table
