"""What the judge is handed: its inputs, exercises, files, and its command line."""

import ast
import inspect
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest
from judging import HASTY, HEAD, SOFTMAX, WRONG, code, notebook, verdicts

from autograder.judge.judge_file import judge_file
from autograder.judge.seeds import GROUPS, seed_for
from autograder.notebook.names import defined_names
from autograder.notebook.reading import UnusableFile

# --- inputs -------------------------------------------------------------------------------------


def test_seeds_repeat_and_differ():
    args = (b"secret", "ann", "01", "softmax")
    assert seed_for(*args) == seed_for(*args)
    assert len(seed_for(*args)) == 32
    others = [(b"other", "ann", "01", "softmax"), (b"secret", "ann", "02", "softmax"),
              (b"secret", "ann", "01", "other")]  # fmt: skip
    assert len({seed_for(*args), *(seed_for(*other) for other in others)}) == 4


def test_the_secret_deals_the_students_into_groups():
    names = [f"student {number}" for number in range(400)]
    of = {key: [seed_for(key, name, "01", "softmax") for name in names] for key in (b"a", b"b")}
    for seeds in of.values():
        assert len(set(seeds)) == GROUPS
        assert all(70 < count < 130 for count in Counter(seeds).values())  # about 100 ± 9
    assert len(set(zip(*of.values(), strict=True))) == GROUPS**2  # other secret, other groups
    other = [seed_for(b"a", name, "01", "other") for name in names]  # the same people meet again
    assert len(set(zip(of[b"a"], other, strict=True))) == GROUPS


def test_the_seed_decides_the_inputs(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        HEAD + "def softmax(scores, axis=-1): raise ValueError(str(float(scores.ravel()[0])))"
    )

    def seen(seed: bytes | None) -> str:
        return judge_file(path, seed=seed)["exercises"]["softmax"]["aspects"][0]["error"]

    assert seen(b"1") == seen(b"1") != seen(b"2")
    assert seen(None) != seen(None)


# --- which exercises ----------------------------------------------------------------------------

NAMES = {
    "def": ("def f(): pass", {"f"}),
    "async def": ("async def f(): pass", {"f"}),
    "class": ("class F: pass", {"F"}),
    "assignment": ("f = 1", {"f"}),
    "a tuple": ("f, (g, *h) = x", {"f", "g", "h"}),
    "annotated": ("f: int = 1\ng: int", {"f"}),
    "in a branch": ("if x:\n    f = 1\nelse:\n    def g(): pass", {"f", "g"}),
    "in a try": ("try:\n    f = 1\nexcept E:\n    g = 1", {"f", "g"}),
    "in a function": ("def f():\n    g = 1", {"f"}),
    "in a list of lists": ("f = [[i for i in g] for g in x]", {"f"}),
    "in a set and a dict": ("f = {g for g in x}, {h: 0 for h in x}", {"f"}),
    "around a comprehension": ("for f in x:\n    print([f for f in g])", {"f"}),
    "an import": ("import f\nfrom x import g as h", set()),
    "an attribute": ("x.f = 1", set()),
    "an item": ("x['f'] = 1", set()),
    "beside a magic": ("%matplotlib inline\n!ls\ndef f(): pass", {"f"}),
    "with a syntax error": ("def f(:\n    pass\nclass G\ng == 1\nh = (", {"f", "G", "h"}),
    "too deep": ("f = " + "-" * 100_000 + "1", {"f"}),
    "a null": ("f = 1\0", {"f"}),
}


@pytest.mark.parametrize("source, names", NAMES.values(), ids=NAMES.keys())
def test_the_names_that_a_cell_defines(source, names):
    assert defined_names(source) == names


def test_a_script_is_judged_on_what_it_defines(tmp_path):
    path = tmp_path / "two.py"
    path.write_text(
        HEAD + SOFTMAX + "from numpy import exp as gaussian_scores\nattention_pool = None\n"
        "if __name__ == '__main__':\n    raise SystemExit('not when judged')\n"
    )
    made = judge_file(path)
    assert {n: e["verdict"] for n, e in made["exercises"].items()} == {
        "softmax": "correct", "attention_pool": "crash",
    }  # fmt: skip
    assert list(judge_file(path, ["softmax"])["exercises"]) == ["softmax"]


def test_a_notebook_is_judged_on_its_grade_ids_and_definitions(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(
        notebook(
            {"cell_type": "markdown", "source": "# no code", "metadata": {}},
            code(HEAD.splitlines(keepends=True)),
            code(SOFTMAX, "softmax"),
            code("check(softmax)\nraise SystemExit", "check_softmax"),
            code("", "check_gaussian_scores"),
            code("while True: pass", tags=("draw",)),
            code("def attention_pool(*a): raise NotImplementedError"),
        )
    )
    made = judge_file(path, limits=HASTY)
    assert {n: e["verdict"] for n, e in made["exercises"].items()} == {
        "softmax": "correct", "gaussian_scores": "missing", "attention_pool": "missing",
    }  # fmt: skip


# --- bad input ----------------------------------------------------------------------------------

BAD = {
    "missing.py": None,
    "missing.ipynb": None,
    "empty.py": b"",
    "empty.ipynb": b" \n",
    "binary.py": bytes(range(256)),
    "binary.ipynb": b"\x89PNG\r\n\x1a\n\0\0",
    "latin.py": "def softmax(): return 'ä'".encode("latin-1"),
    "no_json.ipynb": b"{'a': 1}",
    "a_list.ipynb": b"[]",
    "deep.ipynb": b"[" * 200_000,
    "no_cells.ipynb": b'{"nbformat": 4}',
    "cells.ipynb": b'{"nbformat": 4, "cells": [1]}',
    "format3.ipynb": b'{"nbformat": 3, "worksheets": []}',
    "no_exercise.py": b"x = 1\n",
    "no_exercise.ipynb": notebook(code("x = 1")).encode(),
    "syntax_error.py": b"def softmax(:\n",
    "notes.txt": b"softmax = 1",
    "large.py": b"#" * (50 << 20),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_judged_says_why(tmp_path, name):
    if BAD[name] is not None:
        (tmp_path / name).write_bytes(BAD[name])
    with pytest.raises(UnusableFile) as error:
        judge_file(tmp_path / name)
    assert 3 < len(str(error.value)) < 200
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    for name in ("folder.py", "pipe.py", "device.py", "loop.py"):
        with pytest.raises(UnusableFile):
            judge_file(tmp_path / name)


# --- the command line ---------------------------------------------------------------------------


def autograder(*arguments: object, **more: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "autograder.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(HEAD + SOFTMAX)
    (tmp_path / "wrong.py").write_text(HEAD + WRONG)
    (tmp_path / "broken.py").write_text("def softmax(")
    return tmp_path


@pytest.mark.share(0)
def test_several_files_are_judged_in_order_past_a_broken_one(answers):
    files = [
        answers / name for name in ("right.py", "broken.py", "wrong.py", "none.py", "right.py")
    ]
    done = autograder("judge", *files, "--json", "--seed", 7, "--jobs", 2)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert [o["file"] for o in objects] == [str(files[i]) for i in (0, 2, 4)]
    assert [o["score"] == o["points"] for o in objects] == [True, False, True]
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert "broken.py" in lines[0] and "syntax error" in lines[0]
    assert "none.py" in lines[1]


@pytest.mark.share(3)
@pytest.mark.parametrize("name, status", [("right.py", 0), ("wrong.py", 1)])
def test_the_exit_status_and_the_table(answers, name, status):
    done = autograder("judge", answers / name)
    assert (done.returncode, done.stderr) == (status, "")
    assert "softmax" in done.stdout
    assert ("correct" if status == 0 else "wrong") in done.stdout


CALLS = {
    "an unknown exercise": ("judge", "right.py", "--exercise", "nothing"),
    "an unknown option": ("judge", "right.py", "--frobnicate"),
    "no file": ("judge",),
    "a seed that is none": ("judge", "right.py", "--seed", "x"),
    "an unknown isolation": ("judge", "right.py", "--isolation", "docker"),
    "an exercise that the file has not": ("judge", "right.py", "--exercise", "attention_pool"),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS.keys())
def test_a_call_that_is_not_understood_is_one_line_and_status_2(answers, arguments):
    done = autograder(*arguments, cwd=answers)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_without_bubblewrap_it_ends_with_status_2(answers):
    done = autograder("judge", answers / "right.py", env={"PATH": str(answers), "HOME": "/tmp"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "apt-get install bubblewrap" in done.stderr


def test_no_student_code_runs_on_the_trusted_side(tmp_path):
    """The modules of the trusted side call nothing that runs text as code."""
    grader = Path(inspect.getfile(judge_file)).parent
    trusted = {grader.parent / "cli.py", *grader.rglob("*.py")} - {grader / "sandbox" / "worker.py"}
    for path in sorted(trusted):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        calls = [node.func for node in nodes if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        assert called.isdisjoint({"exec", "eval", "compile", "__import__"})
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not any("pickle" in ast.unparse(node) for node in imports)
    before = threading.active_count()
    verdicts("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()")
    assert threading.active_count() == before


# --- other names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.ipynb.txt", "a.ipynb.json", "a.IPYNB.txt"])
def test_a_notebook_that_a_browser_named_is_judged(tmp_path, name):
    path = tmp_path / name
    path.write_text(notebook(code(HEAD), code(SOFTMAX)))
    assert judge_file(path, seed=b"1")["exercises"]["softmax"]["verdict"] == "correct"


def test_the_one_file_in_a_zip_is_judged(tmp_path):
    path = tmp_path / "a.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("handed_in/a.ipynb", notebook(code(HEAD), code(SOFTMAX)))
        archive.writestr("__MACOSX/handed_in/._a.ipynb", b"x")
    assert judge_file(path, seed=b"1")["exercises"]["softmax"]["verdict"] == "correct"
    with ZipFile(path, "a") as archive:
        archive.writestr("b.py", SOFTMAX)
    with pytest.raises(UnusableFile, match="holds 2"):
        judge_file(path)
    path.write_bytes(b"PK")
    with pytest.raises(UnusableFile, match="cannot be read"):
        judge_file(path)
