"""What chapter 9 says of the price of training, counted in another way."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from solutions.language_model import GPT, next_token_loss


def test_six_operations_a_parameter_and_token_are_right_to_a_percent():
    model, ids = GPT(1257, 128, 128, 4, 2), torch.zeros(2, 128, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        next_token_loss(model(ids), ids).backward()
    matrices = sum(p.numel() for p in model.parameters()) - model.positions.weight.numel()
    assert counter.get_total_flops() == pytest.approx(6 * matrices * ids.numel(), rel=0.01)
    # a score is 2 d_k operations, so is its share of a value; three times that, there and back
    scores = 3 * 2 * (2 * 128 * 128 * 128) * 2 * 2
    assert scores / counter.get_total_flops() == pytest.approx(1 / 8, abs=0.01)
