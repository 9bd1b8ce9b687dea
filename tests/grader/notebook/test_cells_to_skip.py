"""Which of the course's own cells are run for what a student wrote: all that it could use."""

import builtins
import dis
import types

import nbformat
import pytest
from nbgrader.utils import is_solution

from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook import stubs
from autograder.notebook.cells_to_skip import cells_to_skip
from autograder.notebook.reading import exercise_of
from autograder.student import course
from autograder.student.course import exercises_of

OURS, THEIRS = True, False
SHOWN = ("print(1 / 0)", OURS)  # what nobody needs
TOOLS = ("import math\nimport numpy as np", OURS)
NOTEBOOKS = sorted(path for path in (course.root() / "notebooks").iterdir() if path.is_dir())

KEPT = {  # what a student writes, and the course's cells of which it needs all
    "a name": ("y = width", ["width = 3"]),
    "a name in a function": ("def f(x):\n    return x * width", ["width = 3"]),
    "a name in a method": ("class A:\n    def f(self):\n        return width", ["width = 3"]),
    "a default": ("def f(x=width):\n    return x", ["width = 3"]),
    "a base class": ("class A(Base):\n    pass", ["class Base:\n    pass"]),
    "a decorator": ("@twice\ndef f(x):\n    return x", ["def twice(f):\n    return f"]),
    "a chain": ("y = b", ["a = 1", "def f():\n    return a", "b = f()"]),
    "a chain through a loop": ("y = b", ["rows = [1]", "for row in rows:\n    b = row"]),
    "an import": ("y = np.zeros(3)", ["import numpy as np"]),
    "an import from": ("y = sqrt(3)", ["from math import sqrt"]),
    "everything of a module": ("y = sqrt(3)", ["from math import *"]),
    "an element that is changed": ("y = rows", ["rows = [1]", "rows[0] = 2"]),
    "an attribute that is changed": ("y = a", ["class a:\n    pass", "a.b = 2"]),
    "a method that changes": ("y = rows", ["rows = [1]", "rows.append(2)"]),
    "a function that changes": ("y = rows", ["rows = [1]", "def f(x): x.pop()", "f(rows)"]),
    "a function that binds": ("y = a", ["def f():\n    global a\n    a = 1"]),
    "an addition in place": ("y = a", ["a = 1", "a += 1"]),
    "a walrus": ("y = a", ["print(a := 1)"]),
    "a with": ("y = a", ["with open('/dev/null') as a:\n    pass"]),
    "a type for new tensors": ("y = 1", ["import torch", "torch.set_default_dtype(torch.float64)"]),
    "a magic of the course": ("y = 1", ["%matplotlib inline"]),
}
ALL = {  # code that may use any name
    "globals": "y = globals()['wid' + 'th']",
    "exec": "exec('y = wid' + 'th')",
    "a magic": "%time f()",
    "a shell's magic": "files = !ls",
    "help": "width?",
    "IPython": "get_ipython().user_ns",
    "main": "import __main__\ny = __main__.width",
    "main among the modules": "from sys import modules",
    "frames": "def f():\n    return (yield).gi_frame.f_globals",
    "the function's own": "def f():\n    return f.__globals__",
}


@pytest.mark.parametrize(("written", "ours"), KEPT.values(), ids=KEPT)
def test_what_an_answer_could_use_is_run_and_nothing_else(written, ours):
    cells = [SHOWN, *((source, OURS) for source in ours), (written, THEIRS), SHOWN]
    assert cells_to_skip(cells) == {0, len(cells) - 1}


@pytest.mark.parametrize("written", ALL.values(), ids=ALL)
def test_code_that_may_use_any_name_has_them_all(written):
    assert cells_to_skip([("width = 3", OURS), SHOWN, (written, THEIRS)]) == set()


def test_nobodys_names_are_taken_for_somebodys():
    """Arguments, locals and attributes that are called like something of the course."""
    written = "def f(q, k):\n    n = len(q)\n    return [w.v for w in k[:n]]"
    ours = [("q = k = 1", OURS), ("n = 2", OURS), ("w = 3", OURS), ("v = 4", OURS)]
    assert cells_to_skip([*ours, (written, THEIRS)]) == {0, 1, 2, 3}


def test_a_cell_that_cannot_run_needs_nothing():
    assert cells_to_skip([SHOWN, ("def f(:", THEIRS), (") ** width", THEIRS)]) == {0}


def test_the_modules_that_a_demonstration_uses_do_not_make_it_needed():
    shown = ("np.random.seed(1)\nprint(np.random.rand())", OURS)
    assert cells_to_skip([TOOLS, shown, ("def f():\n    return np.e", THEIRS)]) == {1}


@pytest.mark.needs_torch
def test_a_cell_that_is_left_out_has_no_output_and_the_others_do():
    cells = [
        Cell("print('nobody needs this')", ours=True),
        Cell("half = 0.5\nprint('shown')", ours=True),
        Cell("def softmax(scores, axis=-1):\n    return scores * half"),
    ]
    judged = judge_cells(cells, [], {})
    assert set(judged.outputs) == {1, 2}
    assert judged.outputs[1][0]["text"] == "shown\n"


def answered(path) -> list[tuple[str, bool, str | None]]:
    """A chapter's cells that may be run, filled in: source, whose, and the exercise."""
    notebook = nbformat.read(path / f"{path.name}.ipynb", as_version=4)
    slug = path.name.partition("_")[2]
    names, cells = [exercise.name for exercise in exercises_of(slug)], []
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        draws = "draw" in cell.metadata.get("tags", ())
        if cell.cell_type != "code" or exercise_of(cell) or draws:
            continue
        if name in names:
            lines = stubs.source(slug, name).split("\n")
            cell.source = "\n".join(x for x in lines if stubs.BEGIN not in x and stubs.END not in x)
        cells.append((cell.source, not is_solution(cell), name))
    return cells


def global_names(code: types.CodeType) -> set[str]:
    """The names that compiled code looks up in its module, and what is compiled inside it."""
    inner = [global_names(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    looked = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return looked.union(*inner)


@pytest.mark.share(9)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_chapters_answers_find_all_that_they_use(path):
    cells = answered(path)
    idle = cells_to_skip([(source, ours) for source, ours, _ in cells])
    assert len(idle) >= len(cells) / 4  # or there is no point in it
    names: dict = {"__name__": "chapter"}
    for number, (source, _, _) in enumerate(cells):
        if number not in idle:
            exec(source, names)  # noqa: S102  (the course's own)
    known = names.keys() | vars(builtins).keys()
    for source, ours, name in cells:
        if not ours and name:
            missing = global_names(compile(source, name, "exec")) - known
            assert not missing, f"{name} needs {missing}"
