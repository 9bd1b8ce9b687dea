"""Mistakes declared as changes: what each kind of change makes, and what is said of a wrong one."""

import builtins
import dis
import inspect
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest
import torch

from autograder.bank import Bank, Edit, banks, cause
from autograder.bank.change import entries
from autograder.bank.shared import complete
from autograder.student import course
from autograder.student.course import chapters
from solutions import kernel_regression


def limit(x: float, low: float = 0.0, high: float = 1e1) -> float:
    """Keep x between `low` and `high`."""
    # The order of the two does not matter.
    if x < low:
        return low  # too low
    return min(x, high)


class Scale(torch.nn.Module):
    """Multiply by a number."""

    def __init__(self, factor: float = 2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x times the factor."""

        def times(y: torch.Tensor) -> torch.Tensor:
            return y * self.factor

        return torch.add(times(x), 0)


HELPER = 100.0
here = sys.modules[__name__]


def bank(exercise: str = "limit") -> Bank:
    return Bank(exercise, here, globals())


def mistake(text: str, exercise: str = "limit") -> Callable[..., Any]:
    """The last mistake that a text declares."""
    made = bank(exercise)
    made.changes(text)
    return made.mistakes[list(made.mistakes)[-1]]


# --- what a change makes ------------------------------------------------------------------------


def test_a_text_is_replaced_and_the_cause_is_kept():
    wrong = mistake("never_low: x < low → False\n    The lower limit\n    is ignored.\n")
    assert (wrong(-1.0), wrong(20.0)) == (-1.0, 10.0)
    assert (wrong.__name__, cause(wrong)) == ("never_low", "The lower limit is ignored.")


@pytest.mark.parametrize(
    ("text", "of_minus_one", "of_twenty"),
    [
        ("a: return low → return HELPER\n    …", 100.0, 10.0),
        ("a: x < low → x < 5 ; min → max\n    …", 0.0, 20.0),
        ("a: return → return 2 * ×2\n    …", 0.0, 20.0),
        ("a: high=1e1 → high=3\n    …", 0.0, 3),
        ("a: + x = -x\n    …", 1.0, 0.0),
        ("a: > result = result + 1\n    …", 1.0, 11.0),
        ("a: + x = -x ; x < low → False ; > result = [result]\n    …", [1.0], [-20.0]),
        ("a\n    ~ x < low → x > high\n    ~ return low → return high\n    …", -1.0, 1e1),
        ("a\n    - if x < low:\n    -     return low\n    …", -1.0, 10.0),
        ("a\n    - if x < low:\n    -     return low\n    + x = abs(x)\n    …", 1.0, 10.0),
        ("a\n    + if x == 20:\n    +     return x\n    …", 0.0, 20.0),
        ("b: min → max\n    …\na of b: x < low → False\n    …", -1.0 + 11, 20.0),
        ("b: > result = -result\n    …\na of b: min → max\n    …", 0.0, -20.0),
        ("a of helped: 3 * x → 5 * x\n    …", -5.0, 100.0),
    ],
)  # fmt: skip
def test_every_kind_of_change(text, of_minus_one, of_twenty):
    wrong = mistake(text)
    assert (wrong(-1.0), wrong(20.0)) == (of_minus_one, of_twenty)
    assert (limit(-1.0), limit(20.0)) == (0.0, 10.0)


def helped(x):
    return 3 * x


def test_a_class_is_changed_and_code_goes_into_its_forward():
    x = torch.ones(2)
    for text, result in (
        ("a: factor=2.0 → factor=3.0\n    …", 3.0),
        ("a: + x = x + 1\n    …", 4.0),
        ("a: > result = result.sum()\n    …", 4.0),
        ("a: self.factor = factor → self.factor = 5\n    …", 5.0),
    ):
        wrong = mistake(text, "Scale")
        assert isinstance(wrong, type) and issubclass(wrong, torch.nn.Module)
        assert wrong.__name__ == "a"
        assert (wrong()(x) == result).all()
    assert (Scale()(x) == 2).all()


def test_a_loop_can_declare_changes():
    made = bank()
    for number in (1, 2):
        made.change(f"low_{number}", "…", Edit("return low", f"return {number}"), after="pass")
    assert [wrong(-1) for wrong in made.mistakes.values()] == [1, 2]


def test_a_change_runs_among_the_names_of_reference_and_bank():
    made = Bank("softmax", kernel_regression, globals())
    made.changes("twice: > result = softmax(result, axis) * HELPER\n    …")
    scores = np.array([[0.0, 1.0]])
    right = kernel_regression.softmax
    assert np.array_equal(made.mistakes["twice"](scores), right(right(scores)) * HELPER)


def test_an_answer_is_compiled_when_it_is_looked_up_and_once():
    made = bank()
    made.changes("a: return low → return (\n    …\nb: return low → return x\n    …")
    assert list(made.mistakes) == ["a", "b"]
    assert made.mistakes["b"] is made.mistakes["b"]


def test_tracebacks_and_inspect_show_the_changed_code():
    wrong = mistake("a: return low → return low / 0\n    …")
    assert "return low / 0" in inspect.getsource(wrong)
    assert inspect.getsource(wrong).startswith("def a(x, low=0.0, high=1e1):\n")
    with pytest.raises(ZeroDivisionError) as caught:
        wrong(-1)
    assert "return low / 0" in "".join(traceback.format_exception(caught.value))


# --- the texts ----------------------------------------------------------------------------------


def read(folder: Path, text: str) -> Bank:
    """The bank whose module in a folder has this text beside it."""
    (folder / "limit.txt").write_text(text, encoding="utf-8")
    made = Bank("limit", here, {**globals(), "__file__": str(folder / "limit.py")})
    made.read()
    return made


def test_a_text_lies_beside_the_module_and_may_have_comments(tmp_path):
    made = read(
        tmp_path, "# Both limits.\n\na: min → max\n    …\n\n# No more.\nb: > result = 3\n    …\n"
    )
    assert [wrong(20.0) for wrong in made.mistakes.values()] == [20.0, 3]


@pytest.mark.parametrize(
    "entry", ["a: y < low → False\n    …", "a: x < low → False", "2 words\n    …"]
)
def test_an_error_names_file_and_line(tmp_path, entry):
    with pytest.raises(ValueError, match=f"^{tmp_path.name}/limit.txt:4(, a)?: "):
        read(tmp_path, f"# Both limits.\nb: min → max\n    …\n{entry}\n")
    made = read(tmp_path, "\na: return low → return (\n    …")
    with pytest.raises(ValueError, match=f"^{tmp_path.name}/limit.txt:2, a: .* line 3 of"):
        made.mistakes["a"]


def test_shared_mistakes_give_what_an_entry_leaves_out():
    shared = mistake("seeded_at_the_start")
    assert "torch.manual_seed(0)" in inspect.getsource(shared)
    assert "random numbers of the whole program" in cause(shared)
    changed = mistake("seeded_at_the_start: + np.random.seed(0)")
    assert "np.random.seed(0)" in inspect.getsource(changed) and cause(changed) == cause(shared)
    named = mistake("seeded_at_the_start\n    Every limit is the same.")
    assert "torch.manual_seed(0)" in inspect.getsource(named)
    assert cause(named) == "Every limit is the same."
    assert mistake("sign_forgotten")(20.0) == -10.0  # the course's own
    x = torch.ones(2)
    assert (mistake("made_on_the_cpu(x)", "Scale")()(x) == 2).all()
    assert "zeros(factor.shape, dtype=factor.dtype)" in inspect.getsource(
        mistake("made_on_the_cpu(factor)")
    )


# --- what is said of a wrong one ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: y < low → False\n    …", r"limit:1, a: this text occurs 0 times, not 1:\ny < low\n"),
        ("a: return → 1\n    …", r"limit:1, a: this text occurs 2 times, not 1:\nreturn\n"),
        ("a: return → 1 ×3\n    …", r"occurs 2 times, not 3"),
        ("a: Keep → Take\n    …", r"occurs 0 times"),  # in the docstring alone
        ("a: too low → 1\n    …", r"occurs 0 times"),  # in a comment alone
        ("a\n    - if x < low:\n    - return low\n    …", r"occurs 0 times"),  # not indented
        ("a: low → low ×3\n    …", r"limit:1, a: nothing is changed"),
        ("a\n    …", r"limit:1, a: nothing is changed"),
        ("a: x < low\n    …", r"limit:1, a: 'x < low' is not a change"),
        ("two words: x → y\n    …", r"limit:1: an entry begins with a name, not with 'two words"),
        ("a of nobody: x → y\n    …", r"limit:1, a: there is no nobody to change"),
        ("a: x < low → False\n", r"limit:1, a: the mistake does not say what went wrong"),
        ("made_on_the_cpu", r"expected made_on_the_cpu\(x\), got made_on_the_cpu$"),
        ("a(x): min → max\n    …", r"limit:1, a: expected a, got a\(x\)$"),
        ("left_on_the_cpu(x)", r"expected left_on_the_cpu, got left_on_the_cpu\(x\)$"),
        ("a: min → max\n    …\na: min → sum\n    …", r"limit:3, a: .* of this name already"),
    ],
)  # fmt: skip
def test_a_change_that_does_not_fit_is_an_error_when_the_bank_is_loaded(text, words):
    with pytest.raises(ValueError, match=words):
        bank().changes(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: return low → return (\n    …", r"limit:1, a: .* line 3 of\ndef a\(x"),
        ("a: + if\n    …", r"limit:1, a: invalid syntax, line 2 of\ndef a\(x"),
        ("a: x < low → (x) < low\n    …", r"limit:1, a: the changed code does the same as before"),
    ],
)  # fmt: skip
def test_code_that_is_no_python_or_the_same_is_an_error_when_it_is_looked_up(text, words):
    made = bank()
    made.changes(text)
    with pytest.raises(ValueError, match=words):
        made.mistakes["a"]


def test_a_class_without_forward_takes_no_code():
    made = Bank("Holder", sys.modules[__name__], globals())
    made.changes("a: + x = 1\n    …")
    with pytest.raises(ValueError, match="Holder:1, a: there is no forward in"):
        made.mistakes["a"]


class Holder:
    def get(self):
        return 1


def test_what_has_no_code_of_its_own_cannot_be_changed():
    class Inner(Holder):
        def get(self):
            return 2

    for answer in (Inner, len, type("Empty", (Holder,), {})):
        made = Bank("limit", here, {"it": answer})
        with pytest.raises(ValueError, match="not a function or class with code to change"):
            made.changes("a of it: 1 → 2\n    …")


# --- the banks ----------------------------------------------------------------------------------

TEXTS = sorted((course.root() / "solutions" / "mistakes").glob("*/*.txt"))


def test_each_text_belongs_to_a_module_and_has_lines_that_one_can_read():
    assert TEXTS
    for path in TEXTS:
        assert path.with_suffix(".py").is_file(), path
        assert max(map(len, path.read_text(encoding="utf-8").split("\n"))) <= 100, path


def test_what_three_exercises_share_is_declared_once():
    written = [e for path in TEXTS for e in entries(path.read_text(encoding="utf-8"), path.stem)]
    causes = Counter(entry.cause for entry in written if entry.cause)
    assert [cause for cause, times in causes.items() if times > 2] == []
    for entry in written:
        assert not entry.cause or complete(entry._replace(cause="")).cause != entry.cause, entry


@pytest.mark.parametrize("slug", chapters())
def test_every_change_makes_an_answer_with_a_cause(slug):
    for known in banks(slug).values():
        for name, wrong in known.mistakes.items():
            assert wrong.__name__ == name
            assert len(cause(wrong)) > 10


def undefined(answer: Callable[..., Any]) -> set[str]:
    """The global names that an answer's code reads and that nobody has defined."""
    functions = vars(answer).values() if isinstance(answer, type) else [answer]
    return {
        name
        for function in functions
        if isinstance(function, FunctionType)
        for name in globals_read(function.__code__)
        if name not in function.__globals__ and not hasattr(builtins, name)
    }


def globals_read(code: CodeType) -> Iterator[str]:
    yield from (i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from globals_read(inner)


@pytest.mark.parametrize("slug", chapters())
def test_no_known_answer_is_wrong_only_because_a_name_is_missing(slug):
    assert undefined(mistake("a: return low → return [nobody for _ in x]\n    …")) == {"nobody"}
    for known in banks(slug).values():
        for answer in (*known.mistakes.values(), *known.rights.values()):
            assert undefined(answer) == set(), answer.__name__
