"""Honest work, judged and graded: each answer earns all its points, and nobody is accused.

A file in `honest/` holds what a student wrote into a chapter's cells, with `# %%` where a new cell
begins. Its first lines say what is unusual about it and which exercises it `answers`. A `.py` is
judged as it is; an `.ipy` holds what only a notebook can (magics, `await`), and is judged as one.
Notebooks whose form is the point are made in `honest_notebooks` and `honest_people`.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import honest_notebooks  # noqa: F401  (registers forms)
import honest_people  # noqa: F401  (registers forms)
import nbformat
import pytest
from faults import NOTEBOOKS, cut_down
from file_cells import fill_in
from honest_forms import FORMS
from nbformat import NotebookNode

from autograder.gradebook.classroom import ClassResult, grade
from autograder.judge.judge_file import judge_file
from autograder.student.course import find_exercise

pytestmark = pytest.mark.needs_torch  # as the course does

HERE = Path(__file__).resolve().parents[2] / "honest"
FILES = {path.stem: path for path in sorted(HERE.iterdir()) if path.suffix in (".py", ".ipy")}
ANSWERS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
CASES = [*ANSWERS, *FORMS]


def answered(name: str) -> tuple[str, ...]:
    """The exercises that a file or a notebook answers."""
    if name in FORMS:
        return FORMS[name].answers
    return tuple(re.search(r"^# answers: (.+)$", ANSWERS[name], re.MULTILINE)[1].split(", "))


def chapter(name: str) -> Path:
    """The released notebook that a case belongs to."""
    (slug,) = {find_exercise(exercise)[0] for exercise in answered(name)}
    (path,) = NOTEBOOKS.glob(f"??_{slug}/*.ipynb")
    return path


def half(name: str) -> str:
    """The part of the book that a case belongs to."""
    return "first" if chapter(name).stem < "05" else "second"


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def short(path: Path) -> NotebookNode:
    """A released chapter without what nobody answers: its title, imports, exercises, questions."""
    notebook = nbformat.reads(text_of(path), as_version=4)
    kept = {cell.id for cell in notebook.cells if "nbgrader" in cell.metadata}
    return cut_down(notebook, {notebook.cells[0].id, *kept})


def handed_in(name: str) -> bytes:
    """A case's notebook, as it is handed in."""
    if name not in FORMS:
        notebook = fill_in(short(chapter(name)), answered(name), ANSWERS[name])
        return nbformat.writes(notebook).encode()
    made = FORMS[name].make(json.loads(json.dumps(short(chapter(name)))))
    return made if isinstance(made, bytes) else json.dumps(made).encode()


@pytest.mark.share(16, rest="nightly")  # `grade` judges all of them: see below
@pytest.mark.parametrize("name", CASES)
def test_judge_gives_full_marks(name, tmp_path):
    path = FILES.get(name, tmp_path)
    if path.suffix != ".py":
        path = tmp_path / "answer.ipynb"
        path.write_bytes(handed_in(name))
    result = judge_file(path, exercises=answered(name), seed=b"a seed")
    assert result["exercises"].keys() == {*answered(name)}
    for exercise, found in result["exercises"].items():
        wrong = [aspect for aspect in found["aspects"] if not aspect["passed"]]
        assert (found["verdict"], wrong) == ("correct", []), exercise
        assert found["score"] == found["points"] > 0


IN_CLASS = [
    pytest.param(half(name), name, id=f"{half(name)}-{name}", marks=pytest.mark.share(0))
    for name in CASES
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ClassResult]:
    """Grades half of the cases, once: handed in by a class of students called as the cases are."""

    @cache
    def result_of(part: str) -> ClassResult:
        course = tmp_path_factory.mktemp("honest")
        cases = [name for name in CASES if half(name) == part]
        for path in {chapter(name) for name in cases}:
            folder = course / "release" / path.stem
            folder.mkdir(parents=True)
            nbformat.write(short(path), folder / path.name)
        for name in cases:
            folder = course / "submitted" / name / chapter(name).stem
            folder.mkdir(parents=True)
            (folder / chapter(name).name).write_bytes(handed_in(name))
        return grade(course / "submitted", release=course / "release", jobs=1)

    return result_of


@pytest.mark.parametrize(("part", "name"), IN_CLASS)
def test_grade_gives_full_marks_too(part, name, graded):
    (row,) = [row for row in graded(part).rows if row.student == name]
    assert (row.status, row.reason) == ("graded", None)
    for exercise in answered(name):
        mark, found = row.marks[f"check_{exercise}"], row.verdicts[exercise]
        assert found.verdict == "correct", found
        assert mark.score == mark.points > 0 and not mark.by_hand
    told = FORMS[name].notes if name in FORMS else ()
    assert len(row.notes) == len(told), row.notes
    for note, words in zip(row.notes, told, strict=True):
        assert words in note


@pytest.mark.parametrize(("part", "name"), IN_CLASS)
def test_a_page_is_made_that_shows_the_answer(part, name, graded):
    stem, root = chapter(name).stem, graded(part).root
    page = (root / "feedback" / name / stem / f"{stem}.html").read_text(encoding="utf-8")
    for exercise in answered(name):
        assert re.search(rf"{exercise}\b", page)
    made = root / "autograded" / name / stem / f"{stem}.ipynb"
    for words in FORMS[name].kept if name in FORMS else ():
        assert words in made.read_text(encoding="utf-8"), "lost on its way to who marks it"


def test_the_bank_is_large_and_covers_every_chapter():
    assert len(CASES) >= 60 and len({*CASES}) == len(ANSWERS) + len(FORMS)
    assert len({chapter(name) for name in CASES}) == 7
    for text in ANSWERS.values():
        assert re.match(r"# what: .+\n# answers: .+\n", text)
