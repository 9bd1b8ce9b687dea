"""Facts about `influence`, found by other means than the reference."""

import pytest
import torch

from attention_by_hand import blocks
from solutions import masking
from solutions.masking import masked_attention

OURS = pytest.mark.parametrize(
    "influence", [masking.influence, blocks.influence], ids=["reference", "block"]
)


@OURS
def test_a_sum_moves_by_what_is_replaced(influence):
    """(3, 4) becomes (0, 0), which is 5 away; the second row becomes itself."""
    x = torch.tensor([[3.0, 4.0], [1.0, 2.0]])
    other = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    total = influence(lambda rows: rows.sum(0, keepdim=True), x, other)
    assert total.tolist() == [[5.0, 0.0]]


@OURS
def test_a_running_sum_is_moved_by_its_past_alone(influence):
    x, other = torch.zeros(4, 2), torch.tensor([[3.0, 4.0], [6.0, 8.0], [0.0, 1.0], [5.0, 12.0]])
    moved = influence(lambda rows: rows.cumsum(0), x, other)
    assert moved.tolist() == [[5, 0, 0, 0], [5, 10, 0, 0], [5, 10, 1, 0], [5, 10, 1, 13]]


@OURS
def test_small_changes_are_those_of_the_derivative(influence):
    torch.manual_seed(6)
    x, step = torch.randn(2, 4, 3, dtype=torch.float64)

    def attend(rows):
        return masked_attention(rows, rows, rows, None)[0]

    moved = influence(attend, x, x + 1e-6 * step)
    slopes = torch.autograd.functional.jacobian(attend, x)  # (4, 3, 4, 3)
    expected = torch.einsum("ipjd,jd->ipj", slopes, 1e-6 * step).norm(dim=1)
    assert moved == pytest.approx(expected, rel=1e-4)
