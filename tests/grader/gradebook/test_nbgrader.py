"""nbgrader's own commands, as an instructor types them, and what people see of their results."""

import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from faults import cut_down
from nbconvert.filters import markdown2html
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade

from autograder.gradebook import tables
from autograder.gradebook.export import escape_formula
from autograder.judge.judgement import Judgement
from autograder.judge.marks import comment_on
from autograder.notebook.inert import clean_html, clean_markdown
from autograder.notebook.reading import exercise_of
from autograder.publishing.release import instructor_notebook
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import CRASH, WRONG, Verdict, no_marks
from autograder.student.table import table_html
from solutions.sample_class import EXPECTED
from solutions.sample_class.notebooks import submissions

ROOT = Path(__file__).resolve().parents[3]
NAME = next((ROOT / "notebooks").glob("*_kernel_regression")).name
RELEASE = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
STUDENTS = ("ben", "pia")  # known mistakes; scripts everywhere


def nbgrader(root: Path, *arguments: str, status: int = 0) -> str:
    """Run `nbgrader …` in a course; what it said."""
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == status, said[-4000:]
    return said


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course in which an instructor has typed all of nbgrader's commands, as they come."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    source = root / "build" / "source" / NAME / f"{NAME}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(instructor_notebook(ROOT / "book" / f"{NAME}.md"), source)
    files = submissions(RELEASE)
    for student in STUDENTS:
        path = root / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(files[student])
    nbgrader(root, "generate_assignment", NAME)
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        gradebook.update_or_create_student(
            "pia", last_name='=HYPERLINK("http://x","y")', first_name='a, "b"', email="+1@x"
        )
    nbgrader(root, "autograde", NAME)
    nbgrader(root, "generate_feedback", NAME)
    nbgrader(root, "export")
    return root


def autograded(root: Path, student: str) -> nbformat.NotebookNode:
    path = root / "autograded" / student / NAME / f"{NAME}.ipynb"
    return nbformat.read(path, as_version=4)


def feedback(root: Path, student: str) -> str:
    return (root / "feedback" / student / NAME / f"{NAME}.html").read_text(encoding="utf-8")


@pytest.mark.needs_torch
def test_generate_assignment_makes_what_is_released(course):
    made = nbformat.read(course / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
    assert made.cells == RELEASE.cells


@pytest.mark.needs_torch
@pytest.mark.parametrize("student", STUDENTS)
def test_autograde_gives_partial_credit_by_aspect(course, student):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        given = gradebook.find_submission_notebook(NAME, NAME, student).grades
        scores = {g.name: g.auto_score for g in given}
    deserved = EXPECTED[student].marks
    assert {name: scores[f"check_{name}"] for name in deserved} == pytest.approx(deserved)


def kept(course: Path, student: str) -> Judgement:
    """What the gradebook keeps of a submission's judgement."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return tables.read_judgement(gradebook.db, NAME, student)


@pytest.mark.needs_torch
def test_a_check_cell_holds_the_table_and_the_score_of_the_verdict_that_is_kept(course):
    judgement = kept(course, "ben")
    for cell in autograded(course, "ben").cells:
        if not cell.metadata.get("nbgrader", {}).get("locked"):
            continue
        table, score = cell.outputs
        assert table.output_type == "display_data" and "abh-check" in table.data["text/html"]
        assert score.output_type == "execute_result"
        verdict = judgement.verdicts[exercise_of(cell)]
        assert float(score.data["text/plain"]) == verdict.score
        assert determine_grade(cell)[0] == verdict.score
    assert judgement.verdicts["softmax"].mistake == "max_not_subtracted"
    assert judgement.status == "graded" and judgement.seconds > 0


@pytest.mark.needs_torch
def test_no_verdict_is_written_into_a_notebook(course):
    notebook = autograded(course, "ben")
    assert "autograder" not in notebook.metadata
    assert not any("autograder" in cell.metadata for cell in notebook.cells)


@pytest.mark.needs_torch
def test_a_claim_of_a_thousand_points_is_not_heard(course):
    cell = next(c for c in autograded(course, "pia").cells if c.id == "check_softmax")
    assert cell.metadata["nbgrader"]["points"] == 3


@pytest.mark.needs_torch
def test_formulas_and_commas_stay_in_their_column(course):
    with (course / "grades.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream)}
    assert rows["pia"]["last_name"] == '\'=HYPERLINK("http://x","y")'
    assert rows["pia"]["first_name"] == 'a, "b"'
    assert rows["pia"]["email"] == "'+1@x"
    assert float(rows["ben"]["score"]) == EXPECTED["ben"].score
    assert None not in rows["pia"] and float(rows["pia"]["max_score"]) == 25.5


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "＝1"])
def test_a_field_that_could_be_a_formula_is_guarded(text):
    assert escape_formula(text) == "'" + text


# --- What a browser sees --------------------------------------------------------------------------


class Danger(HTMLParser):
    """Collects what in a page could act, other than nbgrader's own scripts."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []
        self.tables = 0

    def handle_starttag(self, tag, attrs):
        self.tables += tag == "table"
        for name, given in attrs:
            value = (given or "").strip().lower()
            ours = value.startswith("toggle_name(")
            if (name.startswith("on") and not ours) or "javascript:" in value:
                self.found.append(f"<{tag} {name}={value}>")
            if tag == "img" and name == "src" and not value.startswith("data:"):
                self.found.append(f"<img src={value}>")
        if tag in ("iframe", "object", "embed", "form", "base"):
            self.found.append(tag)


def danger_in(page: str) -> list[str]:
    parser = Danger()
    parser.feed(page)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    return parser.found + [s for s in scripts if "owned" in s or "alert(" in s]


@pytest.mark.needs_torch
def test_scripts_in_a_submission_are_inert_on_the_feedback_page(course):
    page = feedback(course, "pia")
    assert danger_in(page) == []
    assert "owned" in page  # it is there to be read
    assert "full-credit" not in page


@pytest.mark.needs_torch
def test_the_aspect_table_stands_on_the_feedback_page(course):
    page = feedback(course, "ben")
    parser = Danger()
    parser.feed(page)
    assert parser.tables >= 7
    assert "scores of ±10,000" in page and "✗" in page and "&lt;table" not in page
    assert re.search(r'<td[^>]*>\s*<\w+[^>]*aria-label="fails"[^>]*color:', page)
    assert "A known mistake." in page


def test_our_table_passes_the_cleaner_as_it_is():
    _, exercise = find_exercise("softmax")
    wrong = no_marks(exercise, WRONG, "x")
    verdict = Verdict("softmax", 3, 0, WRONG, wrong.aspects, "axis_ignored", "A <cause> & more.")
    kept = clean_html(table_html(verdict), ours=True)
    assert re.sub(r"[\s;]", "", kept) == re.sub(r"[\s;]", "", table_html(verdict))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    '<a href=" java\nscript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "![x](http://spy.example/pixel.png)",
    '<div style="background:url(http://spy.example);position:fixed">x</div>',
    '<iframe src="http://spy.example"></iframe>',
    '<form action="http://spy.example"><button class="full-credit">x</button></form>',
    "<style>* { display: none }</style>",
    "<!--><script>alert(1)</script>-->",
    "`<script>alert(1)</script>`",
    "$<script>alert(1)</script>$",
    "$$\\href{javascript:alert(1)}{x}<img src=x onerror=alert(1)>$$",
    "```\n</pre><script>alert(1)</script>\n```",
    '<table><tr><td id="softmax-comment" class="btn full-credit">x</td></tr></table>',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markup_does_nothing(text):
    for page in (clean_html(text), clean_markdown(text)):
        assert danger_in(page) == []
        assert not re.search(r"<(script|style|svg|iframe|form|button)\b", page)
        for tag in re.findall(r"<[^>]*>", page):  # what is left of the markup
            assert not re.search(r"spy\.example|full-credit|\bid=|position", tag)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_that_quotes_a_student_is_inert(text):
    comment = comment_on(
        Verdict("softmax", 3, 0, CRASH, (), note=f"Every call raised ValueError: {text}")
    )
    page = clean_markdown(comment)
    assert danger_in(page) == [] and danger_in(markdown2html(comment)) == []
    assert "<a" not in page and "<img" not in page


# --- The student's place --------------------------------------------------------------------------


VALIDATED = {
    "right": ("ada", ["Success! Your notebook passes all the tests."]),
    "wrong": ("ben", ["softmax: 2.25 of 3 points"]),
    "not written": (None, ["VALIDATION FAILED ON 1 CELL(S)", "softmax: 0 of 3 points"]),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("student, words", VALIDATED.values(), ids=VALIDATED)
def test_validate_tells_a_student_what_check_tells(tmp_path, student, words):
    """Of a notebook with the imports and softmax only."""
    whole = nbformat.reads(submissions(RELEASE)[student].decode(), 4) if student else RELEASE
    short = cut_down(deepcopy(whole), ("softmax", "check_softmax"))
    nbformat.write(short, tmp_path / f"{NAME}.ipynb")
    said = nbgrader(tmp_path, "validate", f"{NAME}.ipynb")
    assert all(told in said for told in words)


# --- formgrader -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(course, tmp_path_factory):
    """A Jupyter server with formgrader in the course; a function that fetches its pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("jupyter")
    places = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    environment = os.environ | {f"JUPYTER_{place}": str(home / place) for place in places}
    options = {
        "ServerApp.port": port,
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port_retries": 0,
        "ServerApp.jpserver_extensions": "{'nbgrader.server_extensions.formgrader': True}",
        "IdentityProvider.token": "secret",
    }
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]

    def get(path: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        request.add_header("Authorization", "token secret")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    log = (home / "log").open("w+")
    process = subprocess.Popen(
        command, cwd=course, env=environment, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        for _ in range(240):
            try:
                get("/api")
                break
            except urllib.error.URLError:
                assert process.poll() is None, (home / "log").read_text()
                time.sleep(0.25)
        yield get
    finally:
        process.terminate()
        process.wait()
        log.close()


@pytest.mark.needs_torch
def test_formgrader_lists_the_assignment_and_its_submissions(server):
    (assignment,) = json.loads(server("/formgrader/api/assignments"))
    assert assignment["name"] == NAME and assignment["num_submissions"] == len(STUDENTS)
    listed = json.loads(server(f"/formgrader/api/submissions/{NAME}"))
    assert {entry["student"] for entry in listed} == set(STUDENTS)
    assert "formgrader" in server("/formgrader/manage_assignments")


def submission_id(course: Path, student: str) -> str:
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return gradebook.find_submission_notebook(NAME, NAME, student).id


@pytest.mark.needs_torch
def test_formgrader_shows_a_submission_with_our_tables(course, server):
    page = server(f"/formgrader/submissions/{submission_id(course, 'ben')}/")
    assert page.count('class="abh-check ') == 8
    assert "scores of ±10,000" in page and "&lt;table" not in page
    comments = json.loads(
        server(f"/formgrader/api/comments?submission_id={submission_id(course, 'ben')}")
    )
    assert any("known mistake" in (comment["auto_comment"] or "") for comment in comments)


@pytest.mark.needs_torch
def test_scripts_in_a_submission_are_inert_in_formgrader(course, server):
    page = server(f"/formgrader/submissions/{submission_id(course, 'pia')}/")
    assert danger_in(page) == [] and "owned" in page
    assert '<a class="full-credit"' not in page
