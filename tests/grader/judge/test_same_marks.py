"""The marks of a class of every chapter: as deserved, and the same wherever they are given.

The class is some of the sample class of chapter 1, and three students for each chapter that is
released. What those three deserve follows from what they hand in: a right answer gets the points
that the exercise declares, one that is missing, empty or ends its process gets none, a known
mistake loses some. The class is graded with a file and two processes; on a Dask cluster with a
PostgreSQL server, too; and the sample and the mistakes once more with a file and one process: two
chapters by `make test-all`, all of them by `make nightly`. The sample student whose answer never
ends stays out: with him goes the only time limit that is meant to be met, and the others can be so
wide that a busy machine meets none.
"""

import ast
import inspect
import re
import shutil
import symtable
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from servers import Cluster, postgres

from autograder.bank import banks
from autograder.gradebook.classroom import ClassResult, grade
from autograder.gradebook.sample_class import compare, make_sample_class
from autograder.judge.judgement import GRADED
from autograder.notebook import stubs
from autograder.student.course import exercises_of, find_exercise
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Exercise
from autograder.student.engine.verdict import AspectVerdict
from autograder.student.expected import fixed_runs

pytestmark = pytest.mark.share(0)  # takes long

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
CHAPTERS = [path.name for path in sorted(NOTEBOOKS.iterdir()) if path.is_dir()]
TWO = [CHAPTERS[0], CHAPTERS[3]]  # one of NumPy, one of torch
PARTS = {"some": TWO, "others": [chapter for chapter in CHAPTERS if chapter not in TWO]}
EACH = [
    pytest.param(part, chapter, id=f"{part}-{chapter}", marks=marks)
    for part, marks in (("some", ()), ("others", pytest.mark.nightly))
    for chapter in PARTS[part]
]
CLASSES = [TWO, pytest.param(CHAPTERS, marks=pytest.mark.nightly)]
SAMPLE = {"ada", "ben", "gus", "noor", "otto", "rosa"}  # right, known, crashing, unreadable, …
IMPORTS = """import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn"""
KINDS = ("right", "wrong", "half")
KNOWN = {"math", "np", "torch", "F", "Tensor", "nn"} | set(dir(__builtins__)) | set(__builtins__)
EMPTY = "def {0}(*arguments, **options):\n    return None"
EMPTY_MODULE = """class {0}(nn.Module):
    def __init__(self, *arguments, **options):
        super().__init__()

    def forward(self, *arguments, **options):
        return None"""
LEAVES = "def {0}(*arguments, **options):\n    import os\n    os._exit(0)"


def slug_of(chapter: str) -> str:
    return chapter.partition("_")[2]


@cache
def standing_alone(answer: Callable[..., Any], name: str) -> str | None:
    """The source of a bank's answer, called `name`; None if it needs what a student has not."""
    try:
        tree = ast.parse(inspect.getsource(answer))
    except (OSError, SyntaxError, TypeError):
        return None
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef) or definition.name != answer.__name__:
        return None
    definition.decorator_list, definition.name = [], name
    source = ast.unparse(tree)
    used = set(_global_names(symtable.symtable(source, name, "exec")))
    return source if used <= KNOWN | {name} else None


def _global_names(table: symtable.SymbolTable) -> list[str]:
    inner = [name for child in table.get_children() for name in _global_names(child)]
    return inner + [s.get_name() for s in table.get_symbols() if s.is_global()]


def allowed(exercise: Exercise, answer: Callable[..., Any]) -> bool:
    with preserve_generators():
        runs = [run for row in fixed_runs(exercise) for run in row]
        return not any(
            probe_within(answer, r, watch=exercise.watch_patterns).operations for r in runs
        )


def loops(source: str) -> bool:
    return any(
        isinstance(node, ast.For | ast.While | ast.comprehension)
        for node in ast.walk(ast.parse(source))
    )


@cache
def right(name: str) -> str:
    """A right answer in other words than the reference's, if the bank has one that stands alone.

    Number by number it would take minutes in cells that call it with hundreds of thousands.
    """
    slug, exercise = find_exercise(name)
    for answer in banks(slug)[exercise.name].rights.values():
        source = standing_alone(answer, exercise.name)
        if source and allowed(exercise, answer) and not loops(source):
            return source
    return reference(name)


@cache
def reference(name: str) -> str:
    lines = stubs.source(find_exercise(name)[0], name).split("\n")
    return "\n".join(line for line in lines if stubs.BEGIN not in line and stubs.END not in line)


@cache
def wrong(name: str) -> tuple[str, bool]:
    """A mistake of the bank, if there is one that stands alone, or else nothing; and which."""
    slug, exercise = find_exercise(name)
    for answer in banks(slug)[exercise.name].mistakes.values():
        source = standing_alone(answer, exercise.name)
        if source and allowed(exercise, answer):
            return source, True
    is_class = f"class {name}" in reference(name)
    return (EMPTY_MODULE if is_class else EMPTY).format(name), False


def answers(chapter: str) -> dict[str, dict[str, str]]:
    """What the three students of a chapter write, by exercise."""
    asked = exercises_of(slug_of(chapter))
    half = len(asked) // 2
    return {
        "right": {e.name: right(e.name) for e in asked},
        "wrong": {e.name: wrong(e.name)[0] for e in asked},
        "half": {e.name: reference(e.name) for e in asked[:half]}
        | {asked[-1].name: LEAVES.format(asked[-1].name)},
    }


def hand_in(course: Path, kinds: Collection[str], chapters: Collection[str]) -> None:
    for chapter in chapters:
        for kind in kinds:
            written = answers(chapter)[kind]
            notebook = nbformat.read(NOTEBOOKS / chapter / f"{chapter}.ipynb", as_version=4)
            for cell in notebook.cells:
                name = cell.metadata.get("nbgrader", {}).get("grade_id")
                cell.source = written.get(name, cell.source)
            notebook.cells.insert(1, new_code_cell(IMPORTS, id="imports"))
            path = course / "submitted" / f"{kind}-{chapter[:2]}" / chapter / f"{chapter}.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(notebook, path)


def graded(
    root: Path, kinds: Collection[str] = KINDS, chapters: Collection[str] = CHAPTERS, **options
) -> ClassResult:
    (root / ".autograder-secret").write_text("7" * 64)
    make_sample_class(NOTEBOOKS, root)
    for place in list((root / "submitted").iterdir()):
        if place.name not in SAMPLE:
            shutil.rmtree(place)
    hand_in(root, kinds, chapters)
    limits = {"cell_seconds": 120, "probe_seconds": 120}
    return grade(root / "submitted", release=NOTEBOOKS, **limits, **options)


@pytest.fixture(scope="module")
def two_jobs(tmp_path_factory) -> Callable[[str], ClassResult]:
    """Grades a part of the book with two processes, once."""

    @cache
    def result_of(part: str) -> ClassResult:
        return graded(tmp_path_factory.mktemp(part), chapters=PARTS[part], jobs=2)

    return result_of


def off(aspect: AspectVerdict) -> str | None:
    """How far a wrong value is from the right one: with other inputs, another number."""
    return None if aspect.passed or not aspect.error else f"{aspect.error:.4g}"


def given(result: ClassResult) -> dict[tuple[str, str], dict]:
    return {
        (row.assignment, row.student): {
            "status": row.status,
            "score": row.score,
            "marks": {name: (mark.score, mark.by_hand) for name, mark in row.marks.items()},
            "verdicts": {
                name: (verdict.verdict, verdict.mistake, verdict.score)
                + tuple((a.title, a.passed, a.points, off(a)) for a in verdict.aspects)
                for name, verdict in row.verdicts.items()
            },
        }
        for row in result.rows
    }


def wanted(two_jobs: Callable[[str], ClassResult], result: ClassResult) -> dict:
    """What two processes gave to those who are in another result."""
    known = given(two_jobs("some"))
    if not known.keys() >= given(result).keys():
        known |= given(two_jobs("others"))
    return {key: known[key] for key in given(result)}


def scores(result: ClassResult, student: str) -> dict[str, float]:
    (row,) = [row for row in result.rows if row.student == student]
    assert row.status == GRADED
    return {
        name.removeprefix("check_"): mark.score
        for name, mark in row.marks.items()
        if name.startswith("check_")
    }


@pytest.mark.parametrize(("part", "chapter"), EACH)
def test_right_answers_of_a_chapter_get_the_points_declared(two_jobs, part, chapter):
    declared = {e.name: e.points for e in exercises_of(slug_of(chapter))}
    assert scores(two_jobs(part), f"right-{chapter[:2]}") == declared


@pytest.mark.parametrize(("part", "chapter"), EACH)
def test_half_a_chapter_gets_the_points_of_that_half(two_jobs, part, chapter):
    asked = exercises_of(slug_of(chapter))
    done = {e.name for e in asked[: len(asked) // 2]}
    declared = {e.name: e.points if e.name in done else 0 for e in asked}
    assert scores(two_jobs(part), f"half-{chapter[:2]}") == declared


@pytest.mark.parametrize(("part", "chapter"), EACH)
def test_every_mistake_of_a_chapter_costs_marks(two_jobs, part, chapter):
    given = scores(two_jobs(part), f"wrong-{chapter[:2]}")
    for exercise in exercises_of(slug_of(chapter)):
        score, known = given[exercise.name], wrong(exercise.name)[1]
        assert score < exercise.points if known else score == 0, exercise.name


def test_the_sample_class_gets_what_it_deserves(two_jobs):
    told = compare(two_jobs("some"))
    assert [(student, told[student]) for student in sorted(SAMPLE) if told[student]] == []


def test_the_answers_are_not_the_references_alone():
    """At least a third of the right answers, and of the mistakes, are the banks'."""
    names = [e.name for chapter in CHAPTERS for e in exercises_of(slug_of(chapter))]
    others = [right(name) != reference(name) for name in names]
    known = [wrong(name)[1] for name in names]
    assert min(sum(others), sum(known)) >= len(names) / 3
    assert all(re.search(rf"(def|class) {name}\b", right(name)) for name in names)


@pytest.mark.parametrize("chapters", CLASSES)
def test_a_cluster_and_a_database_server_give_the_same_marks(two_jobs, tmp_path, chapters):
    (tmp_path / "dask").mkdir()
    (tmp_path / "course").mkdir()
    with postgres() as db, Cluster(tmp_path / "dask") as dask:
        dask.add_worker()
        dask.add_worker()
        result = graded(tmp_path / "course", chapters=chapters, scheduler=dask.address, db=db)
    assert given(result) == wanted(two_jobs, result)
    assert len(result.rows) == len(SAMPLE) + len(KINDS) * len(chapters)


@pytest.mark.parametrize("chapters", CLASSES)
def test_one_process_and_a_second_run_give_the_same_marks(two_jobs, tmp_path, chapters):
    result = graded(tmp_path, ("wrong",), chapters, jobs=1)
    assert given(result) == wanted(two_jobs, result)
    assert len(result.rows) == len(SAMPLE) + len(chapters)
