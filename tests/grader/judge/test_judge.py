"""The judge: right answers earn all marks through the sandbox, and nothing else does."""

import dataclasses
import json

import pytest
from judging import (
    HASTY,
    HEAD,
    QUICK,
    REFERENCE,
    SCORES,
    SOFTMAX,
    WATSON,
    WRONG,
    code,
    notebook,
    verdicts,
)

from autograder.judge.judge_file import judge_file
from autograder.judge.verdicts import Cell, judge_cells
from autograder.student.course import exercises_of, find_exercise


@pytest.fixture(scope="module")
def reference_result() -> dict:
    return judge_file(REFERENCE)


def test_the_reference_earns_full_marks(reference_result):
    assert reference_result["score"] == reference_result["points"] == 21.5
    assert {e["verdict"] for e in reference_result["exercises"].values()} == {"correct"}


def test_the_object_is_the_one_that_is_documented(reference_result):
    assert list(reference_result) == ["file", "device", "points", "score", "exercises"]
    assert reference_result["file"] == str(REFERENCE)
    assert reference_result["device"] == "cpu"
    names = [exercise.name for exercise in exercises_of("kernel_regression")]
    assert list(reference_result["exercises"]) == names
    for exercise in reference_result["exercises"].values():
        told = ("cause", "likely", "guess", "remark", "pointer")
        assert list(exercise) == ["points", "score", "verdict", "mistake", *told, "aspects"]
        assert not any(exercise[key] for key in told)
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


@pytest.mark.share(3)
@pytest.mark.parametrize("source, verdict, score, mistake", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_gets_what_it_deserves(source, verdict, score, mistake):
    made = verdicts(source)["softmax"]
    assert (made.verdict, made.mistake) == (verdict, mistake)
    assert made.score == score if score is not None else made.score < made.points
    if verdict not in ("correct", "wrong"):
        assert made.note
    if verdict == "wrong":
        assert [a.message for a in made.aspects if a.message]
        assert [a.hint for a in made.aspects if a.hint] or "object()" in source  # no number at all


DEATHS = {
    "an endless loop": ("while True: pass", "timeout"),
    "os._exit": ("import os; os._exit(0)", "crash"),
    "a segfault": ("import faulthandler; faulthandler._sigsegv()", "crash"),
    "a kill": ("import os; os.kill(os.getpid(), 9)", "memory"),
}


@pytest.mark.share(3)
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
    assert judged.notes == ("A cell did not end within 1 s.",)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "cell",
    [
        f"{SOFTMAX}\nwhile True: pass",
        f"def helper(): pass\n\n{SOFTMAX}\nimport os\nos._exit(1)",
        f"{SOFTMAX}\nwhile True: pass\ndef later(): pass",
        f"%matplotlib inline\n{SOFTMAX}\nwhile True: pass",
    ],
)
def test_an_answer_counts_whatever_its_cell_does_below_it(cell):
    assert verdicts(cell, limits=HASTY)["softmax"].verdict == "correct"


def test_an_answer_that_its_cell_never_reaches_does_not_count():
    made = verdicts(f"while True: pass\n{SOFTMAX}", limits=HASTY)["softmax"]
    assert made.verdict == "timeout" and made.score == 0


def test_what_a_file_does_below_an_answer_costs_only_what_stands_below_it(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(f"{HEAD}{SOFTMAX}\nwhile True: pass\n{SCORES}")
    found = judge_file(path, seed=b"1", limits=HASTY)["exercises"]
    assert found["softmax"]["verdict"] == "correct"
    assert found["gaussian_scores"]["verdict"] == "timeout"


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


@pytest.mark.share(3)
@pytest.mark.parametrize("source, verdict", DEATHS.values(), ids=DEATHS.keys())
def test_what_came_back_before_an_end_counts(source, verdict):
    softmax = find_exercise("softmax")[1]
    first = sum(len(run.steps) for row in softmax.runs(b"seedsoftmax")[:2] for run in row)
    end = f"    if counted() > {first}:\n        {source}\n    ### BEGIN"
    ends = SOFTMAX.replace("    ### BEGIN", end)
    counting = "calls = []\ndef counted():\n    calls.append(1)\n    return len(calls)"
    made = verdicts(counting, ends, limits=HASTY)["softmax"]
    assert [aspect.passed for aspect in made.aspects[:3]] == [True, True, False]
    assert made.score == sum(aspect.points for aspect in softmax.aspects[:2])
    assert (made.verdict, made.mistake, made.note) == (verdict, None, None)
    reason = made.remark.partition(". ")[0]
    assert reason.startswith("A call of it ")
    assert all(f"since a{reason[1:]}" in a.message for a in made.aspects if not a.passed)


def test_who_is_not_right_before_the_end_earns_no_more_than_without_it():
    counting = "calls = []\n"
    ends = WRONG.replace(
        "    return", "    calls.append(1)\n    while len(calls) > 9: pass\n    return"
    )
    assert ends != WRONG
    made = verdicts(counting, ends, limits=HASTY)["softmax"]
    assert made.verdict == "timeout" and made.score <= verdicts(WRONG)["softmax"].score


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
        "from autograder.student.engine import probe as p, values as w, verdict as v\n"
        "real = p.probe\np.probe = lambda answer, run, device='cpu': real(np.abs, run, device)\n"
        "v.decide = lambda *a, **k: True"),
    "the comparison patched": (
        "import autograder.student.engine.compare as a\n"
        "a.compare = lambda *x, **k: a.Finding(True)\na.TOLERANCE.update(float64=(9e9, 9e9))"),
    "the points patched": (
        "import attention_by_hand.exercises.kernel_regression as k, dataclasses\n"
        "for e in k.EXERCISES: object.__setattr__(e, 'aspects', ())"),
    "expected values returned": (
        "from autograder.student.expected import expected_of\n"
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
        "import sys, types\nsys.modules['autograder.judge'] = types.ModuleType('x')\n"
        "sys.modules['solutions'] = types.ModuleType('x')"),
    "a record forged": (
        "import autograder.student.engine.records as r\nreal = r.record_tree\n"
        "def forged(record):\n    tree = real(record)\n"
        "    return tree | {'raised': None, 'values': (np.full((3, 5), 0.2),)}\n"
        "r.record_tree = forged"),
    "a verdict sent": (
        "import autograder.student.engine.values as w\nreal = w.encode\n"
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


@pytest.mark.share(3)
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
    text = made.note + "".join(a.message or "" for a in made.aspects)
    assert len(text) < 20_000
    assert "x" * 100 in text
    assert all(letter.isprintable() for letter in text.replace("\n", ""))


FORGED = {
    "a key without a step": {"changed": {"x": 1.0}},
    "a step without a number": {"changed": {"0.²": 1.0}},
    "an argument that is not there": {"changed": {"0.99": 1.0}},
    "no values": {"values": ()},
    "values in values": {"values": (((((1.0,),),),),)},
    "an exception without a type": {"raised": [[], "", "", ""]},
}


@pytest.mark.share(4)
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_forged_record_never_brings_the_judge_down(forged):
    made = verdicts(
        "import autograder.student.engine.records as r\nreal = r.record_tree\n"
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


@pytest.mark.share(3)
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
