"""What chapter 6 says of stacks beyond its own cells: the stored trainings, and a scaled input."""

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import warm_up
from solutions.residual_layernorm import FeedForward, Residual

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "06_residual_layernorm.md").read_text("utf-8")


@pytest.fixture(scope="module")
def stored():
    return json.loads(warm_up.RESULT.read_text(encoding="utf-8"))


def test_the_stored_trainings_are_of_every_run_and_seed(stored):
    made, runs = stored["made"], stored["runs"]
    assert list(runs) == list(warm_up.RUNS)
    assert made["seeds"] == [*warm_up.SEEDS]
    for trained in runs.values():
        assert [len(losses) for losses in trained] == [made["steps"] // made["every"]] * 3


def test_the_pages_table_is_what_is_stored(stored):
    page = ROOT / "book" / "06_residual_layernorm.md"
    text, every = page.read_text(encoding="utf-8"), stored["made"]["every"]
    for name, trained in stored["runs"].items():
        (row,) = re.findall(rf"^\| {name} \|(.*)\|$", text, re.M)
        at = [[losses[step // every - 1] for losses in trained] for step in (150, 400)]
        told = [f"{min(three):.2f}–{max(three):.2f}" for three in at]
        assert [cell.strip() for cell in row.split("|")] == told


def test_the_script_trains_the_chapters_stack():
    """The same seed and steps: the first losses are those that are stored."""
    stored = json.loads(warm_up.RESULT.read_text(encoding="utf-8"))["runs"]
    torch.set_num_threads(1)
    found = warm_up.losses(seed=0, steps=20, **warm_up.RUNS["pre-norm"])
    assert found == pytest.approx(stored["pre-norm"][0][:2], rel=0.02)


def size_on_top(layers: int) -> float:
    """Root mean square of the sum that a pre-norm stack hands to its final norm, as in the page."""
    torch.manual_seed(0)
    model, sizes = warm_up.Stack(layers, 32, "pre"), []
    model.final.register_forward_hook(lambda norm, inputs, output: sizes.append(inputs[0]))
    model(torch.randn(8, 12, 32))
    return sizes[0].pow(2).mean().sqrt().item()


def test_the_sum_of_a_pre_norm_stack_grows_by_a_variance_per_sublayer():
    """The hard problem's model answer says which c fit the printed sizes."""
    fits = [(round(size_on_top(n), 1) ** 2 - 1) / (2 * n) for n in (2, 4, 6, 12, 18, 24)]
    assert f"between {min(fits):.2f} and {max(fits):.2f} for the six heights" in PAGE


def test_the_first_layer_of_a_pre_norm_stack_is_spared():
    """In the model answer: the first layer's gradient by the last one's, in 24 layers."""
    logs = []
    for seed in range(4):
        torch.manual_seed(seed)
        model, x = warm_up.Stack(24, 32, "pre"), torch.randn(8, 12, 32)
        target = torch.randint(10, (8 * 12,))
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), target)
        ends = [model.think[k].sublayer.linear2.weight for k in (0, -1)]
        first, last = torch.autograd.grad(loss, ends)
        logs.append((first.norm() / last.norm()).log())
    (told,) = re.findall(r"gradient is measured to be ([\d.]+) times the last one's", PAGE)
    assert torch.stack(logs).mean().exp().item() == pytest.approx(float(told), abs=0.05)


def moved(model: nn.Module, x: torch.Tensor) -> float:
    """How far the output moves, relative to its length, if the input is multiplied by 100."""
    with torch.no_grad():
        before, after = model(x), model(100 * x)
    return ((after - before).norm() / before.norm()).item()


def body(seed: int) -> tuple[nn.Module, torch.Tensor]:
    """Six post-norm layers with random weights, and what they read."""
    torch.manual_seed(seed)
    model = warm_up.Stack(6, 64, "post").double().eval()
    model.out = nn.Identity()
    return model, torch.randn(8, 12, 64).double()


def test_a_scaled_input_changes_what_a_post_norm_transformer_computes():
    """By as much as the model answer says: attention saturates before any norm is reached."""
    shares = [100 * moved(*body(seed)) for seed in (0, 1, 2)]
    assert f"moves by {min(shares):.0f} to {max(shares):.0f} per cent of its length" in PAGE


def test_a_scaled_input_changes_nothing_where_the_first_sublayer_is_homogeneous():
    torch.manual_seed(0)
    first = Residual(FeedForward(64, 256), 64).double().eval()
    for layer in (first.sublayer.linear1, first.sublayer.linear2):
        nn.init.zeros_(layer.bias)
    assert moved(first, torch.randn(8, 12, 64).double()) < 1e-4


# --- how many layers it takes ---------------------------------------------------------------------


COLUMNS = (("post-norm", 0), ("post-norm", 1), ("post-norm, rate ÷ 10", 1), ("pre-norm", 0))


@pytest.fixture(scope="module")
def by_depth():
    return json.loads((ROOT / "benchmarks" / "depth.json").read_text(encoding="utf-8"))


def test_the_table_of_heights_is_what_is_stored(by_depth):
    text = (ROOT / "book" / "06_residual_layernorm.md").read_text(encoding="utf-8")
    for layers in by_depth["runs"]["pre-norm"]:
        (row,) = re.findall(rf"^\| {layers} \|(.*)\|$", text, re.M)
        seeds = [[loss[at] for loss in by_depth["runs"][kind][layers]] for kind, at in COLUMNS]
        assert [len(losses) for losses in seeds] == [len(by_depth["made"]["seeds"])] * 4
        told = [f"{min(losses):.2f}–{max(losses):.2f}" for losses in seeds]
        assert [cell.strip() for cell in row.split("|")] == told


def test_the_script_of_the_heights_trains_the_same_stack(by_depth):
    """One layer, whose first losses are quickly had again."""
    from benchmarks import depth

    assert by_depth["made"]["steps"] == [*depth.STEPS]
    assert [*by_depth["runs"]] == [*depth.KINDS]
    assert [*by_depth["runs"]["pre-norm"]] == [str(n) for n in depth.LAYERS]
    torch.set_num_threads(1)
    found = warm_up.losses(seed=0, steps=150, layers=1, **warm_up.RUNS["pre-norm"])
    assert found[-1] == pytest.approx(by_depth["runs"]["pre-norm"]["1"][0][0], rel=0.1)
