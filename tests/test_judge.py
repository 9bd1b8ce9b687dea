"""The judge: right answers earn all marks through the sandbox, and no other answer does."""

import ast
import dataclasses
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import solutions.kernel_regression as right
from autograder.engine.verdict import POLICY, Verdict
from autograder.exercises import exercises_of, find_exercise
from autograder.grader.judge import (
    MAX_SOURCE,
    Cell,
    Unusable,
    defined_names,
    judge_cells,
    judge_file,
    seed_for,
)
from autograder.grader.sandbox.host import Limits

REFERENCE = Path(right.__file__)
QUICK = Limits(cell_seconds=20.0, probe_seconds=10.0, memory_mb=1024)
HASTY = Limits(cell_seconds=1.0, probe_seconds=1.0, memory_mb=1024)
HEAD = "from __future__ import annotations\nimport numpy as np\n"
SOFTMAX, SCORES = (inspect.getsource(f) for f in (right.softmax, right.gaussian_scores))
WATSON = inspect.getsource(right.nadaraya_watson)
WRONG = "def softmax(scores, axis=-1):\n    return scores * 0\n"


def verdicts(
    *cells: str | Cell, asked: tuple[str, ...] = ("softmax",), limits: Limits = QUICK, **more
) -> dict[str, Verdict]:
    """What the judge makes of some cells after the one with the imports."""
    made = [Cell(cell) if isinstance(cell, str) else cell for cell in (HEAD, *cells)]
    pairs = [find_exercise(name) for name in asked]
    seeds = {name: b"seed" + name.encode() for name in asked}
    return judge_cells(made, pairs, seeds, limits=limits, **more).verdicts


def notebook(*cells: dict, nbformat: int = 4) -> str:
    return json.dumps({"nbformat": nbformat, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def code(source: str | list[str], grade_id: str | None = None, tags: tuple = ()) -> dict:
    metadata: dict = {"tags": list(tags)}
    if grade_id:
        metadata["nbgrader"] = {"grade_id": grade_id, "grade": grade_id.startswith("check_")}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": []}


# --- right and wrong ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference_result() -> dict:
    return judge_file(REFERENCE)


def test_the_reference_earns_full_marks(reference_result):
    assert reference_result["score"] == reference_result["points"] == 20
    assert {e["verdict"] for e in reference_result["exercises"].values()} == {"correct"}


def test_the_object_is_the_one_that_is_documented(reference_result):
    assert list(reference_result) == ["file", "device", "points", "score", "exercises"]
    assert reference_result["file"] == str(REFERENCE)
    assert reference_result["device"] == "cpu"
    names = [exercise.name for exercise in exercises_of("kernel_regression")]
    assert list(reference_result["exercises"]) == names
    for exercise in reference_result["exercises"].values():
        assert list(exercise) == ["points", "score", "verdict", "mistake", "aspects"]
        for aspect in exercise["aspects"]:
            assert list(aspect) == ["title", "passed", "points", "hint", "error"]
            assert (aspect["passed"], aspect["hint"], aspect["error"]) == (True, None, None)
        assert sum(a["points"] for a in exercise["aspects"]) == pytest.approx(exercise["points"])
    json.dumps(reference_result, allow_nan=False)


ANSWERS = {
    "right": (SOFTMAX, "correct", 3.0, None),
    "right, by other means": (
        "def softmax(scores, axis=-1):\n"
        "    s = scores if scores.dtype.kind == 'f' else scores.astype(float)\n"
        "    m = np.max(s, axis, keepdims=True); m = np.where(np.isfinite(m), m, 0)\n"
        "    e = np.exp(s - m); t = e.sum(axis, keepdims=True)\n"
        "    return np.divide(e, t, out=np.zeros_like(e), where=t > 0)", "correct", 3.0, None),
    "a right answer that warns": (
        "import warnings\n"
        + SOFTMAX.replace("    ### BEGIN", "    warnings.warn('')\n    ### BEGIN"),
        "correct", 3.0, None),
    "zeros": (WRONG, "wrong", None, None),
    "NaN": ("def softmax(scores, axis=-1): return scores * np.nan", "wrong", 0.0, None),
    "a known mistake": (
        "def softmax(scores, axis=-1):\n    e = np.exp(scores)\n"
        "    return e / e.sum(axis=axis, keepdims=True)", "wrong", None, "max_not_subtracted"),
    "not written": ("def softmax(s, axis=-1): raise NotImplementedError", "missing", 0.0, None),
    "not there": ("x = 1", "missing", 0.0, None),
    "always raises": ("def softmax(scores, axis=-1): return nowhere", "crash", 0.0, None),
    "None": ("softmax = None", "crash", 0.0, None),
    "a class": ("class softmax: pass", "crash", 0.0, None),
    "a syntax error": ("def softmax(scores:\n    return 1", "crash", 0.0, None),
    "an error before it": ("1 / 0\n" + SOFTMAX, "crash", 0.0, None),
    "an error after it": (SOFTMAX + "\n1 / 0", "correct", 3.0, None),
    "sys.exit": ("def softmax(scores, axis=-1): raise SystemExit", "crash", 0.0, None),
    "a value that is none": ("def softmax(scores, axis=-1): return object()", "wrong", 0.0, None),
    "the input": ("def softmax(scores, axis=-1): return scores", "wrong", None, None),
    "out of memory": ("def softmax(s, axis=-1): return np.zeros(10**12)", "memory", 0.0, None),
    "out of memory when defined": ("x = bytearray(10**11)\n" + SOFTMAX, "memory", 0.0, None),
}  # fmt: skip


@pytest.mark.parametrize("source, verdict, score, mistake", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_gets_what_it_deserves(source, verdict, score, mistake):
    made = verdicts(source)["softmax"]
    assert (made.verdict, made.mistake) == (verdict, mistake)
    assert made.score == score if score is not None else made.score < made.points
    if verdict not in ("correct", "wrong"):
        assert made.note
    if verdict == "wrong":
        assert [a.hint for a in made.aspects if a.hint]


DEATHS = {
    "an endless loop": ("while True: pass", "timeout"),
    "os._exit": ("import os; os._exit(0)", "crash"),
    "a segfault": ("import faulthandler; faulthandler._sigsegv()", "crash"),
    "a kill": ("import os; os.kill(os.getpid(), 9)", "memory"),
}


@pytest.mark.parametrize("source, verdict", DEATHS.values(), ids=DEATHS.keys())
@pytest.mark.parametrize("where", ["in the call", "in the cell"])
def test_a_death_costs_its_own_exercise_only(source, verdict, where):
    body = "    " + source
    deadly = f"def gaussian_scores(*a, **k):\n{body}\n" if where == "in the call" else ""
    deadly = deadly or f"{source}\ndef gaussian_scores(*a, **k): pass\n"
    made = verdicts(
        SOFTMAX,
        Cell("check(softmax)", check="softmax"),
        deadly,
        Cell("check(gaussian_scores)", check="gaussian_scores"),
        SCORES + "\ngood_scores = gaussian_scores\n",
        WATSON,
        Cell("check(nadaraya_watson)", check="nadaraya_watson"),
        asked=("softmax", "gaussian_scores", "nadaraya_watson"),
        limits=HASTY,
    )
    assert {name: v.verdict for name, v in made.items()} == {
        "softmax": "correct", "gaussian_scores": verdict, "nadaraya_watson": "correct",
    }  # fmt: skip
    note = made["gaussian_scores"].note
    assert note.startswith("A call of it" if where == "in the call" else "The cell that defines it")


def test_a_demonstration_that_hangs_costs_nothing():
    judged = judge_cells(
        [Cell(HEAD), Cell(SOFTMAX), Cell("while True: pass"), Cell("1 + 1")],
        [find_exercise("softmax")],
        {"softmax": b""},
        limits=HASTY,
    )
    assert judged.verdicts["softmax"].verdict == "correct"
    assert judged.outputs[2][0]["ename"] == "Timeout"
    assert judged.outputs[3][0]["data"]["text/plain"] == "2"
    assert judged.notes == ["A cell did not end within 1 s."]


def test_cells_run_in_order_and_once_but_for_a_restart():
    counting = "import os\nopen('/tmp/count', 'a').write('x')\nn = len(open('/tmp/count').read())"
    cells = [Cell(counting), Cell("import os; os._exit(1)"), Cell("n"), Cell("n", skip=True)]
    judged = judge_cells(cells, [], {}, limits=QUICK)
    assert judged.outputs[2][0]["data"]["text/plain"] == "1"  # replayed in a /tmp of its own
    assert sorted(judged.outputs) == [0, 1, 2]


def test_a_submission_that_always_dies_comes_to_an_end():
    limits = dataclasses.replace(QUICK, restarts=2)
    deadly = ["import os\ndef softmax(*a): pass\nos._exit(1)"] * 6
    judged = judge_cells(
        [Cell(source) for source in deadly], [find_exercise("softmax")], {"softmax": b""},
        limits=limits,
    )  # fmt: skip
    assert judged.verdicts["softmax"].verdict == "crash"
    assert "ended its process 3 times" in judged.outputs[5][0]["evalue"]


def test_a_submission_has_so_much_time_in_all():
    limits = dataclasses.replace(QUICK, total_seconds=2.0)
    made = verdicts("while True: pass", SOFTMAX, limits=limits)["softmax"]
    assert made.verdict == "timeout"
    assert made.score == 0


# --- what cannot be gained ----------------------------------------------------------------------

HOSTILE = {
    "numpy.testing patched": (
        "import numpy.testing as t\nfor n in dir(t):\n"
        "    if n.startswith('assert'): setattr(t, n, lambda *a, **k: None)\n"
        "np.allclose = np.array_equal = lambda *a, **k: True"),
    "builtins patched": (
        "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.all = lambda x: True\n"
        "builtins.isinstance = lambda a, b: True"),
    "the probe patched": (
        "from autograder.engine import probe as p, values as w, verdict as v\n"
        "real = p.probe\np.probe = lambda answer, run, device='cpu': real(np.abs, run, device)\n"
        "v.decide = lambda *a, **k: True"),
    "the comparison patched": (
        "import autograder.engine.aspects as a\n"
        "a.compare = lambda *x, **k: a.Finding(True)\na.TOLERANCE.update(float64=(9e9, 9e9))"),
    "the points patched": (
        "import autograder.exercises.kernel_regression as k, dataclasses\n"
        "for e in k.EXERCISES: object.__setattr__(e, 'aspects', ())"),
    "expected values returned": (
        "from autograder.expected import expected_of\n"
        "rows = [r for row in expected_of('kernel_regression')['softmax'].reference for r in row]\n"
        "def softmax(scores, axis=-1):\n"
        "    return next(r.value.data for r in rows if r.value is not None)"),
    "an array that lies": (
        "class Liar(np.ndarray):\n    def __eq__(self, o): return np.ones(self.shape, bool)\n"
        "    def __array__(self, *a, **k): return np.zeros(3)\n"
        "    def __array_ufunc__(self, *a, **k): return np.zeros(1)\n"
        "def softmax(scores, axis=-1): return (scores * 0).view(Liar)"),
    "an object that is equal to all": (
        "class Equal:\n    def __eq__(self, o): return True\n"
        "    shape = property(lambda s: (3, 5)); dtype = np.dtype('f8')\n"
        "    def __array__(self, *a, **k): return np.zeros(3)\n"
        "def softmax(scores, axis=-1): return Equal()"),
    "the answer's own module replaced": (
        "import sys, types\nsys.modules['autograder.grader'] = types.ModuleType('x')\n"
        "sys.modules['solutions'] = types.ModuleType('x')"),
    "a record forged": (
        "import autograder.engine.records as r\nreal = r.record_tree\n"
        "def forged(record):\n    tree = real(record)\n"
        "    return tree | {'raised': None, 'values': (np.full((3, 5), 0.2),)}\n"
        "r.record_tree = forged"),
    "a verdict sent": (
        "import autograder.engine.values as w\nreal = w.encode\n"
        "w.encode = lambda v: real(dict(v, verdict='correct', score=3.0, points=3.0)"
        " if isinstance(v, dict) else v)"),
    "IPython's transformers": (
        "ip = get_ipython()\nimport ast\nclass T(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return ast.Pass()\nip.ast_transformers.append(T())"),
    "a thread that searches": (
        "import threading, gc\ndef look():\n"
        "    for o in gc.get_objects():\n"
        "        if 'Verdict' in type(o).__name__: o.__dict__.update(passed=True)\n"
        "threading.Thread(target=look).start()"),
}  # fmt: skip


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_trick_earns_full_marks_for_a_wrong_answer(attack):
    source = attack if "def softmax" in attack else attack + "\n" + WRONG
    made = verdicts(source)["softmax"]
    assert made.verdict in ("wrong", "crash", "policy")
    assert made.score <= 0.5  # what a wrong answer earns honestly


def test_wrong_answers_earn_the_same_with_and_without_tricks():
    honest = verdicts(WRONG)["softmax"].score
    assert verdicts(HOSTILE["builtins patched"] + "\n" + WRONG)["softmax"].score <= honest


def test_texts_from_an_answer_are_cut_and_cleaned():
    made = verdicts(
        "def softmax(scores, axis=-1): raise ValueError('\\x1b[31m\\ud800' + 'x' * 10**6)"
    )["softmax"]
    text = made.note + "".join(a.error or "" for a in made.aspects)
    assert len(text) < 20_000
    assert text.isprintable() or "\x1b" not in text
    text.encode()


FORGED = {
    "a key without a step": {"changed": {"x": 1.0}},
    "a step without a number": {"changed": {"0.²": 1.0}},
    "an argument that is not there": {"changed": {"0.99": 1.0}},
    "no values": {"values": ()},
    "values in values": {"values": (((((1.0,),),),),)},
    "an exception without a type": {"raised": [[], "", "", ""]},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_forged_record_never_brings_the_judge_down(forged):
    made = verdicts(
        "import autograder.engine.records as r\nreal = r.record_tree\n"
        f"r.record_tree = lambda record: real(record) | {forged!r}\n" + WRONG
    )["softmax"]
    assert made.verdict in ("wrong", "crash", "policy")


# --- an answer that calls another ---------------------------------------------------------------

BAD_SOFTMAX = "def softmax(scores, axis=-1):\n    return np.exp(scores)\n"


CALLED = {
    "wrong": BAD_SOFTMAX,
    "not written": "def softmax(scores, axis=-1):\n    raise NotImplementedError\n",
    "not there": "",
    "endless": "def softmax(scores, axis=-1):\n    while True: pass\n",
}


@pytest.mark.parametrize("softmax", CALLED.values(), ids=CALLED.keys())
@pytest.mark.parametrize("asked", [("softmax", "nadaraya_watson"), ("nadaraya_watson",)])
def test_an_answer_is_not_charged_for_the_answers_that_it_calls(softmax, asked):
    made = verdicts(SCORES, softmax, WATSON, asked=asked, limits=HASTY)
    assert made["nadaraya_watson"].verdict == "correct"
    assert "the course's own softmax" in made["nadaraya_watson"].remark
    if "softmax" in made:
        assert made["softmax"].score < 3 and made["softmax"].remark is None


def test_its_own_faults_are_charged_all_the_same():
    wrong = WATSON.replace("return weights @ value, weights", "return weights @ value + 1, weights")
    assert wrong != WATSON
    made = verdicts(SCORES, BAD_SOFTMAX, wrong, asked=("softmax", "nadaraya_watson"))
    assert made["nadaraya_watson"].verdict == "wrong"


def test_what_stands_in_is_gone_afterwards():
    spy = "probed = []\n" + BAD_SOFTMAX.replace("    return", "    probed.append(1)\n    return")
    judged = judge_cells(
        [Cell(HEAD), Cell(SCORES), Cell(spy), Cell(WATSON), Cell("", check="nadaraya_watson"),
         Cell("n = len(probed)\nsoftmax(np.zeros(1))\nlen(probed) - n")],
        [find_exercise("nadaraya_watson")], {"nadaraya_watson": b"1"}, limits=QUICK,
    )  # fmt: skip
    assert judged.verdicts["nadaraya_watson"].verdict == "correct"
    assert judged.outputs[5][0]["data"]["text/plain"] == "1"


def test_a_notebook_follows_through_too(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(
        notebook(
            code(HEAD), code(BAD_SOFTMAX, "softmax"), code("", "check_softmax"),
            code(SCORES, "gaussian_scores"), code("", "check_gaussian_scores"),
            code(WATSON, "nadaraya_watson"), code("", "check_nadaraya_watson"),
        )
    )  # fmt: skip
    made = judge_file(path)["exercises"]
    assert made["softmax"]["verdict"] == "wrong"
    assert made["nadaraya_watson"]["score"] == made["nadaraya_watson"]["points"]


# --- inputs -------------------------------------------------------------------------------------


def test_seeds_repeat_and_differ():
    args = (b"secret", "ann", "01", "softmax")
    assert seed_for(*args) == seed_for(*args)
    assert len(seed_for(*args)) == 32
    others = [(b"other", "ann", "01", "softmax"), (b"secret", "bob", "01", "softmax"),
              (b"secret", "ann", "02", "softmax"), (b"secret", "ann", "01", "other"),
              (b"secret", "ann0", "1", "softmax")]  # fmt: skip
    assert len({seed_for(*args), *(seed_for(*other) for other in others)}) == 6


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
    with pytest.raises(Unusable) as error:
        judge_file(tmp_path / name)
    assert 3 < len(str(error.value)) < 200
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    for name in ("folder.py", "pipe.py", "device.py", "loop.py"):
        with pytest.raises(Unusable):
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
    notebook = (grader / "notebook").glob("*.py")
    host, cli = grader / "sandbox" / "host.py", grader.parent / "cli.py"
    for path in [grader / "judge.py", *notebook, host, cli]:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        calls = [node.func for node in nodes if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        assert called.isdisjoint({"exec", "eval", "compile", "__import__"})
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not any("pickle" in ast.unparse(node) for node in imports)
    before = threading.active_count()
    verdicts("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()")
    assert threading.active_count() == before


TAKEN = (
    "from autograder import blocks\ndef softmax(scores, axis=-1): return blocks.softmax(scores)\n"
)
WAYS = {
    "deep code": TAKEN + "x = " + "-" * 5000 + "1",
    "long code": TAKEN + "# " + "x" * MAX_SOURCE,
    "a magic's value": TAKEN + "here = %pwd",
    "the shell's value": TAKEN + "files = !true",
    "a cell's magic": "%%time\n" + TAKEN,
    "help": TAKEN + "len?",
    "a string": f"exec({TAKEN!r})",
    "a name put together": (
        "from autograder import blocks\nglobals()['soft' + 'max'] = blocks.softmax"
    ),
    "a transformer of one's own": (
        "def readable(lines):\n"
        "    return [line.replace('deffen ', 'def ') for line in lines]\n"
        "get_ipython().input_transformers_cleanup.append(readable)\n"
    ),
}


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS.keys())
def test_a_block_that_runs_is_one_for_a_person_however_it_is_written(source):
    cells = "import sys\nsys.setrecursionlimit(10**6)", source, TAKEN.replace("def ", "deffen ", 1)
    verdict = verdicts(*cells)["softmax"]
    assert (verdict.verdict, verdict.score) == (POLICY, 0)
    assert "The answer runs autograder.blocks.softmax" in verdict.note


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS.keys())
def test_what_nobody_can_read_costs_nothing(source):
    honest = source.replace("blocks.softmax(scores)", "0").replace("= blocks.softmax", "= None")
    assert verdicts(honest, SOFTMAX)["softmax"].verdict == "correct"


LINES = {
    "the shell": "!ls -l",
    "a package": "!pip install torch",
    "pip": "%pip install -q einops",
    "conda": "%conda install numpy",
    "set up": "%load_ext autoreload\n%autoreload 2\n%matplotlib inline",
    "a widget's back end": "%matplotlib widget",
    "of another machine": "%tensorflow_version 2.x\n%load_ext nobody_has_this",
    "the shell's words": "files = !ls\nassert len(files) == 0 and files.n == ''",
    "help": "len?\n??print",
    "where": "here = %pwd",
    "timed": "%time x = 1\nassert x == 1\n%timeit -n 1 -r 1 sum([1])",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("place", ["above", "below"])
def test_shell_and_magic_lines_cost_nothing(line, place):
    cell = f"{line}\n{SOFTMAX}" if place == "above" else f"{SOFTMAX}\n{line}\n"
    assert verdicts(cell)["softmax"].verdict == "correct"


CELLS = ("%%time", "%%capture", "%%capture out", "%%timeit -n 1 -r 1", "%%profile_of_mine --fast")


@pytest.mark.parametrize("magic", CELLS)
def test_a_cell_under_a_magic_is_run(magic):
    timed = magic.startswith("%%timeit")  # whose names are lost, in Jupyter as well
    cells = [f"{magic}\n{SOFTMAX}"] + [SOFTMAX] * timed
    assert verdicts(*cells)["softmax"].verdict == "correct"


@pytest.mark.parametrize("magic", ["%%bash", "%%sh", "%%script python3", "%%javascript"])
def test_a_cell_of_another_language_does_nothing_and_costs_nothing(magic):
    assert verdicts(f"{magic}\nexit 1", SOFTMAX)["softmax"].verdict == "correct"


def test_what_was_left_out_is_told():
    cells = [Cell(f"{HEAD}\n!rm -rf /\n{SOFTMAX}")]
    judged = judge_cells(cells, [find_exercise("softmax")], {"softmax": b"s"})
    (output,) = judged.outputs[0]
    assert output["text"] == "[!rm -rf / does nothing while this is graded]\n"


def test_an_error_of_what_a_magic_runs_is_an_error():
    cells = [Cell("%time 1 / 0"), Cell(SOFTMAX)]
    judged = judge_cells(cells, [find_exercise("softmax")], {"softmax": b"s"})
    assert judged.outputs[0][-1]["ename"] == "ZeroDivisionError"
