"""What `check` compares with is made anew where something that decides about it has changed."""

import gc
import json
from dataclasses import replace

import numpy as np
import pytest

import autograder.student.expected as store
from autograder.publishing import expected_values
from autograder.publishing.expected_values import (
    HELD,
    exercises_with_expected,
    files,
    fingerprint_of,
    make_expected,
    read_checked,
    write_expected,
)
from autograder.student.course import chapters
from autograder.student.engine.runs import Array, Record
from autograder.student.engine.values import MAX_BYTES
from autograder.student.expected.entries import Entries, unpack

pytestmark = pytest.mark.needs_torch  # as the course does

SLUG = "masking"
FOLDER = store.file_of(SLUG)


def test_an_entry_keeps_arrays_that_no_message_could_hold():
    """Small ones that come behind them, too."""
    arrays = [Array(np.full(MAX_BYTES // 16, float(i))) for i in range(3)]
    kept = Record((*arrays, Array(np.arange(3.0))))
    entry = store.ExpectedValues("0" * 64, [[kept]], ())
    (record,) = unpack(store.dump(entry), store.entry_from).reference[0]
    for value, original in zip(record.values, kept.values, strict=True):
        np.testing.assert_array_equal(value.data, original.data)


@pytest.mark.parametrize("slug", chapters())
def test_the_committed_files_are_known_to_hold_with_this_code(slug):
    """If not: run `autograder release --draft`, and commit what it writes."""
    known = read_checked(store.file_of(HELD))
    assert known.get(slug) == fingerprint_of(slug, files(slug).values())


def test_a_digest_is_read_without_the_rest_of_its_file(monkeypatch):
    kept = {e.name: store.entry_of(SLUG, e).digest for e in exercises_with_expected(SLUG)}
    monkeypatch.setattr(store, "entry_of", None)
    assert {e.name: store.digest_kept(SLUG, e) for e in exercises_with_expected(SLUG)} == kept


def held() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in FOLDER.glob("*.bin")}


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The exercises whose results were computed, of two; they are those on file, and hold."""
    names, few, entries = list[str](), exercises_with_expected(SLUG)[:2], store.expected_of(SLUG)

    def computed(slug, exercise):
        names.append(exercise.name)
        return entries[exercise.name]

    monkeypatch.setattr(expected_values, "make_expected", computed)
    monkeypatch.setattr(expected_values, "exercises_with_expected", lambda slug: few)
    monkeypatch.setattr(expected_values, "drop_others", lambda slug, suffix: [])
    monkeypatch.setattr(expected_values, "_same_entry", lambda *entries: True)
    return names


def test_what_was_found_to_hold_is_not_computed_again(made, tmp_path):
    before = held()
    assert not write_expected(SLUG, tmp_path / "held.json")
    assert made == [exercise.name for exercise in exercises_with_expected(SLUG)[:2]]
    assert not write_expected(SLUG, tmp_path / "held.json")
    assert len(made) == 2
    assert held() == before


@pytest.mark.share(0)
@pytest.mark.parametrize("what", ["the code", "NumPy", "a file"])
def test_it_is_after_a_change_of(what, made, tmp_path, monkeypatch):
    held = tmp_path / "held.json"
    write_expected(SLUG, held)
    if what == "the code":
        monkeypatch.setattr(expected_values, "code_of_expected_values", lambda slugs: [])
    elif what == "NumPy":
        monkeypatch.setattr(np, "__version__", "another")
    else:
        first, second = (
            FOLDER / f"{exercise.name}.bin" for exercise in exercises_with_expected(SLUG)[:2]
        )
        held.write_text(json.dumps({SLUG: fingerprint_of(SLUG, [first, first])}))
        assert first.read_bytes() != second.read_bytes()
    write_expected(SLUG, held)
    assert len(made) == 4


def test_a_file_that_does_not_hold_is_written_and_the_others_are_not(monkeypatch, tmp_path):
    first, second, *_ = exercises_with_expected(SLUG)
    for exercise in exercises_with_expected(SLUG):
        (tmp_path / SLUG).mkdir(exist_ok=True)
        held = (FOLDER / f"{exercise.name}.bin").read_bytes()
        (tmp_path / SLUG / f"{exercise.name}.bin").write_bytes(held)
    (tmp_path / SLUG / "gone.bin").write_bytes(b"of an exercise that is no more")
    entries, before = store.expected_of(SLUG), (tmp_path / SLUG / f"{first.name}.bin").read_bytes()
    monkeypatch.setattr(store, "file_of", tmp_path.joinpath)

    def computed(slug, exercise):
        entry = entries[exercise.name]
        return replace(entry, mistakes=entry.mistakes[1:]) if exercise == second else entry

    monkeypatch.setattr(expected_values, "make_expected", computed)
    written = write_expected(SLUG, tmp_path / "held.json")
    assert [path.name for path in written] == ["gone.bin", f"{second.name}.bin"]
    assert not (tmp_path / SLUG / "gone.bin").exists()
    assert (tmp_path / SLUG / f"{first.name}.bin").read_bytes() == before
    assert len(store.read(written[1]).mistakes) == len(entries[second.name].mistakes) - 1


def test_what_a_mistake_gives_is_compared():
    exercise = exercises_with_expected(SLUG)[0]
    entry = store.expected_of(SLUG)[exercise.name]
    runs = store.fixed_runs(exercise)
    assert expected_values._same_entry(entry, make_expected(SLUG, exercise), runs)
    first = entry.mistakes[0].records
    swapped = [replace(m, records=first) for m in entry.mistakes[:2]]
    wrong = store.ExpectedValues(entry.digest, entry.reference, [*swapped, *entry.mistakes[2:]])
    assert not expected_values._same_entry(entry, wrong, runs)


def test_the_reference_alone_is_read_as_the_entry_holds_it():
    for exercise in exercises_with_expected(SLUG)[:2]:
        entry = store.expected_of(SLUG)[exercise.name]
        alone = replace(entry, reference=store.reference_of(SLUG, exercise.name))
        assert store.dump(alone) == store.dump(entry)


def test_an_entry_is_read_when_it_is_needed_and_only_then():
    read = []

    def noted(tree: object) -> object:
        read.append(tree)
        return tree

    entries = Entries(FOLDER, ".bin", noted)
    first, second, *_ = sorted(exercise.name for exercise in exercises_with_expected(SLUG))
    assert {*entries} == {e.name for e in exercises_with_expected(SLUG)} and len(entries) == len(
        exercises_with_expected(SLUG)
    )
    assert read == []
    assert entries[second]["digest"] == store.expected_of(SLUG)[second].digest
    assert entries[second] is entries[second] and len(read) == 1
    assert first in entries and "another" not in entries
    assert entries.get("another") is None
    assert len(read) == 1 and gc.isenabled()
    with pytest.raises(KeyError):
        entries["another"]
