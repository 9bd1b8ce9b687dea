"""Whom a call of `check` is about, what it tells first, and what the answer says meanwhile."""

import io
import re
import subprocess
import sys
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from kernels import run_cells

import solutions.kernel_regression as reference
from autograder.student.captured_output import CapturedOutput
from autograder.student.check import check
from autograder.student.console import say
from autograder.student.engine.code_origin import Owner, is_library
from autograder.student.pencil import check_pencil, show_pencil
from autograder.student.table import MOST_LINES

CHECKING = import_module("autograder.student.check")  # `autograder.student.check` is the function
ROOT = Path(__file__).resolve().parents[3]


# --- whom it is about ---------------------------------------------------------------------------


def test_several_checks_on_one_line_judge_their_own(capsys):
    softmax, kernel_weights = partial(reference.softmax), partial(reference.kernel_weights)
    gaussian_scores = lambda query, key, w=1.0: -0.5 * (np.subtract.outer(query, key) * w) ** 2  # noqa: E731
    check(softmax); check(gaussian_scores); check(kernel_weights)  # noqa: E702  # fmt: skip
    [check(softmax), check(
        gaussian_scores
    )]  # fmt: skip
    heads = [line for line in capsys.readouterr().out.splitlines() if line[:1] not in " "]
    assert [head.partition(":")[0] for head in heads] == [
        *("softmax", "gaussian_scores", "kernel_weights", "softmax", "gaussian_scores")
    ]


def test_a_function_that_is_no_exercise_does_not_list_all_exercises():
    def helper(x):
        return x

    with pytest.raises(ValueError, match="helper") as caught:
        check(helper)
    told = str(caught.value)
    assert "check(answer, " in told and "softmax" not in told and len(told) < 200


HELPED = {
    "a comprehension": "rows = np.stack([softmax(row) for row in score(query, key)])",
    "a generator": "rows = np.stack(list(softmax(row) for row in score(query, key)))",
    "a lambda": "rows = (lambda table: softmax(table))(score(query, key))",
    "a nested function": "def by_row(x): return softmax(x)\n    rows = by_row(score(query, key))",
    "a function of one's own": "rows = weigh(score(query, key))",
}


@pytest.mark.parametrize("body", HELPED.values(), ids=HELPED)
def test_a_wrong_helper_is_found_wherever_it_is_called(body, capsys):
    code = (
        "import numpy as np\n"
        "def softmax(scores, axis=-1):\n    return np.exp(scores)\n"
        "def weigh(table):\n    return softmax(table)\n"
        "def attention_pool(query, key, value, score):\n"
        f"    {body}\n    return rows @ value, rows\n"
    )
    scope = {"__name__": "answers"}
    exec(code, scope)
    with pytest.raises(AssertionError):
        check(scope["attention_pool"])
    assert "It calls your softmax, which does not pass" in capsys.readouterr().out


NOT_REACHED = {
    "raises": "1 / 0\n{new}",
    "raises_in_a_decorator": "def wrapped(f):\n    raise ZeroDivisionError\n@wrapped\n{new}",
    "raises_in_a_default": "{default}",
}
NOT_IN_USE = {
    "under_a_condition": "if None:\n    {new}",
    "inside_another": "def helper():\n    {new}",
    "timed": "%%timeit -n1 -r1\n{new}",
    "written_to_a_file": "%%writefile /dev/null\n{new}",
}
IN_USE = {
    "timed": "%%time\n{new}",
    "raises_below": "{new}\n1 / 0",
    "a_method": "{new}\nclass Own:\n    def softmax(self):\n        pass",
    "in_a_string": "{new}\ntext = '''\ndef softmax(scores):\n    pass'''",
    "wrapped": "import functools\n@functools.lru_cache\n{new}\nsoftmax = softmax.__wrapped__",
    "of_a_library": "from attention_by_hand.blocks import softmax",
}
OLD = "def softmax(scores, axis=-1): return reference.softmax(scores, axis)"
FORMS = {**NOT_REACHED, **{f"unused {k}": v for k, v in NOT_IN_USE.items()}, **IN_USE}
NO_PYTHON = [OLD, OLD.replace("):", ")"), "    def softmax(scores):\n  return scores"]


@pytest.fixture(scope="module")
def cells() -> list[nbformat.NotebookNode]:
    """A notebook that calls `check(softmax)` behind newer cells: no Python, not in use, in use."""
    new = "def softmax(scores, axis=-1): return scores"
    default = new.replace("-1", "1 // 0")
    sources = ["from autograder import check\nimport solutions.kernel_regression as reference"]
    for cell in (*NO_PYTHON, OLD):
        sources += [cell, "check(softmax)"]
    for form in FORMS.values():
        sources += [OLD, form.format(new=new, default=default), "check(softmax)"]
    return run_cells(*sources, OLD + "  # again", "1 / 0\n" + new, "check.all()")


@pytest.fixture(scope="module")
def newer_cells(cells) -> dict[str, list[str]]:
    """What `check(softmax)` tells behind each form of a newer cell, of which some are not used."""
    told = [
        " ".join(" ".join(o["data"]["text/plain"] for o in cell.outputs if "data" in o).split())
        for cell in cells[1 + 2 * len(NO_PYTHON) + 2 :]
    ]
    return dict(zip([*FORMS, "all"], told[2::3], strict=True))


def test_a_definition_that_does_not_compile_is_told_before_the_older_one_is_checked(cells):
    for broken, line in ((4, "in line 1, expected ':'"), (6, "in line 1, unexpected indent")):
        table, error = cells[broken].outputs
        told = " ".join(table["data"]["text/plain"].split())
        assert "does not compile: " + line in told and "older cell" in told
        assert "✓" not in told and error["ename"] == "AssertionError"
    for right in (2, 8):
        (table,) = cells[right].outputs
        assert "softmax: 3 of 3 points" in table["data"]["text/plain"]


@pytest.mark.parametrize("form", NOT_REACHED)
def test_a_newer_definition_that_was_not_reached_is_told_and_the_older_one_not_judged(
    newer_cells, form
):
    told = newer_cells[form]
    assert told.startswith("softmax: 0 of 3 points softmax is still what cell [")
    assert told.endswith("that cell raised ZeroDivisionError before it came to it.")
    assert "✓" not in told


@pytest.mark.parametrize("form", NOT_IN_USE)
def test_a_newer_definition_that_is_not_in_use_is_told_above_the_table(newer_cells, form):
    told = newer_cells[f"unused {form}"]
    assert told.startswith("softmax: 3 of 3 points softmax is still what cell [")
    assert "is not in use. ✓" in told


@pytest.mark.parametrize("form", IN_USE)
def test_nothing_is_said_of_a_newer_definition_that_is_in_use(newer_cells, form):
    told = newer_cells[form]
    assert told.startswith("softmax: ") and "still what cell" not in told


def test_the_overview_does_not_judge_the_older_definition_either(newer_cells):
    assert "✗ softmax: 0 of 3 points (softmax is still what cell [" in newer_cells["all"]


# --- what it says meanwhile ---------------------------------------------------------------------


def test_what_an_answer_prints_stands_below_the_table_and_shortened(capsys):
    def softmax(scores, axis=-1):
        print(*range(100), "<b>", sep="\n")
        print("errors go there", file=sys.stderr)
        return scores

    with pytest.raises(AssertionError):
        check(softmax)
    out, err = capsys.readouterr()
    head, _, below = out.partition("Your code prints:")
    assert head.startswith("softmax: 0 of 3 points") and err == ""
    assert "\n      9\n" in below and "\n      10\n" not in below
    assert "more lines" in below and "seen while" not in out and len(below.splitlines()) < 14


def test_warnings_of_the_answer_are_told_with_its_line_and_ours_never(capsys):
    def softmax(scores, axis=-1):
        np.log(np.zeros(2))
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return reference.softmax(scores, axis)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        check(softmax)
    told = capsys.readouterr().out
    assert "RuntimeWarning in line" in told and "np.log(np.zeros(2))" in told
    assert told.count("mind the gap") == 2, "once as code, once as text, whatever was called"
    assert shown == []


def test_warnings_take_what_room_the_table_leaves_and_one_line_at_least(capsys):
    def softmax(scores, axis=-1):
        for i in range(5):
            warnings.warn(f"mind gap {i}", UserWarning, stacklevel=1)
        kernel = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return kernel / np.sqrt((kernel**2).sum(axis=axis, keepdims=True))

    with pytest.raises(AssertionError):
        check(softmax)
    lines = capsys.readouterr().out.rstrip().splitlines()
    assert len(lines) <= MOST_LINES
    assert "mind gap" in lines[-1] and re.search(r"\(and \d more\)$", lines[-1])


def test_a_warning_that_no_line_of_the_answer_led_to_is_not_shown(monkeypatch, capsys):
    def softmax(scores, axis=-1):
        return reference.softmax(scores, axis)

    def ours(*arguments):
        warnings.warn("of our own", UserWarning, stacklevel=1)
        return probe(*arguments)

    probe = CHECKING.probe
    ours.__code__ = ours.__code__.replace(co_filename=CHECKING.__file__)
    code_origin = sys.modules["autograder.student.engine.code_origin"]
    monkeypatch.setitem(
        code_origin._KNOWN,
        id(ours.__code__),
        code_origin.CodeOrigin(Owner.PROBE, None, ours.__code__),
    )
    monkeypatch.setattr(CHECKING, "probe", ours)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        check(softmax)
    assert "of our own" not in capsys.readouterr().out and shown == []


def test_the_text_is_no_markup():
    said = CapturedOutput()
    with said.silence(), said.listening():
        print("<script>alert(1)</script>\ud800")
    shown = said.as_html().encode().decode()  # as a notebook stores it
    assert "<script>" not in shown and "&lt;script&gt;" in shown


# --- where it is shown --------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1"])
def test_a_console_without_utf_8_shows_all_there_is(monkeypatch, encoding):
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", console)
    say("✓ ≈ ✗ … − 漢 \ud800")
    for name in ("noon", "two_more"):
        show_pencil(name)
        check_pencil(name, [["½"] * 6] * 3 + [["½"] * 4])
    check(reference.softmax)
    console.flush()
    shown = console.buffer.getvalue().decode(encoding)
    assert "softmax: 3 of 3 points" in shown and "?" in shown


@pytest.mark.parametrize("name", ["cuda:99", "meta", "mps", "no such device"])
def test_a_device_that_torch_cannot_use_is_told_before_the_answer_runs(monkeypatch, name):
    ran = []
    monkeypatch.setenv("ATTENTION_DEVICE", name)
    with pytest.raises(RuntimeError) as caught:
        check(lambda *arguments, **named: ran.append(1), "softmax")
    told = str(caught.value)
    assert repr(name) in told and "ATTENTION_DEVICE=cpu" in told and "\n" not in told
    assert ran == []


@pytest.mark.parametrize("device", ["mps", "cuda:99", 99])
def test_an_answer_that_wants_a_device_that_is_not_here_is_told_that(capsys, device):
    def causal_mask(n_q, n_k=None, device=device):
        return torch.ones(n_q, n_k or n_q, dtype=torch.bool, device=device)

    with pytest.raises(AssertionError):
        check(causal_mask)
    told = " ".join(capsys.readouterr().out.split())
    assert "this device is not available here: use that of the arguments" in told
    assert "Not written yet" not in told


def test_a_library_that_has_not_implemented_something_is_no_unwritten_answer(capsys):
    def softmax(scores, axis=-1):
        return Missing()(scores)

    class Missing(torch.nn.Module):
        pass

    with pytest.raises(AssertionError):
        check(softmax)
    told = " ".join(capsys.readouterr().out.split())
    assert "raised NotImplementedError: Module [Missing] is missing the required" in told
    assert "Not written yet" not in told


def test_windows_paths_of_libraries_are_known(monkeypatch):
    code_origin = sys.modules["autograder.student.engine.code_origin"]
    folder = code_origin._with_slashes("C:\\Users\\Ada\\.venv\\Lib\\site-packages\\")
    monkeypatch.setattr(code_origin, "_FOLDERS", (folder,))
    inside = "c:\\users\\Ada\\.venv\\lib\\site-packages\\torch\\nn\\functional.py"
    code = compile("def gelu(x): return x", inside, "exec").co_consts[0]
    assert is_library(inside) and not is_library("C:\\Users\\Ada\\notebook.py")
    assert code_origin._by_its_file(code) == (Owner.LIBRARY, "torch.nn.functional.gelu")


def test_an_older_python_is_refused_clearly():
    code = (
        "import sys; sys.version_info = (3, 10, 4, 'final', 0); sys.version = '3.10.4 (main)'\n"
        "import autograder"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert "needs Python 3.11 or later; this is 3.10.4" in done.stderr.splitlines()[-1]
