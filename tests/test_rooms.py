"""The house: imports run one way, and what decides about marks is known by its room."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_by_hand.course import CHAPTERS
from autograder.judge import job
from autograder.judge.student_package import INSTRUCTORS
from autograder.publishing.needed import imports_of

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "autograder"
EXAMPLE = COURSE / "publishing" / "authors" / "example"  # a course of its own
FILES = sorted(p for p in COURSE.rglob("*.py") if not p.is_relative_to(EXAMPLE))
REFERENCES = sorted(path for path in (ROOT / "solutions").glob("*.py") if path.stem in CHAPTERS)
ENGINE = {"engine", "exercises"}  # the engine asks the exercises for their names alone
NOTEBOOK = {"beside", "blocks", "engine", "exercises", "expected"}  # what a student has
MAY = {  # the rooms that a room imports from, besides itself
    "bank": {"beside"},
    "blocks": {"beside"},  # the device
    "engine": ENGINE,
    "exercises": ENGINE | {"beside", "blocks"},  # which course it is; what stands in for an answer
    "expected": {"beside", "engine"},
    "beside": NOTEBOOK,
    "grader": NOTEBOOK | {"bank"},
    "publishing": NOTEBOOK | {"bank", "grader"},
    "cli": {*NOTEBOOK, "grader", "publishing"},
}


def room(path: Path) -> str:
    """The room that a file of `autograder` is in; "beside" them lies what a notebook imports."""
    inside = path.relative_to(COURSE).parts
    return inside[0] if len(inside) > 1 else "cli" if inside == ("cli.py",) else "beside"


def imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports from, wherever in it."""
    for name in modules_imported(path):
        top, _, rest = name.partition(".")
        if top == "solutions":
            yield top
        elif top == "autograder" and rest:
            inner = COURSE / rest.partition(".")[0]
            yield inner.name if inner.is_dir() else room(inner.with_suffix(".py"))


def modules_imported(path: Path) -> set[str]:
    """What a file imports, wherever in it: modules, and names of modules."""
    return imports_of(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(COURSE)))
def test_imports_run_one_way(path):
    assert set(imported(path)) <= MAY[room(path)] | {room(path)}


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_of_ours_a_reference_imports_the_blocks_alone(path):
    found = modules_imported(path)
    assert found, "every reference computes with something"
    ours = {name for name in found if name.partition(".")[0] in ("autograder", "solutions")}
    assert {
        name for name in ours if not f"{name}.".startswith("attention_by_hand.blocks.")
    } == set()


def test_the_rooms_are_those_that_are_told():
    assert {room(path) for path in FILES} == MAY.keys()
    assert {(COURSE / name).exists() for name in INSTRUCTORS} == {True}


# --- what decides about marks ---------------------------------------------------------------------

SLUG = "masking"
OTHERS = {slug for slug in CHAPTERS if slug != SLUG}


def decides(path: Path) -> bool:
    """Whether a file decides about the marks of the chapter, told otherwise than by the grader."""
    for rooms in (ROOT / "solutions/mistakes", ROOT / "solutions", COURSE / "exercises"):
        if path.is_relative_to(rooms):
            return path.relative_to(rooms).parts[0].removesuffix(".py") not in OTHERS
    inside = path.relative_to(COURSE).parts
    deciding = inside[0] in ("bank", "engine", "grader", "blocks")
    return deciding and not {"classes", "lms"} & {*inside}


DECIDES = [p.relative_to(ROOT) for p in [*FILES, *(ROOT / "solutions").rglob("*.py")] if decides(p)]


@pytest.fixture
def copy(tmp_path, monkeypatch) -> Path:
    for name in ("autograder", "solutions"):
        unwanted = shutil.ignore_patterns("__pycache__", "*.bin")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unwanted)
    monkeypatch.setattr(job, "PROJECT", tmp_path)
    monkeypatch.setattr(job, "version_of", lambda slugs: job._version.__wrapped__(tuple(slugs)))
    return tmp_path


def test_a_change_to_whatever_decides_about_marks_is_noticed(copy):
    assert len(DECIDES) > 30
    before = job.version_of([SLUG])
    for name in DECIDES:
        text = (copy / name).read_bytes()
        (copy / name).write_bytes(text + b"# changed\n")
        assert job.version_of([SLUG]) != before, name
        (copy / name).write_bytes(text)
    assert job.version_of([SLUG]) == before


def test_a_new_file_in_such_a_room_is_noticed_and_a_page_is_not(copy):
    before = job.version_of([SLUG])
    rooms = (
        "autograder/student/engine",
        "attention_by_hand/blocks",
        "solutions",
        f"solutions/mistakes/{SLUG}",
    )
    for room in rooms:
        (copy / room / "new.py").write_text("")
        assert job.version_of([SLUG]) != before
        (copy / room / "new.py").unlink()
    for name in (
        "autograder/publishing/plain.py",
        "autograder/report/report.py",
        "autograder/lms/collect.py",
        "attention_by_hand/exercises/transformer/noam_rate.py",
        "solutions/transformer.py",
        "solutions/mistakes/transformer/shift_right.py",
    ):
        assert (copy / name).is_file()
        (copy / name).write_text("# changed\n")
    assert job.version_of([SLUG]) == before
