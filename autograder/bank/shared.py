"""Mistakes that exercises share, so that their changes and causes are written once.

The grader's stand in `shared.txt` beside this module, a course's own in
`solutions/mistakes/shared.txt`.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from autograder.bank.change import Entry, entries
from autograder.student import course

OURS = Path(__file__).with_suffix(".txt")


def completed(entry: Entry) -> Entry:
    """An entry, with what it leaves out, cause or change, from the shared mistake of its name.

    Raises `ValueError` if that takes an argument and the entry gives none, or the other way round.
    """
    changed = bool(entry.edits or entry.before or entry.after)
    if changed and entry.cause:
        return entry
    shared = _shared(course.root() / "solutions" / "mistakes" / OURS.name).get(entry.name)
    shared = shared or _shared(OURS).get(entry.name)
    if shared is None:
        return entry
    entry = entry._replace(cause=entry.cause or shared.cause)
    if changed:
        return entry
    if (entry.argument is None) != (shared.argument is None):
        raise ValueError(f"{entry.what}: expected {_called(shared)}, got {_called(entry)}")

    def filled(code: str) -> str:
        return re.sub(rf"\b{shared.argument}\b", entry.argument or "", code)

    edits = [e._replace(old=filled(e.old), new=filled(e.new)) for e in shared.edits]
    return entry._replace(edits=edits, before=filled(shared.before), after=filled(shared.after))


def _called(entry: Entry) -> str:
    return entry.name + (f"({entry.argument})" if entry.argument else "")


@cache
def _shared(file: Path) -> Mapping[str, Entry]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return {entry.name: entry for entry in entries(text, f"{file.parent.name}/{file.name}")}
