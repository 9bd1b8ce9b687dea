"""The learning management systems that are known, and what is read before one knows which it is.

TRUST BOUNDARY. Names and tables come from outside. They are compared here, and no file is opened by
them but the table that the instructor names.
"""

from collections.abc import Collection, Mapping
from datetime import tzinfo
from pathlib import Path

from autograder.lms.blackboard import Blackboard
from autograder.lms.canvas import Canvas
from autograder.lms.moodle import Moodle
from autograder.lms.system import ArchiveEntry, System
from autograder.lms.worksheet import Worksheet, read_list, read_table, refuse_doubles
from autograder.notebook.archive import Member

# Canvas comes last: a number in a student's own file name can look like its numbers.
SYSTEMS: dict[str, System] = {one.name: one for one in (Moodle(), Blackboard(), Canvas())}
NAMES = " or ".join(sorted(SYSTEMS))
_TITLES = sorted(one.title for one in SYSTEMS.values())
TITLES = f"{', '.join(_TITLES[:-1])} or {_TITLES[-1]}"


def entry_of(member: Member) -> ArchiveEntry | None:
    """What an archive's member is by its name; None if no system names files so."""
    found = (system.entry_of(member) for system in SYSTEMS.values())
    return next((entry for entry in found if entry), None)


def identify_system(
    entries: Mapping[tuple[str, str, str], ArchiveEntry], known: Collection[str]
) -> dict[tuple[str, str, str], ArchiveEntry]:
    """An archive's people, an entry each, with the numbers by which each system knows them."""
    found = dict(entries)
    for system in SYSTEMS.values():
        theirs = {who: one for who, one in entries.items() if one.system is system}
        found |= zip(theirs, system.tell_apart([*theirs.values()], known), strict=True)
    return found


def read_worksheet(path: Path, zone: tzinfo) -> Worksheet:
    """Read a table of a system's, or a list of people; times without a zone are `zone`'s.

    Raises `ValueError` if it is unusable.
    """
    sheet = read_table(path)
    own = next((one for one in SYSTEMS.values() if one.recognises(sheet)), None)
    if own is None:
        read_list(sheet)
    else:
        sheet.system = own.name
        own.read(sheet, zone)
    if not sheet.people:
        raise ValueError(
            f"{path.name}: expected a column of names, addresses or ids, got "
            f"{', '.join(sheet.head[:8])}"
        )
    refuse_doubles(sheet)
    return sheet
