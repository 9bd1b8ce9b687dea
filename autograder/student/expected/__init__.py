"""What the reference and the known mistakes give on the fixed inputs of `check`, as data.

Only results are kept here, so that a notebook can compare without holding the reference.
`autograder release` writes the files.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.student import course
from autograder.student.engine.arrays import Value
from autograder.student.engine.records import record_from, record_tree
from autograder.student.engine.runs import Exercise, Record, Run
from autograder.student.engine.verdict import Mistake
from autograder.student.expected.entries import Entries, pack, unpack
from autograder.student.expected.fingerprints import fingerprint

SEED = b"the inputs of check"
_DIGEST = re.compile(rb'"digest", "([0-9a-f]{64}[ .0-9-]*)"')  # comes first in what `encode` writes


@dataclass(frozen=True)
class ExpectedValues:
    """The reference's records on the fixed runs, the mistakes' ones, and the runs' fingerprint."""

    digest: str
    reference: Sequence[Sequence[Record]]
    mistakes: Sequence[Mistake]


def fixed_runs(exercise: Exercise) -> list[list[Run]]:
    """The runs that `check` makes, the same for everybody; drawn once."""
    return _fixed_runs(exercise)[0]


def fixed_digest(exercise: Exercise) -> str:
    """The fingerprint of these runs."""
    return _fixed_runs(exercise)[1]


# By identity: an exercise holds mappings, and so has no hash. Being kept, it keeps its id.
_FIXED: dict[int, tuple[list[list[Run]], str, Exercise]] = {}


def _fixed_runs(exercise: Exercise) -> tuple[list[list[Run]], str, Exercise]:
    found = _FIXED.get(id(exercise))
    if found is None:
        runs = exercise.runs(SEED + exercise.name.encode())
        found = _FIXED[id(exercise)] = (runs, fingerprint(runs), exercise)
    return found


def dump(entry: ExpectedValues) -> bytes:
    """An entry as the bytes of its file."""
    return pack(tree_of(entry))


def tree_of(entry: ExpectedValues) -> dict[str, object]:
    """The same before it is encoded and compressed."""
    return {
        "digest": entry.digest,
        "reference": _rows_tree(entry.reference),
        "mistakes": [[m.name, m.cause, _rows_tree(m.records)] for m in entry.mistakes],
    }


def entry_from(tree: Mapping[str, Value]) -> ExpectedValues:
    """The entry that `tree_of` has made a tree of."""
    mistakes = [Mistake(title, cause, _rows(rows)) for title, cause, rows in tree["mistakes"]]
    return ExpectedValues(tree["digest"], _rows(tree["reference"]), mistakes)


def file_of(name: str) -> Path:
    """The path of a file of the course's results, or of a chapter's folder."""
    return course.folder("expected") / name


def read(path: Path) -> ExpectedValues:
    """The entry in a file."""
    return unpack(path.read_bytes(), entry_from)


@cache
def expected_of(slug: str) -> Entries[ExpectedValues]:
    """A chapter's entries, those that `autograder release` has made."""
    return Entries(file_of(slug), ".bin", entry_from)


def reference_of(slug: str, name: str) -> list[list[Record]]:
    """The reference's records of an entry."""
    return expected_of(slug).part(name, "reference", _rows)


def entry_of(slug: str, exercise: Exercise) -> ExpectedValues:
    """An exercise's entry. One that is not recorded has empty records and no mistakes."""
    if exercise.recorded:
        return expected_of(slug)[exercise.name]
    runs = fixed_runs(exercise)
    return ExpectedValues(fixed_digest(exercise), [[Record() for _ in row] for row in runs], ())


def digest_kept(slug: str, exercise: Exercise) -> str:
    """The fingerprint of the runs that an exercise's entry was made for, without reading the rest.

    Raises `KeyError` if the exercise has no entry.
    """
    if not exercise.recorded:
        return fixed_digest(exercise)
    found = _DIGEST.search(expected_of(slug).beginning(exercise.name))
    return found[1].decode() if found else entry_of(slug, exercise).digest


def _rows_tree(rows: Sequence[Sequence[Record]]) -> list:
    return [[record_tree(record) for record in row] for row in rows]


def _rows(tree: list) -> list[list[Record]]:
    return [[record_from(record) for record in row] for row in tree]
