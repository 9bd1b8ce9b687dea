"""Writes `expected/` of a course: the results that `check` compares with, from the reference.

TRUST BOUNDARY. Runs on the author's machine, on our own code only.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import autograder.student.expected as store
from autograder.judge.dependencies import code_of_expected_values, digest_of, without_docstrings
from autograder.judge.reference import expected, known_mistakes
from autograder.student.course import exercises_of
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.records import record_tree
from autograder.student.engine.runs import Array, Exercise, Record
from autograder.student.engine.verdict import Mistake, without_traceback
from autograder.student.expected.entries import unpack
from autograder.student.expected.fingerprints import same_runs

HELD = "held.json"  # beside them: the code by which each chapter's files were found to hold


def make_expected(slug: str, exercise: Exercise) -> store.ExpectedValues:
    """The reference's and the mistakes' records on the fixed runs of one exercise."""
    runs = store.fixed_runs(exercise)
    reference = expected(slug, exercise.name, runs)
    return entry_of_records(exercise, reference, known_mistakes(slug, exercise.name, runs))


def entry_of_records(
    exercise: Exercise, reference: Sequence[Sequence[Record]], mistakes: Iterable[Mistake]
) -> store.ExpectedValues:
    """What is kept of records on the fixed runs of an exercise."""
    stripped_mistakes = [Mistake(m.name, m.cause, _strip(m.records)) for m in mistakes]
    return store.ExpectedValues(store.fixed_digest(exercise), _strip(reference), stripped_mistakes)


def exercises_with_expected(slug: str) -> list[Exercise]:
    """The exercises of a chapter whose results are kept."""
    return [exercise for exercise in exercises_of(slug) if exercise.recorded]


def write_expected(slug: str, held: Path | None = None) -> list[Path]:
    """Bring a chapter's files up to date; return those that had to be written or removed.

    A file whose numbers still agree within the tolerances is left unchanged, so that rounding on
    another processor changes no byte. What the same code has found to agree, here or on the
    author's machine, is not computed again: `held` is the file that records this.
    """
    held = held or store.file_of(HELD)
    paths = files(slug)
    changed = drop_others(slug, ".bin")
    if not changed and read_checked(held).get(slug) == fingerprint_of(slug, paths.values()):
        return []
    for exercise in exercises_with_expected(slug):
        path, made = paths[exercise.name], make_expected(slug, exercise)
        if not is_current(path, exercise, made):
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(store.dump(made))
            changed.append(path)
    store.expected_of.cache_clear()
    known = read_checked(held) | {slug: fingerprint_of(slug, paths.values())}
    held.parent.mkdir(parents=True, exist_ok=True)
    held.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return changed


def files(slug: str) -> dict[str, Path]:
    """The files of a chapter's exercises whose results are kept."""
    return {e.name: store.file_of(f"{slug}/{e.name}.bin") for e in exercises_with_expected(slug)}


def read_checked(held: Path) -> dict[str, str]:
    """By chapter, the fingerprint with which its files were last found to hold."""
    return json.loads(held.read_text(encoding="utf-8")) if held.is_file() else {}


def is_current(path: Path, exercise: Exercise, made: store.ExpectedValues) -> bool:
    """Whether a file holds what an exercise's reference and mistakes give now, as `made`."""
    read = unpack(store.dump(made), store.entry_from)
    runs = store.fixed_runs(exercise)
    return path.is_file() and _same_entry(store.read(path), read, runs)


def drop_others(slug: str, suffix: str) -> list[Path]:
    """Remove a chapter's files of exercises that it no longer has; return them."""
    names = {exercise.name for exercise in exercises_with_expected(slug)}
    others = [f for f in sorted(store.file_of(slug).glob(f"*{suffix}")) if f.stem not in names]
    for file in others:
        file.unlink()
    return others


def fingerprint_of(slug: str, paths: Iterable[Path]) -> str:
    """A fingerprint of a chapter's files and of all that decides what they should hold."""
    code = digest_of([*code_of_expected_values([slug]), *paths], without_docstrings)
    return f"{code} torch {_version_of_torch()} numpy {np.__version__}"


def _version_of_torch() -> str:
    with suppress(PackageNotFoundError):  # a course may do without
        return version("torch").partition("+")[0]  # whatever it was built for
    return ""


def _same_entry(old: store.ExpectedValues, new: store.ExpectedValues, runs: list) -> bool:
    titles = [[(m.name, m.cause) for m in entry.mistakes] for entry in (old, new)]
    if not same_runs(old.digest, new.digest) or titles[0] != titles[1]:
        return False
    pairs = [(old.reference, new.reference)]
    pairs += [(a.records, b.records) for a, b in zip(old.mistakes, new.mistakes, strict=True)]
    return all(
        equal(runs, a, b) and equal(runs, b, a) and _outline(a) == _outline(b) for a, b in pairs
    )


def _outline(rows: object) -> object:
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


def _strip(rows: Sequence[Sequence[Record]]) -> list[list[Record]]:
    return [[without_traceback(record) for record in row] for row in rows]
