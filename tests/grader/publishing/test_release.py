"""Chapters become notebooks: plain Markdown, stubs, points, and the same bytes every time."""

import ast
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.notebook import stubs
from autograder.publishing.bookindex import BookError, BookIndex
from autograder.publishing.release import chapter_files, instructor_notebook, release
from autograder.student.course import exercises_of

pytestmark = pytest.mark.needs_torch  # as the course does

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "tests" / "sample_book"
PAGE = "https://attention-by-hand.example/book/01_kernel_regression.html"
SLUGS = [path.stem for path in chapter_files(ROOT)]
STEMS = [pytest.param(stem, marks=pytest.mark.share(4, of=stem)) for stem in SLUGS]


def course(folder: Path, book: Path) -> Path:
    """A course directory in `folder` with the pages of `book` and the repository's settings."""
    shutil.copytree(book / "book", folder / "book", ignore=shutil.ignore_patterns("extensions"))
    for name in ("_config.yml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copy(book / "_toc.yml", folder / "_toc.yml")
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    root = course(tmp_path_factory.mktemp("sample"), SAMPLE)
    release(root)
    return root


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, request) -> Path:
    """The real book, of which the chapters that are looked at are released somewhere else."""
    root = course(tmp_path_factory.mktemp("fresh"), ROOT)
    here = [i for i in request.session.items if i.path == request.path and hasattr(i, "callspec")]
    stems = {item.callspec.params.get("stem") for item in here} - {None}
    release(root, sorted(map(slug_of, stems)))
    return root


def notebook(root: Path, name: str = "01_kernel_regression") -> nbformat.NotebookNode:
    return nbformat.read(root / "notebooks" / name / f"{name}.ipynb", as_version=4)


def prose(nb: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def slug_of(stem: str) -> str:
    return stem.partition("_")[2]


# --- every construct that a chapter may use ---


@pytest.mark.parametrize(
    "text",
    [
        "# Every construct, once\n\nChapter 1 of *Attention by Hand*.",
        "[attention](https://attention-by-hand.example/book/glossary.html#term-attention)",
        f"[Every construct, once]({PAGE}#kernel-regression)",
        f"[the end]({PAGE}#sec-end)",
        "[Notation](https://attention-by-hand.example/book/notation.html)",
        "[the words](https://attention-by-hand.example/book/glossary.html)",
        "[a page](https://attention-by-hand.example/book/notation.html)",
        f"[a place]({PAGE}#sec-end)",
        "[elsewhere](https://example.org/page)",
        "`{eq}` in code stays: `` {eq}`x` ``.",
        "$$\na(q, k) = -\\tfrac{1}{2}(q - k)^2 \\tag{1.1}\n$$",
        f"as [(1.1)]({PAGE}#equation-eq-score) says, and [Figure 1.1]({PAGE}#fig-line) shows",
        "after [Nadaraya (1964)](https://doi.org/10.1137/1109020) and others",
        "([Nadaraya, 1964](https://doi.org/10.1137/1109020); "
        "[Watson, 1964](https://www.jstor.org/stable/25049340))",
        "Inline $x_i \\le \\text{one}$ stays.",
        f"| $w$ | the inverse bandwidth, [(1.1)]({PAGE}#equation-eq-score) |",
        '```python\nprint("a plain fence stays")\n```',
        f"> **Where this goes wrong**\n>\n> One symptom, $x$, of [(1.1)]({PAGE}#equation-eq-score)",
        "> - a list\n> - of two\n>\n> $$\n> b = c \\tag{1.2}\n> $$",
        "> **Note**\n>\n> A short note.",
        "**Scores into weights** (3 points)",
        f"*Figure 1.1. A line. It rises, as [(1.1)]({PAGE}#equation-eq-score) does not.*",
        f"**Move it.** Where does [(1.1)]({PAGE}#equation-eq-score) go?\n\n"
        f"*What stands here needs the page: [look at it in the book]({PAGE}#explorable-line).*",
        "**Question** (2 points)\n\nWhat happens at $w = 0$ in [(1.1)]",
        "- E. A. Nadaraya. On estimating regression. *Theory of Probability & Its Applications*, "
        "9(1):141–142, 1964. [doi:10.1137/1109020](https://doi.org/10.1137/1109020).",
    ],
)
def test_myst_becomes_markdown(sample, text):
    assert text in prose(notebook(sample))


def test_a_notebook_opened_alone_says_what_to_install(sample):
    first = next(cell for cell in notebook(sample).cells if cell.cell_type == "code")
    run = [sys.executable, "-I", "-c", first.source]
    installed = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (installed.returncode, installed.stderr) == (0, "")
    run.insert(2, "-S")  # without any package
    alone = subprocess.run(run, capture_output=True, text=True, check=False)
    archive = "https://attention-by-hand.example/_downloads/attention-by-hand.zip"
    assert f"%pip install {archive}" in alone.stderr.splitlines()[-1]


def test_cells_that_only_the_page_needs_are_left_out(sample):
    whole = "".join(cell.source for cell in notebook(sample).cells)
    assert "only on the page" not in whole
    # one for the cell, one for the explorable
    assert whole.count("*What stands here needs the page: [look at it in the book](") == 2
    assert "a remark for authors" not in prose(notebook(sample))


def test_a_table_whose_numbers_come_from_a_file_is_there_as_text(tmp_path):
    root = course(tmp_path, SAMPLE)
    numbers = tmp_path / "numbers.json"
    numbers.write_text('{"seeds": [0.25, 0.5]}', encoding="utf-8")
    path = root / "book" / "01_kernel_regression.md"
    cells = [
        "```{code-cell} ipython3\nimport json\nfrom pathlib import Path\n\n\n"
        'def percent(x):\n    return f"{100 * x:.0f} %"\n```',
        "```{code-cell} ipython3\n:tags: [page-only, hide-input]\n"
        f'runs = json.loads(Path("{numbers}").read_text())  # numbers.json\n'
        'print("seeds:", *map(percent, runs["seeds"]))\n```',
        "```{code-cell} ipython3\n:tags: [page-only]\nprint(len(runs))\n```",
        "```{code-cell} ipython3\nmade_here = 1\n```",
        "```{code-cell} ipython3\n:tags: [page-only]\nprint(runs, made_here)\n```",
    ]
    before, mark, after = path.read_text(encoding="utf-8").partition("## Code\n")
    path.write_text("\n\n".join([before + mark, *cells, after]), encoding="utf-8")
    got = [cell.source for cell in instructor_notebook(path).cells]
    at = got.index("```text\nseeds: 25 % 50 %\n```")
    assert got[at + 1] == "```text\n1\n```"
    assert got[at + 3].startswith("*What stands here needs the page:"), (
        "no text for what is trained"
    )


def test_a_measured_outcome_stands_between_prediction_and_explanation():
    path = ROOT / "book" / "07_transformer.md"
    got = [cell.source for cell in instructor_notebook(path).cells]
    runs = json.loads((ROOT / "benchmarks" / "transformer_bugs.json").read_text(encoding="utf-8"))
    at = next(i for i, source in enumerate(got) if all(name in source for name in runs["runs"]))
    assert got[at - 1].startswith("**My prediction:**")
    assert got[at + 1].startswith("**What comes out, and why**")
    for run in runs["runs"].values():
        assert f"{run['test']:.1%}" in got[at]


def test_drawing_cells_say_so(sample):
    (tags,) = (
        cell.metadata.get("tags") for cell in notebook(sample).cells if "plt.plot" in cell.source
    )
    assert {*tags} >= {"draw", "hide-input"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{unknown}`role`", "no translation for the role {unknown}"),
        (":::{unknown}\nx\n:::", "no translation for the directive {unknown}"),
        ("```{list-table}\n- a\n```", "no translation for the directive {list-table}"),
        ("<b>bold</b>", "raw HTML"),
        ("<div>block</div>", "raw HTML"),
        ("a note[^1]\n\n[^1]: below", "a footnote"),
        ("- a list\n\n  :::{note}\n  x\n  :::", "inside a list"),
        ("{eq}`nowhere`", "nothing in the book is labelled nowhere"),
        ("{numref}`eq-score`", "nothing in the book is labelled eq-score"),
        ("{term}`nonsense`", "the glossary has no nonsense"),
        ("{cite:p}`nobody2000`", "references.bib has no nobody2000"),
        ("{doc}`nowhere`", "there is no page nowhere"),
        ("[text](nowhere.md)", "nowhere.md leads nowhere"),
        ("![a picture](missing.svg)", "there is no image missing.svg"),
        (
            "```{code-cell} ipython3\nimport solutions\n```",
            "students do not have what this cell imports",
        ),
        ("```{code-cell} ipython3\n:tags: [daw]\n\n1\n```", "unknown tag daw"),
        (
            "```{code-cell} ipython3\n:tags: [check]\n\ncheck(softmax)\n```",
            "not follow its exercise",
        ),
        (
            "```{code-cell} ipython3\n:tags: [exercise]\n\nfrom solutions.masking import x\n```",
            "must be exactly `from solutions.kernel_regression import NAME`",
        ),
        ('+++ {"tags": ["question"]}\n\njust text\n\n+++', "must hold one {question}"),
        (
            '+++ {"tags": ["question"]}\n\n:::{question} q\n:points: 1\n\ntext\n:::\n\n+++',
            "a question without a {model-answer}",
        ),
    ],
)
def test_what_has_no_translation_stops_with_file_and_line(tmp_path, text, reason):
    root = course(tmp_path, SAMPLE)
    path = root / "book" / "01_kernel_regression.md"
    source = path.read_text(encoding="utf-8")
    before, mark, after = source.partition("## Code\n")
    path.write_text(f"{before}{mark}\n{text}\n{after}", encoding="utf-8")
    first = (before + mark).count("\n") + 2
    with pytest.raises(BookError, match=re.escape(reason)) as caught:
        instructor_notebook(path)
    where = re.match(r"book/01_kernel_regression\.md:(\d+): ", str(caught.value))
    assert where, caught.value
    assert first <= int(where[1]) < first + text.count("\n") + 1


def test_a_stub_whose_imports_are_missing_stops(tmp_path):
    root = course(tmp_path, SAMPLE)
    path = root / "book" / "01_kernel_regression.md"
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace("import numpy as np\n", "", 1), encoding="utf-8")
    with pytest.raises(BookError, match="softmax needs np imported"):
        instructor_notebook(path)


def test_an_unknown_chapter_is_named_with_those_there_are(sample):
    with pytest.raises(ValueError, match="no chapter nonsense; there are kernel_regression"):
        release(sample, ["nonsense"])


# --- the same bytes ---


def test_a_second_release_writes_nothing(sample):
    path = sample / "notebooks" / "01_kernel_regression" / "01_kernel_regression.ipynb"
    before = path.stat().st_mtime_ns, path.read_bytes()
    assert release(sample, ["kernel_regression"]) == [path]
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_nbgraders_own_command_gives_the_same_bytes(sample):
    path = sample / "notebooks" / "01_kernel_regression" / "01_kernel_regression.ipynb"
    before = path.read_bytes()
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "--force", path.stem]
    done = subprocess.run(command, cwd=sample, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == before


def test_only_notebooks_of_chapters_are_committed():
    kept = {p for p in (ROOT / "notebooks").rglob("*") if ".ipynb_checkpoints" not in p.parts}
    found = {str(p.relative_to(ROOT / "notebooks")) for p in kept if p.is_file()}
    assert found == {f"{stem}/{stem}.ipynb" for stem in SLUGS}


@pytest.mark.parametrize("stem", STEMS)
def test_a_committed_notebook_is_that_of_its_chapter(fresh, stem):
    path = f"notebooks/{stem}/{stem}.ipynb"
    assert (ROOT / path).read_bytes() == (fresh / path).read_bytes(), f"release {path} again"


# --- what a student gets ---


@pytest.mark.parametrize("stem", STEMS)
def test_notebooks_are_valid_and_clean(fresh, stem):
    nb = notebook(fresh, stem)
    nbformat.validate(nb)
    assert nb.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in nb.cells}) == len(nb.cells)
    for cell in nb.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("stem", STEMS)
def test_no_myst_is_left(fresh, stem):
    text = re.sub(r"```.*?```|(`+)(?!`).+?\1", "", prose(notebook(fresh, stem)), flags=re.DOTALL)
    for pattern in (
        r"\{[\w:-]+\}`",
        r":::",
        r"^\([\w-]+\)=",
        r"^\+\+\+",
        r"^%",
        r"\$\$ *\(",
        r"<\w",
    ):
        assert not re.search(pattern, text, re.MULTILINE), pattern


@pytest.mark.parametrize("stem", STEMS)
def test_each_stub_has_signature_docstring_and_nothing_else(fresh, stem):
    cells = {cell.id: cell for cell in notebook(fresh, stem).cells}
    module = import_module(f"solutions.{slug_of(stem)}")
    for exercise in exercises_of(slug_of(stem)):
        source = cells[exercise.name].source
        assert source == stubs.stub(getattr(module, exercise.name))
        assert "raise NotImplementedError" in source
        assert "SOLUTION" not in source
        node = ast.parse(source).body[0]
        assert node.name == exercise.name
        assert ast.get_docstring(node)


@pytest.mark.parametrize("stem", STEMS)
def test_stubs_run_after_the_notebooks_own_imports(fresh, stem):
    names: dict = {"__name__": "notebook"}
    graded = {exercise.name for exercise in exercises_of(slug_of(stem))}
    for cell in notebook(fresh, stem).cells:
        if cell.id in graded:
            exec(cell.source, names)
        elif cell.cell_type == "code":
            for node in ast.parse(cell.source).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    exec(ast.unparse(node), names)
    assert graded <= names.keys()


@pytest.mark.parametrize("stem", STEMS)
def test_every_exercise_and_question_is_graded_for_its_points(fresh, stem):
    marks = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook(fresh, stem).cells
        if "nbgrader" in cell.metadata
    }
    declared = exercises_of(slug_of(stem))
    for exercise in declared:
        answer, check = marks.pop(exercise.name), marks.pop(f"check_{exercise.name}")
        assert answer.metadata.nbgrader.solution and not answer.metadata.nbgrader.grade
        assert check.source == f"check({exercise.name})"
        assert check.metadata.nbgrader.grade and check.metadata.nbgrader.locked
        assert check.metadata.nbgrader.points == exercise.points
    assert marks, "no written question"
    for grade_id, cell in marks.items():
        assert grade_id.startswith("question_")
        assert cell.cell_type == "markdown"
        assert cell.metadata.nbgrader.grade and cell.metadata.nbgrader.solution
        assert cell.source.endswith(stubs.TEXT_STUB)
    with Gradebook(f"sqlite:///{fresh / 'gradebook.db'}") as gradebook:
        total = gradebook.find_assignment(stem).max_score
    written = sum(cell.metadata.nbgrader.points for cell in marks.values())
    assert total == pytest.approx(sum(e.points for e in declared) + written)


def test_clear_refuses_unpaired_marks():
    for text in ("### BEGIN SOLUTION\nx", "x\n### END SOLUTION", "### BEGIN SOLUTION\n" * 2):
        with pytest.raises(ValueError, match="SOLUTION"):
            stubs.clear(text)


def test_a_class_written_whole_is_cleared_in_both_methods():
    text = """\
class A:
    def __init__(self):
        ### BEGIN SOLUTION
        self.a = 1
        ### END SOLUTION

    def forward(self):
        \"\"\"Doc.\"\"\"
        ### BEGIN SOLUTION
        return self.a
        ### END SOLUTION"""
    assert stubs.clear(text) == (
        "class A:\n    def __init__(self):\n        raise NotImplementedError\n\n"
        '    def forward(self):\n        """Doc."""\n        raise NotImplementedError'
    )
    assert list(stubs.solution_lines(text)) == ["self.a = 1", "return self.a"]


def test_two_pages_may_not_share_a_label(tmp_path):
    root = course(tmp_path, SAMPLE)
    with (root / "book" / "notation.md").open("a", encoding="utf-8") as file:
        file.write("\n(sec-end)=\n## Again\n")
    with pytest.raises(BookError, match=r"notation\.md:\d+: the label sec-end"):
        BookIndex(root)
