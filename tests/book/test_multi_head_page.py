"""What chapter 3's page says of its own cells: a prediction, another width, a hard problem."""

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

from attention_by_hand.models.checkpoints import MEASUREMENTS
from solutions import multi_head as ref

PAGE = (Path(__file__).parents[2] / "book" / "03_multi_head.md").read_text("utf-8")
pytestmark = pytest.mark.seed(29)


def test_heads_that_change_places_change_the_order_of_the_maps_alone():
    torch.manual_seed(29)
    (cell,) = re.findall(r"^:tags: \[outcome\]\n(.*?)^```", PAGE, re.M | re.S)
    scope = {"torch": torch, "deepcopy": deepcopy, "MultiHeadAttention": ref.MultiHeadAttention}
    exec(cell, scope)
    assert (scope["output"] - scope["other_output"]).abs().max() < 1e-6
    assert torch.equal(scope["weights"][:, scope["order"]], scope["other_weights"])
    assert not torch.equal(scope["weights"], scope["other_weights"])


def test_two_heads_divide_the_names_between_them_and_one_head_mostly_catches_up():
    found = json.loads(MEASUREMENTS.read_text("utf-8"))["two_names"]["found"]
    assert min(found["apart"]) > 50  # "in each of these models, and in most sentences"
    one, two = ([late for _, late in runs] for runs in found["right"])
    assert min(two) > 99  # "All ten"
    assert 5 < sum(right > 95 for right in one) < 10  # "most of the ten"


def test_projections_may_read_another_width():
    reader = ref.MultiHeadAttention(12, 3)
    reader.W_k, reader.W_v = nn.Linear(20, 12), nn.Linear(20, 12)
    theirs = nn.MultiheadAttention(12, 3, kdim=20, vdim=20, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    with torch.no_grad():
        for name, bias in zip("qkv", theirs.in_proj_bias.chunk(3), strict=True):
            layer = getattr(reader, f"W_{name}")
            layer.weight.copy_(getattr(theirs, f"{name}_proj_weight"))
            layer.bias.copy_(bias)
        reader.W_o.load_state_dict(theirs.out_proj.state_dict())
    query, memory = torch.randn(1, 3, 12), torch.randn(1, 4, 20)
    torch.testing.assert_close(
        reader(query, memory, memory)[0], theirs(query, memory, memory)[0], atol=1e-6, rtol=0
    )


@pytest.mark.parametrize(("num_heads", "useful"), [(1, 32), (2, 48), (4, 56)])
def test_half_of_one_wide_heads_parameters_are_idle(num_heads, useful):
    """The ranks in the hard problem's model answer, which are 4d² − 2d²/H for d = 4."""
    module = ref.MultiHeadAttention(4, num_heads, bias=False).double()
    x = torch.randn(6, 5, 4, dtype=torch.float64)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    slopes = jacrev(lambda p: functional_call(module, p, (x, x, x))[0].flatten())(parameters)
    table = torch.cat([slope.flatten(1) for slope in slopes.values()], 1)
    assert table.shape == (120, 64)
    assert torch.linalg.matrix_rank(table) == useful == 64 - 32 // num_heads
    assert "for d = 4 are 32, 48 and 56 of 64" in PAGE
    assert f"2048 of {4 * 32**2} count with one head, and {4 * 32**2 - 2 * 32} with 32" in PAGE


@pytest.mark.parametrize("num_heads", [1, 2, 4])
def test_fewer_parameters_are_of_use_where_only_one_vector_asks(num_heads):
    """The model answer's count for the guesser: the blank's query is always the same."""
    d, module = 4, ref.MultiHeadAttention(4, num_heads, bias=False).double()
    x, blank = (torch.randn(n, 5, d, dtype=torch.float64) for n in (30, 1))
    query = blank[:, :1].expand(30, 1, d)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    slopes = jacrev(lambda p: functional_call(module, p, (query, x, x))[0].flatten())(parameters)
    table = torch.cat([slope.flatten(1) for slope in slopes.values()], 1)
    assert torch.linalg.matrix_rank(table) == num_heads * d + 2 * d**2 - d**2 // num_heads
    one, most = (heads * 32 + 2 * 32**2 - 32**2 // heads for heads in (1, 32))
    assert f"{one} with one head and {most} with 32" in PAGE


def test_weights_of_one_head_make_the_hand_examples_outputs_add_up_to_sixteen():
    worth = torch.tensor([[16.0, 0.0], [8.0, 8.0], [0.0, 16.0]])
    weights = torch.rand(50, 3).softmax(-1)
    assert torch.allclose((weights @ worth).sum(-1), torch.tensor(16.0))
    assert "the outputs of the one head add up to 16" in PAGE


def test_a_step_taken_twice_is_two_steps():
    step = torch.eye(4).roll(1, 1).triu()
    assert step.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    rows, queries = step @ step, (step @ step @ torch.eye(4)).T
    filled = re.search(r"\{pencil\} two_back\n(.*?)\{explanation\}", PAGE, re.S)[1]
    cells = re.findall(r"\((\d), (\d), (\d), (\d)\)", filled)
    told = torch.tensor([[float(n) for n in cell] for cell in cells]).view(4, 2, 4)
    assert torch.equal(told[:, 0], queries) and torch.equal(told[:, 1], rows)
