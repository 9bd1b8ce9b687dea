"""A student's text in what we show: one line where a line means something, and never typeset."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from hostile import NAME, RELEASE, ArchiveEntry
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder import cli
from autograder.gradebook.classroom import ClassResult, grade
from autograder.gradebook.feedback import MarkedNotebook
from autograder.gradebook.feedback_pages import Pages, config_of
from autograder.gradebook.rows import Row
from autograder.gradebook.submissions import Task
from autograder.gradebook.writer import _log, _told
from autograder.judge.judgement import FAILED, GRADED
from autograder.judge.marks import comment_on
from autograder.notebook.inert import clean_html, clean_markdown
from autograder.report.report import page
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import CRASH, WRONG, AspectVerdict, Verdict, no_marks
from autograder.student.table import table_html, table_text

SOFTMAX = find_exercise("softmax")[1]
FORGED = ("boom", "gaussian_scores: correct, 2", "✓ rows sum to 1  3", "softmax: 3 of 3 points")
# What may stand between them.
ENDS = (
    "\n", "\r", "\r\n", "\n\n\n", "\t", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85",
    "\u2028", "\u2029", "\xa0", "\u3000", "\x1b[1A\x1b[2K", "\x08", "\x7f", "\x9b", "\u202e",
    "\u2066", "\u200e", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\xad", "\U000e0041",
    "\0", "\ud800",
)  # fmt: skip
FORMULAS = (
    r"$x$", r"$$x$$", r"\(x\)", r"\[x\]", r"\begin{align}x\end{align}", r"\\(x\\)", r"&#36;x&#36;",
    r"`$x$`", r"</code>$x$", r"</td></table></div>$x$", r"<div class='tex2jax_process'>$x$</div>",
)  # fmt: skip


def crashed(text: str) -> Verdict:
    return no_marks(SOFTMAX, CRASH, f"Every call raised ValueError: {text}.")


def failing(text: str) -> Verdict:
    """A verdict each of whose texts from a student is this one."""
    aspect = AspectVerdict("rows sum to 1", 3.0, False, "A hint.", text, kind="raised")
    return Verdict("softmax", 3.0, 0.0, WRONG, (aspect,), pointer=text)


def row(text: str) -> Row:
    verdicts = {"softmax": crashed(text)}
    return Row("ann", "x", GRADED, 0.0, 3.0, 1.0, None, [f"note {text}"], {}, verdicts)


def shown(text: str, folder: Path, capsys: pytest.CaptureFixture) -> dict[str, str]:
    """All that shows a text as part of a line."""
    _log(folder, Task("ann", "x", folder, folder, ""), "graded", *_told(row(text), 1))
    log = folder / "logs" / "ann" / "x.log"
    failed = Row("bob", "x", FAILED, reason=f"RuntimeError: {text}")
    cli._print_class(ClassResult(folder, [row(text), failed], [text]))
    print(cli._format_verdicts(text, {"softmax": crashed(text)}))
    printed = capsys.readouterr()
    made = {
        "log": log.read_text(encoding="utf-8").partition(" graded")[2],
        "console": printed.out,
        "errors": printed.err,
        "table": table_text(crashed(text)),
        "html": table_html(crashed(text)),
        "comment": comment_on(crashed(text)) or "",
        "report": page([row(text), failed]),
    }
    log.unlink()
    return made


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_what_ends_a_line_or_is_invisible_ends_no_line_of_ours(end, tmp_path, capsys):
    left = end if end.isprintable() else "".join(c for c in end if c.isprintable() or c.isspace())
    left = " ".join(left.join(FORGED).split())
    odd = shown(end.join(FORGED), tmp_path, capsys)
    assert odd == shown(left, tmp_path, capsys)
    assert len(odd["log"].splitlines()) == 1 + 3  # the verdict, the note, and what it is in all
    assert (
        len(re.findall(r"(?m)^\S", odd["table"])) == len(re.findall(r"(?m)^\S", odd["errors"])) == 1
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028"], ids=ascii)
def test_a_hint_that_looks_like_a_row_is_none(end):
    lines = table_text(failing(end.join(FORGED))).splitlines()
    assert len([line for line in lines if re.match(r"  [✓✗–] ", line)]) == 1
    assert len([line for line in lines if re.match(r"\S", line)]) == 1


# --- formulas -------------------------------------------------------------------------------------


def typeset(html: str, formula: str = "x") -> list[str]:
    """The texts of a page in which MathJax looks for formulas, that hold this one."""
    tree = BeautifulSoup(html, "html.parser")
    return [
        text
        for text in tree.find_all(string=lambda text: formula in text)
        if not any(
            parent.name in ("code", "pre", "script", "style", "textarea", "title")
            or {"tex2jax_ignore", "mathjax_ignore"} <= {*parent.get("class", ())}
            for parent in text.parents
        )
    ]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_formula_of_a_students_is_typeset_in_a_table_or_a_comment(formula):
    text = f"XY {formula} XY"
    for verdict in (crashed(text), failing(text)):
        made = table_html(verdict)
        assert typeset(made, "XY") == [] and "XY" in made
        cleaned = clean_html(made, ours=True)
        assert typeset(cleaned, "XY") == [] and "XY" in cleaned
    comment = clean_markdown(comment_on(crashed(text)))
    assert typeset(comment, "XY") == [] and "XY" in comment
    assert typeset(f"<p>{text}</p>", "XY")  # as MathJax would find it


def test_no_formula_of_a_students_is_typeset_among_the_graders_words(tmp_path):
    """On the whole feedback page; in what is the student's own, formulas are welcome."""
    verdict = crashed("XY $x$")
    notebook = nbformat.from_dict(RELEASE)
    notebook.cells = [
        *notebook.cells,
        new_markdown_cell("QED $q$", id="added-1"),
        new_code_cell("1"),
    ]
    graded = [c.metadata.nbgrader for c in notebook.cells if "nbgrader" in c.metadata]
    scores = {mark["grade_id"]: (0.0, 1.0) for mark in graded if mark["grade"]}
    comments = {"softmax": comment_on(verdict)}
    marked = MarkedNotebook(scores, comments, 0.0, 3.0, 0.0, {"softmax": verdict})
    made = Pages(config_of(tmp_path)).page(notebook, NAME, "ann", marked)
    assert made.count("XY") >= 2 and typeset(made, "XY") == []
    assert len(typeset(made, "QED")) == 1
    assert "ignoreClass" not in made and "ignoreHtmlClass" not in made  # MathJax's own names stay


@pytest.mark.parametrize("classes", ["tex2jax_ignore", "mathjax_ignore", "tex2jax_process"])
def test_the_classes_that_steer_formulas_are_ours_alone(classes):
    assert classes not in clean_html(f'<div class="{classes}">$x$</div>')
    assert classes not in clean_markdown(f'<div class="{classes}">$x$</div>')


# --- through the sandbox --------------------------------------------------------------------------

RAISES = "def softmax(scores, axis=-1):\n    raise type({name!r}, (Exception,), {{}})({text!r})"
CELL = "raise type({name!r}, (Exception,), {{}})({text!r})\ndef softmax(scores, axis=-1): pass"


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> dict[str, list[str]]:
    """The lines of each submission's log: an exception in every call, and one in the cell."""
    course = tmp_path_factory.mktemp("course")
    release = course / "released" / NAME / f"{NAME}.ipynb"
    release.parent.mkdir(parents=True)
    nbformat.write(RELEASE, release)
    for student, source in (("calls", RAISES), ("cell", CELL)):
        handed = ArchiveEntry(course / "submitted" / student / NAME)
        every = "\n".join(FORGED) + "\u2028" + "\r".join(FORGED) + "\x85    softmax: correct, 3"
        handed.cell("softmax").source = source.format(name=f"E\n{FORGED[1]}", text=every)
        handed.write()
    rows = grade(course / "submitted", release=course / "released", jobs=1).rows
    assert [row.status for row in rows] == [GRADED, GRADED]
    return {
        row.student: (course / "logs" / row.student / f"{NAME}.log").read_text("utf-8").splitlines()
        for row in rows
    }


@pytest.mark.needs_torch
@pytest.mark.parametrize("student", ["calls", "cell"])
def test_a_log_has_one_line_for_each_verdict(logs, student):
    told = [re.match(r"    (\w+): (\w+), ([\d.]+)", line) for line in logs[student]]
    assert [found.groups() for found in told if found and found[1] != "graded"] == [
        ("softmax", "crash", "0"), ("gaussian_scores", "correct", "2"),
    ]  # fmt: skip
    assert all(line.isprintable() for line in logs[student])
