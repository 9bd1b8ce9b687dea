"""Wrong calls that suggest themselves: a sentence says the right one, and nothing is left over."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from attention_by_hand.course import NAME as FOLDER
from autograder.cli import PACKAGE, main
from autograder.gradebook.classroom import grade
from autograder.gradebook.submissions import check_release
from autograder.publishing.bookindex import published_at
from autograder.publishing.bundle import bundle
from autograder.publishing.release import release
from autograder.publishing.release_checks import check_handed_in, nobodys_address
from autograder.student.course import VARIABLE, chapters, exercises_of

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
NAME = next(NOTEBOOKS.glob("*_kernel_regression")).name


@pytest.fixture
def course(tmp_path, monkeypatch) -> Path:
    place = tmp_path / "submitted" / "hana" / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "hana.ipynb").write_bytes(b"{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


ONE = "autograder grade submitted --student hana"
WRONG_CALLS = {
    "submitted/hana": f"the folder of one student: `{ONE}`",
    f"submitted/hana/{NAME}": f"one submission: `{ONE} --assignment {NAME}`",
    f"submitted/hana/{NAME}/{NAME}.ipynb": f"one submission: `{ONE} --assignment {NAME}`",
    "hana": "for one student: `autograder grade --student hana`",
    "kernel_regression": f"for one chapter: `autograder grade --assignment {NAME}`",
    NAME: f"for one chapter: `autograder grade --assignment {NAME}`",
    ".": "the folder of the course: `autograder grade submitted`",
    "loose": "holds notebooks, but no students: expected loose/<student>",
    "loose/hana.ipynb": "a file on its own: `autograder judge loose/hana.ipynb`",
    "empty": "nothing to grade: expected",
    "submited": "no folder submited; did you mean `autograder grade submitted`?",
    "nowhere": "no folder nowhere: expected the one that holds <student>",
}


@pytest.mark.share(3)
@pytest.mark.parametrize("given", WRONG_CALLS)
def test_a_wrong_folder_is_told_the_right_call_and_stays_as_it_was(course, given):
    before = everything(course)
    with pytest.raises(ValueError, match=re.escape(WRONG_CALLS[given])):
        grade(Path(given), release=NOTEBOOKS)
    assert everything(course) == before


def test_from_within_a_students_folder_too(course, monkeypatch):
    monkeypatch.chdir(course / "submitted" / "hana")
    with pytest.raises(ValueError, match=re.escape("`autograder grade .. --student hana`")):
        grade(Path("."), release=NOTEBOOKS)


def test_the_released_notebooks_are_no_submissions(course):
    shutil.copytree(NOTEBOOKS, course / "notebooks")
    with pytest.raises(ValueError, match="`autograder grade submitted`"):
        grade(Path("notebooks"))


@pytest.mark.parametrize(
    "how, words",
    [
        ({"students": ["hanna"]}, "no student's folder hanna; did you mean hana?"),
        ({"assignments": ["kernels"]}, f"no assignment kernels; there are {NAME}"),
    ],
)
def test_who_or_what_is_not_there_is_told(course, how, words):
    before = everything(course)
    with pytest.raises(ValueError, match=re.escape(words)):
        grade(Path("submitted"), release=NOTEBOOKS, **how)
    assert everything(course) == before


@pytest.mark.parametrize(
    "words, call",
    [
        (["submitted", "hana"], ONE),
        (["submitted", "hanna"], "autograder grade submitted --student hanna"),
        (["hana", "kernel_regression"], f"{ONE} --assignment kernel_regression"),
        (["submitted", NAME], f"autograder grade submitted --assignment {NAME}"),
        (["submitted/hana", "submitted/ivo"], f"{ONE} --student ivo"),
        ([f"submitted/{name}" for name in ("hana", "ivo", "a", "b", "c")], "grade submitted"),
    ],
)
def test_a_call_with_several_folders_is_told_the_right_one(course, words, call, capsys):
    (course / "submitted" / "ivo").mkdir()
    before = everything(course)
    with pytest.raises(SystemExit) as ended:
        main(["grade", *words])
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.count("\n") == 1 and f"{call}`\n" in told
    assert everything(course) == before


def test_what_was_not_handed_in_and_who_has_withdrawn_is_told(course):
    shutil.copytree(NOTEBOOKS, course / "notebooks")
    for how in ({"assignments": ["masking"]}, {"assignments": ["masking"], "students": ["hana"]}):
        with pytest.raises(ValueError, match="nothing to grade: no masking(?: of hana)? in "):
            grade(Path("submitted"), **how)
    (course / "course.toml").write_text("[students.hana]\nwithdrawn = true\n")
    with pytest.raises(ValueError, match="hana withdrawn, as course.toml says"):
        grade(Path("submitted"), students=["hana"])


def test_a_package_that_the_paper_needs_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    monkeypatch.delitem(sys.modules, "autograder.publishing.print_edition", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["pdf"])
    assert ended.value.code == 2
    assert "`pip install 'notebook-autograder[paper]'`" in capsys.readouterr().err
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == PACKAGE


@pytest.mark.share(0)
def test_the_command_line_says_it_in_one_line(course):
    run = subprocess.run(
        [sys.executable, "-m", "autograder.cli", "grade", "submitted/hana"],
        env=os.environ | {VARIABLE: str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and ONE in run.stderr
    assert not run.stdout and not (course / "submitted" / "gradebook.db").exists()


# --- Released notebooks and exercises that disagree -----------------------------------------------


def test_points_that_changed_before_a_release_are_told(tmp_path, course):
    notebook = nbformat.read(NOTEBOOKS / NAME / f"{NAME}.ipynb", as_version=4)
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("grade_id") == "check_softmax":
            mark["points"] = 7.0
    (course / "notebooks" / NAME).mkdir(parents=True)
    nbformat.write(notebook, course / "notebooks" / NAME / f"{NAME}.ipynb")
    points = next(e.points for e in exercises_of("kernel_regression") if e.name == "softmax")
    words = f"7 points for softmax, which is now worth {points:g}: run `autograder release kernel_"
    before = everything(course)
    with pytest.raises(ValueError, match=re.escape(words)):
        grade(Path("submitted"))
    assert everything(course) == before


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*/*.ipynb")), ids=lambda path: path.stem)
def test_the_released_notebooks_give_the_points_of_the_exercises(path):
    check_release(NOTEBOOKS, path.stem)


def test_a_new_exercise_in_a_chapter_that_was_handed_in_is_refused_before_anything(
    tmp_path, monkeypatch
):
    for name in ("book", "_config.yml", "_toc.yml", "nbgrader_config.py"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    monkeypatch.delenv("AUTOGRADER_DB", raising=False)
    check_handed_in(tmp_path)  # nobody has handed anything in, and there is no gradebook
    release(tmp_path, ["kernel_regression"])
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        check_handed_in(tmp_path, ["kernel_regression"])
        gradebook.add_student("ann")
        gradebook.add_submission(NAME, "ann")
    check_handed_in(tmp_path, ["kernel_regression"])  # the same cells as before
    page = tmp_path / "book" / f"{NAME}.md"
    text = page.read_text(encoding="utf-8")
    begin = text.index("question", text.index(":points:") - 200)
    begin = text.rindex("\n:::", 0, begin) + 1
    fence = re.match(r":+", text[begin:])[0]
    end = text.index(f"\n{fence}\n", begin) + len(fence) + 2
    again = text[begin:end].replace("w_of_zero", "something_new")
    assert "something_new" in again
    page.write_text(text[:begin] + again + "\n+++\n\n" + text[begin:], encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"has been handed in.*question_something_new would be new"
    ):
        check_handed_in(tmp_path, ["kernel_regression"])
    check_handed_in(tmp_path, ["masking"])


@pytest.mark.parametrize(
    "line, told",
    [
        ("  baseurl: https://attention.example/", "_config.yml:3: https://attention.example/ is"),
        ('  baseurl: "http://example"  # ours', "_config.yml:3: http://example is"),
        ("  baseurl: https://example.org/attention/", None),
        ("  title: no address", None),
    ],
)
def test_an_address_that_is_nobodys_is_told_with_its_line(tmp_path, line, told):
    (tmp_path / "_config.yml").write_text(f"title: x\nhtml:\n{line}\n", encoding="utf-8")
    found = nobodys_address(tmp_path)
    assert found is None if told is None else found.startswith(told)


@pytest.mark.parametrize("address", ["https://example.org/attention", "https://course.example"])
def test_the_address_in_course_toml_counts_before_that_of_the_book(tmp_path, address):
    (tmp_path / "_config.yml").write_text("html:\n  baseurl: https://a.example/\n")
    (tmp_path / "course.toml").write_text(f'[book]\naddress = "{address}/"\n')
    assert published_at(tmp_path, {"html": {"baseurl": "https://a.example/"}}) == address
    told = nobodys_address(tmp_path)
    if address.endswith(".example"):
        assert told.startswith(f"course.toml: {address} is a placeholder")
    else:
        assert told is None


def test_a_release_with_nobodys_address_is_refused_unless_it_is_a_draft(monkeypatch, capsys):
    def looked_at(*arguments: object) -> None:
        raise ValueError("the gradebook is looked at next")

    monkeypatch.setattr("autograder.publishing.release_checks.check_handed_in", looked_at)
    for options, told in (([], "attention-by-hand.example"), (["--draft"], "the gradebook")):
        with pytest.raises(SystemExit) as left:
            main(["release", *options, "kernel_regression"])
        assert left.value.code == 2
        assert told in capsys.readouterr().err


# --- The bundle -----------------------------------------------------------------------------------


def names_in(archive: Path) -> set[str]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            return set(packed.namelist())
    with tarfile.open(archive, "r:gz") as packed:
        return set(packed.getnames())


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["students.tar.gz", "students.tgz"])
def test_the_bundle_is_of_the_kind_that_its_name_says(tmp_path, name):
    made, zipped = bundle(ROOT, tmp_path / name), bundle(ROOT, tmp_path / "students.zip")
    assert names_in(made) == names_in(zipped)
    with tarfile.open(made) as packed:
        readme = packed.extractfile(f"{FOLDER}/README.md").read()
    with zipfile.ZipFile(zipped) as packed:
        assert packed.read(f"{FOLDER}/README.md") == readme
    assert bundle(ROOT, tmp_path / f"again_{name}").read_bytes() == made.read_bytes()


def test_a_name_of_no_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.zip or \.tar\.gz"):
        bundle(ROOT, tmp_path / "students.rar")
    assert not list(tmp_path.iterdir())


def test_a_bundle_of_some_chapters_holds_these_alone_and_works(tmp_path):
    archive = bundle(ROOT, tmp_path / "two.tar.gz", ["kernel_regression", "04_masking"])
    names = names_in(archive)
    for slug in chapters():
        mine = {name for name in names if slug in name}
        assert bool(mine) == (slug in ("kernel_regression", "masking")), slug
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    program = (
        "from autograder.student.course import chapters, find_exercise\n"
        "from autograder.student.check import verdict_on\n"
        "print(chapters(), verdict_on(lambda *_, **__: None, 'causal_mask').verdict)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path / FOLDER, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / FOLDER)}, check=False,
    )  # fmt: skip
    assert run.stdout == "('kernel_regression', 'masking') wrong\n", run.stderr


def test_a_chapter_that_is_none_is_told(tmp_path):
    with pytest.raises(ValueError, match="no chapter sorting; there are kernel_regression"):
        bundle(ROOT, tmp_path / "x.zip", ["sorting"])
