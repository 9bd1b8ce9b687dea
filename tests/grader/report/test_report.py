"""The report shows the class as it was graded, on one page that loads and runs nothing."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from autograder.gradebook.rows import Mark, Row
from autograder.judge.judgement import FAILED, GRADED, UNUSABLE
from autograder.report import drawing
from autograder.report.report import page, report
from autograder.student.engine.verdict import CRASH, MISSING, WRONG, AspectVerdict, Verdict
from autograder.student.table import number
from solutions.sample_class import EXPECTED
from solutions.sample_class.notebooks import FULL

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "notebooks" / "01_kernel_regression" / "01_kernel_regression.ipynb"


class Marks(HTMLParser):
    """The rows of the table of marks, as texts; every link; every text of the page."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.inside |= "marks" in (given.get("class") or "").split()
        if tag == "a":
            self.links.append(given["href"])
        if self.inside and tag == "tr":
            self.rows.append([])
        elif self.inside and tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside &= tag != "table"

    def handle_data(self, data):
        self.words.append(data)
        if self.inside and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def drawn(sample_class, tmp_path_factory) -> Path:
    return report(sample_class.root, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def seen(drawn) -> Marks:
    return Marks(drawn.read_text(encoding="utf-8"))


@pytest.mark.needs_torch
def test_each_mark_stands_in_its_place(seen, sample_class):
    verdicts = {row.student: row.verdicts for row in sample_class.rows}
    graded = {row.student: row.status == GRADED for row in sample_class.rows}
    head, *rows, foot = seen.rows
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    order = [c.metadata.nbgrader.grade_id for c in cells if "nbgrader" in c.metadata]
    exercises = [name for name in order if name in FULL]  # as the chapter has them
    assert sorted(exercises) == sorted(FULL)
    assert [name.rstrip("0123456789.") for name in head[1 : 1 + len(FULL)]] == exercises
    told = {row[0]: row[1:] for row in rows}
    assert told.keys() == EXPECTED.keys()
    for student, deserved in EXPECTED.items():
        blank = {
            n for n, v in verdicts[student].items() if v.verdict == MISSING and graded[student]
        }
        wanted = ["–" if name in blank else number(deserved.marks[name]) for name in exercises]
        assert told[student][: len(FULL)] == wanted
        assert told[student][-1] == number(deserved.score)
    assert told["dan"][0] == "–" and told["mia"][0] == "0"
    assert foot[0] == "mean of the graded"


@pytest.mark.needs_torch
def test_what_waits_for_a_person_is_not_shown_as_a_mark(seen):
    told = {row[0]: row for row in seen.rows}
    written = slice(1 + len(FULL), 3 + len(FULL))
    assert told["ada"][written] == ["?", "?"] and told["dan"][written] == ["–", "–"]


@pytest.mark.needs_torch
def test_the_page_loads_and_runs_nothing(drawn):
    text = drawn.read_text(encoding="utf-8")
    assert not re.search(r"<(link|iframe|img|object)\b|\bon\w+=|@import|url\(", text)
    assert set(re.findall(r"https?://[^/\"]+", text)) == {"http://localhost:8888"}
    assert len(re.findall(r'(?<!href=")https?://', text)) == 0  # links to follow, and no more
    assert "default-src 'none'" in text


@pytest.mark.needs_torch
def test_its_one_script_is_ours_by_its_hash(drawn):
    text = drawn.read_text(encoding="utf-8")
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert re.findall(r"script-src ([^\";]*)", text) == [f"'sha256-{digest}'"]
    assert not re.search(r"https?:|fetch|import|eval|innerHTML", script)


@pytest.mark.needs_torch
def test_each_student_links_to_the_feedback(drawn, seen):
    pages = [link for link in seen.links if not link.startswith("http")]
    assert len(pages) == len(EXPECTED)
    for link in pages:
        assert (drawn.parent / unquote(link)).is_file()


@pytest.mark.needs_torch
def test_mistakes_stand_with_their_cause_and_who_made_them(seen):
    text = " ".join(seen.words)
    assert "max not subtracted" in text and "ben" in text
    assert "Each column" in text or "each column" in text


@pytest.mark.needs_torch
def test_reasons_and_accidents_stand_at_the_top(seen):
    text = " ".join(" ".join(seen.words).split())
    top = text[: text.index("The stronger the colour")]
    for words in ("mia : There is no notebook", "took too long", "ended its process"):
        assert words in top


@pytest.mark.needs_torch
def test_the_report_is_the_same_bytes_every_time(drawn, sample_class):
    text = drawn.read_text(encoding="utf-8")
    assert report(sample_class.root, drawn).read_text(encoding="utf-8") == text


def test_no_gradebook_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no gradebook"):
        report(tmp_path, tmp_path / "report.html")


# --- Other classes --------------------------------------------------------------------------------

EVIL = "</title><script>alert(1)</script>\" onload='x"


def evil_row() -> Row:
    aspects = (AspectVerdict(EVIL, 1.0, False, EVIL, EVIL),)
    verdict = Verdict(EVIL, 1.0, 0.0, WRONG, aspects, EVIL, EVIL)
    crash = Verdict("softmax", 1.0, 0.0, CRASH, aspects, note=EVIL)
    marks = {f"check_{EVIL}": Mark(0.5, 1.0), "question_x": Mark(0.0, 2.0, by_hand=True)}
    return Row(
        EVIL, EVIL, UNUSABLE, 0.5, 3.0, 2.0, EVIL, [EVIL], marks, {EVIL: verdict, "softmax": crash}
    )


def test_everything_from_outside_is_escaped():
    text = page([evil_row()], {(EVIL, EVIL): "feedback/x.html"})
    assert text.count("<script") == 1
    assert "onload='x" not in re.sub(r"&quot;.*?<", "<", text)
    seen = Marks(text)
    assert EVIL in seen.rows[1][0]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [Row("ann", "a", FAILED, reason="RuntimeError: x")],
        [Row("ann", "a", FAILED, reason="x"), evil_row()],
        [Row("ann", "a", UNUSABLE, 0.0, 0.0, None, "x")],
        [Row("ann", "b", "graded", 3.0, 3.0, 0.0, marks={"check_softmax": Mark(3.0, 3.0)})],
        [Row("ann", "b", "graded", 4.0, 3.0, 1.0, marks={"check_softmax": Mark(4.0, 3.0)})],
    ],
    ids=["nobody", "failed", "mixed", "no points", "one", "extra credit"],
)
def test_any_class_can_be_drawn(rows):
    text = page(rows)
    assert text.count("<article ") == len({row.assignment for row in rows}) + bool(rows)
    assert "nan" not in text.replace(drawing.SCRIPT, "").lower().replace("nand", "")


def test_a_failed_grading_is_told_and_has_no_marks():
    seen = Marks(page([Row("ann", "a", FAILED, reason="RuntimeError: the disk is full")]))
    assert ["ann", "no marks: grading failed"] in seen.rows
    assert "the disk is full" in " ".join(seen.words)


def test_what_was_not_attempted_is_told_from_what_is_wrong_and_what_a_person_gave_is_kept():
    marks = {
        "check_tried": Mark(0.0, 3.0),
        "check_left": Mark(0.0, 3.0, blank=True),
        "question_open": Mark(0.0, 2.0, by_hand=True),
        "question_changed": Mark(1.5, 2.0, by_hand=True, given=True),
        "question_marked": Mark(2.0, 2.0, given=True),
    }
    row = Row("ann", "a", GRADED, 3.5, 12.0, marks=marks, penalty=0.7)
    text = page([row], None, {"a": ["zoe", "bob"]})
    head, ann, bob, zoe, _ = Marks(text).rows
    told = {name.rstrip("0123456789"): said for name, said in zip(head, ann, strict=True)}
    assert told["tried"] == "0" and told["left"] == "–" and told["open"] == "?"
    assert told["changed"] == "1.5?" and told["marked"] == "2"
    assert told["Total"] == "2.8late −0.7"  # as the export has it
    assert bob == ["bob", "handed in nothing"] and zoe == ["zoe", "handed in nothing"]
    assert "<dt>handed in nothing</dt><dd>2</dd>" in text


def test_one_exercise_does_not_fill_the_list_of_what_fails():
    def failing(exercise: str, count: int) -> Verdict:
        titles = [f"{exercise} aspect {number}" for number in range(count)]
        aspects = tuple(AspectVerdict(title, 1.0, False, None, "wrong") for title in titles)
        return Verdict(exercise, float(count), 0.0, WRONG, aspects)

    verdicts = {"many": failing("many", 11), "few": failing("few", 1)}
    seen = Marks(page([Row("ann", "a", GRADED, 0.0, 12.0, verdicts=verdicts)]))
    words = " ".join(seen.words)
    assert words.count("many aspect") == 2 and words.count("few aspect") == 1


@pytest.mark.needs_torch
def test_the_totals_stay_in_sight_where_the_table_is_wider_than_the_page(drawn):
    style = re.search(r"<style>(.*?)</style>", drawn.read_text(encoding="utf-8"), re.DOTALL)[1]
    (rule,) = re.findall(r"\.marks tr > :last-child[^{]*{([^}]*)}", style)
    assert "position: sticky" in rule and "right: 0" in rule
