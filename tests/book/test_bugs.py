"""Chapter 7's experiment with mistakes: each is built in, the stored result is of all of them."""

import json

import pytest
import torch

from attention_by_hand.data import dates
from benchmarks import bugs
from solutions.transformer import Transformer


@pytest.mark.parametrize("name", [name for name, build in bugs.BUGS.items() if build])
def test_a_bug_changes_what_the_same_weights_compute(name):
    def logits(build):
        torch.manual_seed(0)
        model = Transformer(30, 14, **bugs.SIZES)
        if build:
            build(model)
        return model(source, target)

    generator = torch.Generator().manual_seed(1)
    source = torch.randint(3, 30, (2, 9), generator=generator)
    target = torch.randint(3, 14, (2, 6), generator=generator)
    right, wrong = logits(None), logits(bugs.BUGS[name])
    assert right.shape == wrong.shape
    assert (right - wrong).abs().max() > 1e-3
    assert torch.equal(right, logits(None))  # and nothing but this model


def test_the_stored_result_is_of_every_bug_and_of_three_seeds():
    stored = json.loads(bugs.RESULT.read_text(encoding="utf-8"))
    made, runs = stored["made"], stored["runs"]
    assert list(runs) == list(bugs.BUGS)
    assert {run["seed"] for name, run in runs.items() if name.startswith("right")} == {0, 1, 2}
    assert made["sizes"] == bugs.SIZES
    for run in runs.values():
        assert len(run["loss"]) == made["steps"] // made["every"]
        assert len(run["match"]) == made["steps"] // made["match_every"]


def test_the_floor_is_the_entropy_of_the_smoothed_truth():
    tokens = 3 + len(set("".join(e.iso for e in dates.examples("train", 200))))
    truth = torch.full((tokens,), 0.1 / tokens, dtype=torch.float64)
    truth[0] += 0.9
    entropy = torch.distributions.Categorical(probs=truth).entropy()
    assert bugs.floor(tokens, 0.1) == pytest.approx(entropy.item(), abs=1e-6)
