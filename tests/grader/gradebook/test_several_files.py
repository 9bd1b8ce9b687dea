"""Of several files in a submission's folder, work is graded and not its untouched copy."""

import ast
import io
from zipfile import ZipFile

import nbformat
import pytest
from terms import NAME, RELEASED, answered, run

from autograder.gradebook.classroom import grade
from autograder.gradebook.scripts import notebook_of
from autograder.gradebook.submissions import find_file
from autograder.notebook.reading import UnusableFile

WORK = answered(softmax="return x", rest="return 1")
PARTS = [
    cell.source
    for cell in nbformat.reads(WORK.decode(), as_version=4).cells
    if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
]
SCRIPT = "\n\n\n".join(PARTS)
MARKED = "\n".join(f"# %%\n{part}" for part in PARTS)


@pytest.fixture
def course(term_course):
    return term_course


def hand_in(course, **files: bytes) -> None:
    folder = course / "submitted" / "ann" / NAME
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("other", [f"{NAME}-Copy1.ipynb", "work.ipynb", f"{NAME} (1).ipynb"])
def test_an_untouched_copy_never_beats_work(course, other):
    hand_in(course, **{f"{NAME}.ipynb": RELEASED.encode(), other: WORK})
    result = grade(course / "submitted")
    (row,) = result.rows
    assert row.score == 5
    assert any(f"{NAME}.ipynb: {other} was taken instead" in line for line in result.ignored)


def test_of_two_copies_with_work_the_last_counts(course):
    half = answered(softmax="return x")
    hand_in(course, **{f"{NAME}.ipynb": RELEASED.encode(), f"{NAME}-Copy9.ipynb": half,
                       f"{NAME}-Copy10.ipynb": WORK})  # fmt: skip
    assert run(course)["ann"].score == 5


def test_work_under_the_expected_name_counts_whatever_is_beside(course):
    wrong = answered(rest="return 'wrong'")
    hand_in(course, **{f"{NAME}.ipynb": WORK, f"{NAME}-Copy1.ipynb": wrong,
                       "notes.ipynb": b"{}"})  # fmt: skip
    result = grade(course / "submitted")
    assert result.rows[0].score == 5
    assert any(f"{NAME}.ipynb was taken instead" in line for line in result.ignored)


def test_nothing_but_untouched_copies_is_not_attempted(course):
    hand_in(course, **{f"{NAME}.ipynb": RELEASED.encode(), f"{NAME}-Copy1.ipynb": RELEASED.encode(),
                       "else.ipynb": b"{}"})  # fmt: skip
    assert run(course)["ann"].score == 0


def test_without_the_expected_name_the_only_work_counts(course):
    hand_in(course, **{"a.ipynb": RELEASED.encode(), "b.ipynb": WORK})
    assert run(course)["ann"].score == 5


@pytest.mark.parametrize("script", [SCRIPT, MARKED, "import numpy as np\r\n" + SCRIPT])
@pytest.mark.parametrize("name", [f"{NAME}.py", "work.py"])
def test_a_script_is_graded_where_there_is_no_notebook(course, script, name):
    hand_in(course, **{name: script.encode(), "helper.py": b"x = 1"})
    assert run(course)["ann"].score == 5


@pytest.mark.parametrize("text", [
    "x = 1; y = (\n    2)\nz = 3\n", "x = 1\n@f\n# why\ndef g(): pass\n",
    'a = 1  # \x0c\n\x0cdef f():\n    return 1\nb = 2\n', 'a = """\u2028\x85"""\ndef f(): pass\n',
    "a = 1\r\nb = [\r\n  2]\r\n", "a = 1\rb = 2\r", "# only words\n", "a = 1  # last\n# more\n",
])  # fmt: skip
def test_a_script_is_cut_between_statements(text):
    """Its cells are whole statements, and together all of its lines."""
    cells = nbformat.reads(notebook_of(text.encode()).decode(), as_version=4).cells
    assert {type(ast.parse(cell.source)) for cell in cells} == {ast.Module}
    joined = ast.parse("\n".join(cell.source for cell in cells))
    assert ast.dump(joined) == ast.dump(ast.parse(text))
    assert all(word in str(cells) for word in ("words", "more") if word in text)


@pytest.mark.parametrize("data", [b"def f(:", b"x = 1", b"x = 1\0", b"# %%\n" * 9000])
def test_a_script_of_nothing_costs_itself_alone(course, data):
    hand_in(course, **{f"{NAME}.py": data})
    other = course / "submitted" / "bob" / NAME
    other.mkdir(parents=True)
    (other / f"{NAME}.ipynb").write_bytes(WORK)
    rows = run(course)
    assert rows["bob"].score == 5 and rows["ann"].score == 0


@pytest.mark.parametrize("name", [f"{NAME}.ipynb.txt", f"{NAME}.ipynb.json", f"{NAME}.IPYNB"])
def test_a_notebook_that_a_browser_renamed_is_graded(course, name):
    hand_in(course, **{name: WORK})
    assert run(course)["ann"].score == 5


def packed(*files: tuple[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with ZipFile(whole, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return whole.getvalue()


@pytest.mark.parametrize(
    "files",
    [
        [(f"{NAME}.ipynb", WORK)],
        [("hand in/work.ipynb", WORK), ("hand in/helper.py", b"x = 1"), ("data.csv", b"1")],
        [(f"{NAME}/{NAME}.ipynb", WORK), ("other.ipynb", b"{}")],
        [(f"{NAME}.ipynb", WORK), (f".ipynb_checkpoints/{NAME}-checkpoint.ipynb", b"{}")],
        [(f"{NAME}.ipynb.txt", WORK)],
        [("work.py", SCRIPT.encode())],
    ],
)
@pytest.mark.parametrize("name", ["my work.zip", "WORK.ZIP"])
def test_the_notebook_in_a_zip_is_graded(course, files, name):
    hand_in(course, **{name: packed(*files)})
    assert run(course)["ann"].score == 5


@pytest.mark.parametrize(
    "data",
    [
        b"PK",
        packed(),
        packed(("a.txt", b"x")),
        packed(("a.ipynb", WORK), ("b.ipynb", WORK)),
        packed(*((f"{n}.txt", b"") for n in range(1001)), ("a.ipynb", WORK)),
    ],
)
def test_a_zip_of_nothing_to_grade_is_told(course, data):
    hand_in(course, **{"my.zip": data})
    with pytest.raises(UnusableFile, match=r"The zip (holds|cannot be read)"):
        find_file(
            course / "submitted" / "ann" / NAME, NAME, course / "notebooks" / NAME / f"{NAME}.ipynb"
        )
