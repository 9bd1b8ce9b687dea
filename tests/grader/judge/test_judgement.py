"""A judgement is kept once, in the gradebook; report and feedback show what is kept there."""

import json
import sqlite3

import nbformat
import pytest
from faults import SCORES, TINY, grade_quickly
from nbgrader.api import Gradebook
from sqlalchemy import Engine, event

from autograder.gradebook import tables
from autograder.gradebook.preprocessors import ShowVerdicts
from autograder.gradebook.rows import OLD, read_class
from autograder.judge.judgement import GRADED, UNUSABLE, Judgement, finite
from autograder.report.report import report
from autograder.student.engine.verdict import WRONG, AspectVerdict, Verdict

HOSTILE = 'a " quote, \0 a NUL, \ud800 half a pair, <b>, \u2028 and 𝄞'


def judgement(error: float | None = None, text: str = "as it is") -> Judgement:
    aspects = (AspectVerdict("weights", 1.5, False, "a hint", text, error, 1e-6, judged=False),)
    ran = (("torch.softmax", "line 3, in f"),)
    verdict = Verdict("softmax", 3.0, 0.5, WRONG, aspects, "named", "a cause", text, "said", ran)
    return Judgement(UNUSABLE, {"softmax": verdict}, 1.25, text, ("one", text))


@pytest.mark.parametrize("error", [None, 0.0, 1e-300, 0.1, float("inf"), float("-inf")])
@pytest.mark.parametrize("text", ["as it is", HOSTILE])
def test_json_keeps_a_judgement_as_it_is(error, text):
    given = judgement(error, text)
    written = given.to_json()
    assert Judgement.from_json(written) == given
    assert written.isascii() and "\0" not in written  # whatever the database's encoding is
    json.loads(written, parse_constant=pytest.fail)  # no Infinity, which few parsers know


def test_a_script_reads_no_infinite_numbers():
    assert finite({"a": [1.0, float("inf"), {"b": float("nan")}]}) == {
        "a": [1.0, None, {"b": None}]
    }


def test_the_gradebook_keeps_one_judgement_a_submission(course, release):
    grade_quickly(course, release)
    grade_quickly(course, release, force=True)
    with sqlite3.connect(course / "gradebook.db") as database:
        rows = database.execute("select student, judgement from autograder_judgement").fetchall()
    kept = {student: Judgement.from_json(text) for student, text in rows}
    assert len(rows) == len(kept)
    assert {name: one.verdicts["softmax"].score for name, one in kept.items()} == SCORES


def page_of(course, student: str) -> str:
    return (course / "feedback" / student / TINY / f"{TINY}.html").read_text("utf-8")


def test_feedback_shows_what_the_gradebook_keeps_not_what_a_notebook_says(course, release):
    grade_quickly(course, release)
    before = page_of(course, "bob")
    assert "softmax: 0.5 of 3 points" in before
    path = course / "autograded" / "bob" / TINY / f"{TINY}.ipynb"
    forged = path.read_text("utf-8").replace("softmax: 0.5 of 3 points", "softmax: 3 of 3 points")
    assert forged.count("softmax: 3 of 3 points") == 2  # the table in HTML and in text
    path.chmod(0o600)
    path.write_text(forged, "utf-8")
    resources = {"nbgrader": {"db_url": f"sqlite:///{course / 'gradebook.db'}"}}
    resources["nbgrader"] |= {"assignment": TINY, "notebook": TINY, "student": "bob"}
    shown, _ = ShowVerdicts().preprocess(nbformat.read(path, as_version=4), resources)
    assert "softmax: 0.5 of 3" in str(shown) and "3 of 3 points" not in str(shown)
    (again,) = (row for row in grade_quickly(course, release).rows if row.student == "bob")
    assert not again.unchanged and page_of(course, "bob") == before


def test_the_report_needs_the_gradebook_alone(course, release):
    grade_quickly(course, release)
    page = report(course, course / "report.html").read_bytes()
    for path in course.glob(f"autograded/*/{TINY}/*.ipynb"):
        path.chmod(0o600)
        path.write_text("{}")
    assert report(course, course / "report.html").read_bytes() == page


def test_a_larger_class_is_read_with_as_many_queries(course, release):
    """One by one, a class of hundreds would take tens of thousands."""
    grade_quickly(course, release)

    def read() -> tuple[int, int]:
        said: list[str] = []
        listen = ("before_cursor_execute", lambda *given: said.append(given[2]))
        event.listen(Engine, *listen)
        try:
            return len(read_class(course)), len(said)
        finally:
            event.remove(Engine, *listen)

    students, queries = read()
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.remove_submission(TINY, "bob")
    assert read() == (students - 1, queries)


# --- gradebooks of other versions -----------------------------------------------------------------

OTHERS = {
    "without the table": "drop table autograder_judgement",
    "without the rows": "delete from autograder_judgement",
    "with another form": "update autograder_judgement set judgement = '{\"verdicts\": 3}'",
    "with no form": "update autograder_judgement set judgement = 'not JSON'",
}


@pytest.fixture(params=OTHERS.values(), ids=OTHERS.keys())
def older(request, course, release):
    """A graded course, whose gradebook has its marks, but no judgement that we can read."""
    grade_quickly(course, release)
    with sqlite3.connect(course / "gradebook.db") as database:
        database.execute(request.param)
    database.close()
    return course


def test_another_versions_marks_stand_and_the_report_says_what_is_not_known(older):
    rows = {row.student: row for row in read_class(older)}
    assert {name: row.score for name, row in rows.items()} == SCORES
    assert all(
        (row.status, row.verdicts, row.notes) == (GRADED, {}, [OLD]) for row in rows.values()
    )
    text = report(older, older / "report.html").read_text("utf-8")
    assert "3 of 3 were graded by another version of the grader" in text
    assert "Nothing failed" not in text


def test_nbgraders_feedback_shows_another_versions_notebook_as_it_is(older):
    path = older / "autograded" / "bob" / TINY / f"{TINY}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    resources = {"nbgrader": {"db_url": f"sqlite:///{older / 'gradebook.db'}"}}
    resources["nbgrader"] |= {"assignment": TINY, "notebook": TINY, "student": "bob"}
    shown, _ = ShowVerdicts().preprocess(notebook, resources)
    assert "softmax: 0.5 of 3 points" in str(shown)


def test_another_versions_submissions_are_judged_again(older, release):
    result = grade_quickly(older, release)
    assert not any(row.unchanged for row in result.rows)
    assert {row.student: row.verdicts["softmax"].score for row in result.rows} == SCORES
    with Gradebook(f"sqlite:///{older / 'gradebook.db'}") as gradebook:
        assert (
            tables.read_judgement(gradebook.db, TINY, "ann").verdicts["softmax"].score
            == SCORES["ann"]
        )
