"""Parameters that do not fit are told as what they are, and never as another mistake."""

import inspect
import re

import numpy as np
import pytest
import torch
from torch import nn

from autograder.student.check import verdict_on
from autograder.student.engine.parameter_mismatch import describe_mismatch
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import RaisedException, call
from autograder.student.engine.words import describe_exception
from autograder.student.table import table_text
from solutions.language_model import GPT
from solutions.residual_layernorm import DropPath
from solutions.vision_transformer import PackedAttention, PatchEmbedding, VisionTransformer

BLOCKS = re.compile(r"nn\.ModuleList\(\s*(.* for _ in range\(num_layers\))\s*\)")
TIED = "self.head = nn.Linear(d_model, vocab_size, bias=False)\n        "
SAID = "self.head.weight = self.tokens.weight\n        "
USED = (r"self\.norm\(x\) @ self\.tokens\.weight\.T", "self.head(self.norm(x))")


def changed(answer: type, *changes: tuple[str | re.Pattern, str]) -> type:
    """A right answer in which some text is another."""
    source = inspect.getsource(answer)
    for old, new in changes:
        source, count = re.subn(old, new, source)
        assert count, old
    made = dict(vars(inspect.getmodule(answer)))
    exec(source, made)
    return made[answer.__name__]


@pytest.mark.parametrize(
    ("answer", "changes", "told"),
    [
        (GPT, [(BLOCKS, r"[\1]")], "`blocks` is a plain list, whose layers torch does not see"),
        (GPT, [(BLOCKS, r"tuple(\1)")], "`blocks` is a plain tuple, whose layers"),
        (
            VisionTransformer,
            [(BLOCKS, r"dict(enumerate(\1))"), ("in self.blocks", "in self.blocks.values()")],
            "`blocks` is a plain dict, whose layers torch does not see: expected an `nn.ModuleDict",
        ),
        (GPT, [("self.blocks", "self.layers")], "your layer is called `layers`; expected `blocks`"),
        (GPT, [("self.norm", "self.ln_f")], "your layer is called `ln_f`; expected `norm`"),
        (GPT, [(r"self\.tokens", "self.wte")], "your layer is called `wte`; expected `tokens`"),
        (
            VisionTransformer,
            [("self.cls_token", "self.cls")],
            "your parameter is called `cls`; expected `cls_token`",
        ),
        (
            VisionTransformer,
            [(r"nn\.Parameter\((torch.zeros\(1, 1, d_model\))\)", r"\1")],
            "`cls_token` is a plain tensor: expected an `nn.Parameter`",
        ),
        (PackedAttention, [("self.proj", "self.out")], "called `out`; expected `proj`"),
        (PatchEmbedding, [("self.projection", "self.conv")], "`conv`; expected `projection`"),
        (
            VisionTransformer,
            [(r"super\(\)\.__init__\(\)\n", "pass\n")],
            "`__init__` has to begin with `super().__init__()`",
        ),
    ],
)
def test_a_misfit_is_told_in_the_students_words_and_has_no_other_name(answer, changes, told):
    verdict = verdict_on(changed(answer, *changes), answer.__name__)
    assert verdict.mistake is None and not verdict.suspected_mistakes
    first = next(aspect.message for aspect in verdict.aspects if not aspect.passed)
    assert told.lower() in first.lower()


@pytest.mark.parametrize(
    "changes",
    [
        [("self.norm = ", TIED + SAID + "self.norm = "), USED],
        [
            ("self.tokens = ", TIED + "self.tokens = "),
            ("self.norm = ", SAID + "self.norm = "),
            USED,
        ],
    ],
    ids=["said later", "said first"],
)
def test_one_parameter_under_two_names_is_one(changes):
    assert verdict_on(changed(GPT, *changes), "GPT").verdict == "correct"


def test_two_parameters_are_not_one():
    changes = [("self.norm = ", TIED + "self.norm = "), USED]
    verdict = verdict_on(changed(GPT, *changes), "GPT")
    assert verdict.mistake == "output_layer_of_its_own"


def test_a_bias_that_is_missing_has_its_name():
    plain = (r"nn\.Linear\(d_model, d_model\)", "nn.Linear(d_model, d_model, bias=False)")
    verdict = verdict_on(changed(PackedAttention, plain), "PackedAttention")
    assert verdict.mistake == "proj_never_has_a_bias"
    assert "there is no parameter called `proj.bias`" in verdict.aspects[0].message


def test_names_are_paired_by_shape_and_likeness():
    class Answer(nn.Module):
        def __init__(self):
            super().__init__()
            self.values, self.w_key = nn.Linear(3, 4, bias=False), nn.Linear(2, 4, bias=False)
            self.query, self.extra = nn.Linear(2, 4, bias=False), nn.Parameter(torch.zeros(9))

    wanted = {"W_q.weight": (4, 2), "W_k.weight": (4, 2), "W_v.weight": (4, 3), "b": (8,)}
    told = describe_mismatch(Answer(), {name: torch.zeros(shape) for name, shape in wanted.items()})
    assert told.split("; ") == [
        *("your layer is called `values`", "expected `W_v`"),
        *("your layer is called `w_key`", "expected `W_k`"),
        *("your layer is called `query`", "expected `W_q`"),
        "expected no parameter called `extra` (9,)",
        "and 1 more",
    ]


def test_numpy_on_what_has_a_gradient_is_explained():
    leaf = torch.ones(2, requires_grad=True)
    record = probe(lambda: np.exp(leaf), call())
    assert "NumPy knows no gradients" in describe_exception(record.raised)
    assert describe_exception(RaisedException(("ValueError",), "else")).endswith("ValueError: else")


def test_writing_into_what_has_a_gradient_is_explained():
    def add(x):
        x += 1
        return x

    record = probe(add, call(torch.ones(2, requires_grad=True)))
    told = describe_exception(record.raised)
    assert told.endswith("methods that end in `_` change the tensor itself: make a new one")


def test_parameters_of_another_shape_are_told_in_few_words():
    def load(given):
        nn.Linear(3, 2).load_state_dict({"weight": given.new_zeros(3, 2), "bias": given})

    told = describe_exception(probe(load, call(torch.zeros(5))).raised)
    assert "weight is (3, 2) in what is loaded and (2, 3) in the model: transposed, it" in told
    assert "bias is (5) in what is loaded and (2) in the model." in told


def test_what_is_put_together_is_not_broadcast():
    record = probe(lambda x: torch.cat([torch.zeros(1, 1, 3), x], 1), call(torch.zeros(2, 2, 3)))
    assert "an axis of length 1 has to be expanded first" in describe_exception(record.raised)


@pytest.mark.parametrize(
    "answer, change", [(GPT, (BLOCKS, r"[\1]")), (PatchEmbedding, ("self.projection", "self.conv"))]
)
def test_a_misfit_is_told_once_although_an_exception_of_another_type_was_expected(answer, change):
    """Both refuse some arguments with a ValueError, in an aspect that loads parameters."""
    verdict = verdict_on(changed(answer, change), answer.__name__)
    assert sum(aspect.kind == "mismatch" for aspect in verdict.aspects) > 2
    told = table_text(verdict)
    assert (
        "ParameterMismatch" not in told
        and told.count("`nn.ModuleList`") + told.count("`conv`") == 1
    )
    assert len(told.splitlines()) <= 12


def test_a_missing_super_is_told_where_torch_itself_trips_over_it():
    verdict = verdict_on(changed(DropPath, (r"super\(\).__init__\(\)", "pass")), "DropPath")
    assert "`__init__` has to begin with `super().__init__()`" in (verdict.note or "")
