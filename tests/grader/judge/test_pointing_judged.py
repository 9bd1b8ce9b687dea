"""Where a graded answer goes astray is told by the sandbox: a hint that it may have forged."""

from dataclasses import replace

import pytest

from autograder.judge import verdicts as judging
from autograder.judge.runner import Runner
from autograder.student import pointing
from autograder.student.engine.verdict import POLICY, WRONG
from tests.judging import SOFTMAX, verdicts

ASTRAY = SOFTMAX.replace("np.exp(scores - largest)", "np.exp(0.3 * (scores - largest) - 0.1)")


pytestmark = pytest.mark.usefixtures("plenty_of_time")


def test_a_wrong_answer_is_pointed_at_where_it_ran():
    verdict = verdicts(ASTRAY)["softmax"]
    assert (verdict.verdict, verdict.mistake) == (WRONG, None)
    lines = verdict.pointer.splitlines()
    assert any(line.startswith("    ") and "0.3 * (scores - largest)" in line for line in lines)
    assert any(set(line.strip()) == {"^"} for line in lines)


def test_a_file_with_its_imports_is_pointed_at_too():
    """A notebook's statements are compiled one by one, with another code for what is imported."""
    cell = "import numpy as np\nfrom jaxtyping import Float, Num\n" + ASTRAY
    assert "0.3 * (scores - largest)" in verdicts(cell)["softmax"].pointer


def test_right_answers_and_named_mistakes_are_not(monkeypatch):
    def never(*_):
        raise AssertionError("was asked for a pointer")

    monkeypatch.setattr(Runner, "point", never)
    assert verdicts(SOFTMAX)["softmax"].pointer is None
    named = verdicts(SOFTMAX.replace("scores - largest", "scores"))["softmax"]
    assert named.mistake
    assert named.pointer is None


def test_an_input_that_shows_no_difference_is_pointed_at_nowhere():
    """Such an answer is no code that is followed step by step."""
    assert pointing.pointer_on(lambda: [[1.0, 2.0]], "bug_in_softmax") is None


FORGED = """
import autograder.student.pointing
autograder.student.pointing.pointer_on = lambda *_: {said}
"""
SAID = {
    "markup": "'<script>alert(1)</script>\\n    <img src=x onerror=y>'",
    "endless": "'    x' * 10**7",
    "many lines": "'a\\n' * 10**6",
    "control characters": "'\\x1b[31m\\x00red'",
    "no text": "['list']",
    "nothing": "''",
    "an exception": "1 / 0",
    "the end of the process": "__import__('os')._exit(3)",
}


@pytest.mark.share(7)
@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
def test_a_forged_pointer_is_cut_and_cleaned_and_moves_no_mark(said):
    honest = verdicts(ASTRAY)["softmax"]
    forged = verdicts(ASTRAY + FORGED.format(said=said))["softmax"]
    assert replace(forged, pointer=None) == replace(honest, pointer=None) or (
        forged.verdict == POLICY  # a file that reaches into the course is for a person to look at
    )
    shown = forged.pointer or ""
    assert len(shown.splitlines()) <= judging._POINTER_LINES
    assert all(len(line) <= judging._POINTER_WIDTH for line in shown.splitlines())
    assert "\x1b" not in shown
    assert "\x00" not in shown
