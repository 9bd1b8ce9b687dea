"""What is known of the values that right answers pass through on the fixed inputs, as data.

`autograder release` writes a `.paths` file for each exercise. It holds keys (`engine.signatures`):
no values, no names, no source. What it tells is told in `engine.known`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.locator.known_values import MADE, KeyUse, KnownValues
from autograder.student.engine.locator.signatures import KEY_BYTES
from autograder.student.expected import file_of
from autograder.student.expected.entries import Entries, pack, unpack

PLANES = (*reversed(range(KEY_BYTES)),)


@dataclass(frozen=True)
class Paths:
    """What is known on each fixed run of an exercise, a sequence for each aspect.

    `digest` is that of the runs, `made_of` that of the right answers.
    """

    digest: str
    made_of: str
    runs: Sequence[Sequence[KnownValues]]


def dump(entry: Paths) -> bytes:
    """An entry as the bytes of its file."""
    return pack(_tree(entry))


def parse(data: bytes) -> Paths:
    """The entry in the bytes of a file."""
    return unpack(data, _paths)


@cache
def paths_of(slug: str) -> Entries[Paths]:
    """A chapter's entries, those that `autograder release` has made."""
    return Entries(file_of(slug), ".paths", _paths)


def _tree(entry: Paths) -> dict[str, object]:
    every = [known for row in entry.runs for known in row]
    sets = [[sorted(p) for p in (k.same, k.loose, k.rays)] for k in every]
    steps = [np.diff(part, prepend=0) for parts in sets for part in parts]
    marks = [known.same[key] for known in every for key in sorted(known.same)]
    made = [[known.made >> 32 * i & 0xFFFFFFFF for i in range(MADE // 32)] for known in every]
    return {
        "digest": entry.digest,
        "made_of": entry.made_of,
        "rows": [len(row) for row in entry.runs],
        "sizes": np.array([[len(part) for part in parts] for parts in sets], "<u4"),
        "steps": _in_planes(np.concatenate(steps) if steps else np.array([])),
        "followed": np.array([mark.followed for mark in marks], "<u4"),
        "dtypes": np.array([mark.dtypes for mark in marks], "u1"),
        "cut": np.array([mark.cut for mark in marks], "u1"),
        "made": np.array(made, "<u4"),
    }


def _in_planes(numbers: np.ndarray) -> np.ndarray:
    """The highest byte of each number, then the next: sorted, keys differ by little, and their
    highest bytes are alike."""
    return np.stack([numbers.astype("<u4") >> 8 * i & 255 for i in PLANES]).astype("u1")


def _from_planes(planes: np.ndarray) -> np.ndarray:
    return sum(plane.astype("<i8") << 8 * i for plane, i in zip(planes, PLANES, strict=True))


def _paths(tree: Mapping[str, Value]) -> Paths:
    names = ("sizes", "steps", "followed", "dtypes", "cut", "made")
    sizes, steps, *marks, made = (tree[name].data for name in names)
    ends = sizes.ravel().cumsum()
    parts = (p.cumsum().tolist() for p in np.split(_from_planes(steps), ends[:-1]))
    columns = zip(*(column.tolist() for column in reversed(marks)), strict=True)
    every = []
    for words in made.tolist():
        found, loose, rays = next(parts), frozenset(next(parts)), frozenset(next(parts))
        marked = {k: KeyUse(d, f, bool(c)) for k, (c, d, f) in zip(found, columns, strict=False)}
        done = sum(word << 32 * i for i, word in enumerate(words))
        every.append(KnownValues(marked, loose, rays, done))
    rest = iter(every)
    runs = [[next(rest) for _ in range(size)] for size in tree["rows"]]
    return Paths(tree["digest"], tree["made_of"], runs)
