"""What `check` says of a wrong answer: which call, which part, what is right, which hint."""

import io
import re
import runpy
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from autograder.bank import banks
from autograder.student.check import check, verdict_on
from autograder.student.engine.compare import compare
from autograder.student.engine.runs import Previous, RaisedException, call, module
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import OF_DIGITS, AspectVerdict, Verdict
from autograder.student.engine.words import describe_call, describe_exception
from autograder.student.table import table_html, table_text
from solutions import attention_scoring, kernel_regression, masking, multi_head, transformer


def told(answer: object, name: str) -> str:
    """The table for an answer, on one line."""
    return " ".join(table_text(verdict_on(answer, name)).split())


# --- which part, which call ---------------------------------------------------------------------


def test_parts_of_the_result_have_names_and_those_that_are_right_are_told():
    def scaled_dot_product_attention(query, key, value):
        output, weights = attention_scoring.scaled_dot_product_attention(query, key, value)
        return output + 0.25, weights

    first = verdict_on(scaled_dot_product_attention, "scaled_dot_product_attention").aspects[0]
    assert first.message.startswith("the output at [")
    assert "the weights came out right: look at what is done with them" in first.message


def test_what_is_inside_a_part_has_a_name_too():
    def attend_with_cache(attention, x, cache=None):
        output, (keys, values) = masking.attend_with_cache(attention, x, cache)
        return output, (keys, 2 * values)

    shown = told(attend_with_cache, "attend_with_cache")
    assert "the values in the cache at [" in shown
    assert "the keys in the cache came out right" in shown
    assert "item 1" not in shown


def test_a_tuple_without_names_counts_its_items_from_0_as_python_does():
    two = tuple(Array(np.full(1, x)) for x in (1.0, 2.0))
    other = (two[0], Array(np.full(1, 3.0)))
    assert compare(other, two).message.startswith("item 1 of the result at [0]: expected 2, got 3")
    names = ("the output", "the weights")
    assert "expected (output, weights), got None" in compare(None, two, parts=names).message


def test_the_call_that_fails_is_told_and_not_the_last_one():
    def attend_with_cache(attention, x, cache=None):
        output, grown = masking.attend_with_cache(attention, x, cache)
        return output + (x.shape[1] == 1 and grown[0].shape[2] == 4), grown

    chunks = verdict_on(attend_with_cache, "attend_with_cache").aspects[4]
    assert (
        "in call 2 of 3, for attention=MultiHeadAttention, x of shape (2, 1, 6)" in chunks.message
    )
    assert "cache returned by the previous call" in chunks.message


def test_an_exception_is_told_with_its_call():
    def softmax(scores, axis=-1):
        if scores.ndim == 1:
            raise RuntimeError("no rows")
        return kernel_regression.softmax(scores, axis)

    second = verdict_on(softmax, "softmax").aspects[1]
    assert second.message.startswith("raised RuntimeError: no rows")
    assert second.message.endswith("(for scores of shape (4,))")


def test_calls_in_words():
    x = np.zeros((2, 3))
    run = module(6, dropout=0.5).in_training().then(x, 1.5).then(Previous(0), mask=None)
    built = "; built with 6, dropout=0.5; in training mode"
    assert (
        describe_call(run, ("x", "w"), 0) == f"in call 1 of 2, for x of shape (2, 3), w=1.5{built}"
    )
    last = f"in call 2 of 2, for x returned by the previous call, mask=None{built}"
    assert describe_call(run, ("x", "w")) == describe_call(run, ("x", "w"), 1) == last
    assert describe_call(call(x).then_method("logits", h=x), ("x",)) == (
        "in call 2 of 2 of .logits(…), for h of shape (2, 3)"
    )


# --- names of parameters and arguments ----------------------------------------------------------


def test_a_renamed_parameter_is_told_in_the_students_direction():
    class TokenEmbedding(nn.Module):
        def __init__(self, vocab_size, d_model):
            super().__init__()
            self.embedding = nn.Embedding(vocab_size, d_model)

    shown = told(TokenEmbedding, "TokenEmbedding")
    assert "Your parameter is called `embedding.weight`; expected `weight`." in shown
    assert "Missing" not in shown


def test_parameters_too_many_too_few_and_of_another_shape():
    class AdditiveAttention(nn.Module):
        def __init__(self, query_size, key_size, hidden_size, dropout=0.0):
            super().__init__()
            self.W_q = nn.Linear(query_size, hidden_size)
            self.W_k = nn.Linear(hidden_size, key_size, bias=False)

    shown = told(AdditiveAttention, "AdditiveAttention")
    assert re.search(r"Expected no parameter called `W_q.bias` \(\d,\); there is no", shown)
    assert "there is no parameter called `w_v.weight`" in shown
    assert re.search(
        r"the parameter `W_k.weight`: expected shape \((\d), (\d)\), got \(\2, \1\)", shown
    )
    odd = RaisedException(("RuntimeError",), "something else", during="load")
    assert describe_exception(odd) == "loading its parameters raised RuntimeError: something else"


def test_a_renamed_argument_is_told_to_keep_the_stubs_names():
    def softmax(scores, dim=-1):
        return kernel_regression.softmax(scores, dim)

    assert "unexpected keyword argument 'axis'; keep the names and" in told(softmax, "softmax")


def test_a_wrong_call_inside_the_answer_is_not_about_the_stubs_names():
    def softmax(scores, axis=-1):
        return kernel_regression.softmax(scores, dim=axis)

    shown = " ".join(verdict_on(softmax, "softmax").note.split())
    assert "unexpected keyword argument 'dim'" in shown and "keep the names" not in shown


# --- right formula, wrong precision -------------------------------------------------------------


def coarse_angles(max_len, d_model, base=10000.0):
    """The table, with angles in bfloat16."""
    rates = base ** (-(torch.arange(d_model) // 2 * 2) / d_model)
    angles = (torch.arange(max_len)[:, None].bfloat16() * rates.bfloat16()).float()
    return torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())


@pytest.mark.parametrize(
    ("name", "answer", "nearly"),
    [
        ("sinusoidal_encoding", coarse_angles, True),
        ("gelu", lambda x: torch.special.ndtr(x) * x * 1.002, True),
        ("gelu", lambda x: torch.special.ndtr(x) * x * 1.1, False),
        ("gelu", lambda x: torch.special.ndtr(x) * x + (x > 2), False),
        ("gelu", lambda x: torch.special.ndtr(x) * torch.where(x > 2, torch.nan, x), False),
    ],
)
def test_what_is_nearly_right_is_told_apart_from_what_is_wrong(name, answer, nearly):
    verdict = verdict_on(answer, name)
    assert verdict.mistake is None
    assert ("Nearly right" in (verdict.remark or "")) == nearly


# --- hints --------------------------------------------------------------------------------------


def verdict(*aspects: AspectVerdict, cause: str | None = None) -> Verdict:
    return Verdict("softmax", 5, 0, "wrong", aspects, cause=cause)


def failing(number: int, kind: str) -> AspectVerdict:
    wrong = f"wrong {'abcdef'[number]}"
    return AspectVerdict(f"row {number}", 1, False, f"hint {number}", wrong, kind=kind)


PASSES = AspectVerdict("row 0", 1, True)


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["value"] * 5, [0]),  # the others fail for the same reason
        (["value", "gradient", "value", "value"], [0, 1]),
        (["value"] * 4 + ["nan", "nan"], [0, 4]),  # another kind of failure, once
        (["value", "dtype", "value", "nan"], [1, 0]),  # what says most stands first
        (["value", "missing", "value", "nan"], [0, 3]),  # gradients follow from values
        (["kind", "value", "nan"], [0]),  # a result of another form has none of these
        (["shape", "raised", "value"], [0]),
        (["mismatch", "raised", "value"], [0]),  # parameters that do not fit are the cause
    ],
)
def test_while_the_first_aspect_fails_two_kinds_are_told_and_no_hint_but_its_own(kinds, told):
    rows = [failing(i, kind) for i, kind in enumerate(kinds)]
    shown = table_text(verdict(*rows))
    assert re.findall(r"wrong (\w)", shown) == ["abcdef"[i] for i in told]
    assert re.findall(r"hint (\d)", shown) == ["0"]
    assert "hint" not in table_text(verdict(*rows, cause="A cause."))


def test_where_the_first_aspect_passes_each_failure_that_is_told_has_its_hint():
    rows = [failing(i, kind) for i, kind in enumerate(["gradient", "value", "value"], 1)]
    shown = table_text(verdict(PASSES, *rows))
    assert re.findall(r"hint (\d)", shown) == ["2", "3"], "gradients follow from values"


def test_one_failure_is_told_once_and_the_others_are_counted():
    raised = [
        AspectVerdict(
            f"row {i}", 0.5, False, None, f"{i} (for {i})", kind="raised", call=f"for {i}"
        )
        for i in range(1, 4)
    ]
    later = AspectVerdict("row 5", 1, False, judged=False)
    failed = verdict(PASSES, *raised, later)
    assert table_text(failed).splitlines() == [
        "softmax: 0 of 5 points",
        "  ✗ row 1  0.5",
        "      1 (for 1)",
        "  ✗ 2 fail as well: row 2 (0.5), row 3 (0.5)",
        "  – 1 is checked later: row 5 (1)",
        "  ✓ 1 passes: row 0 (1)",
    ]
    cells = re.findall("<td.*?>(?:<b.*?>)?(.*?)(?:</b>)?</td>", table_html(failed))
    assert cells[4:] == [
        *("✗", "2 fail as well: row 2 (0.5), row 3 (0.5)", "1", ""),
        *("–", "1 is checked later: row 5 (1)", "1", ""),
        *("✓", "1 passes: row 0 (1)", "1", ""),
    ]


def test_a_hint_about_nan_is_not_shown_for_a_finite_gradient():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weights):
            return weights.clone()

        @staticmethod
        def backward(ctx, slope):
            return 2 * slope

    def masked_attention(query, key, value, mask=None):
        output, weights = masking.masked_attention(query, key, value, mask)
        return Twice.apply(output), weights

    def without(query, key, value, mask=None):
        output, weights = masking.masked_attention(query, key, value, mask)
        return output + 0 * (
            query.sum(-1, keepdim=True) - query.sum(-1, keepdim=True)
        ).sqrt(), weights

    finite, nan = (
        verdict_on(a, "masked_attention").aspects[4] for a in (masked_attention, without)
    )
    assert (finite.kind, nan.kind) == ("gradient", "nan")
    assert "NaN" in nan.hint and "NaN" not in finite.hint


def test_a_row_that_fails_in_training_mode_alone_shows_no_hint_about_the_rest():
    class EncoderLayer(transformer.EncoderLayer):
        def forward(self, x, mask=None):
            self.dropout.p = 0.0
            return super().forward(x, mask)

    row = verdict_on(EncoderLayer, "EncoderLayer").aspects[1]
    assert row.title == "norm before the sublayer" and not row.passed
    assert row.hint is None and "in training mode" in row.message


# --- whose fault it is --------------------------------------------------------------------------

WRONG_HELPER = """
import numpy as np

def softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=0, keepdims=True))
    return weights / weights.sum(axis=0, keepdims=True)

def attention_pool(query, key, value, score):
    weights = softmax(score(query, key))
    return weights @ value, weights
"""


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_helpers_mistake_is_not_told_as_the_callers(tmp_path, capsys):
    file = tmp_path / "answers.py"
    file.write_text(WRONG_HELPER, encoding="utf-8")
    answer = runpy.run_path(str(file))["attention_pool"]
    known = verdict_on(answer, "attention_pool")
    assert known.mistake == "normalised_over_queries"
    with pytest.raises(AssertionError):
        check(answer, "attention_pool")
    shown = " ".join(capsys.readouterr().out.split())
    assert "It calls your softmax, which does not pass its own check: fix that first." in shown
    assert known.cause not in shown


# --- how it is called and where it is shown -----------------------------------------------------


def split_heads(x, num_heads):
    return multi_head.split_heads(x, num_heads)


def test_a_result_is_told_from_the_answer_itself():
    with pytest.raises(ValueError, match=r"without the parentheses: check\(split_heads\)"):
        check(split_heads(torch.ones(1, 2, 4), 2))


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_console_without_utf_8_shows_the_table(monkeypatch, encoding):
    def softmax(scores, axis=-1):
        return np.exp(scores)

    console = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", console)
    with pytest.raises(AssertionError):
        check(softmax)
    console.flush()
    shown = console.buffer.getvalue().decode(encoding)
    assert ("✗" if encoding == "utf-8" else "X") in shown and "softmax: " in shown


def test_the_cause_is_told_once(capsys):
    wrong = banks("kernel_regression")["softmax"].mistakes["normalised_over_everything"]
    cause = verdict_on(wrong, "softmax").cause
    with pytest.raises(AssertionError) as caught:
        check(wrong, "softmax")
    assert " ".join(capsys.readouterr().out.split()).count(cause) == 1
    assert cause not in str(caught.value) and "softmax: 0" in str(caught.value)


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_marks_can_be_read_on_any_ground():
    rows = (PASSES, failing(1, "value"))
    cells = [row for row in table_html(verdict(*rows)).split("<tr>") if "aria-label" in row]
    for row in cells:
        ground = row.partition("background-color:")[2][:7]
        assert "color:#fff" in row
        assert 1.05 / (luminance(ground) + 0.05) >= 4.5


POINTER = "Here your numbers are those:\n    x = f(x)\n    ^^^^^^^^\nand here:\n    y\n    ^\n"


@pytest.mark.parametrize("pointer", [None, POINTER])
@pytest.mark.parametrize("remark", [None, f"Nearly right. {OF_DIGITS}"])
def test_what_is_told_has_twelve_lines_and_the_failure_stays_before_the_hint(pointer, remark):
    call = f"for x of shape ({'3, ' * 30})"
    rows = [
        replace(failing(i, "value"), message=f"{'far ' * (8 + i)}off ({call})", call=call)
        for i in range(1, 4)
    ]
    rows = [replace(row, hint="Look at the axes. " * 9) for row in rows]
    later = AspectVerdict("row 5", 1, False, judged=False)
    wrong = replace(verdict(PASSES, *rows, later), pointer=pointer, remark=remark)
    shown = table_text(wrong)
    assert len(shown.splitlines()) <= 12
    assert "row 1" in shown and "far off" in shown and "2 fail as well" in shown
    assert all(line in shown for line in (pointer or "").splitlines())
    assert "off (for x" in " ".join(shown.split()) or (pointer and remark)
    assert ("Look at" in shown) == (not pointer)
    assert ("small number" in shown) == bool(remark and not pointer)
