"""The judge: what only IPython understands, and what nobody can read."""

import sys

import numpy as np
import pytest
from judging import HEAD, QUICK, SOFTMAX, verdicts

from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook.names import MAX_SOURCE
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import CRASH

TAKEN = (
    "from attention_by_hand import blocks\n"
    "def softmax(scores, axis=-1): return blocks.softmax(scores)\n"
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
        "from attention_by_hand import blocks\nglobals()['soft' + 'max'] = blocks.softmax"
    ),
    "a transformer of one's own": (
        "def readable(lines):\n"
        "    return [line.replace('deffen ', 'def ') for line in lines]\n"
        "get_ipython().input_transformers_cleanup.append(readable)\n"
    ),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS.keys())
def test_a_block_is_not_there_however_its_call_is_written(source):
    cells = "import sys\nsys.setrecursionlimit(10**6)", source, TAKEN.replace("def ", "deffen ", 1)
    verdict = verdicts(*cells)["softmax"]
    assert (verdict.verdict, verdict.score) == (CRASH, 0)
    assert "attention_by_hand.blocks.softmax is a right answer" in verdict.note


@pytest.mark.share(3)
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


@pytest.mark.share(4)
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


# --- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "above",
    [
        "import no_such_package\nimport math",
        "import no_such_package as other, sys\nother.set(1)\nimport math",
        "from no_such_package.deep import thing\nthing.mount('/x')\nimport math",
        "import sys, no_such_package.deep as other, math",
        "x = 1; import no_such_package, math; y = 2\nassert x + y == 3",
        "from google.colab import drive\ndrive.mount('/content/drive')\nimport math",
        "import matplotlib\nmatplotlib.use('TkAgg')\nimport math",
        "import matplotlib.pyplot as plt\nplt.switch_backend('QtAgg')\nimport math",
    ],
)
def test_what_is_not_here_hides_nothing_behind_it(above):
    assert verdicts(above, f"math.pi\n{SOFTMAX}")["softmax"].verdict == "correct"


def test_a_missing_package_is_one_line():
    judged = judge_cells(
        [Cell("import no_such_package\nno_such_package.go()"), Cell("import no_such_package")],
        [find_exercise("softmax")],
        {"softmax": b""},
        limits=QUICK,
    )
    assert judged.notes == (
        "no_such_package is not here: what needs it was passed over. "
        "(Files beside the one handed in are not read.)",
    )


def test_a_cell_that_git_could_not_merge_is_told_so():
    both = f"<<<<<<< HEAD\n{SOFTMAX}\n=======\n{SOFTMAX}\n>>>>>>> mine\n"
    made = verdicts(both)["softmax"]
    assert made.score == 0 and "a conflict in git (<<<<<<< in line 1)" in made.note


def test_an_answer_in_a_file_beside_is_told_so():
    made = verdicts("from my_helper import softmax", "x = 1", "softmax = softmax")["softmax"]
    assert made.score == 0 and "my_helper: not here. (Files beside" in made.remark


@pytest.mark.parametrize("body", ["x = = 1", "np.in1d([1], [1])", "np.math.pi"])
def test_what_another_version_may_have_names_the_versions(body):
    made = verdicts(HEAD, f"def softmax(scores, axis=-1):\n    {body}\n    return np.e")["softmax"]
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"It is graded with Python {python}, numpy {np.__version__}" in made.remark


def test_a_wrong_answer_of_another_kind_does_not_name_them():
    made = verdicts(HEAD, "def softmax(scores, axis=-1):\n    return scores.no_such()")["softmax"]
    assert "graded with" not in (made.remark or "")


def test_the_first_cell_that_failed_is_named():
    answer = "def softmax(scores, axis=-1):\n    return math.exp(scores)"
    made = verdicts("1 / 0\nimport math", answer)["softmax"]
    assert "failed first. It raised ZeroDivisionError" in made.remark


def test_a_module_that_a_cell_writes_can_be_imported():
    module = f"%%writefile own.py\n{HEAD}{SOFTMAX}"
    assert verdicts(module, "from own import softmax")["softmax"].verdict == "correct"


def test_input_says_that_nobody_types():
    made = verdicts("def softmax(scores, axis=-1):\n    return input()")["softmax"]
    assert any("nobody types" in (aspect.message or "") for aspect in made.aspects)
