"""What is forbidden is named by what it computes; the names are those of the torch that runs."""

import ast
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import torch

from autograder.publishing import ready_made
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.code_origin import BLOCKS
from autograder.student.engine.ready_made import CONCEPTS, FILE, computes, is_match

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = [exercise for slug in chapters() for exercise in exercises_of(slug)]

NAMED = {
    "gelu": ("gelu", "GELU", "_addmm_activation", "gelu_backward"),
    "normalisation": ("layer_norm", "RMSNorm", "native_batch_norm", "_fused_rms_norm"),
    "attention": ("scaled_dot_product_attention", "MultiheadAttention", "_safe_softmax"),
    "softmax_with_mask": ("_masked_softmax", "_safe_softmax", "masked._ops.softmax"),
    "multi_head_attention": ("multi_head_attention_forward", "_native_multi_head_attention"),
    "transformer": ("TransformerDecoderLayer", "_transformer_encoder_layer_fwd"),
    "recurrence": ("LSTM", "gru_cell", "mkldnn_rnn_layer", "_thnn_fused_gru_cell"),
    "convolution": ("conv1d", "Conv2d", "mkldnn_convolution", "conv_tbc", "thnn_conv2d"),
    "autograd": ("make_dual", "autograd.grad"),
}


def test_the_list_is_what_torch_offers():
    """If not: run `python -m autograder.publishing.ready_made`, and review what has changed."""
    code = "from autograder.publishing import ready_made; print(end=ready_made.text())"
    # In a process of its own: whatever else is imported registers operators, too.
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == FILE.read_text("utf-8")


@pytest.mark.parametrize("concept", CONCEPTS)
def test_a_concept_has_functions_modules_and_kernels(concept):
    for name in NAMED[concept]:
        assert is_match(f"torch.{name}", (concept,)), name
        assert is_match(f"torch.{name.upper()}", (concept,)), "the case does not matter"


@pytest.mark.parametrize("concept", CONCEPTS)
def test_what_an_answer_needs_is_no_ready_made_one(concept):
    plain = "add mul matmul softmax _softmax exp erf tanh mean var sqrt rsqrt einsum linear addmm"
    plain += " bmm unfold dropout linalg_vector_norm convert_element_type masked_fill sigmoid relu"
    for name in plain.split():
        assert not is_match(f"torch.{name}", (concept,)) and name not in CONCEPTS[concept], name
        assert not is_match(f"torch.ops.aten.{name}", (concept,)), name
    assert not computes("torch.nn.modules.transformer._get_clones", concept)
    assert not computes("torch.ops.mine.gelu", concept)  # a name of somebody's own


# What exercises forbade by patterns before there were concepts.
BEFORE = {
    "gelu": ("torch.*gelu*", "torch.*GELU*"),
    "normalisation": [f"torch.*{k}_norm*" for k in ("layer", "group", "instance", "batch", "rms")],
    "attention": (
        *("torch.*scaled_dot_product*", "torch.*multi_head_attention*", "torch.onnx.*"),
        *("torch.*MultiheadAttention*", "torch.*flex_attention*", "torch.ops.onnx.*"),
    ),
    "softmax_with_mask": ("torch.*masked_softmax*", "torch.*safe_softmax*"),
    "multi_head_attention": ("torch.*MultiheadAttention*", "torch.*multi_head_attention*"),
    "transformer": ("torch.*TransformerEncoder*", "torch.*TransformerDecoder*"),
    "recurrence": ("torch.*RNN*", "torch.*rnn*", "torch.*GRU*", "torch.*gru*", "torch.*LSTM*"),
    "convolution": ("torch.*conv1d*", "torch.*conv2d*", "torch.*convolution*", "*Conv[123]d*"),
    "autograd": ("torch.autograd*", "torch.*make_dual"),
}


@pytest.mark.parametrize("concept", CONCEPTS)
def test_nothing_that_was_forbidden_is_allowed(concept):
    operators = [f"{space}.{name}" for space, name in ready_made._operators()]
    functions = [torch.overrides.resolve_name(f) for f in torch.overrides.get_testing_overrides()]
    modules = [f"torch.nn.{name}" for name in dir(torch.nn) if name[0].isupper()]
    caught = [
        name
        for name in filter(None, [*operators, *functions, *modules])
        if any(fnmatchcase(name, pattern) for pattern in BEFORE[concept])
    ]
    assert concept == "autograd" or len(caught) > 2
    assert not [name for name in caught if not is_match(name, (concept,))]


def test_what_exercises_forbid_is_a_concept_and_every_concept_is_forbidden():
    forbidden = {one for exercise in EXERCISES for one in exercise.forbids}
    assert forbidden == {*CONCEPTS}


def test_a_word_that_is_no_concept_is_refused():
    with pytest.raises(ValueError, match="layernorm is nothing|'layernorm'"):
        is_match("torch.layer_norm", ("layernorm",))


def test_a_block_is_matched_by_its_own_name_alone():
    assert not is_match(f"{BLOCKS}.gelu", ("gelu",))
    assert is_match(f"{BLOCKS}.gelu", ("gelu", f"{BLOCKS}.*"))
    assert not is_match(f"{BLOCKS}.gelu", ("gelu", f"{BLOCKS}.*", f"!{BLOCKS}.gelu"))


def test_no_exercise_repeats_a_list_of_names():
    for path in (ROOT / "attention_by_hand" / "exercises").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "forbids" and node.value:
                assert not re.search(r"torch|\*", ast.unparse(node.value)), path
