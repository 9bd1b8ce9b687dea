"""What a submission puts out: cut to size, and never a mark."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell
from nbgrader.utils import determine_grade

from autograder.judge.judge_notebook import show_outputs
from autograder.judge.marks import score_of, show_verdicts
from autograder.notebook.outputs import Room, fit_outputs
from autograder.sandbox.outputs import outputs_from
from autograder.student.course import find_exercise
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import WRONG, Verdict, no_marks

ROOT = Path(__file__).resolve().parents[3]
NAME = next((ROOT / "notebooks").glob("*_kernel_regression")).name
RELEASE = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)


@pytest.mark.parametrize(
    "score, points, worth, given",
    [
        (1.5, 3.0, 3.0, 1.5),
        (1.5, 3.0, 6.0, 3.0),
        (float("nan"), 3.0, 3.0, 0.0),
        (float("inf"), 3.0, 3.0, 0.0),
        (5.0, 3.0, 3.0, 3.0),
        (-1.0, 3.0, 3.0, 0.0),
        (1.0, 0.0, 3.0, 0.0),
    ],
)
def test_a_score_is_a_number_between_nothing_and_all(score, points, worth, given):
    assert score_of(Verdict("softmax", points, score, WRONG, ()), worth) == given


def sent(outputs: object) -> list[dict]:
    """A cell's outputs as they come out of a sandbox that sends this."""
    packed = np.frombuffer(json.dumps(outputs).encode(), np.uint8)
    return outputs_from(Array(packed, dtype="uint8"), 1 << 24)


@pytest.mark.parametrize(
    "outputs",
    [
        None,
        "text",
        {},
        [None],
        ["x"],
        [[]],
        [{}],
        [{"output_type": "stream", "name": "stdout"}],
        [{"output_type": "stream", "name": [], "text": {"a": 1}}],
        [{"output_type": "display_data", "data": {"text/html": 3, "text/plain": "a"}}],
        [{"output_type": "display_data", "data": {"text/plain": ["a", "b"]}}],
        [{"output_type": "execute_result", "data": {"text/plain": "20"}}],
        [{"output_type": "error", "ename": None, "evalue": [1], "traceback": [None, 3]}],
        [{"output_type": "update_display_data", "data": {"text/plain": "20"}}],
    ],
)
def test_what_is_no_list_of_outputs_is_refused(outputs):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        sent(outputs)


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [{"output_type": "stream", "name": "other", "text": "\ud800" + "x" * 10**6}],
        [{"output_type": "display_data", "data": {"application/javascript": "alert(1)"}}],
        [{"output_type": "display_data", "data": {"text/html": "<b>" * 10**5}}],
        [{"output_type": "execute_result", "data": {"text/plain": "20"}, "execution_count": "1"}],
        [{"output_type": "error", "ename": "E" * 10**5, "evalue": "", "traceback": ["x"] * 10**5}],
        [{"output_type": "stream", "name": "stderr", "text": "y" * 5000}] * 10**3,
    ],
)
def test_whatever_the_sandbox_sends_becomes_plain_outputs(outputs):
    made = list(Room().fill(fit_outputs(sent(outputs))))
    cell = new_code_cell("x", outputs=made)
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
    assert all(output.output_type != "execute_result" for output in made)
    assert len(json.dumps(made).encode("utf-8")) < 5_000_000
    assert "javascript" not in json.dumps(made)


def test_outputs_of_a_student_cannot_become_marks():
    notebook = nbformat.reads(nbformat.writes(RELEASE), as_version=4)
    names = [c.id.removeprefix("check_") for c in notebook.cells if c.id.startswith("check_")]
    verdicts = {name: no_marks(find_exercise(name)[1], WRONG, "x") for name in names}
    claim = [{"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}}]
    show_outputs(notebook, dict.fromkeys(range(200), claim))
    show_verdicts(notebook, verdicts)
    grades = [determine_grade(c)[0] for c in notebook.cells if c.id.startswith("check_")]
    assert grades == [0] * len(names)
