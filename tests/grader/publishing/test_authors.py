"""What authors use: the beginning of an exercise, and `autograder try`.

The whole way of CONTRIBUTING.md is gone in a copy of the course: the call that it shows, its blocks
of code in the files that it names, and what comes of it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.publishing.authors import commands
from autograder.publishing.authors.commands import try_exercise
from autograder.publishing.authors.scaffold import new_exercise
from autograder.publishing.authors.signature import parse
from autograder.publishing.authors.trial import MISTAKES, Trial, TrialResult
from autograder.student.engine.verdict import Mistake

ROOT = Path(__file__).resolve().parents[3]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = CONTRIBUTING.partition("## Add an exercise\n")[2].partition("\nWhat there is beyond")[0]
CALL = shlex.split(
    re.search(r"```sh\nautograder (.+?)\n```", SECTION, re.DOTALL)[1].replace("\\\n", "")
)
SLUG, NAME = CALL[2:4]
BLOCKS = re.findall(r" in\s+`([\w/]+\.\w+)`[^`]*?\n\n```\w+\n(.*?\n)```", SECTION, re.DOTALL)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A copy of what an exercise is written into."""
    copy = tmp_path_factory.mktemp("authors")
    skipped = shutil.ignore_patterns("__pycache__", "static", "vendor")
    for folder in ("autograder", "attention_by_hand", "solutions", "book"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=skipped)
    (copy / "tests" / "course").mkdir(parents=True)
    for name in ("CHANGELOG.md", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, copy)
    return copy


def run(course: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(course), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def autograder(course: Path, *arguments: str) -> subprocess.CompletedProcess:
    return run(course, "-m", "autograder.cli", *arguments)


# --- the way of CONTRIBUTING.md -------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(course) -> dict[str, str]:
    """What the call writes, by path; and what it prints, under "told"."""
    done = autograder(course, *CALL)
    assert done.returncode == 0, done.stderr
    paths = done.stdout.partition("\n\n")[0].splitlines()
    files = {path: (course / path).read_text(encoding="utf-8") for path in paths}
    tried = autograder(course, "try", NAME)
    return files | {"told": done.stdout, "tried": tried.stdout, "status": str(tried.returncode)}


@pytest.mark.share(0)
def test_the_call_writes_into_every_place_where_an_exercise_lives(begun):
    assert begun.keys() >= {
        f"solutions/{SLUG}.py",
        f"attention_by_hand/exercises/{SLUG}/{NAME}.py",
        f"attention_by_hand/exercises/{SLUG}/__init__.py",
        f"solutions/mistakes/{SLUG}/{NAME}.py",
        f"solutions/mistakes/{SLUG}/{NAME}.txt",
        "book/01_kernel_regression.md",
        f"tests/course/test_{SLUG}_{NAME}.py",
        "CHANGELOG.md",
    }
    assert (
        f'"kernel_weights",\n    "{NAME}",\n'
        in begun[f"attention_by_hand/exercises/{SLUG}/__init__.py"]
    )
    page = begun["book/01_kernel_regression.md"]
    assert page.index("check(kernel_weights)") < page.index(f"check({NAME})")
    assert page.index(f"check({NAME})") < page.index("## A landscape")


@pytest.mark.share(0)
def test_what_is_begun_says_what_is_to_be_written_and_is_not_called_done(begun):
    assert begun["status"] == "1"
    assert "the reference is not written" in begun["tried"]
    row = re.search(r"solutions/kernel_regression\.py:(\d+)", begun["told"])
    lines = begun[f"solutions/{SLUG}.py"].splitlines()
    assert lines[int(row[1]) - 1].startswith(f"def {NAME}(")
    for path in begun.keys() - {"told", "tried", "status"}:
        if not path.endswith("__init__.py"):
            assert f"{path}:" in begun["tried"].replace("\n", ""), path


@pytest.fixture(scope="module")
def written(course, begun) -> Path:
    """The course with the blocks of CONTRIBUTING.md in the files that it names."""
    assert [path for path, _ in BLOCKS] == [
        f"solutions/{SLUG}.py",
        f"attention_by_hand/exercises/{SLUG}/{NAME}.py",
        f"solutions/mistakes/{SLUG}/{NAME}.txt",
        f"solutions/mistakes/{SLUG}/{NAME}.py",
        f"tests/course/test_{SLUG}_{NAME}.py",
    ]
    for path, block in BLOCKS:
        file, text = course / path, block
        if path == f"solutions/{SLUG}.py":
            whole = file.read_text(encoding="utf-8")
            stub = re.search(rf"def {NAME}\(.*?### END SOLUTION\n", whole, re.DOTALL)
            text = whole.replace(stub[0], block)
        file.write_text(text, encoding="utf-8")
    for path in ("book/01_kernel_regression.md", "CHANGELOG.md"):
        text = (course / path).read_text(encoding="utf-8")
        told = re.sub(r"TODO[:,].*", "how many keys a query spreads over.", text)
        (course / path).write_text(told, encoding="utf-8")
    return course


@pytest.mark.share(0)
def test_the_example_is_whole(written):
    tried = autograder(written, "try", NAME)
    assert (tried.returncode, "✓ all is well" in tried.stdout) == (0, True), tried.stdout
    assert tried.stdout.count("itself") == 8  # each mistake is taken for itself
    assert "TODO" not in tried.stdout


@pytest.mark.share(0)
def test_its_fact_holds_and_its_chapter_becomes_a_notebook(written):
    code = f"""
from pathlib import Path
from autograder.publishing.release import instructor_notebook
from tests.course.test_{SLUG}_{NAME} import *
[fact() for name, fact in list(globals().items()) if name.startswith("test_")]
cells = instructor_notebook(Path("book/01_kernel_regression.md")).cells
print(*(cell.source for cell in cells if cell.id in ("{NAME}", "check_{NAME}")))
"""
    done = run(written, "-c", code)
    assert f"def {NAME}(" in done.stdout and f"check({NAME})" in done.stdout, done.stderr


# --- calls that cannot be meant -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("masking", "softmax", "x"), "kernel_regression has an exercise called softmax already"),
        (("nothing", "twice", "x"), "no chapter nothing; there are kernel_regression"),
        (("masking", "2x", "x"), "'2x' cannot be the name of a function"),
        (("masking", "twice"), "does not define twice: write it first, or give its signature"),
        (("masking", "twice", "(x: Whole[Tensor, 'n'])"), "does not import Whole"),
        (("masking", "twice", "(x:"), "is not a signature"),
        (("masking", "twice", "*x"), "expected parameters with names"),
        (("masking", "twice", "x", "", "softmax"), "softmax is not an exercise of masking; there"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_meant_is_told_before_anything_is_written(arguments, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        new_exercise(ROOT, *arguments)


def test_an_unknown_exercise_cannot_be_tried():
    with pytest.raises(ValueError, match="no exercise is called 'nothing'"):
        try_exercise("nothing")


# --- what is drawn from a signature ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("x", "call(draw.normal(3, 5))"),
        ("x, axis=-1", "call(draw.normal(3, 5))"),
        ('(x: Float[Tensor, "B n d"], n: int)', "call(draw.tensor(3, 5, 4), draw.integer(2, 5))"),
        (
            '(q: Float[Tensor, "n d"], k: Float[Tensor, "m d"])',
            "draw.tensor(3, 5), draw.tensor(4, 5)",
        ),
        ('(ids: Int[Tensor, "n"])', "call(tensor(draw.integers(0, 3, 3)))"),
        ('(mask: Bool[np.ndarray, "n 2"])', "call(draw.integers(0, 1, 3, 2).astype(bool))"),
        ('(x: Num[np.ndarray, "..."])', "call(draw.normal(3, 4))"),
    ],
)
def test_inputs_fit_the_signature(text, call):
    assert call in parse("f", text).call()


def test_a_function_in_torch_is_also_called_elsewhere_and_differentiated():
    plan = new_exercise(
        ROOT, "masking", "twice", '(x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]'
    )
    text = plan.files[ROOT / "attention_by_hand/exercises/masking/twice.py"]
    assert "EXERCISE.follows_its_inputs(_random)" in text
    assert ".with_gradients()" in text
    names: dict = {}
    exec(compile(text, "twice.py", "exec"), names)  # our own text
    exercise = names["EXERCISE"].exercise()
    assert exercise.points == 2.5
    assert [len(row) > 0 for row in exercise.runs(b"any seed")] == [True] * len(exercise.aspects)
    assert "made_on_the_cpu(x)" in plan.files[ROOT / "solutions/mistakes/masking/twice.txt"]


# --- what a trial finds ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trial() -> Trial:
    return Trial("gaussian_scores")


@pytest.mark.share(0)
def test_the_table_says_how_many_mistakes_only_one_aspect_sees(trial):
    first, _ = commands._tables(trial)
    columns = [column.header for column in first.columns]
    assert columns == ["aspect", "points", "mistakes that fail it", "and nothing else"]
    failed = [{*trial.try_answer(MISTAKES, name).failed_titles()} for name in trial.bank[MISTAKES]]
    alone = {title for found in failed if len(found) == 1 for title in found}
    counts = dict(zip(first.columns[0].cells, map(int, first.columns[3].cells), strict=True))
    assert sum(counts.values()) == sum(len(found) == 1 for found in failed) > 0
    assert {title for title, number in counts.items() if number} == alone


def test_a_good_bank_has_no_problems(trial):
    assert trial.is_written
    assert list(trial.problems()) == []


def test_a_trial_says_what_is_wrong_with_a_bank(trial):
    right = next(iter(trial.bank["rights"].values()))
    wrong = next(iter(trial.bank["mistakes"].values()))
    broken = Trial(trial.name)
    broken.bank = {"mistakes": {"harmless": right}, "rights": {"careless": wrong}}
    broken.inputs = [
        i._replace(mistakes={"harmless": Mistake("harmless", "It is right.", i.expected)})
        for i in trial.inputs
    ]
    told = "\n".join(broken.problems())
    assert "harmless gets full marks, or counts as a crash" in told
    assert "careless is right and gets 0 of 2" in told
    assert "1 mistakes: expected 6 or more" in told
    assert "1 right answers: expected 4 or more" in told
    for aspect in trial.exercise.aspects:
        assert f"no mistake fails “{aspect.title}”" in told


def test_marks_and_names_that_depend_on_the_numbers_are_told(trial):
    tried = trial.try_answer("mistakes", "always_float64")
    verdict = tried.verdicts[0]
    assert verdict.score > 0
    other = replace(verdict, score=verdict.score / 2, mistake=None)
    told = [*TrialResult("mistakes", tried.name, (verdict, other)).problems()]
    assert told == [
        "always_float64 is taken for no known mistake",
        f"always_float64: its marks depend on the numbers drawn "
        f"({other.score:g}, {verdict.score:g})",
    ]


@pytest.mark.share(0)
def test_what_is_begun_passes_the_houses_own_lint(tmp_path):
    signature = (
        '(query: Float[Tensor, "B n d"], key: Float[Tensor, "B m d"], value: Float[Tensor, "B m d"]'
        ', mask: Bool[Tensor, "B n m"]) -> Float[Tensor, "B n d"]'
    )
    plan = new_exercise(ROOT, "masking", "looked_at", signature)
    for name in ("attention_by_hand/exercises/masking", "solutions/mistakes/masking"):
        text = plan.files[ROOT / name / "looked_at.py"]
        assert max(map(len, text.splitlines())) <= 100
        file = tmp_path / f"{name.partition('/')[0]}.py"
        file.write_text(text, encoding="utf-8")
        for command in (["check", "--select", "E,F,I"], ["format", "--check"]):
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--config", ROOT / "pyproject.toml", file],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + text
