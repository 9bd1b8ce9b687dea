"""What `check` compares with is made anew where something that decides about it has changed."""

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autograder.expected as store
from autograder.exercises import CHAPTERS
from autograder.expected.entries import Entries
from autograder.publishing import expected_values
from autograder.publishing.expected_values import make_expected, recorded, write_expected

SLUG = "masking"
FILE = Path(store.__file__).parent / f"{SLUG}.bin"


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The exercises whose results were computed, of two; they are those on file, and hold."""
    names, few, entries = list[str](), recorded(SLUG)[:2], store.expected_of(SLUG)

    def computed(slug, exercise):
        names.append(exercise.name)
        return entries[exercise.name]

    monkeypatch.setattr(expected_values, "make_expected", computed)
    monkeypatch.setattr(expected_values, "recorded", lambda slug: few)
    monkeypatch.setattr(store, "parse", lambda data: entries)  # read once is enough
    monkeypatch.setattr(expected_values, "_still_holds", lambda *entries: True)
    return names


def test_what_was_found_to_hold_is_not_computed_again(made, tmp_path):
    before = FILE.read_bytes()
    assert not write_expected(SLUG, tmp_path / "seen")
    assert made == [exercise.name for exercise in recorded(SLUG)[:2]]
    assert not write_expected(SLUG, tmp_path / "seen")
    assert len(made) == 2
    assert FILE.read_bytes() == before


@pytest.mark.parametrize("what", ["the code", "NumPy", "the file"])
def test_it_is_after_a_change_of(what, made, tmp_path, monkeypatch):
    write_expected(SLUG, tmp_path)
    if what == "the code":
        monkeypatch.setattr(expected_values, "version_of", lambda slugs: "another")
    elif what == "NumPy":
        monkeypatch.setattr(np, "__version__", "another")
    else:
        other = next(slug for slug in CHAPTERS if slug != SLUG)
        (tmp_path / SLUG).write_text(expected_values._made_of(SLUG, FILE.with_stem(other)))
    write_expected(SLUG, tmp_path)
    assert len(made) == 4


def test_what_a_mistake_gives_is_compared():
    exercise = recorded(SLUG)[0]
    entry = store.expected_of(SLUG)[exercise.name]
    runs = store.fixed_runs(exercise)
    assert expected_values._same_entry(entry, make_expected(SLUG, exercise), runs)
    first = entry.mistakes[0].records
    swapped = [replace(m, records=first) for m in entry.mistakes[:2]]
    wrong = store.Expected(entry.digest, entry.reference, [*swapped, *entry.mistakes[2:]])
    assert not expected_values._same_entry(entry, wrong, runs)


def test_an_entry_is_decoded_when_it_is_needed_and_only_then():
    decoded = []

    def read(tree: object) -> object:
        decoded.append(tree)
        return tree

    packed = store.packed({name: store.expected_of(SLUG)[name] for name in store.expected_of(SLUG)})
    entries = Entries(packed, read)
    first, second, *_ = names = list(store.expected_of(SLUG))
    assert list(entries) == names and len(entries) == len(names) and decoded == []
    assert entries[second]["digest"] == store.expected_of(SLUG)[second].digest
    assert entries[second] is entries[second] and len(decoded) == 1
    assert first in entries and "another" not in entries
    assert entries.get("another") is None
    assert len(decoded) == 1 and gc.isenabled()
