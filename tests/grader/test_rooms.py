"""The house: imports run one way, and the grader knows no course."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_by_hand import blocks
from attention_by_hand.course import CHAPTERS
from autograder.judge.dependencies import imports_of
from autograder.student.course import chapters, exercises_of

ROOT = Path(__file__).resolve().parents[2]
GRADER = ROOT / "autograder"
COURSE = ROOT / "attention_by_hand"
EXAMPLE = GRADER / "publishing" / "authors" / "example"  # a course of its own
FILES = sorted(p for p in GRADER.rglob("*.py") if not p.is_relative_to(EXAMPLE))
OURS = sorted(COURSE.rglob("*.py"))
REFERENCES = sorted(path for path in (ROOT / "solutions").glob("*.py") if path.stem in CHAPTERS)
ALLOWED = {"GRUCell"}  # torch has one of that name
COMMON = {"bank", "student", "judge", "notebook", "sandbox"}
MAY = {  # the folders that a folder of the grader imports from, besides itself: those above it
    "student": set(),
    "bank": {"student"},
    "notebook": {"student"},
    "sandbox": {"student"},
    "judge": COMMON,
    "gradebook": COMMON,
    "report": COMMON | {"gradebook"},
    "lms": COMMON | {"gradebook"},
    "publishing": COMMON | {"gradebook"},
    "cli": COMMON | {"gradebook", "report", "lms", "publishing"},
}


def part(path: Path) -> str:
    """The folder of `autograder` that a file is in; a file beside them counts as one."""
    return path.relative_to(GRADER).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """The folders of ours that a file imports from, wherever in it; `solutions`, too."""
    for name in modules_imported(path):
        top, _, rest = name.partition(".")
        if top == "autograder" and rest:
            yield rest.partition(".")[0]
        elif top in ("solutions", "attention_by_hand", "book", "benchmarks", "tests"):
            yield top


def modules_imported(path: Path) -> set[str]:
    """What a file imports, wherever in it: modules, and names of modules."""
    return imports_of(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GRADER)))
def test_imports_run_one_way_and_never_to_a_course(path):
    if path == GRADER / "__init__.py":
        assert set(imported(path)) == {"student"}
    else:
        assert set(imported(path)) <= MAY[part(path)] | {part(path)}


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(COURSE)))
def test_course_imports_what_students_have(path):
    public = {"student", "attention_by_hand", "Progress", "device", "check"}
    assert set(imported(path)) <= public


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_reference_imports_the_blocks_alone(path):
    found = modules_imported(path)
    assert found, "every reference computes with something"
    assert set(imported(path)) <= {"attention_by_hand"}
    ours = {name for name in found if name.startswith("attention_by_hand.")}
    assert {name for name in ours if not name.startswith("attention_by_hand.blocks.")} == set()


def test_grader_names_no_chapter_block_or_exercise():
    names = {*CHAPTERS, *blocks.__all__, "attention_by_hand"}
    names |= {exercise.name for slug in chapters() for exercise in exercises_of(slug)}
    unusual = {name for name in names if "_" in name or not name[1:].islower()}
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    assert set(re.findall(r"\w+", text)) & unusual == ALLOWED
    assert "Attention by Hand" not in text


def test_every_folder_has_its_rule_and_none_imports_a_later_one():
    assert {part(path) for path in FILES} - {"__init__"} == MAY.keys()
    order = list(MAY)
    for number, (name, allowed) in enumerate(MAY.items()):
        assert allowed - {name} <= {*order[:number]}, f"{name} imports what imports it"


def test_the_command_line_waits_for_no_long_import_before_it_starts_other_processes():
    long = ("nbgrader", "sqlalchemy", "torch", "matplotlib", "IPython")
    check = f"import autograder.cli, sys; print([n for n in {long} if n in sys.modules])"
    command = [sys.executable, "-c", check]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "[]"
