"""What a student downloads works alone, and holds nothing that gives an answer away."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from autograder.gradebook.course_file import CourseFile
from autograder.publishing import release_checks
from autograder.publishing.bundle import bundle
from autograder.student.course import chapters, exercises_of
from autograder.student.limit import VARIABLE, WAITING, seconds_allowed

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("autograder", "attention_by_hand")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return bundle(ROOT, tmp_path_factory.mktemp("student") / "bundle.zip")


@pytest.fixture(scope="module")
def unpacked(archive):
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(archive.parent)
    return archive.parent / "attention-by-hand"


def test_it_holds_no_line_of_the_references(unpacked):
    shipped = {
        line.strip()
        for path in unpacked.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    shipped |= {p.read_text(encoding="utf-8") for p in unpacked.rglob("*.ipynb")}
    everything = "\n".join(shipped)
    for line in _solution_lines():
        assert line not in everything, line


def _solution_lines():
    for path in (ROOT / "solutions").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for part in text.split("### BEGIN SOLUTION")[1:]:
            for line in part.split("### END SOLUTION")[0].splitlines():
                if len(line.strip()) > 40:
                    yield line.strip()


def test_its_modules_import_nothing_that_it_does_not_hold(unpacked):
    for path in unpacked.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith(
                    ("solutions", "autograder.bank", "autograder.judge", "autograder.publishing")
                ), path
                if name.startswith("autograder."):
                    inside = unpacked / name.replace(".", "/")
                    assert inside.with_suffix(".py").is_file() or inside.is_dir(), name


def test_a_first_exercise_is_checked_from_the_archive_alone(unpacked):
    code = (
        "import autograder, numpy as np\n"
        "from autograder import check\n"
        "def gaussian_scores(query, key, w=1.0):\n"
        "    return -0.5 * (np.subtract.outer(query, key) * w) ** 2\n"
        "check(gaussian_scores)\n"
        "print(autograder.__file__)\n"
    )
    # -S -E would also lose NumPy; instead the archive stands first, and the references nowhere.
    script = unpacked / "first.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=unpacked
    )
    assert done.returncode == 0, done.stderr
    assert str(unpacked) in done.stdout
    assert "2 of 2 points" in done.stdout


@pytest.mark.share(6)
@pytest.mark.parametrize("slug", chapters())
def test_a_chapter_alone_imports_nothing_of_the_others(tmp_path, slug):
    with zipfile.ZipFile(bundle(ROOT, tmp_path / "bundle.zip", [slug])) as packed:
        packed.extractall(tmp_path)
    code = (
        "from autograder.student.course import chapters, exercises_of\n"
        "print(*[exercise.name for slug in chapters() for exercise in exercises_of(slug)])\n"
    )
    script = tmp_path / "attention-by-hand" / "names.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=script.parent,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [exercise.name for exercise in exercises_of(slug)]


def test_pip_fetches_what_it_needs_and_leaves_a_torch_that_is_there(unpacked):
    project = tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (unpacked / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert "torch" in project["dependencies"]  # without a version: Colab's own will do
    names = {re.split("[=<>]", line)[0] for line in pins}
    needed = {re.split("[=<>]", line)[0] for line in project["dependencies"]}
    assert names == needed | {"jupyterlab", "-e ."}


def test_students_get_the_versions_that_were_tried_and_read_which(unpacked):
    lines = (unpacked / "requirements.txt").read_text(encoding="utf-8").splitlines()
    graded = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in graded.splitlines() if "==" in line)
    asked = {re.split("[=<>]", line)[0]: Requirement(line) for line in lines if line != "-e ."}
    assert all(asked[name].specifier.contains(pins[name]) for name in asked.keys() & pins.keys())
    assert asked["numpy"].specifier.contains("2.0.2")
    assert not asked["numpy"].specifier.contains("1.26.4"), "it draws other inputs"
    read = (unpacked / "README.md").read_text(encoding="utf-8")
    assert pins["torch"] in read and pins["numpy"] in read and "{" not in read


@pytest.mark.share(0)
def test_pip_installs_every_file_that_the_notebooks_need(unpacked, tmp_path):
    source = shutil.copytree(unpacked, tmp_path / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", tmp_path, source], check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        installed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    held = [path for name in PACKAGES for path in (unpacked / name).rglob("*") if path.is_file()]
    kept = [path for path in held if path.suffix != ".pyc"]  # which Python leaves where it imports
    assert installed == {path.relative_to(unpacked).as_posix() for path in kept}


def test_packing_twice_gives_the_same_bytes(archive, tmp_path):
    assert bundle(ROOT, tmp_path / "2.zip").read_bytes() == archive.read_bytes()


def test_files_bear_the_date_of_the_release(archive):
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            assert "date-released: {}-{:02}-{:02}".format(*entry.date_time) in cited


def test_a_draft_says_that_it_is_one(archive, tmp_path, monkeypatch):
    def read(path: Path) -> str:
        with zipfile.ZipFile(path) as packed:
            return packed.read("attention-by-hand/README.md").decode()

    assert "This is a draft" in read(archive), "the address in _config.yml is nobody's"
    published = CourseFile(address="https://x.org")
    monkeypatch.setattr(release_checks, "read_course", lambda root: published)
    assert "draft" not in read(bundle(ROOT, tmp_path / "bundle.zip"))


def test_its_readme_tells_what_can_be_set(unpacked):
    text = (unpacked / "README.md").read_text(encoding="utf-8")
    read = " ".join(text.split())
    allowed = seconds_allowed()
    after = f"{allowed:g} seconds of computing, or {WAITING * allowed:g} in all"
    assert f"stopped after {after}: `%env {VARIABLE}=" in read
    assert "`%env ATTENTION_DEVICE=cpu`" in read
    assert "which limits hold: <https://attention-by-hand.example/book/what_runs.html>" in read
    first, second = re.findall(r"bin/pip install (.*)", text)[:2]
    assert first == "--no-deps -e ." and "torch" in second, "a Python that is too old is told first"
