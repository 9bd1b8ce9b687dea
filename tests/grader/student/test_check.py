"""`check` tells a student what is wrong, whatever the student passes, and never falls over."""

import runpy
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from kernels import run_cells

import solutions.kernel_regression as reference
from autograder.judge.reference import reference as reference_of
from autograder.sandbox.limits import Limits
from autograder.student.check import check, verdict_on
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.verdict import CORRECT, CRASH, MISSING, WRONG
from autograder.student.table import table_html, table_text

CHECKING = import_module("autograder.student.check")  # `autograder.student.check` is the function
EVERY = [(slug, e.name) for slug in chapters() for e in exercises_of(slug)]


@pytest.mark.share(12, rest="nightly")  # see test_other_machines
@pytest.mark.parametrize(("slug", "name"), EVERY)
def test_the_reference_passes_its_check(slug, name):
    check(reference_of(slug, name))


@pytest.mark.share(96)
@pytest.mark.share(8, rest="nightly")  # this mark is read first
@pytest.mark.parametrize(("slug", "name"), EVERY)
@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        3,
        "softmax",
        np.ones(3),
        lambda: None,
        lambda *a, **k: None,
        lambda *a, **k: [[1.0], [2.0]],
        lambda *a, **k: np.full(1000, np.nan),
        lambda *a, **k: (np.array(["text"], dtype=object),) * 3,
        lambda *a, **k: (yield 1),
        lambda *a, **k: sys.exit(0),
        lambda *a, **k: 1 / 0,
        type("Empty", (), {}),
        dict,
    ],
)
def test_nonsense_is_wrong_and_explained(slug, name, nonsense, monkeypatch):
    shown, show = [], CHECKING._show
    monkeypatch.setattr(CHECKING, "_show", lambda *told: (shown.append(told[0]), show(*told)))
    with pytest.raises(AssertionError, match=name):
        check(nonsense, name)
    (verdict,) = shown
    assert verdict.verdict in {WRONG, CRASH, MISSING}
    assert verdict.score < verdict.points
    for text in (table_text(verdict), table_html(verdict)):
        assert name in text
        assert "nan of" not in text


def test_the_message_says_where_and_how_much_it_is_off(capsys):
    def softmax(scores, axis=-1):
        weights = reference.softmax(scores, axis)
        weights[..., -1] += 0.25
        return weights

    with pytest.raises(AssertionError) as caught:
        check(softmax)
    shown = capsys.readouterr().out
    assert "✗ weights of random scores" in shown
    assert "error 0.2" in shown
    assert "tolerance" in shown
    assert len(str(caught.value).splitlines()) == 1


def test_an_exception_is_shown_with_the_students_own_line(capsys):
    def softmax(scores, axis=-1):
        return scores.no_such_thing

    with pytest.raises(AssertionError):
        check(softmax)
    shown = capsys.readouterr().out
    assert "AttributeError" in shown
    assert "return scores.no_such_thing" in " ".join(shown.split())


def test_an_untouched_stub_is_missing():
    def softmax(scores, axis=-1):
        raise NotImplementedError

    assert verdict_on(softmax, "softmax").verdict == MISSING


def test_wrong_dtype_and_changed_inputs_cost_their_own_aspects_only():
    def softmax(scores, axis=-1):
        weights = reference.softmax(scores, axis)
        scores[...] = 0
        return weights.astype(np.float64)

    lost = {a.title for a in verdict_on(softmax, "softmax").aspects if not a.passed}
    assert lost == {"dtype", "leaves its inputs untouched"}


def test_the_name_is_taken_from_the_call_when_the_answer_has_another():
    gaussian_scores = lambda query, key, w=1.0: -0.5 * (np.subtract.outer(query, key) * w) ** 2  # noqa: E731
    check(gaussian_scores)


def test_an_unknown_name_lists_the_known_ones():
    def soft_max(scores):
        return scores

    with pytest.raises(ValueError, match="check\\(softmax\\)"):
        check(soft_max)


def test_a_slow_answer_is_told_what_time_it_has_when_it_is_graded(monkeypatch, capsys):
    assert verdict_on(reference.softmax, "softmax").remark is None
    monkeypatch.setattr(sys.modules["autograder.student.check"], "SECONDS", 0.0)
    check(reference.softmax)  # it is right all the same
    assert "When it is graded, they have 0 s together" in " ".join(capsys.readouterr().out.split())


def test_the_time_that_check_tells_is_the_judges():
    assert Limits().probe_seconds == sys.modules["autograder.student.check"].SECONDS


def test_interrupting_an_endless_loop_is_left_to_the_student():
    def softmax(scores, axis=-1):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(softmax)


def test_the_callers_random_state_and_modes_survive_an_answer_that_changes_them():
    def softmax(scores, axis=-1):
        np.random.seed(0)
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return reference.softmax(scores, axis)

    np.random.seed(7)
    torch.manual_seed(7)
    after_one = np.random.RandomState(7).standard_normal()
    verdict_on(softmax, "softmax")
    assert np.random.standard_normal() == after_one
    assert torch.initial_seed() == 7
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


FORBIDDEN = "MultiHeadAttention"


@pytest.fixture(scope="module")
def told() -> list[list[nbformat.NotebookNode]]:
    """What three checks in a notebook put out: one wrong, one right, one that is ready-made."""
    cells = run_cells(
        "from autograder import check\n"
        "from attention_by_hand.blocks import MultiHeadAttention as Base\n"
        "def softmax(scores, axis=-1):\n    return scores",
        "check(softmax)",
        "from solutions.kernel_regression import softmax",
        "check(softmax)",
        f"%matplotlib inline\nclass {FORBIDDEN}(Base): pass",
        f"check({FORBIDDEN})",
    )
    return [cell.outputs for cell in cells[1::2]]


def test_in_a_notebook_the_table_is_html_with_a_text_twin_and_the_error_is_one_line(told):
    table, error = told[0]
    assert set(table["data"]) == {"text/html", "text/plain"}
    assert "<table>" in table["data"]["text/html"]
    assert error["ename"] == "AssertionError"
    assert len("\n".join(error["traceback"]).splitlines()) == 1


def test_a_passing_check_leaves_no_result_for_nbgrader_to_misread(told):
    assert [o["output_type"] for o in told[1]] == ["display_data"]


def test_a_ready_made_answer_is_told_that_its_points_would_be_withheld(told):
    ready_made, own = (outputs[0]["data"]["text/html"] for outputs in (told[2], told[1]))
    assert f"It runs attention_by_hand.blocks.{FORBIDDEN}.forward" in ready_made
    assert "withheld" in ready_made and "It runs" not in own


def test_what_a_student_typed_cannot_become_markup():
    def softmax(scores, axis=-1):
        raise RuntimeError("<script>alert(1)</script>")

    html = table_html(verdict_on(softmax, "softmax"))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_the_students_side_never_imports_the_references_or_the_judge():
    code = (
        "import sys, autograder, autograder.student.check, attention_by_hand.plots\n"
        "from autograder.student.course import chapters, exercises_of\n"
        "[exercises_of(slug) for slug in chapters()]\n"
        "bad = [m for m in sys.modules if m.split('.')[0] == 'solutions'"
        " or m.startswith(('autograder.bank', 'autograder.judge', 'autograder.publishing'))]\n"
        "sys.exit(', '.join(bad) or 0)"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 0, done.stderr


def test_correct_answers_show_no_hint():
    verdict = verdict_on(reference.softmax, "softmax")
    assert verdict.verdict == CORRECT
    assert all(a.hint is None and a.message is None for a in verdict.aspects)


@pytest.mark.parametrize(
    ("softmax", "told"),
    [
        ("raise NotImplementedError", "It calls softmax, which raises NotImplementedError"),
        ("return 1.3 * scores + 0.1", "It calls your softmax, which does not pass its own check"),
    ],
)
def test_an_answer_that_builds_on_another_is_told_to_fix_that_first(
    tmp_path, softmax, told, capsys
):
    answers = tmp_path / "answers.py"
    answers.write_text(
        f"def softmax(scores, axis=-1):\n    {softmax}\n\n\n"
        "def attention_pool(query, key, value, score):\n"
        "    weights = softmax(score(query, key))\n    return weights @ value, weights\n",
        encoding="utf-8",
    )
    scope = runpy.run_path(str(answers))
    with pytest.raises(AssertionError):
        check(scope["attention_pool"], "attention_pool")
    assert told in " ".join(capsys.readouterr().out.split())


def test_torchs_cell_is_not_taken_for_a_students_of_the_same_name(tmp_path, capsys):
    answers = tmp_path / "answers.py"
    answers.write_text(
        "from torch import nn\n\n\nclass GRUCell(nn.Module):\n    pass\n\n\n"
        "class AttentionDecoder(nn.Module):\n    def __init__(self, *sizes):\n"
        "        super().__init__()\n        self.cell = nn.GRUCell(1, 1)\n",
        encoding="utf-8",
    )
    with pytest.raises(AssertionError):
        check(runpy.run_path(str(answers))["AttentionDecoder"])
    assert "your GRUCell" not in capsys.readouterr().out


def test_a_name_in_quotes_and_an_instance_are_told_from_an_answer(capsys):
    with pytest.raises(ValueError, match="without quotes"):
        check("softmax")
    with pytest.raises(AssertionError):
        check(reference.KernelRegression(1.0))
    assert "not an instance of it: check(KernelRegression)" in capsys.readouterr().out


def test_a_forgotten_return_is_suspected(capsys):
    def softmax(scores, axis=-1):
        reference.softmax(scores, axis)

    with pytest.raises(AssertionError):
        check(softmax)
    shown = " ".join(capsys.readouterr().out.split())
    assert "is `return` missing?" in shown
    assert "keepdims" not in shown, "the hints are about numbers, and there are none"


def test_a_ready_made_answer_is_told_with_its_line(capsys):
    def scaled_dot_product_attention(query, key, value):
        weights = torch.softmax(query @ key.mT / key.shape[-1] ** 0.5, -1)
        return torch.nn.functional.scaled_dot_product_attention(query, key, value), weights

    with suppress(AssertionError):
        check(scaled_dot_product_attention)
    said = " ".join(capsys.readouterr().out.split())
    assert "It runs torch.nn.functional.scaled_dot_product_attention in line" in said
    assert "a person has looked at" in said
