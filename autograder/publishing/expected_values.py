"""Writes `autograder/expected/`: the results that `check` compares with, from the reference.

TRUST BOUNDARY. Runs on the author's machine, on our own code only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import autograder.expected as store
from autograder.engine.records import record_tree
from autograder.engine.runs import Array, Exercise, Record
from autograder.engine.verdict import Mistake, equal, stripped
from autograder.exercises import exercises_of
from autograder.grader.reference import expected, known_mistakes


def make_expected(slug: str, exercise: Exercise) -> store.Expected:
    """The reference's and the mistakes' records on the fixed runs of one exercise."""
    runs = store.fixed_runs(exercise)
    reference = _stripped(expected(slug, exercise.name, runs))
    mistakes = [
        Mistake(m.name, m.cause, _stripped(m.records))
        for m in known_mistakes(slug, exercise.name, runs)
    ]
    return store.Expected(store.digest(runs), reference, mistakes)


def write_expected(slug: str) -> bool:
    """Bring a chapter's file up to date, and say whether it had to be written.

    A file whose numbers still agree within the tolerances is left unchanged, so that rounding on
    another processor changes no byte.
    """
    path = Path(store.__file__).parent / f"{slug}.bin"
    made = store.dump({e.name: make_expected(slug, e) for e in exercises_of(slug)})
    if path.is_file() and _still_holds(store.parse(path.read_bytes()), store.parse(made), slug):
        return False
    path.write_bytes(made)
    store.expected_of.cache_clear()
    return True


def _still_holds(old: dict, new: dict, slug: str) -> bool:
    if list(old) != list(new):
        return False
    return all(
        _same_entry(old[e.name], new[e.name], store.fixed_runs(e)) for e in exercises_of(slug)
    )


def _same_entry(old: store.Expected, new: store.Expected, runs: list) -> bool:
    titles = [[(m.name, m.cause) for m in entry.mistakes] for entry in (old, new)]
    if old.digest != new.digest or titles[0] != titles[1]:
        return False
    pairs = [(old.reference, new.reference)]
    pairs += [(a.records, b.records) for a, b in zip(old.mistakes, new.mistakes, strict=True)]
    return all(
        equal(runs, a, b) and equal(runs, b, a) and _outline(a) == _outline(b) for a, b in pairs
    )


def _outline(rows: Any) -> Any:
    """Everything in records but the numbers: dtypes, shapes, exceptions, side effects."""
    if isinstance(rows, Array):
        return rows.kind, rows.dtype, rows.data.shape
    if isinstance(rows, Record):
        return _outline(record_tree(rows))
    if isinstance(rows, Mapping):
        return {name: _outline(item) for name, item in rows.items()}
    if isinstance(rows, list | tuple):
        return [_outline(item) for item in rows]
    return None if isinstance(rows, float) else rows


def _stripped(rows: list) -> list:
    return [[stripped(record) for record in row] for row in rows]
