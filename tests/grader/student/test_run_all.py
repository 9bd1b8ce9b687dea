"""*Run All* in a notebook that is not solved, or half; `check.all()` and `check.hint`."""

import sys
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from kernels import run_cells
from nbclient import NotebookClient

import autograder
import solutions.kernel_regression as reference
from autograder import check
from autograder.notebook.stubs import stub
from autograder.publishing.release import instructor_notebook
from autograder.student import overview
from autograder.student.check import verdict_on
from autograder.student.course import exercises_of
from autograder.student.engine.verdict import MISSING

ROOT = Path(__file__).resolve().parents[3]
STEMS = sorted(path.stem for path in (ROOT / "notebooks").glob("*/*.ipynb"))
SLUG = "kernel_regression"


def released(stem: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "notebooks" / stem / f"{stem}.ipynb", as_version=4)


def shown(cell: nbformat.NotebookNode) -> str:
    return "".join(o["data"]["text/plain"] for o in cell.outputs if "data" in o)


@pytest.mark.parametrize("stem", STEMS)
def test_the_last_cell_tells_how_far_one_is(stem):
    assert released(stem).cells[-1].source.endswith("\ncheck.all()")


@pytest.fixture(scope="module")
def half_solved() -> nbformat.NotebookNode:
    """Chapter 1 with its first exercise solved, another wrong, after *Run All*."""
    notebook = released(STEMS[0])
    for cell in notebook.cells:
        if cell.id == "softmax":
            cell.source = "from solutions.kernel_regression import softmax"
        if cell.metadata.get("tags") == ["draw", "hide-input"]:
            cell.source = ""  # its figures take most of the time
    NotebookClient(notebook, kernel_name="python3").execute()  # else it raises
    return notebook


def test_run_all_goes_through_and_unwritten_exercises_are_told(half_solved):
    checks = [cell for cell in half_solved.cells if cell.id.startswith("check_")]
    assert len(checks) == len(exercises_of(SLUG))
    assert all("error" not in [o.output_type for o in cell.outputs] for cell in checks)
    solved, *others = map(shown, checks)
    assert solved.startswith("softmax: 3 of 3 points")
    assert all("Not written yet" in other for other in others)


NO_TORCH = """\
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())"""


@pytest.mark.share(0)
def test_without_torch_all_of_chapter_1_runs_that_is_not_in_torch():
    notebook = instructor_notebook(ROOT / "book" / f"{STEMS[0]}.md")
    for cell in notebook.cells:
        if cell.metadata.get("tags", [])[:2] == ["draw", "hide-input"]:
            cell.source = ""  # its figures take most of the time
    notebook.cells.insert(0, nbformat.v4.new_code_cell(NO_TORCH))
    NotebookClient(notebook, kernel_name="python3").execute()  # else it raises
    *others, missing = exercises_of(SLUG)
    assert missing.name == "KernelRegression"
    cells = {cell.id: cell for cell in notebook.cells}
    for exercise in others:
        told = shown(cells[f"check_{exercise.name}"])
        assert told.startswith(f"{exercise.name}: {exercise.points:g} of {exercise.points:g} ")
    (imports,) = (cell for cell in notebook.cells if cell.source.startswith("import torch"))
    for cell, told in (
        (imports, "ModuleNotFoundError: torch is not installed: cells that need it fail"),
        (cells["check_KernelRegression"], "NameError: name 'KernelRegression' is not defined: "),
    ):
        (output,) = cell.outputs
        (line,) = output["traceback"]
        assert line.startswith(told)


def test_a_call_of_an_unwritten_exercise_is_one_line_in_a_notebook_and_other_errors_are_whole():
    *_, first, other, last = run_cells(
        "from autograder import check",
        "def softmax(scores):\n    raise NotImplementedError",
        "def own():\n    raise NotImplementedError",
        "class KernelRegression:\n    def forward(self):\n        raise NotImplementedError",
        "softmax(1)",
        "own()",
        "KernelRegression().forward()",
    )
    first, other, last = ("\n".join(c.outputs[0]["traceback"]) for c in (first, other, last))
    assert first == "NotImplementedError: softmax is not written yet"
    assert last == "NotImplementedError: KernelRegression is not written yet"
    assert "own()" in other and len(other.splitlines()) > 1


def test_the_last_cell_has_points_what_is_next_and_what_is_unwritten(half_solved):
    told = shown(half_solved.cells[-1])
    points = sum(exercise.points for exercise in exercises_of(SLUG))
    assert "✓ softmax: 3 of 3 points\n" in told
    assert f"3 of {points:g} points so far" in told and "Next: gaussian_scores." in told
    assert told.count("it raises NotImplementedError") == len(exercises_of(SLUG)) - 1


@pytest.mark.parametrize("stem", STEMS)
def test_a_cell_that_may_fail_needs_what_an_exercise_gives(stem):
    """Nothing but cells of answers, their checks and those below them is allowed to fail; of
    answers and checks themselves, those in torch where the first exercise needs none."""
    written = imported = False
    for cell in released(stem).cells:
        mark = cell.metadata.get("nbgrader", {})
        imported = imported or (not written and "import torch" in cell.source)
        written = written or mark.get("solution", False) and cell.cell_type == "code"
        may_fail = "raises-exception" in cell.metadata.get("tags", ())
        in_torch = not imported and "KernelRegression" in cell.source
        assert not may_fail or (written and (not mark or in_torch))


@pytest.mark.share(6)
@pytest.mark.parametrize("stem", STEMS)
def test_every_stub_is_taken_for_unwritten(stem):
    module = vars(import_module(f"solutions.{stem.partition('_')[2]}"))
    for exercise in exercises_of(stem.partition("_")[2]):
        scope = dict(module)
        exec(stub(module[exercise.name]), scope)
        assert verdict_on(scope[exercise.name], exercise.name).verdict == MISSING


def test_while_nbgrader_validates_an_unwritten_exercise_raises(monkeypatch):
    def softmax(scores, axis=-1):
        raise NotImplementedError

    checking = sys.modules["autograder.student.check"]
    monkeypatch.setattr(checking, "notebook", object)
    check(softmax)
    with pytest.raises(AssertionError):  # it is there, but wrong
        check(lambda scores, axis=-1: scores, "softmax")
    with pytest.raises(AssertionError):
        check(None, "softmax")
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    with pytest.raises(AssertionError):
        check(softmax)


def test_each_hint_is_told_in_turn_for_what_fails(capsys, monkeypatch):
    monkeypatch.setattr(overview, "_TOLD", {})

    def softmax(scores, axis=-1):
        return reference.softmax(scores, axis).astype("float64")

    (dtype,) = (a for a in exercises_of(SLUG)[0].aspects if a.title == "dtype")
    check.hint(softmax)
    assert f"softmax, hint 1 of 1, on “dtype”: {dtype.hint}" in capsys.readouterr().out
    for number in (1, 2, 3):
        check.hint(lambda *_, **__: None, "gaussian_scores")
        assert f"gaussian_scores, hint {number} of " in capsys.readouterr().out
    check.hint(reference.softmax)
    assert "no hint left" in capsys.readouterr().out
    assert autograder.check is check
