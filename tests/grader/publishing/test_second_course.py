"""A second course, in torch: a block, and a helper that an exercise hands out, from end to end.

What the helper computes is the course's own doing, wherever the course's package lies; what an
answer computes is its author's.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.publishing.authors.new_course import EXAMPLE
from autograder.student.course import VARIABLE

pytestmark = pytest.mark.share(0)  # takes long

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "norms_by_hand"
CELLS = """
```{{code-cell}} ipython3
:tags: [exercise]
from solutions.norms import {0}
```

```{{code-cell}} ipython3
:tags: [check]
check({0})
```
"""
FILES = {
    f"{PACKAGE}/__init__.py": "",
    f"{PACKAGE}/course.py": f"""
TITLE, NAME, CHAPTERS = "Norms by Hand", "norms-by-hand", ("norms",)
PACKAGES, PRELOADED, BLOCKS = ("torch", "numpy"), ("torch",), "{PACKAGE}.blocks"
""",
    f"{PACKAGE}/blocks/__init__.py": """
import torch

__all__ = ["halved"]


def halved(x):
    return torch.multiply(x, 0.5)
""",
    f"{PACKAGE}/exercises/__init__.py": "",
    f"{PACKAGE}/exercises/norms/__init__.py": """
from autograder.student.authoring import exercises

EXERCISES = exercises(__name__, "halved", "normed_sum")
""",
    f"{PACKAGE}/exercises/norms/halved.py": """
from autograder.student.authoring import Declaration, call

EXERCISE = Declaration("halved", "Half of it", ("x",))


@EXERCISE.equals("random numbers", 1.0)
def _random(draw):
    "Half of each number."
    return [call(draw.tensor(3, 4)), call(draw.tensor(2, 5))]
""",
    f"{PACKAGE}/exercises/norms/normed_sum.py": """
from autograder.student.authoring import Declaration, as_argument, call

EXERCISE = Declaration(
    "normed_sum", "The sum of what a norm leaves", ("x", "norm"),
    allows=["halved"], forbids=("normalisation",),
)


def layer_norm(x):
    import torch.nn.functional as F

    return F.layer_norm(x, x.shape[-1:]) + 1


@EXERCISE.equals("random numbers", 1.0)
def _random(draw):
    "Halve, norm, add up."
    return [call(draw.tensor(3, 4), as_argument(layer_norm)) for _ in range(2)]
""",
    "solutions/__init__.py": "",
    "solutions/norms.py": '''
from torch import Tensor


def halved(x: Tensor) -> Tensor:
    """Halve every number."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION


def normed_sum(x: Tensor, norm) -> Tensor:
    """Add up the rows of what `norm` makes of half of x."""
    ### BEGIN SOLUTION
    return norm(halved(x)).sum(dim=-1)
    ### END SOLUTION
''',
    "solutions/mistakes/__init__.py": "",
    "solutions/mistakes/norms/__init__.py": "",
    "solutions/mistakes/norms/halved.py": """
from autograder.bank import Bank
from solutions import norms as right

BANK = Bank("halved", right, globals())
BANK.read()
""",
    "solutions/mistakes/norms/halved.txt": """
doubled: x / 2 → x * 2
    Each number is doubled.
""",
    "solutions/mistakes/norms/normed_sum.py": """
from autograder.bank import Bank
from solutions import norms as right

BANK = Bank("normed_sum", right, globals())
BANK.read()
""",
    "solutions/mistakes/norms/normed_sum.txt": """
summed_over_the_rows: dim=-1 → dim=0
    The rows are added up, not what stands in each.
""",
    "book/01_norms.md": """---
kernelspec: {display_name: Python 3, language: python, name: python3}
jupytext: {text_representation: {extension: .md, format_name: myst}}
---

# Norms

```{code-cell} ipython3
from torch import Tensor

from autograder import check
```
"""
    + "".join(map(CELLS.format, ("halved", "normed_sum"))),
    "book/intro.md": "# Norms by Hand\n",
    "_toc.yml": "format: jb-book\nroot: book/intro\nchapters:\n  - file: book/01_norms\n",
}
HALVED = "def halved(x):\n    return x - x / 2\n"
RIGHT = "def normed_sum(x, norm):\n    return norm(halved(x)).sum(-1)\n"
READY_MADE = """import torch.nn.functional as F
def normed_sum(x, norm):
    return (F.layer_norm(halved(x), x.shape[-1:]) + 1).sum(-1)
"""
THE_BLOCK = (
    f"def halved(x):\n    from {PACKAGE}.blocks import halved as block\n    return block(x)\n"
)


JUDGE = """
import json, sys
from autograder.judge.judge_file import judge_file
for name in sys.argv[1:]:
    print(json.dumps(judge_file(f"{name}.py")["exercises"]))
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("courses") / "norms"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in ("_config.yml", "course.toml", "nbgrader_config.py"):
        text = (EXAMPLE / name).read_text().replace("Smoothing by Hand", "Norms by Hand")
        (folder / name).write_text(text)
    run(folder, "release", "--draft")
    return folder


def run(folder: Path, *arguments: str) -> str:
    return python(folder, "-m", "autograder.cli", *arguments)


def python(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_block_and_helper_are_told_from_an_answers_own_doing(course):
    answers = {
        "helper": HALVED + RIGHT,
        "ready_made": HALVED + READY_MADE,
        "block": THE_BLOCK,
        "wrong_block": HALVED.replace("x - x / 2", "x * 2") + RIGHT,
    }
    for name, source in answers.items():
        (course / f"{name}.py").write_text(source)
    told = python(course, "-c", JUDGE, *answers)
    helper, ready_made, block, wrong_block = map(json.loads, told.splitlines())
    assert [helper[name]["verdict"] for name in ("halved", "normed_sum")] == ["correct"] * 2
    assert ready_made["normed_sum"]["verdict"] == "policy"
    assert block["halved"]["score"] == 0
    assert wrong_block["halved"]["mistake"] == "doubled"
    assert wrong_block["normed_sum"]["score"] == wrong_block["normed_sum"]["points"]


def test_student_checks_in_the_archive(course, tmp_path):
    run(course, "bundle", "norms.zip")
    shutil.unpack_archive(course / "norms.zip", tmp_path)
    folder = tmp_path / "norms-by-hand"
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {
        "autograder", "notebooks", PACKAGE
    }  # fmt: skip
    code = f"{HALVED}{RIGHT}from autograder import check\ncheck(halved)\ncheck(normed_sum)\n"
    (folder / "answer.py").write_text(code + READY_MADE + "check(normed_sum)\n")
    done = subprocess.run(
        [sys.executable, "answer.py"],
        cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, second = done.stdout.split("It runs ")
    assert "halved: 1 of 1 point" in first and "normed_sum: 1 of 1 point" in first
    assert "layer_norm" in second


def test_class_is_graded(course):
    (released,) = (course / "notebooks").glob("*/*.ipynb")
    notebook = nbformat.read(released, as_version=4)
    for cell in notebook.cells:
        cell.source = {"halved": HALVED, "normed_sum": RIGHT}.get(cell.id, cell.source)
    place = course / "submitted" / "ada" / "01_norms" / "01_norms.ipynb"
    place.parent.mkdir(parents=True)
    nbformat.write(notebook, place)
    rows = [json.loads(line) for line in run(course, "grade", "--json").splitlines()]
    assert [row["score"] for row in rows if "student" in row] == [2.0]
