"""What chapter 6 says of stacks beyond its own cells: the stored trainings, and a scaled input."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from solutions.residual_layernorm import FeedForward, Residual

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "warm_up.py"
spec = importlib.util.spec_from_file_location("warm_up", PATH)
warm_up = importlib.util.module_from_spec(spec)
sys.modules["warm_up"] = warm_up
spec.loader.exec_module(warm_up)


@pytest.fixture(scope="module")
def stored():
    return json.loads(warm_up.RESULT.read_text(encoding="utf-8"))


def test_the_stored_trainings_are_of_every_run_and_seed(stored):
    made, runs = stored["made"], stored["runs"]
    assert list(runs) == list(warm_up.RUNS)
    assert made["seeds"] == [*warm_up.SEEDS]
    for trained in runs.values():
        assert [len(losses) for losses in trained] == [made["steps"] // made["every"]] * 3


def test_post_norm_needs_a_warm_up_and_pre_norm_does_not(stored):
    """All three seeds: nothing learnt, something learnt, done."""
    last = {name: [losses[-1] for losses in trained] for name, trained in stored["runs"].items()}
    assert min(last["post-norm"]) > 2.25, "chance is ln 10 = 2.30"
    for name in ("post-norm, warm-up", "post-norm, rate ÷ 10"):
        assert 1.5 < min(last[name]) < max(last[name]) < 2.1
    assert max(last["pre-norm"]) < 0.02


def test_the_script_trains_the_chapters_stack():
    """The same seed and steps: the first losses are those that are stored."""
    stored = json.loads(warm_up.RESULT.read_text(encoding="utf-8"))["runs"]
    torch.set_num_threads(1)
    found = warm_up.losses(seed=0, steps=20, **warm_up.RUNS["pre-norm"])
    assert found == pytest.approx(stored["pre-norm"][0][:2], rel=0.02)


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
    """The model answer's 35 to 43 per cent: attention saturates before any norm is reached."""
    shares = [moved(*body(seed)) for seed in (0, 1, 2)]
    assert round(100 * min(shares)) == 35
    assert round(100 * max(shares)) == 43


def test_a_scaled_input_changes_nothing_where_the_first_sublayer_is_homogeneous():
    torch.manual_seed(0)
    first = Residual(FeedForward(64, 256), 64).double().eval()
    for layer in (first.sublayer.linear1, first.sublayer.linear2):
        nn.init.zeros_(layer.bias)
    assert moved(first, torch.randn(8, 12, 64).double()) < 1e-4
