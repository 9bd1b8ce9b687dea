"""Facts about `queued_contrastive_loss`, found by other means than the reference."""

import math

import pytest
import torch
import torch.nn.functional as F

from solutions.captioning import contrastive_loss, queued_contrastive_loss


def test_one_pair_among_keys_at_right_angles():
    """The picture has a cosine of 1 with its text's key, and of 0 with three of the queue; the text
    has 0 with all four keys."""
    axes = torch.eye(5, dtype=torch.float64)
    vectors = torch.stack([axes[:1], axes[1:2]])
    keys = torch.stack([axes[2:3], 7 * axes[:1]])
    queue = torch.stack([axes[2:], axes[2:]])
    loss, new = queued_contrastive_loss(vectors, keys, queue, 3, 0.5)
    by_hand = (math.log(1 + 3 * math.exp(-2)) + math.log(4)) / 2
    assert loss.item() == pytest.approx(by_hand, abs=1e-12)
    assert torch.equal(new, torch.stack([axes[[2, 2, 3]], axes[[0, 2, 3]]]))


def test_without_a_queue_and_with_the_vectors_as_keys_it_is_the_contrastive_loss():
    images, texts = vectors = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(1))
    loss, _ = queued_contrastive_loss(vectors, vectors, torch.empty(2, 0, 4), 3, 0.2)
    assert torch.allclose(loss, contrastive_loss(images, texts, 0.2), atol=1e-6)


def test_a_queue_filled_batch_by_batch_holds_the_last_ones_and_no_graph():
    batches = torch.randn(5, 2, 2, 3, generator=torch.Generator().manual_seed(2))
    queue = torch.empty(2, 0, 3)
    for batch in batches:
        moving = batch.clone().requires_grad_()
        _, queue = queued_contrastive_loss(moving, moving, queue, 5)
    assert not queue.requires_grad
    last = F.normalize(torch.cat([*batches.flip(0)[:3]], dim=1)[:, :5], dim=-1)
    assert torch.allclose(queue, last)
