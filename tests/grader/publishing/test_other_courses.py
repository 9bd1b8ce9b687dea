"""Other people's courses: one is made, and does all that a course does, with the installed package.

The environment has the wheel of this package and what it needs, and no torch; nothing of this
checkout is on its path.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

from autograder.publishing.authors.new_course import EXAMPLE, new_course

pytestmark = pytest.mark.share(0)  # takes long

ROOT = Path(__file__).resolve().parents[3]
TITLE = "Trends by Hand"
NAME = "01_averages"
NO_TORCH = """\
import sys


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("there is no torch here", name=name)


sys.meta_path.insert(0, NoTorch())
"""
PROGRAMS = {"alembic": "alembic.config", "jupyter-book": "jupyter_book.cli.main"}
RIGHT = """\
def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError(f"a width of {width}")
    places = np.arange(len(values) - width + 1)[:, None] + np.arange(width)
    return values[places].mean(axis=1)
"""
WRONG = RIGHT.replace("mean(axis=1)", "sum(axis=1)")


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """An environment with the wheel, and without torch: its folder of programs."""
    folder = tmp_path_factory.mktemp("environment")
    here = [sys.executable, "-m"]
    wheel = [*here, "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    run([*wheel, "--wheel-dir", str(folder), str(clean_copy(folder / "source"))], folder)
    run([*here, "venv", "--without-pip", str(folder / "venv")], folder)
    python = folder / "venv" / "bin" / "python"
    (built,) = folder.glob("*.whl")
    install = [*here, "pip", "--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    run([*install, str(built)], folder)
    site = Path(run([str(python), "-c", "import site; print(site.getsitepackages()[0])"], folder))
    (site / "no_torch.py").write_text(NO_TORCH)
    packages = sysconfig.get_path("purelib")  # no .pth of theirs is read, so nothing of this folder
    (site / "zz_others.pth").write_text(f"import no_torch\n{packages}\n")
    for program, module in PROGRAMS.items():
        script = python.with_name(program)
        script.write_text(f"#!{python}\nfrom {module} import main\nmain()\n")
        script.chmod(0o755)
    return python.parent


def clean_copy(folder: Path) -> Path:
    """What the wheel is made of: the files that git knows."""
    names = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    for name in names.split("\0"):
        if name.startswith(("autograder/", "pyproject", "README", "LICENSE", "requirements")):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                target.write_bytes((ROOT / name).read_bytes())
    return folder


def run(command: list[str], folder: Path, status: int = 0, **more: str) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AUTOGRADER"))}
    done = subprocess.run(
        command, cwd=folder, env=kept | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def course(environment, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("courses") / "trends"
    made = run(
        [str(environment / "autograder"), "new", "course", str(folder), "--title", TITLE],
        folder.parent,
    )
    assert str(folder / "README.md") in made
    return folder


@pytest.fixture(scope="module")
def autograder(environment, course):
    """Runs `autograder` in the course's folder, and returns what it prints."""

    def call(*arguments: str, status: int = 0) -> str:
        return run([str(environment / "autograder"), *arguments], course, status)

    return call


@pytest.fixture(scope="module")
def released(autograder, course) -> Path:
    assert f"notebooks/{NAME}/{NAME}.ipynb" in autograder("release", "--draft")
    return course / "notebooks" / NAME / f"{NAME}.ipynb"


def test_there_is_no_torch_and_nothing_of_this_checkout(environment, course):
    code = "import autograder, importlib.util as u; print(autograder.__file__); import torch"
    done = subprocess.run(
        [str(environment / "python"), "-c", code], cwd=course, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"]}, check=False,
    )  # fmt: skip
    assert "there is no torch here" in done.stderr
    assert not Path(done.stdout.strip()).is_relative_to(ROOT)


def test_its_known_answers_prove_its_grader(autograder):
    assert "✓ all is well" in autograder("try", "moving_average")


def test_a_second_release_changes_nothing(autograder, released, course):
    files = [p for part in ("notebooks", "trends_by_hand") for p in (course / part).rglob("*.*")]
    before = {path: path.read_bytes() for path in files}
    autograder("release", "--draft")
    assert {path: path.read_bytes() for path in files} == before
    text = released.read_text(encoding="utf-8")
    assert "sliding_window_view" not in text and "width of 7" not in text


def test_check_in_what_students_download(autograder, released, course, environment, tmp_path):
    autograder("bundle")
    with zipfile.ZipFile(course / "build" / "trends-by-hand.zip") as packed:
        packed.extractall(tmp_path)
    folder = tmp_path / "trends-by-hand"
    assert not list(folder.rglob("*solutions*"))
    assert {path.name for path in (folder / "autograder").iterdir()} == {"__init__.py", "student"}
    assert not (folder / "attention_by_hand").exists()
    code = f"import numpy as np\n{WRONG}\nfrom autograder import check\ncheck(moving_average)"
    (folder / "answer.py").write_text(code)
    said = run([str(environment / "python"), "answer.py"], folder, 1, PYTHONPATH=str(folder))
    assert "The values of each window are added up" in said
    (folder / "answer.py").write_text(code.replace("sum(axis=1)", "mean(axis=1)"))
    said = run([str(environment / "python"), "answer.py"], folder, PYTHONPATH=str(folder))
    assert "moving_average: 2.5 of 2.5 points" in said
    metadata = tomllib.loads((folder / "pyproject.toml").read_text())
    assert metadata["project"]["name"] == "trends-by-hand-student"
    assert "torch" not in " ".join(metadata["project"]["dependencies"])


def test_a_file_is_judged(autograder, course):
    (course / "answer.py").write_text(f"import numpy as np\n{WRONG}")
    found = json.loads(autograder("judge", "--json", "answer.py", status=1))
    assert found["exercises"]["moving_average"]["mistake"] == "summed"
    assert (found["score"], found["points"]) == (0.5, 2.5)


def test_a_class_is_graded_and_reported(autograder, released, course):
    notebook = nbformat.read(released, as_version=4)
    (cell,) = [c for c in notebook.cells if c.id == "moving_average"]
    (question,) = [c for c in notebook.cells if c.id == "question_which_width"]
    question.source = question.source.replace("*Write your answer here.*", "Seven.")
    for student, answer in (("ada", RIGHT), ("ben", WRONG)):
        cell.source = answer
        place = course / "submitted" / student / NAME / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(notebook, place)
    told = [json.loads(line) for line in autograder("grade", "--json").splitlines()]
    rows = {row["student"]: row for row in told if "student" in row}
    assert {name: row["score"] for name, row in rows.items()} == {"ada": 2.5, "ben": 0.5}
    page = (course / "feedback" / "ben" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "The values of each window are added up" in page
    autograder("report")
    assert "moving_average" in (course / "report.html").read_text(encoding="utf-8")


def test_its_book_is_built(autograder, course):
    page = Path(autograder("book")).parent / "book" / f"{NAME}.html"
    text = page.read_text(encoding="utf-8")
    plain = re.sub("<.*?>", "", text)
    assert "Neighbours averaged" in plain and "raise NotImplementedError" in plain
    assert "moving_average: 2.5 of 2.5 points" in plain
    for secret in ("sliding_window_view", "width of 7"):
        assert secret not in text
    assert not list((course / "build" / "book").rglob("_sources"))


# --- the example ----------------------------------------------------------------------------------


def test_the_title_is_everywhere_and_the_examples_nowhere(tmp_path):
    files = new_course(tmp_path / "new", TITLE)
    texts = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert TITLE in texts and "trends-by-hand" in texts
    assert "Smoothing" not in texts and "smoothing-by-hand" not in texts
    private = set((tmp_path / "new" / ".gitignore").read_text(encoding="utf-8").splitlines())
    ours = set((ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())
    students = {line for line in ours if line.startswith("/") and line != "/course.toml"}
    assert students and students <= private  # what is about people is in no repository
    assert len(files) == len([p for p in EXAMPLE.rglob("*") if p.is_file() and p.suffix != ".pyc"])


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not empty"):
        new_course(tmp_path)
    with pytest.raises(ValueError, match="expected a title with letters"):
        new_course(tmp_path / "new", "???")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_package_brings_no_references():
    assert PROJECT["tool"]["setuptools"]["packages"]["find"]["include"] == ["autograder*"]


def test_the_package_needs_what_it_was_tried_with_and_no_torch():
    pinned = {}
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if "==" in line:
            found = Requirement(line)
            (pin,) = found.specifier
            pinned[found.name] = pin.version
    needed = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    extras = PROJECT["project"]["optional-dependencies"]
    others = [Requirement(text) for name in extras for text in extras[name]]
    assert "torch" not in {r.name for r in (*needed, *others)}
    for requirement in (*needed, *others):
        assert requirement.specifier.contains(pinned[requirement.name]), requirement
