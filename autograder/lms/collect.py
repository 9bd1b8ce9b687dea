"""Archives of a learning management system, sorted into submitted/<student>/<assignment>/.

The newest notebook of a student counts; the one before goes to collected/<assignment>/earlier/.
What cannot be matched, to a student or to an assignment, goes to collected/<assignment>/aside/, and
is reported, a line each. The archive itself is left unchanged. Collecting the same archive again
changes nothing.

TRUST BOUNDARY. Archives, names and worksheets come from outside (`archive`, `systems`,
`worksheet`). No name of theirs becomes a path before `safe_id` or `safe_file` has seen it; links
under the course's folders are not followed; notebooks are copied as bytes and never run here.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.gradebook.command_suggestions import assignment_named
from autograder.gradebook.course_file import CourseFile, read_course
from autograder.gradebook.scripts import SUFFIX, notebook_of
from autograder.gradebook.submissions import TIME, assignments_in, release_folder, timestamp_in
from autograder.gradebook.times import moment_in
from autograder.gradebook.writer import FULL, put
from autograder.lms.chapters import assignment_of
from autograder.lms.collected_notebook import LESS, CollectedNotebook, is_older, newness, why_other
from autograder.lms.course_files import PathOccupied, home, keep, read_there, safe_file
from autograder.lms.people import StudentIndex, known_people, same_names
from autograder.lms.record import Origin, folder_of, read_record, write_record
from autograder.lms.system import FILE, ArchiveEntry
from autograder.lms.systems import SYSTEMS, TITLES, entry_of, identify_system, read_worksheet
from autograder.notebook.archive import Archive, Member, RefusedArchive, shown
from autograder.notebook.effort import ANSWERED, answers_named, effort_in, names_answered
from autograder.notebook.reading import NOTEBOOK

MAX_FILES, MAX_SIZE = 100, 1_000_000_000  # of one participant: files, bytes that are read
UNKNOWN = "unknown"  # collected/unknown/: of no known assignment
NEW, NEWER, OLDER, SAME = "new", "newer", "older", "same"


@dataclass
class CollectResult:
    """What `collect` did: what became of each notebook, and what a person has to look at."""

    outcomes: dict[tuple[str, str], str] = field(default_factory=dict)  # by student and assignment
    remarks: list[str] = field(default_factory=list)  # nothing to do about it
    problems: list[str] = field(default_factory=list)  # for a person to look at

    @property
    def exit_status(self) -> int:
        """0 if everything went to its place, 1 if something was put aside or left."""
        return int(bool(self.problems))


def collect(
    path: Path,
    root: Path,
    *,
    assignment: str | None = None,
    worksheet: Path | None = None,
    archive_times: bool = False,
    db: str | None = None,
) -> CollectResult:
    """Sort the notebooks of an archive into a course's submissions.

    `assignment` is the one that the archive is for (default: what the notebooks say they are).
    `worksheet` is a table of the system's, which knows people and times. `archive_times` takes the
    times of the archive's files as times of submission; in those from Moodle and Canvas, they are
    when the archive was made. Raises `ValueError` for a file or a call that makes no sense.
    """
    release = release_folder(root)
    assignments = assignments_in(release)
    course = read_course(root, assignments)
    only = assignment_named(assignment, assignments) if assignment else None
    if assignment and only is None:
        raise ValueError(f"no assignment {assignment}; there are {', '.join(assignments)}")
    sheet = read_worksheet(worksheet, course.zone) if worksheet else None
    roster = StudentIndex(known_people(root, course, db), sheet)
    with Archive(path, course.zone) as archive:
        run = _Run(archive, root, release, assignments, only, course, roster, archive_times)
        run.read()
        run.place()
    return run.result


class _Run:
    def __init__(
        self,
        archive: Archive,
        root: Path,
        release: Path,
        assignments: Sequence[str],
        only: str | None,
        course: CourseFile,
        roster: StudentIndex,
        archive_times: bool,
    ):
        self.root, self.release, self.assignments, self.only = root, release, assignments, only
        self.archive, self.uncharged = archive, archive.left
        self.course, self.roster, self.archive_times = course, roster, archive_times
        self.result = CollectResult()
        self.found: list[CollectedNotebook] = []
        self.theirs: list[
            tuple[str, CollectedNotebook]
        ] = []  # by student: a group's is each member's
        self.everybody: dict[tuple[str, str, str], ArchiveEntry] = {}  # by system, number and name
        self.empty: dict[
            tuple[str, str, str], str
        ] = {}  # who handed in no notebook, and what instead
        self.counts = Counter[tuple[str, str, str]]()  # of their files
        self.sizes = Counter[tuple[str, str, str]]()  # what was read of theirs, in bytes

    # --- reading ---

    def read(self) -> None:
        """Take the notebooks out of the archive; report what else there is."""
        known, entry_times = 0, set[datetime | None]()
        for member in self.archive.members():
            if not isinstance(member, Member):
                self.result.problems.append(f"{member[0]}: refused, {member[1]}")
                known += 1
                continue
            found = entry_of(member)
            if found is None:
                self.result.problems.append(f"{shown(member.name)}: not named as by {TITLES}")
                continue
            known += 1
            entry_times.add(member.moment)
            self.everybody.setdefault(found.owner, found)
            self._take(member, found)
            self._charge(found.owner)
        if not known:
            names = " or ".join(f"{one.example} ({one.title})" for one in SYSTEMS.values())
            raise ValueError(f"{self.archive.path.name}: expected names such as {names}, got none")
        self._match()
        self._tell_of_times(entry_times)
        for who in self.counts:
            if self._has_too_much(who):
                label = shown(self.everybody[who].label)
                text = f"{self.counts[who]} files, too many or too large to look at all of them"
                self.result.problems.append(f"{label} ({who[1]}): {text}")
        with_one = {found.entry.owner for found in self.found}
        for who, what in self.empty.items():
            if who not in with_one:
                label = shown(self.everybody[who].label)
                self.result.problems.append(f"{label} ({who[1]}): no notebook, but {what}")

    def _take(self, member: Member, found: ArchiveEntry) -> None:
        who, name = found.owner, shown(found.filename)
        self.counts[who] += 1
        if self._has_too_much(who):
            return
        if found.kind != FILE:
            self.empty.setdefault(who, f"{found.kind} in {name}")
            return
        if member.inner is None and found.filename.casefold().endswith(".zip"):
            self._open(member, found)
            return
        is_script = found.filename.casefold().endswith(SUFFIX)
        if not is_script and not NOTEBOOK.search(found.filename):
            self.empty.setdefault(who, name)
            text = f"{shown(found.label)}: {name} is not a notebook; left there"
            self.result.remarks.append(text)
            return
        try:
            data = self._data(member)
        except RefusedArchive as why:
            self.empty.setdefault(who, f"{name}, which was refused")
            self.result.problems.append(f"{shown(member.name)}: refused, {why}")
            return
        if is_script and not self._answering(data):
            self.empty.setdefault(who, name)
            text = f"{name} is a script that answers no exercise; left there"
            self.result.remarks.append(f"{shown(found.label)}: {text}")
            return
        self.found.append(self._found(found, data, member))

    def _data(self, member: Member) -> bytes:
        """A notebook, or a script as one. Raises `RefusedArchive`."""
        data = self.archive.read(member)
        return notebook_of(data) if member.name.casefold().endswith(SUFFIX) else data

    def _answering(self, data: bytes) -> str | None:
        """The assignment of which a script answers the most exercises, if that is one."""
        names = names_answered(data)
        there = self.assignments if self.only is None else [self.only]
        count = {a: answers_named(names, self.release / a / f"{a}.ipynb") for a in there}
        best = [a for a in there if count[a] and count[a] == max(count.values())]
        return best[0] if len(best) == 1 else None

    def _open(self, member: Member, found: ArchiveEntry) -> None:
        """Look into an archive that a student has handed in."""
        who = found.owner
        try:
            for inner in self.archive.members_within(member):
                if isinstance(inner, Member):
                    name = inner.parts[-1]
                    self._charge(who)
                    self._take(inner, replace(found, filename=name))
                else:
                    self.result.problems.append(f"{inner[0]}: refused, {inner[1]}")
        except RefusedArchive as why:
            self.result.problems.append(f"{shown(member.name)}: refused, {why}")
        self.empty.setdefault(who, shown(found.filename))

    def _charge(self, who: tuple[str, str, str]) -> None:
        """Count what was read since the last time as a participant's."""
        self.sizes[who] += self.uncharged - self.archive.left
        self.uncharged = self.archive.left

    def _has_too_much(self, who: tuple[str, str, str]) -> bool:
        return self.counts[who] > MAX_FILES or self.sizes[who] > MAX_SIZE

    def _found(self, found: ArchiveEntry, data: bytes, member: Member) -> CollectedNotebook:
        seems = assignment_of(data, found.filename, self.release, self.assignments)
        if seems is None and found.filename.casefold().endswith(SUFFIX):
            seems = self._answering(data)
        assignment = seems or self.only or UNKNOWN
        released = self.release / assignment / f"{assignment}.ipynb"
        effort = effort_in(data, released) if assignment != UNKNOWN else ANSWERED
        return CollectedNotebook(found, assignment, member, effort)

    def _with_time(self, found: CollectedNotebook, one: ArchiveEntry) -> CollectedNotebook:
        """A notebook as a student's, with what is known of its time."""
        row = self.roster.row_of(one)
        moment, said = (row.moment, row.stated_time) if row else (None, "")
        if moment is None and one.time:
            moment, said = moment_in(one.time, self.course.zone), said or one.time
        if moment is None and self.archive_times:
            moment = found.member.moment
        return replace(found, entry=one, moment=moment, stated_time=said)

    def _tell_of_times(self, entries: set[datetime | None]) -> None:
        sheet = self.roster.sheet
        self.result.problems += sheet.problems if sheet else ()
        if self.theirs and not any(found.moment or found.stated_time for _, found in self.theirs):
            times = sorted(moment for moment in entries if moment)
            text = "no times are known, so nobody is late by this archive"
            if times and (times[-1] - times[0]).total_seconds() > 3600:
                text += (
                    f"; its files bear times from {times[0]:%Y-%m-%d %H:%M} to "
                    f"{times[-1]:%Y-%m-%d %H:%M} UTC: if that is when they were handed in, "
                    "use --archive-times"
                )
            self.result.remarks.append(text)
        late = {shown(h.label): h.system.title for h in self.everybody.values() if h.late}
        if late and not any(found.moment for _, found in self.theirs):
            who, said = ", ".join(sorted(late)), next(iter(late.values()))
            self.result.remarks.append(f"{said} says LATE, without a time, for {who}")

    # --- placing ---

    def place(self) -> None:
        """Put each student's newest notebook in its place, and the others beside."""
        groups: dict[tuple[str, str], list[CollectedNotebook]] = {}
        for student, found in self.theirs:
            if found.assignment == UNKNOWN:
                why = f"{student}: cannot tell which chapter {shown(found.entry.filename)} is"
                self._put_aside(found, f"{why}; use --assignment, or rename it")
            elif self.only and found.assignment != self.only:
                what = f"{shown(found.entry.filename)} is a notebook of {found.assignment}"
                self._put_aside(found, f"{student}: {what}, not of {self.only}")
            else:
                groups.setdefault((found.assignment, student), []).append(found)
        records = {name: read_record(self.root, name) for name in {key[0] for key in groups}}
        for (assignment, student), candidates in sorted(groups.items()):
            *others, best = sorted(candidates, key=newness)
            for other in others:
                data = self._data(other.member)
                self._keep_earlier(student, other, data, why_other(other, best))
            try:
                outcome = self._place(student, best, records[assignment].get(student))
            except (OSError, PathOccupied) as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                self._put_aside(best, f"{student}: {getattr(error, 'strerror', None) or error}")
                continue
            self.result.outcomes[student, assignment] = outcome
            if outcome != OLDER:
                records[assignment][student] = self._where_from(best)
            if self.course.withdrawn(student):
                self.result.remarks.append(f"{student} has withdrawn, and will not be graded")
        for assignment, places in records.items():
            write_record(self.root, assignment, places)

    def _match(self) -> None:
        """Find the students of each notebook; put aside what is nobody's, or might be another's."""
        self.everybody = identify_system(self.everybody, self.roster.numbers)
        namesakes = same_names(self.everybody.values())
        members = {w: self.roster.members(one, namesakes) for w, one in self.everybody.items()}
        whose: dict[str, set[tuple[str, str, str]]] = {}
        for who, listed in members.items():
            for student in (one[0] for one in listed if not isinstance(one, str)):
                whose.setdefault(student, set()).add(who)
        for found in self.found:
            for one in members[found.entry.owner]:
                if isinstance(one, str):
                    self._put_aside(found, one)
                    continue
                student, row = one
                several = sorted(whose[student])
                if len(several) > 1:
                    labels = ", ".join(
                        f"{shown(self.everybody[w].label)} ({w[1]})" for w in several
                    )
                    self._put_aside(found, f"{labels}: each would be {student}, so none is")
                else:
                    whole = self.everybody[found.entry.owner]
                    handed = replace(found.entry, label=whole.label, number=whole.number)
                    handed = self.roster.of_member(handed, row) if row else handed
                    self.theirs.append((student, self._with_time(found, handed)))

    def _put_aside(self, found: CollectedNotebook, why: str) -> None:
        folder = folder_of(self.root, self.only or found.assignment) / "aside"
        whose = safe_file(f"{found.entry.label}_{found.entry.number}")
        kept = keep(folder / whose, found.entry.filename, self._data(found.member))
        self.result.problems.append(f"{why}; kept in {kept.relative_to(self.root)}")

    def _keep_earlier(self, student: str, found: CollectedNotebook, data: bytes, why: str) -> None:
        folder = folder_of(self.root, found.assignment) / "earlier" / student
        stamp = f"{found.moment:%Y-%m-%d %H%M%S} " if found.moment else ""
        kept = keep(folder, stamp + found.entry.filename, data)
        name = shown(found.entry.filename)
        kept = kept.relative_to(self.root)
        self.result.remarks.append(f"{student}: {name} is in {kept}, since {why}")

    def _place(self, student: str, found: CollectedNotebook, before: Origin | None) -> str:
        """Put a notebook in its place, unless a newer one is there; return what was done."""
        folder = home(self.root / "submitted", student) / found.assignment
        if folder.parent.parent.is_symlink():
            raise ValueError(f"{folder.parent.parent} is a link: expected the course's own folder")
        for path in (folder.parent, folder):
            if path.is_symlink():
                raise PathOccupied(f"{path} is a link: expected a folder of the course's own")
            if os.path.lexists(path) and not path.is_dir():
                raise PathOccupied(f"{path} is not a folder: move it away, and collect again")
        target = folder / f"{found.assignment}.ipynb"
        stamp = folder / TIME
        if os.path.isdir(stamp):
            raise PathOccupied(f"{stamp} is a folder: move it away, and collect again")
        there, data = read_there(target), self._data(found.member)
        if there == data:
            _write_time(stamp, found, keep=True)
            return SAME
        if there is None:
            _write(target, stamp, data, found)
            return NEW
        said = timestamp_in(stamp, self.course.zone)
        at = parse_utc(said).replace(tzinfo=UTC) if said else None
        effort = effort_in(there, self.release / found.assignment / target.name)
        if min(effort, found.effort) < ANSWERED and effort != found.effort:
            if found.effort < effort:
                self._keep_earlier(student, found, data, LESS)
                return OLDER
            self._keep_earlier(student, replace(found, moment=at), there, LESS)
            _write(target, stamp, data, found)
            return NEWER
        if is_older(found, at, before):
            self._keep_earlier(student, found, data, "a newer one is in its place")
            return OLDER
        self._keep_earlier(student, replace(found, moment=at), there, "a newer one is in its place")
        _write(target, stamp, data, found)
        return NEWER

    def _where_from(self, found: CollectedNotebook) -> Origin:
        one, row = found.entry, self.roster.row_of(found.entry)
        return Origin(
            one.system.name,
            one.number,
            one.label,
            one.prefix,
            one.filename,
            one.in_folder,
            one.file_number,
            one.late,
            row.name if row else "",
            row.email if row else "",
            row.logins[0] if row and row.logins else "",
        )


def _write(target: Path, stamp: Path, data: bytes, found: CollectedNotebook) -> None:
    put(target, data, 0o644)
    _write_time(stamp, found)


def _write_time(stamp: Path, found: CollectedNotebook, keep: bool = False) -> None:
    """Write when a notebook came, for nbgrader; without a time, remove an old one unless `keep`.

    A time that cannot be read is written as it is: whoever grades is told of it.
    """
    text = f"{found.moment:%Y-%m-%d %H:%M:%S} UTC" if found.moment else shown(found.stated_time)
    if text:
        if timestamp_in(stamp) != text:
            put(stamp, text.encode(), 0o644)
    elif not keep:
        stamp.unlink(missing_ok=True)
