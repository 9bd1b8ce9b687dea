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


def complete(entry: Entry) -> Entry:
    """An entry, with what it leaves out, cause or change, from the shared mistake of its name.

    Raises `ValueError` if its change takes an argument and the entry gives none, or the other way
    round.
    """
    ours = course.root() / "solutions" / "mistakes" / OURS.name
    shared = _read_shared(ours).get(entry.name) or _read_shared(OURS).get(entry.name)
    source = entry if shared is None or _changes(entry) else shared
    wanted = None if source is entry else source.argument
    if (entry.argument is None) != (wanted is None):
        given, right = _mistake_name(entry.name, entry.argument), _mistake_name(entry.name, wanted)
        raise ValueError(f"{entry.what}: expected {right}, got {given}")

    def filled(code: str) -> str:
        return re.sub(rf"\b{wanted}\b", str(entry.argument), code) if wanted else code

    return entry._replace(
        cause=entry.cause or (shared.cause if shared else ""),
        edits=[e._replace(old=filled(e.old), new=filled(e.new)) for e in source.edits],
        before=filled(source.before),
        after=filled(source.after),
    )


def _changes(entry: Entry) -> bool:
    return bool(entry.edits or entry.before or entry.after)


def _mistake_name(name: str, argument: str | None) -> str:
    return f"{name}({argument})" if argument else name


@cache
def _read_shared(file: Path) -> Mapping[str, Entry]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return {entry.name: entry for entry in entries(text, f"{file.parent.name}/{file.name}")}
