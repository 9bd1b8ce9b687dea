"""`check` says beforehand what will not run with the versions that grade."""

import json
import linecache
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autograder.student import versions

ROOT = Path(__file__).resolve().parents[3]


def defined(text: str, name: str = "answer"):
    """What a cell with a text defines; `check` can read the cell."""
    file = f"<a cell of {len(text)}: {hash(text)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope = {"np": np, "__name__": "__main__"}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


@pytest.fixture
def graded_with(tmp_path, monkeypatch):
    def write(**changes) -> None:
        file = tmp_path / "graded_with.json"
        file.write_text(json.dumps(versions.versions_here() | changes), encoding="utf-8")
        monkeypatch.setattr(versions, "FILE", file)

    return write


CELLS = {
    "in it": "def answer(x):\n    return np.isin(x, x)\n",
    "in a helper": "def use(x):\n    return np.isin(x, x)\n\ndef answer(x):\n    return use(x)\n",
    "in a method": "class answer:\n    def forward(self, x):\n        return np.isin(x, x)\n",
    "imported": "from numpy import isin\n\ndef answer(x):\n    return isin(x, x)\n",
}


@pytest.mark.parametrize("text", CELLS.values(), ids=CELLS.keys())
def test_name_that_the_grading_numpy_lacks_is_told(text, graded_with):
    names = [name for name in versions.versions_here()["names"] if name != "isin"]
    graded_with(numpy="9.9.9", names=names)
    told = versions.missing_where_graded(defined(text))
    assert told == "It is graded with NumPy 9.9.9, which has no `isin`."


@pytest.mark.parametrize("text", CELLS.values(), ids=CELLS.keys())
def test_same_versions_say_nothing(text, graded_with):
    graded_with()
    assert versions.missing_where_graded(defined(text)) is None


def test_misspelt_name_is_left_to_the_answers_own_exception(graded_with):
    graded_with()
    assert versions.missing_where_graded(defined("def answer(x):\n    return np.izin(x)\n")) is None


def test_nothing_is_said_where_nobody_says_what_grades(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "FILE", tmp_path / "none.json")
    assert versions.missing_where_graded(defined(CELLS["in it"])) is None


# Lines by the Python that first takes them: PEP 695, 696 and 701, and what older ones take.
SINCE_312 = [
    'f"{d["a"]}"',
    "f'{d['a']}'",
    'f"{chr(10).join(["a", "b"])}"',
    "f\"{'\\n'.join(x)}\"",
    'f"{x:{d["w"]}}"',
    'f"{f"{x}"}"',
    'f"""{f"""{x}"""}"""',
    "def first[T](x: T) -> T: return x",
    "type Pair = tuple[int, int]",
]
ALWAYS = [
    "f\"{d['a']}\"",
    'f"""{d["a"]}"""',
    'f"{x!r:>{w}}\\n"',
    'f"{x}" "a" f"{x}"',
    "f'{x}' + \"a\"",
    'rf"\\d{x}"',
    'f"""a\n{x}\nb"""',
]
SCRIPT = """
import json, runpy, sys
newer_line = runpy.run_path("autograder/student/newer_syntax.py")["newer_line"]
print(json.dumps([newer_line(text, (3, 11)) for text in json.loads(sys.argv[1])]))
"""
_FOUND = [shutil.which(f"python3.{minor}") or "" for minor in range(12, 20)]
NEWER = [
    *map(str, Path.home().glob(".pyenv/versions/3.1[2-9].*/bin/python")),
    *(path for path in _FOUND if path and "shims" not in path),
]


def test_the_lists_are_right_about_the_python_that_runs():
    assert sys.version_info >= (3, 11)
    for text in ALWAYS:
        compile(text, "<always>", "exec")
    if sys.version_info < (3, 12):
        for text in SINCE_312:
            with pytest.raises(SyntaxError):
                compile(text, "<newer>", "exec")


@pytest.mark.parametrize("python", NEWER or [sys.executable])
def test_syntax_that_the_grading_python_lacks_is_told(python):
    if not NEWER and sys.version_info < (3, 12):
        pytest.skip("no python3.12 or newer on PATH or under pyenv: 3.11 cannot read these lines")
    texts = json.dumps([*SINCE_312, *ALWAYS])
    done = subprocess.run(
        [python, "-c", SCRIPT, texts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [1] * len(SINCE_312) + [None] * len(ALWAYS)
