"""A written answer waits for a person, wherever the student's tools have put it."""

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from autograder.judge.judgement import GRADED, Judgement
from autograder.judge.marks import auto_comments, auto_scores
from autograder.notebook.rebuild import DOUBTFUL, rebuild

ROOT = Path(__file__).resolve().parents[3]
PATH = next(ROOT.glob("notebooks/*_kernel_regression/*.ipynb"))
RELEASE = nbformat.read(PATH, as_version=4)
FIRST, SECOND = "question_w_of_zero", "question_even_spacing"
ANSWER = "With w = 0 every score is 0, so it predicts the mean of all values."


def fresh() -> nbformat.NotebookNode:
    return nbformat.reads(nbformat.writes(RELEASE), as_version=4)


def at(notebook, grade_id: str) -> int:
    marks = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return marks.index(grade_id)


def scores(submitted) -> dict[str, float | None]:
    """The marks of the questions; None for what waits for a person."""
    rebuilt, _ = rebuild(RELEASE, json.loads(nbformat.writes(submitted)))
    found = auto_scores(rebuilt, Judgement(GRADED))
    return {name: found[name] for name in (FIRST, SECOND)}


def shown(submitted, grade_id: str) -> str:
    """What a marker sees in the question's cell."""
    rebuilt, _ = rebuild(RELEASE, json.loads(nbformat.writes(submitted)))
    return rebuilt.cells[at(rebuilt, grade_id)].source


def test_a_question_left_as_it_was_needs_nobody():
    assert scores(fresh()) == {FIRST: 0, SECOND: 0}


@pytest.mark.parametrize("grade_id", [FIRST, SECOND])
@pytest.mark.parametrize("kind", [new_markdown_cell, new_raw_cell, new_code_cell])
def test_an_answer_below_the_question_whose_cell_lost_its_metadata_is_the_answer(grade_id, kind):
    submitted = fresh()
    place = at(submitted, grade_id)
    text = submitted.cells[place].source.replace("*Write your answer here.*", ANSWER)
    submitted.cells[place] = kind(text)  # Colab and others give it a new id, too
    assert scores(submitted) == {FIRST: 0, SECOND: 0} | {grade_id: None}
    assert shown(submitted, grade_id) == text


def test_an_answer_typed_anew_where_the_question_stood_is_the_answer():
    submitted = fresh()
    submitted.cells[at(submitted, SECOND)] = new_markdown_cell(ANSWER)
    assert scores(submitted) == {FIRST: None, SECOND: None}  # it stands below the first one, too
    assert ANSWER not in shown(submitted, FIRST)
    submitted.cells[at(submitted, FIRST)].source += "\n\nThe mean."
    assert scores(submitted) == {FIRST: None, SECOND: None}
    assert shown(submitted, SECOND) == ANSWER


def test_both_questions_typed_anew_wait_for_a_person():
    submitted = fresh()
    place = at(submitted, FIRST)
    del submitted.cells[at(submitted, SECOND)]
    submitted.cells[place] = new_markdown_cell(ANSWER)
    assert scores(submitted) == {FIRST: None, SECOND: None}


def test_an_answer_at_the_end_of_the_notebook_is_not_lost():
    submitted = fresh()
    del submitted.cells[at(submitted, FIRST)]
    submitted.cells.append(new_markdown_cell(ANSWER))
    assert scores(submitted)[FIRST] is None
    assert shown(submitted, FIRST).endswith(DOUBTFUL)


@pytest.mark.parametrize("side", [0, 1])
def test_an_answer_in_a_cell_beside_the_question_is_seen(side):
    submitted = fresh()
    submitted.cells.insert(at(submitted, FIRST) + side, new_markdown_cell(ANSWER))
    assert scores(submitted)[FIRST] is None


def test_a_deleted_question_without_any_text_is_unanswered():
    submitted = fresh()
    del submitted.cells[at(submitted, FIRST)]
    submitted.cells.append(new_code_cell("x = 1"))
    submitted.cells.append(new_markdown_cell("\n---\n"))
    assert scores(submitted) == {FIRST: 0, SECOND: 0}


def test_notes_in_the_middle_of_the_notebook_are_no_answer():
    submitted = fresh()
    submitted.cells.insert(5, new_markdown_cell("I did not get this at first."))
    assert scores(submitted) == {FIRST: 0, SECOND: 0}


def test_an_answer_elsewhere_is_told_and_not_called_no_response():
    submitted = fresh()
    del submitted.cells[at(submitted, FIRST)]
    submitted.cells.append(new_markdown_cell(ANSWER))
    rebuilt, notes = rebuild(RELEASE, json.loads(nbformat.writes(submitted)))
    assert [note for note in notes if FIRST in note and "by hand" in note]
    assert auto_comments(rebuilt, Judgement(GRADED))[FIRST] is None
