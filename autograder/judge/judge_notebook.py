"""Judges a rebuilt notebook, and puts its cells' outputs into it.

TRUST BOUNDARY. The notebook is ours, rebuilt from a submission's text. Its cells go to the judge;
what comes back from the sandbox has been rebuilt, and is cut to size (`notebook.outputs`).
"""

from collections.abc import Mapping, Sequence

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from autograder.judge.judgement import Judgement
from autograder.judge.seeds import seed_for
from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook.outputs import Room, fit_outputs
from autograder.notebook.reading import ADDED, exercise_of
from autograder.sandbox.limits import Limits
from autograder.sandbox.outputs import Output
from autograder.student.course import find_exercise
from autograder.student.engine.runs import Exercise


def exercises_in(notebook: NotebookNode) -> list[tuple[str, Exercise]]:
    """The exercises that a notebook checks, each with its chapter's slug.

    Raises `KeyError` for a check of something that is no exercise.
    """
    names = [name for cell in notebook.cells if (name := exercise_of(cell))]
    return [find_exercise(name) for name in names]


def seeds_of(
    notebook: NotebookNode, secret: bytes, student: str, assignment: str
) -> dict[str, bytes]:
    """The seeds of a student's inputs in a notebook, by exercise."""
    names = [exercise.name for _, exercise in exercises_in(notebook)]
    return {name: seed_for(secret, student, assignment, name) for name in names}


def judge_notebook(
    notebook: NotebookNode,
    seeds: Mapping[str, bytes],
    *,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
) -> Judgement:
    """Judge a rebuilt notebook in the sandbox. The outputs are numbered by code cell.

    Raises `IsolationError`.
    """
    exercises = exercises_in(notebook)
    cells = [
        Cell(
            cell.source,
            exercise_of(cell),
            skip="draw" in cell.metadata.get("tags", ()),
            ours=not cell.get("id", "").startswith(ADDED) and not is_solution(cell),
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    return judge_cells(cells, exercises, seeds, device=device, isolation=isolation, limits=limits)


def show_outputs(notebook: NotebookNode, outputs: Mapping[int, Sequence[Output]]) -> None:
    """Put the outputs of a submission's cells, by number, into its notebook, in place."""
    room = Room()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        cell.execution_count = None
        if exercise_of(cell) is None:
            cell.outputs = list(room.fill(fit_outputs(outputs.get(number, ()))))
