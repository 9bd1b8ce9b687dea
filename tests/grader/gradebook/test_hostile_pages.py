"""A class whose notebooks are hard to read or to show, graded once: the marks stand, for everybody.

Each student here has right answers, and something in the notebook that an instructor's side has to
read, to clean, to colour or to show. `ann` and `zoe`, first and last, are their neighbours.
"""

import base64
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from hostile import FULL, NAME, RELEASE, ArchiveEntry, Frames, dangers, png
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from autograder.gradebook.classroom import ClassResult, grade
from autograder.judge.judge_file import judge_file
from autograder.sandbox.limits import Limits

pytestmark = pytest.mark.share(0)  # takes long

QUESTION = "question_w_of_zero"
NOTE = "a picture that cannot be shown"


HOSTILE: dict[str, Callable[[ArchiveEntry], None]] = {}


def hostile(made: Callable[[ArchiveEntry], None]) -> Callable[[ArchiveEntry], None]:
    """Register a notebook by a student of its name."""
    HOSTILE[made.__name__] = made
    return made


def shows(handed: ArchiveEntry, code: str) -> None:
    """Add a cell that displays HTML, given as an expression."""
    source = f"from IPython.display import HTML, Markdown, display\ndisplay(HTML({code}))"
    handed.notebook.cells.append(new_code_cell(source))


@hostile
def ann(handed: ArchiveEntry) -> None:
    """A neighbour."""


# --- Pictures -------------------------------------------------------------------------------------


@hostile
def pastes_a_picture(handed: ArchiveEntry) -> None:
    """As Jupyter writes it: an attachment of a cell of its own, and of an answer."""
    cell = new_markdown_cell("My sketch:\n\n![image.png](attachment:image.png)")
    cell["attachments"] = {"image.png": {"image/png": png(1)}}
    handed.notebook.cells.append(cell)
    answer = handed.cell(QUESTION)
    answer.source = "See ![my sketch.png](attachment:my%20sketch.png)"
    answer["attachments"] = {"my sketch.png": {"image/png": png(2)}}


@hostile
def writes_pictures_into_the_text(handed: ArchiveEntry) -> None:
    """As Colab and VS Code do it: addresses of data, in Markdown and in HTML; a large one, too."""
    handed.cell(QUESTION).source = (
        f"![one](data:image/png;base64,{png(3)})\n\n<img src='data:image/png;base64,{png(4)}'>\n\n"
        f"![large](data:image/png;base64,{base64.b64encode(LARGE).decode()})"
    )


LARGE = base64.b64decode(png(5)) + bytes(300_000)  # browsers do not mind what follows the end


@hostile
def names_pictures_oddly(handed: ArchiveEntry) -> None:
    """Names as macOS gives them to screenshots, with quotes and marks, half surrogates."""
    names = ["Bild\u202fvon 3.04\u202fPM.png", "a\"><script>PWNED</script>.png", "\u202egnp.x",
             "half\ud800.png"]  # fmt: skip
    cell = new_markdown_cell("\n\n".join(f"![]({'<attachment:' + n + '>'})" for n in names))
    cell["attachments"] = {n: {"image/png": png(10 + i)} for i, n in enumerate(names)}
    handed.notebook.cells.append(cell)


@hostile
def lost_a_picture(handed: ArchiveEntry) -> None:
    """An attachment that is not there, and one in an output."""
    handed.cell(QUESTION).source = "![lost](attachment:lost.png) and <img src='attachment:x' alt=y>"
    source = "from IPython.display import Markdown\nMarkdown('![shown](attachment:shown.png)')"
    handed.notebook.cells.append(new_code_cell(source))


@hostile
def pastes_what_is_no_picture(handed: ArchiveEntry) -> None:
    """Scripts called PNG, SVG, a picture of ten billion pixels, attachments that are lists."""
    script = base64.b64encode(b"<script>PWNED</script>" * 20).decode()
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='PWNED'/>").decode()
    attachments = {
        "a": {"image/png": script},
        "b": {"image/svg+xml": svg},
        "c": {"image/png": png(6, 100_000, 100_000)},
        "d": {"image/png": "!!!"},
        "e": [1, {"image/png": None}],
        "f": {"text/html": "<script>PWNED</script>"},
    }
    names = [*attachments, "g"]
    cell = new_markdown_cell("\n".join(f"![{n}](attachment:{n})" for n in names))
    cell["attachments"] = attachments
    other = new_markdown_cell(f"![x](data:image/png;base64,{script}) ![x](data:text/html,PWNED)")
    other["attachments"] = "PWNED"
    handed.notebook.cells += [cell, other]


@hostile
def shows_one_picture_often(handed: ArchiveEntry) -> None:
    """A picture of some 400 kB, shown two thousand times."""
    cell = new_markdown_cell("![](attachment:a)" * 2000)
    cell["attachments"] = {"a": {"image/png": base64.b64encode(LARGE).decode()}}
    handed.notebook.cells.append(cell)


# --- What takes long to show ----------------------------------------------------------------------


@hostile
def has_many_attributes(handed: ArchiveEntry) -> None:
    """Twenty thousand attributes in a tag: of an output, of a raw cell."""
    shows(handed, "'<b ' + ' '.join(f'a{n}' for n in range(14000)) + '>x</b>'")
    handed.notebook.cells.append(
        new_raw_cell("<b " + " ".join(f"a{n}" for n in range(25000)) + ">")
    )


@hostile
def opens_and_never_closes(handed: ArchiveEntry) -> None:
    """Tags that are repeated in every paragraph that follows, and tags within tags."""
    shows(handed, "'<p>' + ''.join(f'<b id={n}>' for n in range(950)) + '<p>x' * 1000")
    shows(handed, "'<div>' * 19_000")
    shows(handed, "'<b>' * 30_000 + '</p>' * 2000")


@hostile
def nests_brackets_in_a_style(handed: ArchiveEntry) -> None:
    """A value of a style that is five thousand brackets deep."""
    shows(handed, "'<p style=\"color:' + '(' * 5000 + '\">x</p>'")


@hostile
def is_hard_to_colour(handed: ArchiveEntry) -> None:
    """A string that Pygments reads with the square of its length."""
    handed.notebook.cells.append(new_code_cell("# '" + "\\N{" * 30_000))
    handed.notebook.cells.append(new_code_cell("'" + "\\N{" * 60_000))


@hostile
def is_hard_to_read_as_markdown(handed: ArchiveEntry) -> None:
    """Brackets, mathematics and fences that are opened and never closed."""
    for text in ("\\\\[" * 6000, "\\begin{a}" * 2000, "[" * 19_000, "*a" * 9000, "|a" * 9000,
                 "```perl\n" + "s{" * 9000, "> " * 9000, "[a" * 9000):  # fmt: skip
        handed.notebook.cells.append(new_markdown_cell(text))


@hostile
def displays_without_end(handed: ArchiveEntry) -> None:
    """More outputs than anybody looks at."""
    source = "from IPython.display import HTML, display\nfor n in range(300): display(HTML('<b>x'))"
    handed.notebook.cells += [new_code_cell(source) for _ in range(20)]


# --- What is odd to read --------------------------------------------------------------------------


@hostile
def has_half_surrogates(handed: ArchiveEntry) -> None:
    """Half surrogates, nulls and marks of direction in sources, ids, names and metadata."""
    odd = "\ud800 \udfff \u202e \0"
    handed.before("softmax", f"text = '''{odd}'''  # {odd}")
    handed.cell("softmax").source += f"\n    # {odd}\n"
    handed.notebook.cells.append(new_markdown_cell(odd))
    handed.notebook.metadata[odd] = {"name": odd}
    handed.cell("softmax").metadata[odd] = odd
    handed.notebook.cells[0]["id"] = odd
    handed.cell("gaussian_scores")["id"] = odd


@hostile
def has_cells_of_no_kind(handed: ArchiveEntry) -> None:
    """Cells that are none: of other kinds, without text, numbers, null, without metadata."""
    handed.notebook.cells += [
        {"cell_type": "heading", "source": "x"}, {"cell_type": "code"}, {"cell_type": ["code"]},
        {"cell_type": "code", "source": ["x", 3]}, {"cell_type": "markdown", "source": None},
        {"cell_type": "code", "source": "x = 1", "metadata": None}, 3, None, [], "code",
        {"cell_type": "code", "source": "x = 1", "metadata": {"tags": 3, "nbgrader": []}},
        {"cell_type": "code", "source": "x = 1", "metadata": {"nbgrader": {"grade_id": {}}}},
    ]  # fmt: skip


@hostile
def is_deep(handed: ArchiveEntry) -> None:
    """Metadata that is deep, wide and full of numbers that are none."""
    deep: list = []
    for _ in range(500):
        deep = [deep]
    handed.notebook.metadata["deep"] = deep
    handed.notebook.metadata["numbers"] = [float("nan"), float("inf"), 10**300]


# --- What looks like the grader's -----------------------------------------------------------------


@hostile
def looks_like_a_verdict(handed: ArchiveEntry) -> None:
    """The grader's own table, to the letter, as an output and as Markdown."""
    table = (
        '<div class="abh-check" style="border-left:.3em solid #1a7f37;padding:.1em 0 .1em .8em">'
        "<p><strong>FORGED: 3 of 3 points</strong></p></div>"
    )
    shows(handed, repr(table))
    handed.notebook.cells.append(
        new_code_cell(f"from IPython.display import Markdown\nMarkdown({table!r})")
    )
    handed.notebook.cells.append(new_markdown_cell(table.replace("abh-check", "abh&#45;check")))
    handed.notebook.cells.append(new_raw_cell(table))


@hostile
def zoe(handed: ArchiveEntry) -> None:
    """The other neighbour."""


# --- The class ------------------------------------------------------------------------------------


class GradedSubmission:
    """The class, graded: where, with what result."""

    def __init__(self, course: Path, students: list[str]):
        self.course = course
        release = course / "released"
        (release / NAME).mkdir(parents=True)
        nbformat.write(RELEASE, release / NAME / f"{NAME}.ipynb")
        for student in students:
            handed = ArchiveEntry(course / "submitted" / student / NAME)
            HOSTILE[student](handed)
            handed.write()
        self.result: ClassResult = grade(course / "submitted", release=release, jobs=1)
        self.rows = {row.student: row for row in self.result.rows}

    def feedback(self, student: str) -> str:
        path = self.course / "feedback" / student / NAME / f"{NAME}.html"
        return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> GradedSubmission:
    return GradedSubmission(tmp_path_factory.mktemp("course"), [*HOSTILE])


@pytest.mark.parametrize("student", HOSTILE)
def test_each_gets_full_marks_and_a_page_that_shows_the_notebook(graded, student):
    row = graded.rows[student]
    assert row.status == "graded", row.reason
    assert {name: row.marks[name].score for name in FULL} == FULL
    assert not any(row.marks[name].by_hand for name in FULL)
    page = graded.feedback(student)
    assert "softmax: 3 of 3 points" in page and "could not be shown" not in page
    assert len(page) < 25_000_000


@pytest.mark.parametrize("student", HOSTILE)
def test_no_page_can_act(graded, student):
    assert dangers(graded.feedback(student)) == []


def test_pasted_pictures_are_shown_to_who_marks_the_question(graded):
    page = graded.feedback("pastes_a_picture")
    assert page.count(f"data:image/png;base64,{png(1)}") == 1
    assert page.count(f"data:image/png;base64,{png(2)}") == 1
    page = graded.feedback("writes_pictures_into_the_text")
    large = base64.b64encode(LARGE).decode()
    assert all(f"data:image/png;base64,{p}" in page for p in (png(3), png(4), large))
    page = graded.feedback("names_pictures_oddly")
    assert all(f"data:image/png;base64,{png(10 + n)}" in page for n in (0, 2, 3))
    for student in ("pastes_a_picture", "writes_pictures_into_the_text"):
        assert NOTE not in graded.feedback(student)


def test_what_is_no_picture_is_a_note_in_its_place(graded):
    page = graded.feedback("lost_a_picture")
    assert all(f"[{NOTE}: {name}]" in page for name in ("lost", "y", "shown"))
    page = graded.feedback("pastes_what_is_no_picture")
    assert all(f"[{NOTE}: {name}]" in page for name in "abcdefg")
    assert any("picture" in note for note in graded.rows["pastes_what_is_no_picture"].notes)
    page = graded.feedback("shows_one_picture_often")
    assert NOTE in page and f"data:image/png;base64,{base64.b64encode(LARGE).decode()}" in page


def test_what_takes_too_long_to_show_stands_there_as_text(graded):
    for student in ("opens_and_never_closes", "is_hard_to_colour", "is_hard_to_read_as_markdown"):
        assert "except as text" in graded.feedback(student)


def test_only_the_graders_own_table_looks_like_it(graded):
    frames = Frames()
    frames.feed(graded.feedback("looks_like_a_verdict"))
    forged = [classes for text, classes in frames.strong if "FORGED" in text]
    assert len(forged) == 4
    assert all("abh-theirs" in classes and "abh-check" not in classes for classes in forged)
    ours = [classes for text, classes in frames.strong if text == "softmax: 3 of 3 points"]
    assert len(ours) == 1
    assert all("abh-check" in classes and "abh-theirs" not in classes for classes in ours)
    page = graded.feedback("looks_like_a_verdict")
    assert page.count("not by the grader") == 2 and page.count("Written by the student") == 2


@pytest.mark.parametrize("student", HOSTILE)
def test_judge_gives_the_same_marks(graded, student):
    path = graded.course / "submitted" / student / NAME / f"{NAME}.ipynb"
    found = judge_file(path, seed=b"a seed", limits=Limits())
    scores = {f"check_{name}": one["score"] for name, one in found["exercises"].items()}
    assert scores == FULL
    assert all(one["verdict"] == "correct" for one in found["exercises"].values())
