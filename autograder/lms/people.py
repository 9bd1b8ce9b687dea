"""Which student of the course a name in a learning management system stands for.

The course knows its people by `course.toml` and the gradebook; a worksheet of the system adds
addresses and logins. A person who cannot be told apart from others is not matched: a mark in a
namesake's account would be worse than a line that asks.

TRUST BOUNDARY. Names and addresses come from outside. They are compared, after Unicode's form
NFKC, without case, spaces and punctuation, as systems write them differently; a student's id is
checked before a folder gets its name.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

from autograder.gradebook.course_file import CourseFile
from autograder.gradebook.gradebook import Book, database
from autograder.gradebook.submissions import STUDENT
from autograder.lms.system import ArchiveEntry, System
from autograder.lms.worksheet import SheetRow, Worksheet, key
from autograder.notebook.archive import shown


@dataclass(frozen=True)
class Student:
    """A student of the course, with the id as the gradebook or the course's file spells it."""

    student: str
    first: str = ""
    last: str = ""
    email: str = ""

    @property
    def is_named(self) -> bool:
        return bool(self.first or self.last or self.email)

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}".strip()


class UnmatchedName(ValueError):
    """A name that stands for no student, or for several; the message says what to do about it."""


def known_people(root: Path, course: CourseFile, db: str | None = None) -> list[Student]:
    """The students of a course: those of its gradebook, if there is one, and of its file."""
    found: dict[str, Student] = {}
    if db is not None or (root / "gradebook.db").is_file():
        book = Book(database(root, db))
        try:
            with book.look():
                for s in book.students:
                    names = (s.first_name or "", s.last_name or "", s.email or "")
                    found[normalize("NFC", s.id)] = Student(s.id, *names)
        finally:
            book.close()
    for student, person in course.people.items():
        before = found.get(student, Student(student))
        told = person.details
        found[student] = Student(
            before.student,
            told.get("first_name", before.first),
            told.get("last_name", before.last),
            told.get("email", before.email),
        )
    return list(found.values())


@dataclass
class StudentIndex:
    """The course's people, and what a worksheet says about those of the system.

    Where the course has no list of people, a worksheet's logins and addresses, or else the names in
    the archive, become the students' ids.
    """

    people: Sequence[Student]
    sheet: Worksheet | None = None
    _by_id: dict[str, list[Student]] = field(init=False)  # without case, and as it is written
    _by_name: dict[str, list[Student]] = field(init=False)
    _by_email: dict[str, list[Student]] = field(init=False)
    _rows: Mapping[str, SheetRow] = field(init=False)
    _members: dict[str, list[SheetRow]] = field(init=False)  # of a group, by its name's forms

    def __post_init__(self) -> None:
        self._by_id, self._by_name, self._by_email = {}, {}, {}
        for person in self.people:
            for form in {_plain(person.student), f"={normalize('NFC', person.student)}"}:
                self._by_id.setdefault(form, []).append(person)
        for person in self.people:
            forms = {key(person.first + person.last), key(person.last + person.first)}
            for form in forms | {key(person.student)} - {""}:
                self._by_name.setdefault(form, []).append(person)
            if person.email:
                self._by_email.setdefault(_plain(person.email), []).append(person)
        listed = self.sheet.people if self.sheet else []
        self._rows = {row.number: row for row in listed if row.number}
        self._members = {}
        for row in listed:
            for form in {form for group in row.groups for form in _group_forms(group)}:
                self._members.setdefault(form, []).append(row)

    @property
    def is_list(self) -> bool:
        """Whether the course has a list of people, not just ids that archives brought."""
        return any(person.is_named for person in self.people)

    @property
    def numbers(self) -> set[str]:
        """The ids of the course's people, and the numbers of those in the worksheet."""
        return {person.student for person in self.people} | self._rows.keys()

    def row_of(self, found: ArchiveEntry) -> SheetRow | None:
        """The worksheet's row of the person who handed in a file: by number, else by name."""
        if found.number in self._rows:
            return self._rows[found.number]
        if self.sheet is None or self._rows:  # a table with numbers lists everybody
            return None
        form = key(found.label)
        same = [row for row in self.sheet.people if form in _forms(row)]
        return same[0] if len(same) == 1 else None

    def members(
        self, found: ArchiveEntry, namesakes: Mapping[str, set[str]]
    ) -> list[tuple[str, SheetRow | None] | str]:
        """The students whose work a file is; for others, why it is not theirs.

        A group's members are those whose rows in the worksheet name it, and come with their rows.
        """
        listed: list[tuple[str, SheetRow | None] | str] = []
        group = self._group(found)
        rows: Sequence[SheetRow | None] = group or [None]
        for row in rows:
            one = self.of_member(found, row) if row else found
            try:
                listed.append((self.student(one, namesakes, row), row))
            except UnmatchedName as why:
                listed.append(f"{shown(found.label)}, a group: {why}" if group else str(why))
        return listed

    def _group(self, found: ArchiveEntry) -> Sequence[SheetRow]:
        """The rows of a group's members; none if it is no group's file."""
        row, forms = self.row_of(found), _group_forms(found.label)
        own = {form for group in row.groups for form in _group_forms(group)} if row else set[str]()
        if row is not None and agree(row, found.system, found.label) and not own & {*forms}:
            return ()
        return next((self._members[form] for form in forms if form in self._members), ())

    def of_member(self, found: ArchiveEntry, row: SheetRow) -> ArchiveEntry:
        """A group's file as a member's, with the name by which the system knows that person."""
        label = row.name or f"{row.first} {row.last}".strip()
        label = label or (self.sheet.participant if self.sheet else "")
        system, number = found.system, row.number
        prefix = system.prefix_of(found, label, number) if number else ""
        return replace(
            found, label=label, number=number, prefix=prefix, in_folder=system.in_folders
        )

    def student(
        self, found: ArchiveEntry, namesakes: Mapping[str, set[str]], row: SheetRow | None = None
    ) -> str:
        """The id of the person who handed in a file; `namesakes` has the numbers by name key.

        Raises `UnmatchedName`.
        """
        whose = f"{shown(found.label)} ({found.number or 'without number'})"
        row = row or self.row_of(found)
        if found.number and found.system.is_anonymous(found.label, self.sheet):
            return f"{safe_id(found.label.rpartition('-')[2])} {found.number}"
        if row is not None and not agree(row, found.system, found.label):
            name = shown(row.name) or "a participant without a name"
            raise UnmatchedName(
                f"{whose} is {name} by the worksheet, so it is nobody's: if it is a group's, "
                "expected its name in a column Group of the --worksheet"
            )
        if not found.number and row is None:
            raise UnmatchedName(
                f"{shown(found.label)} is a group's: a --worksheet with a column Group says whose"
            )
        person = self.person(row) if row else None
        if person is None and not (row and self._is_shared(row)):
            person = self._student_labelled(found.label, namesakes)
        if person is not None:
            if not safe_id(person.student) == normalize("NFC", person.student):
                raise UnmatchedName(f"{shown(person.student)} is not a safe name for a folder")
            return person.student
        if self.is_list:
            raise UnmatchedName(
                f"{whose} is not one of the course's students: add them to course.toml or the "
                "gradebook, or give a --worksheet that says who this is, and collect again"
            )
        return self._new(found, row, namesakes, whose)

    def person(self, row: SheetRow) -> Student | None:
        """The student of the course that a row of the worksheet is about, if that is clear."""
        local = row.email.partition("@")[0]
        for login in (*row.logins, row.email, local):
            for form in (f"={normalize('NFC', login).strip()}", _plain(login)) if login else ():
                if len(same := self._by_id.get(form, [])) == 1:
                    return same[0]
        same = self._by_email.get(_plain(row.email), []) if row.email else []
        if len(same) == 1:
            return same[0]
        forms = set() if self._is_shared(row) else _forms(row)
        named = {p.student: p for form in forms for p in self._by_name.get(form, ())}
        return next(iter(named.values())) if len(named) == 1 else None

    def _is_shared(self, row: SheetRow) -> bool:
        """Whether others in the worksheet have the same name."""
        return self.sheet is not None and any(
            other is not row and _forms(other) & _forms(row) for other in self.sheet.people
        )

    def _student_labelled(self, label: str, namesakes: Mapping[str, set[str]]) -> Student | None:
        form = key(label)
        same = {person.student: person for person in self._by_name.get(form, ())}
        if len(same) > 1:
            who = ", ".join(sorted(same))
            merged = " ".join(shlex.quote(s) for s in sorted(same, key=lambda s: same[s].is_named))
            raise UnmatchedName(
                f"{shown(label)} can be {who}: a --worksheet tells them apart; if they are one "
                f"person, `autograder merge {merged}`"
            )
        if same and len(namesakes.get(form, ())) > 1:
            raise UnmatchedName(
                f"{shown(label)} is the name of several participants "
                f"({', '.join(sorted(namesakes[form]))}): a --worksheet tells them apart"
            )
        return next(iter(same.values())) if same else None

    def _new(
        self,
        found: ArchiveEntry,
        row: SheetRow | None,
        namesakes: Mapping[str, set[str]],
        whose: str,
    ) -> str:
        """An id for a student whom the course does not know, where it has no list."""
        if row is None and self.sheet is not None and self._rows:
            raise UnmatchedName(f"{whose} is not in {self.sheet.name}")
        if row is not None:
            for login in (*row.logins[:1], row.email, *row.logins[1:]):
                if login and safe_id(login) == login:
                    return login
        if len(namesakes.get(key(found.label), ())) > 1:
            raise UnmatchedName(f"{whose} has a namesake: a --worksheet tells them apart")
        student = safe_id(found.system.new_id(found))
        if not key(student):
            raise UnmatchedName(f"{whose} has no name that could be an id: give a --worksheet")
        return student


def agree(row: SheetRow, system: System, label: str) -> bool:
    """Whether a row can be about the person in a file's name, where the numbers are the same."""
    keys, forms = {key(name) for name in system.names_in(label)}, _forms(row)
    if not forms:
        return system.numbers_last or bool(row.email or row.logins)
    if not keys.isdisjoint(map(key, row.logins)):
        return True
    whole = {form + form for form in forms}  # in any order of the names
    sizes = {len(form) for form in forms}
    return any(len(one) in sizes and any(one in form for form in whole) for one in keys)


def safe_id(name: str) -> str:
    """A name as the id of a student, without characters that a folder's name must not have."""
    plain = normalize("NFC", " ".join(name.split()))
    kept = "".join(c for c in plain if c.isprintable() and c not in '<>&"\\*?[]{}|/')
    kept = short(kept.lstrip("./~ ")[:100]).strip()
    return kept if STUDENT.fullmatch(kept) else ""


def short(name: str) -> str:
    """A name that a file system takes, with some letters to spare."""
    return name.encode()[:200].decode(errors="ignore")


def same_names(everybody: Iterable[ArchiveEntry]) -> dict[str, set[str]]:
    """The numbers that go by each name in an archive."""
    numbers: dict[str, set[str]] = {}
    for found in everybody:
        numbers.setdefault(key(found.label), set()).add(found.number)
    return numbers


def _plain(text: str) -> str:
    return normalize("NFC", text).casefold().strip()


def _group_forms(name: str) -> list[str]:
    """A group's name as a file's can have it, without what systems leave out; and its key."""
    plain = normalize("NFKC", name).casefold().replace("_", " ")
    kept = "".join(c for c in plain if c.isprintable() and c not in "&<>\"'`|:/\\").strip()
    return [form for form in (f"={kept}", key(name)) if form.strip("=")]


def _forms(row: SheetRow) -> set[str]:
    forms = {key(row.name), key(row.first + row.last), key(row.last + row.first)}
    return forms - {""}
