"""Tables that the reader fills in: what counts as right, and what notebooks get of them."""

import ast
import contextlib
import io
import re
from fractions import Fraction
from pathlib import Path

import nbformat
import numpy as np
import pytest

from autograder import check_pencil, show_pencil
from autograder.publishing import pencils
from autograder.publishing.bookindex import BookError
from autograder.publishing.release import instructor_notebook, release
from autograder.student import pencil
from tests.grader.publishing.test_release import SAMPLE, course
from tests.pencil_cases import CASES

ROOT = Path(__file__).resolve().parents[2]

TABLE = """
| key | $d^2$ | weight |
|---:|---:|---:|
| 0 | [[0]] | [[16/25]] |
| sum | | [[1 // 25/25 = 1]] |
"""
OUTCOME = """
```{code-cell} ipython3
:tags: [outcome]
print(6 * 7)
```
"""


@pytest.mark.parametrize(("answer", "given", "verdict"), CASES)
def test_what_counts_as_right(answer, given, verdict):
    assert pencil.judge(answer, given) == verdict


@pytest.mark.parametrize(
    ("cell", "answer", "verdict"),
    [
        (16 / 25, "16/25", "right"),
        (4 / 9, "4/9", "right"),
        (0.43 + 0.43, "0.87", "right"),
        (np.float32(0.5), "1/2", "right"),
        (np.int64(2), "2", "right"),
        (Fraction(8, 25), "8/25", "right"),
        (1.0, "1", "right"),
        (float("-inf"), "−∞", "right"),
        (float("nan"), "1", "wrong"),
        (True, "✓", "right"),
        (False, "✓", "wrong"),
        ("she", "she", "right"),
        ((1.94, 6.68), "(1.94, 6.68)", "right"),
        ((..., 6.68), "(1.94, 6.68)", "wrong"),
        (..., "1", "empty"),
        (None, "1", "empty"),
        ("", "1", "empty"),
        ({}, "1", "wrong"),
    ],
)
def test_what_stands_in_a_notebooks_cell(cell, answer, verdict):
    assert pencil.judge(answer, pencil.as_written(cell)) == verdict


# --- what check_pencil says ---


def small() -> pencil.PencilAnswers:
    columns = ["d²", "weight"]
    return pencil.PencilAnswers(
        [
            pencil.TableRow("0", columns, ["0", "16/25"]),
            pencil.TableRow("1", columns, ["1", "8/25"]),
            pencil.TableRow("sum", ["weight"], ["1"]),
        ],
        "Because.",
    )


def test_a_report_marks_each_cell_and_gives_no_number_away():
    told = pencil.report("noon", small(), [[0, 0.64], [2, ...], [...]])
    assert told.splitlines()[0] == "noon: 2 of 5 right, 1 wrong (✗), 2 still empty (…)."
    assert [line.split() for line in told.splitlines()[1:]] == [
        ["d²", "weight"],
        ["0", "✓", "✓"],
        ["1", "✗", "…"],
        ["weight"],
        ["sum", "…"],
    ]
    assert "25" not in told and "64" not in told


def test_a_report_on_a_full_an_empty_and_a_misshapen_table():
    full = [[0, 16 / 25], [1, 8 / 25], [1]]
    assert pencil.report("noon", small(), full) == "noon: 5 of 5 right."
    empty = [[..., ...], [..., ...], [...]]
    assert "all 5 cells are still empty" in pencil.report("noon", small(), empty)
    for odd in (None, 3, [1, 2, 3], [[0, 1], [1, 1]], [[0], [1], [1]], "noon"):
        assert "noon needs 3 rows of 2, 2, 1 cells" in pencil.report("noon", small(), odd)


def test_a_report_tells_a_known_slip_once():
    slips = [pencil.Slip("16/25", "16/24", "You left out a count."), pencil.Slip("1", "2", "No.")]
    table = pencil.PencilAnswers(small().rows, slips=slips)
    told = pencil.report("noon", table, [[0, 16 / 24], [1, 8 / 24], [...]])
    assert told.splitlines()[-1] == "✗ You left out a count."
    assert told.count("✗ ") == 1 and "No." not in told
    assert "left out" not in pencil.report("noon", table, [[0, 0.5], [1, 16 / 24], [...]])
    assert pencil.parse(pencil.dump({"noon": table})) == {"noon": table}


def test_a_single_row_is_a_flat_list():
    one = pencil.PencilAnswers([pencil.TableRow("weights", ["", ""], ["1/4", "3/4"])])
    assert pencil.report("w", one, [0.25, 0.75]) == "w: 2 of 2 right."
    assert "rounded too far (≈)" in pencil.report("w", one, [0.3, 0.75])
    assert "w needs 2 cells" in pencil.report("w", one, [0.25])


def test_the_answers_survive_their_file():
    tables = {"noon": small()}
    assert pencil.parse(pencil.dump(tables)) == tables


def test_an_unknown_table_is_named():
    for call in (lambda: check_pencil("nowhere", []), lambda: show_pencil("nowhere")):
        with pytest.raises(ValueError, match="'nowhere'"):
            call()


# --- from the book to the notebook ---


@pytest.mark.parametrize(
    ("head", "plain"),
    [
        ("$d^2$", "d²"),
        (r"weight $\times$ value", "weight × value"),
        ("{term}`key`", "key"),
        ("{term}`keys <key>`", "keys"),
        (r"$QK^\top$", "QK^ᵀ"),
        ("`n_k` **bold**", "n_k bold"),
    ],
)
def test_heads_are_told_in_plain_text(head, plain):
    assert pencils.label(head) == plain


def sample(tmp_path: Path, text: str) -> Path:
    root = course(tmp_path, SAMPLE)
    path = root / "book" / "01_kernel_regression.md"
    before, mark, after = path.read_text(encoding="utf-8").partition("## Code\n")
    path.write_text(f"{before}{mark}\n{text}\n\nAnd on.\n{after}", encoding="utf-8")
    return path


def test_a_pencil_becomes_a_blank_table_and_cells_to_fill_in(tmp_path):
    inner = "::::{explanation}\nIt is *so*.\n::::\n"
    path = sample(tmp_path, f":::::{{pencil}} made_up\nFill in.\n{TABLE}\n{inner}:::::\n")
    notebook = instructor_notebook(path)
    at = next(i for i, c in enumerate(notebook.cells) if "check_pencil" in c.source)
    blank, code, after = (c.source for c in notebook.cells[at - 1 : at + 2])
    assert "| 0 | … | … |" in blank and "| sum | | … |" in blank
    assert "25" not in blank + code and "so" not in blank
    assert notebook.cells[at].metadata.tags == ["draw"], "grading runs none of it"
    assert after.startswith("And on.")
    tree = ast.parse(code)
    given = next(n.value for n in tree.body if isinstance(n, ast.Assign))
    assert ast.unparse(given) == "[[..., ...], [...]]"
    table = pencils.tables(path.parents[1])["made_up"]
    assert table.rows == [
        pencil.TableRow("0", ["d²", "weight"], ["0", "16/25"]),
        pencil.TableRow("sum", ["weight"], ["1"]),
    ]
    assert table.explanation == "It is *so*."


def test_a_slip_is_known_to_the_table_and_not_shown(tmp_path):
    slip = "% slip: 16/25, not 16/24: You left out a count: it is 1."
    path = sample(tmp_path, f":::::{{pencil}} made_up\nFill in.\n{TABLE}\n{slip}\n:::::\n")
    table = pencils.tables(path.parents[1])["made_up"]
    assert table.slips == [pencil.Slip("16/25", "16/24", "You left out a count: it is 1.")]
    assert not any("slip" in cell.source for cell in instructor_notebook(path).cells)


def test_lines_with_blanks_become_rows(tmp_path):
    path = sample(tmp_path, ":::{pencil} lines\n*loss*: [[81]]\n\nboth: [[1]], [[2]]\n:::\n")
    table = pencils.tables(path.parents[1])["lines"]
    assert [(row.label, row.answers) for row in table.rows] == [
        ("loss", ["81"]),
        ("both", ["1", "2"]),
    ]


def test_a_prediction_comes_before_its_cell_and_its_explanation_behind(tmp_path):
    text = "::::{predict} product\nWhat is it?\n\n- 13\n- [[42]]\n\n"
    second = OUTCOME.replace("6 * 7", "7 * 6")
    text += f":::{{explanation}}\nSix times seven.\n:::\n::::\n{OUTCOME}{second}"
    cells = [cell.source for cell in instructor_notebook(sample(tmp_path, text)).cells]
    at = cells.index("print(6 * 7)")
    assert cells[at - 2] == "**Predict, then run**\n\nWhat is it?\n\n- 13\n- 42"
    assert cells[at - 1].startswith("**My prediction:**")
    assert cells[at + 1] == "print(7 * 6)"
    assert cells[at + 2] == "**What comes out, and why**\n\nSix times seven."


def test_a_hard_problems_answer_is_for_instructors_only(tmp_path):
    text = "::::{hard-problem} zebra\nWhy?\n\n:::{model-answer}\nStripes everywhere.\n:::\n::::"
    path = sample(tmp_path, text)
    made = [cell.source for cell in instructor_notebook(path).cells]
    assert any("Stripes everywhere" in source for source in made)
    (student,) = release(path.parents[1], ["kernel_regression"])
    got = nbformat.read(student, as_version=4)
    assert "**★ A hard problem** (optional, no points)\n\nWhy?" in [c.source for c in got.cells]
    assert "Stripes" not in student.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (":::{pencil} made_up\nNothing.\n:::", "nothing is in [[ ]]"),
        (":::{pencil} made-up\nx: [[1]]\n:::", "the name must be a Python name"),
        (":::{pencil} p\nx: [[1]]\n\n% slip: 2, not 3: No.\n:::", "no slip in an answer"),
        (":::{pencil} p\nx: [[1]]\n\n% slip: 1 not 3\n:::", "no slip in an answer"),
        ("- a\n\n  :::{pencil} p\n  x: [[1]]\n  :::", "inside a list"),
        ("::::{pencil} p\n\n:::{explanation}\nx\n:::\nx: [[1]]\n::::", "text after the"),
        (":::{predict} p\nWhat?\n\n- [[1]]\n- 2\n:::", "has no {explanation}"),
        ("::::{predict} p\nWhat?\n\n:::{explanation}\nx\n:::\n::::", "nothing is in [[ ]]"),
        (":::{hard-problem} p\nWhat?\n:::", "no {model-answer}"),
        (OUTCOME, "an outcome without a {predict} before it"),
    ],
)
def test_what_is_no_pencil_stops_with_file_and_line(tmp_path, text, reason):
    path = sample(tmp_path, text)
    where = r"book/01_kernel_regression\.md:\d+: .*"
    with pytest.raises(BookError, match=where + re.escape(reason)):
        instructor_notebook(path)


def test_names_are_used_once(tmp_path):
    path = sample(tmp_path, ":::{pencil} p\nx: [[1]]\n:::\n\n:::{pencil} p\nx: [[1]]\n:::")
    with pytest.raises(BookError, match="used twice"):
        pencils.tables(path.parents[1])


def test_a_table_and_a_variable_of_the_chapter_cannot_share_a_name(tmp_path):
    cell = "```{code-cell} ipython3\np = 1\n```"
    path = sample(tmp_path, f":::{{pencil}} p\nx: [[1]]\n:::\n\n{cell}")
    with pytest.raises(BookError, match=r"share a name: \['p'\]"):
        pencils.tables(path.parents[1])


# --- the book's own ---


@pytest.fixture(scope="module")
def tables() -> dict[str, pencil.PencilAnswers]:
    return pencils.tables(ROOT)


@pytest.mark.parametrize("name", sorted(pencil._all_answers()))  # the same: see below
def test_every_answer_of_the_book_is_right_by_its_own_rules(tables, name):
    table = tables[name]
    answers = [[a.split(" or ")[0].split("±")[0] for a in row.answers] for row in table.rows]
    given = answers[0] if len(answers) == 1 else answers
    cells = sum(map(len, answers))
    assert pencil.report(name, table, given) == f"{name}: {cells} of {cells} right."


@pytest.mark.parametrize("name", sorted(pencil._all_answers()))
def test_an_answer_counts_with_its_shown_precision_and_one_far_off_does_not(tables, name):
    for answer in (a for row in tables[name].rows for a in row.answers):
        exact = pencil.number(answer)
        if exact is None or not exact.value or exact.percent:
            continue
        if exact.places is not None:
            assert pencil.judge(answer, f"{exact.value:.{exact.places}f}") == "right"
        for places in (2, 3, 4):
            rounded = f"{exact.value:.{places}f}"
            if places > (exact.places or 0) and abs(exact.value) > 0.1:
                assert pencil.judge(answer, rounded) == "right", (answer, rounded)
        for factor in (0.79, 1.21, -1):
            assert pencil.judge(answer, repr(factor * exact.value)) == "wrong", (answer, factor)


def test_untouched_cells_run_and_the_answers_are_shown(tables, monkeypatch):
    monkeypatch.setattr(pencil, "_all_answers", lambda: tables)
    released = (ROOT / "notebooks").glob("*/*.ipynb")  # see `test_release`
    sources = [cell.source for path in released for cell in nbformat.read(path, 4).cells]
    cells = [source for source in sources if "check_pencil" in source]
    assert len(cells) > 50
    for cell in cells:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(cell.replace("# show_pencil", "show_pencil"), {})
        assert "still empty" in said.getvalue()


def test_the_released_answers_are_those_of_the_chapters(tables):
    assert pencil._all_answers() == tables, "run `autograder release`"


def test_what_is_shown_as_an_answer():
    assert pencils.answer("2 // 1 + 1 = 2") == ("2", "1 + 1 = 2")
    assert pencils.answer("50.2 ± 0.1") == ("50.2 ± 0.1", "50.2")
    assert pencils.answer("she or sings") == ("she or sings", "she")


def test_a_pencil_inside_another_directive_has_no_translation(tmp_path):
    text = "::::{note}\n\n:::{pencil} p\nx: [[1]]\n:::\n::::"
    path = sample(tmp_path, text)
    with pytest.raises(BookError, match=r"no translation for the directive \{pencil\}"):
        instructor_notebook(path)
