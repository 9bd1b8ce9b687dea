"""`training_step` with numbers worked out by hand, on a model of four logits."""

import math

import pytest
import torch
from torch import nn

from attention_by_hand import blocks
from solutions.language_model import next_token_loss, training_step


class Logits(nn.Module):
    """The same four logits at every position."""

    def __init__(self, *logits: float):
        super().__init__()
        self.row = nn.Parameter(torch.tensor(logits, dtype=torch.float64))

    def forward(self, ids):
        return self.row.expand(*ids.shape, 4)


def begun(*logits):
    model = Logits(*logits)
    return model, torch.optim.SGD(model.parameters(), 99.0)


TEXT = torch.tensor([[0, 1, 1]])  # twice, token 1 comes next


def test_a_step_by_hand():
    """All tokens equally likely: the loss is ln 4, its gradient (¼, −¾, ¼, ¼), √(12/16) long."""
    model, sgd = begun(0.0, 0.0, 0.0, 0.0)
    loss, norm = training_step(model, sgd, TEXT, 1, 10, 2, 0.8, 9.0)
    assert (loss, norm) == pytest.approx((math.log(4), math.sqrt(0.75)))
    assert model.row.tolist() == pytest.approx([-0.1, 0.3, -0.1, -0.1])  # at a rate of 0.4


def test_a_gradient_that_is_too_long_keeps_its_direction():
    model, sgd = begun(0.0, 0.0, 0.0, 0.0)
    _, norm = training_step(model, sgd, TEXT, 2, 10**9, 2, 1.0, 0.5)
    assert norm == pytest.approx(math.sqrt(0.75))
    moved = model.row.detach()
    assert moved.norm().item() == pytest.approx(0.5, rel=1e-5)
    assert (moved / moved[1]).tolist() == pytest.approx([-1 / 3, 1.0, -1 / 3, -1 / 3])


def test_the_rate_rises_falls_and_ends_at_zero():
    model, sgd = begun(1.0, 2.0, 3.0, 4.0)
    rates = []
    for step in range(1, 101):
        training_step(model, sgd, TEXT, step, 100, 10, 0.5)
        rates.append(sgd.param_groups[0]["lr"])
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[0] == pytest.approx(0.05)
    assert rates[49] == pytest.approx(0.25)  # half the way: half the rate
    assert rates[-1] == pytest.approx(0.0, abs=1e-15)


def test_what_is_not_finite_changes_nothing():
    model, sgd = begun(0.0, math.inf, 0.0, 0.0)
    loss, norm = training_step(model, sgd, TEXT, 1, 10, 2, 0.8)
    assert math.isnan(loss) and math.isnan(norm)
    assert model.row.tolist() == [0.0, math.inf, 0.0, 0.0]


@pytest.mark.parametrize("pad_id", [None, 0, 3, -100])
def test_the_losss_stand_in_is_the_loss(pad_id):
    torch.manual_seed(0)
    logits, ids = torch.randn(3, 6, 4, dtype=torch.float64), torch.randint(4, (3, 6))
    ids[1, 2:] = 0 if pad_id is None else pad_id
    ours, theirs = (f(logits, ids, pad_id) for f in (next_token_loss, blocks.next_token_loss))
    torch.testing.assert_close(ours, theirs)
    alone = blocks.next_token_loss(logits[:, :1], ids[:, :1], pad_id)
    assert alone.item() == 0.0
