"""Facts about `fill_gaps`, found by other means than the reference."""

import pytest
import torch

from solutions.bert import fill_gaps

MASK = 0


def said(probabilities: dict[int, dict[int, float]], vocab: int = 4) -> torch.Tensor:
    """Logits of a row of three: for each place the probabilities of some tokens."""
    p = torch.full((1, 3, vocab), 1e-9)
    for place, chances in probabilities.items():
        for token, chance in chances.items():
            p[0, place, token] = chance
    return p.log()


def neighbourly(ids: torch.Tensor) -> torch.Tensor:
    """Places 0 and 2 are gaps. Alone, 0 would be token 1 by a hair; after 2 is filled, token 2."""
    if ids[0, 2] == MASK:
        return said({0: {1: 0.51, 2: 0.49}, 1: {3: 1.0}, 2: {2: 0.9, 1: 0.1}})
    return said({0: {1: 0.1, 2: 0.9}, 1: {3: 1.0}, 2: {1: 1.0}})


@pytest.mark.parametrize(("steps", "filled"), [(1, [1, 3, 2]), (2, [2, 3, 2]), (5, [2, 3, 2])])
def test_what_is_sure_helps_what_is_not(steps, filled):
    assert fill_gaps(neighbourly, torch.tensor([[0, 3, 0]]), MASK, steps).tolist() == [filled]


@pytest.mark.parametrize("steps", range(1, 8))
@pytest.mark.parametrize("gaps", range(6))
def test_the_rounds_share_the_gaps_evenly_the_larger_shares_first(steps, gaps):
    seen = []

    def model(ids):
        seen.append(int((ids == MASK).sum()))
        return torch.rand(*ids.shape, 9)

    ids = torch.randint(1, 9, (1, 8))
    ids[0, :gaps] = MASK
    filled = fill_gaps(model, ids, MASK, steps)
    left = [*seen, int((filled == MASK).sum())]
    shares = [a - b for a, b in zip(left, left[1:], strict=False)]
    more, each = gaps % steps, gaps // steps
    assert shares == [each + 1] * more + [each] * (steps - more)
    assert torch.equal(filled[0, gaps:], ids[0, gaps:])
