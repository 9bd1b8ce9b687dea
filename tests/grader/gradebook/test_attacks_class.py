"""A class that attacks: notebooks and folders that are hostile as such, graded once, read often.

Each attacker hands in a wrong answer, or a right one to show that the attack gains nothing and
costs nothing; `ann` and `zoe`, first and last, are their neighbours. The release is a small one,
of two exercises and a question.
"""

import csv
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from hostile import EVIL, FULL, NAME, RELEASE, ROOT, ArchiveEntry, bytes_below, dangers, mark
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook

from autograder.gradebook import export
from autograder.gradebook.classroom import ClassResult, grade
from autograder.gradebook.course_file import CourseFile
from autograder.judge.judge_file import judge_file
from autograder.report.report import report
from autograder.sandbox.limits import Limits

pytestmark = pytest.mark.needs_torch  # as the course does

WRONG = "def softmax(scores, axis=-1):\n    return scores * 0\n"


CANARY = "attack-canary"
TOKEN = "a line that only zoe has handed in"


ATTACKS: dict[str, tuple[Callable[[ArchiveEntry], None], dict[str, float | None]]] = {}


def attack(softmax: float | None = 0.0, scores: float | None = 2.0, name: str = "") -> Callable:
    """Register an attack by a student of its name, with the marks that it must earn.

    What must earn nothing for its softmax begins with a wrong one.
    """

    def register(made: Callable[[ArchiveEntry], None]) -> Callable[[ArchiveEntry], None]:
        def handed_in(handed: ArchiveEntry) -> None:
            if softmax == 0:
                handed.cell("softmax").source = WRONG
            made(handed)

        ATTACKS[name or made.__name__] = handed_in, dict(zip(FULL, (softmax, scores), strict=True))
        return made

    return register


@attack(softmax=3.0)
def ann(handed: ArchiveEntry) -> None:
    """A neighbour: all right."""


@attack()
def outlives_its_turn(handed: ArchiveEntry) -> None:
    """Leaves processes behind that write, signal and print while others are graded."""
    handed.before(
        "softmax",
        "import os, signal, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            while True:\n"
        "                for place in ('/tmp', '/course', os.path.expanduser('~')):\n"
        "                    try: open(f'{place}/attack-canary', 'w').write('x')\n"
        "                    except OSError: pass\n"
        "                for n in range(2, 200):\n"
        "                    try: os.kill(n, 0)\n"
        "                    except OSError: pass\n"
        "                time.sleep(0.01)\n"
        "        os._exit(0)\n",
    )


@attack()
def replaces_ipython(handed: ArchiveEntry) -> None:
    """IPython's own: AST and input transformers, hooks, formatters, the check's name."""
    handed.before(
        "softmax",
        "import ast, autograder\n"
        "shell = get_ipython()\n"
        "class Remove(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return ast.Pass()\n"
        "shell.ast_transformers.append(Remove())\n"
        "shell.events.register('post_run_cell', lambda result: print('3.0'))\n"
        "shell.display_formatter.formatters['text/plain'].for_type(object, lambda *a: None)\n"
        "shell.display_pub.publish = lambda *a, **k: None\n"
        "shell.showtraceback = lambda *a, **k: None\n"
        "autograder.student.check = check = lambda *a, **k: None\n",
    )


@attack()
def runs_the_shell(handed: ArchiveEntry) -> None:
    """Magics: kills, files, other notebooks."""
    handed.before("softmax", "!kill -9 -1\n!touch /tmp/attack-canary ../attack-canary")
    handed.before("softmax", "%%bash\npkill -9 python\nkill -STOP 1\ncat /proc/1/environ")
    handed.before("softmax", "%run ../../zoe/01_kernel_regression/01_kernel_regression.ipynb")


@attack()
def reads_the_others(handed: ArchiveEntry) -> None:
    """Looks for what others have handed in, and says whether it was found."""
    handed.before(
        "softmax",
        "import os\n"
        "found = 0\n"
        f"wanted = {TOKEN[::-1]!r}[::-1].encode()\n"
        "for folder, folders, files in os.walk('/'):\n"
        "    folders[:] = {*folders} - {'proc', 'sys', 'usr', 'site-packages'}\n"
        "    for file in files:\n"
        "        try: found += wanted in open(os.path.join(folder, file), 'rb').read(1 << 22)\n"
        "        except OSError: pass\n"
        "print('found', found, 'of the others')\n",
    )


@attack()
def forges_metadata(handed: ArchiveEntry) -> None:
    """Points, verdicts and locks written into the metadata, and outputs that look like marks."""
    check = handed.cell("check_softmax")
    check.metadata.nbgrader.update(points=1000, locked=False, solution=True, schema_version=99)
    check.metadata["autograder"] = {"verdict": "correct", "score": 3.0, "points": 3.0}
    check.outputs = [new_output("execute_result", data={"text/plain": "3.0"})]
    handed.notebook.metadata["autograder"] = {"status": "graded", "reason": None, "notes": []}
    handed.notebook.metadata["kernelspec"] = {"name": "../../evil", "display_name": EVIL}
    handed.notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": EVIL}


@attack()
def edits_the_checks(handed: ArchiveEntry) -> None:
    """Its own text in the locked cells, and one of them as Markdown."""
    handed.cell("check_softmax").source = "3.0"
    number = handed.at("check_gaussian_scores")
    moved = new_markdown_cell("2.0")
    moved.metadata["nbgrader"] = dict(mark(handed.notebook.cells[number]))
    handed.notebook.cells[number] = moved


@attack()
def doubles_everything(handed: ArchiveEntry) -> None:
    """Every cell twice, the checks first, all ids the same, and a right answer to look at only."""
    cells = handed.notebook.cells
    again = [nbformat.from_dict(dict(cell)) for cell in cells]
    handed.notebook.cells = [*reversed(again), *cells]
    for cell in handed.notebook.cells:
        cell["id"] = "same"


@attack(softmax=3.0)
def splits_the_answer(handed: ArchiveEntry) -> None:
    """A right answer in three pieces, the marked cell being the last."""
    whole = handed.cell("softmax").source
    handed.before("softmax", "axis = keepdims = 'not these'\nscores = None")
    handed.before("softmax", whole.replace("def softmax", "def first_softmax"))
    handed.cell(
        "softmax"
    ).source = "def softmax(scores, axis=-1):\n    return first_softmax(scores, axis)"


@attack()
def shows_html(handed: ArchiveEntry) -> None:
    """Scripts, frames, forms and styles in every kind of output, in names and in Markdown."""
    handed.cell("softmax").source = (
        "def softmax(scores, axis=-1):\n"
        f"    raise ValueError('`<script>{EVIL}</script><img src=x onerror={EVIL}>`')"
    )
    handed.before(
        "softmax",
        "from IPython.display import HTML, SVG, Javascript, Markdown, Latex, display\n"
        f"bad = '<script>{EVIL}</script><img src=x onerror={EVIL}>'\n"
        f"bad += '<a href=\"javascript:{EVIL}\">x</a><form action=//{EVIL}><iframe>'\n"
        f"bad += '<style>body{{background:url({EVIL})}}</style><base href=//{EVIL}>'\n"
        "display(HTML(bad), Markdown(bad), Markdown('[x](javascript:PWNED)'))\n"
        "display(Javascript('PWNED'), HTML('<iframe srcdoc=PWNED>'))\n"
        'display(SVG(\'<svg xmlns="http://www.w3.org/2000/svg" onload="PWNED">\'\n'
        "            '<script>PWNED</script></svg>'))\n"
        "display(Latex('$\\\\href{javascript:PWNED}{x}$' + bad))\n"
        "display({'application/javascript': 'PWNED', 'application/vnd.jupyter.widget-view+json':"
        " {'model_id': 'PWNED'}, 'text/plain': bad}, raw=True)\n"
        "print(bad, '\\x1b]8;;javascript:PWNED\\x07x\\x1b[31m')\n",
    )
    handed.before(
        "softmax", f"class Bad(Exception): pass\nBad.__name__ = bad\nraise Bad('{EVIL}' + bad)"
    )
    handed.notebook.cells.append(
        new_markdown_cell(
            f"<script>{EVIL}</script> [x](javascript:{EVIL}) ![x](x){{onerror={EVIL}}}"
        )
    )
    text = "</pre></code></div><script>PWNED</script><!-- "
    handed.notebook.cells.append(new_code_cell(f"# {text}\nprint({text!r})"))


@attack(softmax=None, scores=None)
def reaches_into_it_in_the_answer(handed: ArchiveEntry) -> None:
    """A right answer that looks at the grader in its own cell: to be seen by a person."""
    handed.cell("softmax").source = (
        "import autograder.student.engine.probe\n" + handed.cell("softmax").source
    )


@attack(softmax=None, scores=None)
def reaches_into_the_grader(handed: ArchiveEntry) -> None:
    """Right answers in a file that patches the probe: to be seen by a person."""
    handed.before(
        "softmax",
        "import autograder.student.engine.probe\n"
        "autograder.student.engine.probe._differs = lambda *a: False",
    )


@attack(softmax=3.0)
def brings_modules(handed: ArchiveEntry) -> None:
    """Files beside the notebook that Python, IPython or nbgrader would load."""
    handed.folder.mkdir(parents=True)
    (handed.folder / "autograder").mkdir()
    for name in ("numpy.py", "torch.py", "sitecustomize.py", "usercustomize.py", "softmax.pth",
                 "nbgrader_config.py", "jupyter_config.py", "autograder/__init__.py", ".pythonrc",
                 "conftest.py", "ipython_config.py", "string.py", "json.py"):  # fmt: skip
        (handed.folder / name).write_text("import os; open('/tmp/attack-canary', 'w'); os._exit(1)")


@attack(softmax=3.0)
def brings_odd_files(handed: ArchiveEntry) -> None:
    """Links, pipes, archives and names that lead out of the folder."""
    handed.folder.mkdir(parents=True)
    (handed.folder / "gradebook.db").symlink_to("../../../gradebook.db")
    (handed.folder / "other.ipynb").symlink_to(f"../../zoe/{NAME}/{NAME}.ipynb")
    (handed.folder / "up").symlink_to("../../..")
    (handed.folder / "timestamp.txt").symlink_to("/etc/passwd")
    os.mkfifo(handed.folder / "pipe.ipynb")
    with suppress(OSError):  # another file system
        os.link(ROOT / "pyproject.toml", handed.folder / "hard.toml")
    for name in ("..%2f..%2fx", "..\\..\\x", "-rf", "*", "$(touch x)", "\u202egnp.exe", "a\nb"):
        (handed.folder / name).write_text(EVIL)
    inner = handed.folder / "inner.zip"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../attack-canary", bytes(1 << 22))
    with zipfile.ZipFile(handed.folder / f"{NAME}.zip", "w") as archive:
        archive.write(inner)


@attack(softmax=3.0, name="=1+1")
def is_called_a_formula(handed: ArchiveEntry) -> None:
    """A student whose id is a formula."""


@attack(softmax=3.0, name="-rf")
def is_called_an_option(handed: ArchiveEntry) -> None:
    """A student whose id is an option of rm."""


@attack(softmax=3.0)
def zoe(handed: ArchiveEntry) -> None:
    """The other neighbour: all right."""
    handed.before("softmax", f"# {TOKEN}")


class GradedSubmission:
    """The class, graded: where, with what result, and what lay there before."""

    def __init__(self, course: Path):
        self.course = course
        self.submitted, release = course / "submitted", course / "released"
        (release / NAME).mkdir(parents=True)
        nbformat.write(RELEASE, release / NAME / f"{NAME}.ipynb")
        for student, (attack, _) in ATTACKS.items():
            handed = ArchiveEntry(self.submitted / student / NAME)
            attack(handed)
            handed.write()
        self.before = bytes_below(self.submitted) | bytes_below(release)
        self.result: ClassResult = grade(
            self.submitted, release=release, jobs=1, cell_seconds=5.0, probe_seconds=10.0
        )
        self.rows = {row.student: row for row in self.result.rows}
        self.after = bytes_below(self.submitted) | bytes_below(release)
        self.report = report(course, course / "report.html")

    def feedback(self, student: str) -> str:
        path = self.course / "feedback" / student / NAME / f"{NAME}.html"
        return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> GradedSubmission:
    return GradedSubmission(tmp_path_factory.mktemp("course"))


@pytest.mark.parametrize("student", ATTACKS)
def test_each_earns_what_the_answers_deserve(graded, student):
    marks = {name: graded.rows[student].marks[name] for name in FULL}
    expected = ATTACKS[student][1]
    assert {name: None if m.by_hand else m.score for name, m in marks.items()} == expected
    assert all(m.points == FULL[name] for name, m in marks.items())
    assert all(m.score == 0 for m in marks.values() if m.by_hand)


@pytest.mark.share(4)
@pytest.mark.parametrize("student", ATTACKS)
def test_through_judge_it_earns_no_more(graded, student):
    """`judge` takes a notebook as it comes: what `grade` mends, or leaves unrun, may cost marks."""
    path = graded.submitted / student / NAME / f"{NAME}.ipynb"
    found = judge_file(path, seed=b"a seed", limits=Limits(cell_seconds=5.0, probe_seconds=10.0))
    for check, deserved in ATTACKS[student][1].items():
        name = check.removeprefix("check_")
        one = found["exercises"].get(name, {"score": 0.0, "verdict": "missing"})
        assert one["score"] <= (deserved or 0.0), one
        assert (one["verdict"] == "policy") == (deserved is None), one
    assert not Path("/tmp", CANARY).exists()
    assert bytes_below(graded.submitted).items() <= graded.before.items()


def test_all_were_graded_and_nothing_was_changed(graded):
    assert {row.status for row in graded.rows.values()} == {"graded"}
    assert graded.rows.keys() == ATTACKS.keys()
    assert graded.after == graded.before
    assert not Path("/tmp", CANARY).exists()
    assert [*graded.course.rglob(f"*{CANARY}*")] == []


def test_nobody_sees_what_another_has_handed_in(graded):
    assert "found 0 of the others" in graded.feedback("reads_the_others")
    assert TOKEN in graded.feedback("zoe")


def test_withheld_marks_wait_for_a_person_with_their_reason(graded):
    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        for student, names in (
            ("reaches_into_it_in_the_answer", ["softmax", "gaussian_scores"]),
            ("reaches_into_the_grader", ["softmax", "gaussian_scores"]),
        ):
            for name in names:
                given = gradebook.find_grade(f"check_{name}", NAME, NAME, student)
                assert given.auto_score is None and given.needs_manual_grade
            page = graded.feedback(student)
            assert "softmax: withheld of 3 points" in page and "For a person to look at" in page
            assert student in graded.report.read_text(encoding="utf-8")
    told = graded.feedback("reaches_into_it_in_the_answer")
    assert "The file reaches into the grader: autograder.student.engine.probe" in told
    page = graded.report.read_text(encoding="utf-8")
    assert "autograder.student.engine.probe in line 1 of code cell" in page


def test_the_search_for_dangers_finds_them():
    assert dangers(f"<p onload=x></p><script>{EVIL}</script><a href='javascript:x'><form>") == [
        "p onload=x", f"in <script>: {EVIL}", "a href=javascript:x", "form",
    ]  # fmt: skip


@pytest.mark.parametrize("student", ATTACKS)
def test_no_feedback_can_act(graded, student):
    assert dangers(graded.feedback(student)) == []


def test_what_is_shown_is_shown_as_text(graded):
    page = graded.feedback("shows_html")
    assert f"&lt;script&gt;{EVIL}" in page  # it is there, and inert
    assert not any(ord(c) < 32 and c not in "\n\t\r" for c in page)
    assert dangers(graded.report.read_text(encoding="utf-8")) == []


def test_comments_in_the_gradebook_are_inert_in_markdown(graded):
    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        comment = gradebook.find_comment("softmax", NAME, NAME, "shows_html").auto_comment
    assert comment.count("`") == 2 and comment.endswith("`") and EVIL in comment


def test_no_field_of_the_export_is_a_formula(graded, tmp_path):
    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        rows = [*export.rows(gradebook, [], [], CourseFile())]
    assert sorted(row[3] for row in rows) == sorted(
        "'" + student if student[0] in "=-" else student for student in ATTACKS
    )
    with (tmp_path / "grades.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    for row in csv.reader((tmp_path / "grades.csv").open(newline="")):
        assert not any(field.startswith(("=", "+", "-", "@", "\t")) for field in row)
