"""Induction heads: what the benchmark measures, on a model that is made by hand."""

import numpy as np
import pytest
import torch

from benchmarks import induction
from solutions.language_model import GPT


def occurrences(row: list[int]) -> list[tuple[int, int]]:
    """Each place whose next token came after the same token the last time, and that last place."""
    found = []
    for t in range(len(row) - 1):
        before = [j for j in range(t) if row[j] == row[t]]
        if before and row[before[-1] + 1] == row[t + 1]:
            found.append((t, before[-1]))
    return found


def test_what_can_be_known_is_what_came_after_the_same_token_the_last_time():
    ids = induction.texts(200, np.random.default_rng(0))
    known, last = induction.knowable(ids), induction.last_before(ids)
    for b, row in enumerate(ids.tolist()):
        pairs = occurrences(row)
        assert known[b].nonzero()[:, 0].tolist() == [t for t, _ in pairs]
        assert [last[b, t].item() for t, _ in pairs] == [j for _, j in pairs]
    assert 0.3 < known.float().mean() < 0.9
    distances = [t - j for row in ids.tolist() for t, j in occurrences(row)]
    assert max(distances.count(d) for d in set(distances)) < 0.15 * len(distances)


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(induction.VOCABULARY, induction.LENGTH, induction.D_MODEL, induction.HEADS, 2).eval()


def test_losses_and_scores_are_means_over_what_can_be_known(model):
    ids = induction.texts(3, np.random.default_rng(1))
    log_p, looks = model(ids).log_softmax(-1), induction.weights(model, ids)
    losses, behind, before = [], [], []
    for b, row in enumerate(ids.tolist()):
        for t, last in occurrences(row):
            losses.append(-log_p[b, t, row[t + 1]].item())
            behind.append(looks[:, b, :, t, last + 1])
            before.append(looks[:, b, :, t, t - 1])
    assert induction.loss_on_known(model, ids) == pytest.approx(np.mean(losses), abs=1e-4)
    scores = induction.scores(model, ids)
    for name, wanted in (("induction", behind), ("previous", before)):
        assert np.allclose(scores[name], torch.stack(wanted).mean(0), atol=1e-5)


def test_weights_are_those_that_the_blocks_use(model):
    ids = induction.texts(2, np.random.default_rng(2))
    found, seen = induction.weights(model, ids), []
    for block in model.blocks:
        block.attn.register_forward_hook(
            lambda m, x, _: seen.append(type(m).forward(m, *x, mask=causal)[1])
        )
    causal = torch.ones(induction.LENGTH, induction.LENGTH).bool().tril()
    model(ids)
    assert torch.allclose(found, torch.stack(seen), atol=1e-6)


def test_a_head_that_is_cut_adds_nothing_and_is_there_again_afterwards(model):
    ids = induction.texts(4, np.random.default_rng(3))
    whole = induction.loss_on_known(model, ids)
    every = [(i, h) for i in (0, 1) for h in range(induction.HEADS)]
    without = induction.loss_without(model, every, ids)
    assert induction.loss_on_known(model, ids) == whole
    for block in model.blocks:  # what is left of attention then is its bias
        block.attn.forward = lambda x, *_, b=block.attn.W_o.bias, **__: (b.expand_as(x), None)
    assert induction.loss_on_known(model, ids) == pytest.approx(without, abs=1e-5)
