"""The wrong functions that the chapters show, each beside a right one.

Each wrong function has the bug of a known mistake in the bank, and a chapter shows it as it stands
here. The right ones are calls of torch or of the course's blocks, which hold no secret: every
student has this file. It is imported when it is needed, since torch is; chapter 1 needs none.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

with suppress(ModuleNotFoundError):
    import torch
    import torch.nn.functional as F

    from attention_by_hand import blocks


def wrong_softmax(scores):
    """The weights for a table of scores, one row per query."""
    weights = np.exp(scores)
    return weights / weights.sum(axis=0)


def right_softmax(scores: np.ndarray) -> np.ndarray:
    """The same on its side: its columns are the rows."""
    return wrong_softmax(scores.T).T


def wrong_scale(query, key, value):
    """Scaled dot-product attention."""
    scale = value.shape[-1] ** -0.5
    return F.scaled_dot_product_attention(query, key, value, scale=scale)


def right_scale(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Torch's own scale is 1/√d_k."""
    return F.scaled_dot_product_attention(query, key, value)


def wrong_split(x, num_heads):
    """From `(B, n, d_model)` to `(B, H, n, d_k)`."""
    B, n, d_model = x.shape
    return x.reshape(B, num_heads, n, d_model // num_heads)


def right_split(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """As the block for multi-head attention does it."""
    return blocks._by_head(x, num_heads)


def wrong_masking(scores, mask):
    """The weights of the keys that the mask allows."""
    return torch.softmax(scores * mask, dim=-1)


def right_masking(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The right weights, from torch's own attention: with a one for each key as its value."""
    keys = torch.eye(scores.shape[-1], dtype=scores.dtype)
    return F.scaled_dot_product_attention(scores, keys, keys, attn_mask=mask, scale=1.0)


def wrong_distances(query, key, value):
    """Attention whose scores fall by 1/2 with each step between query and key."""
    i = torch.arange(query.shape[0])[:, None]
    j = torch.arange(key.shape[0])
    bias = -0.5 * (i - j).abs().to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)


def right_distances(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The right one: as many queries as keys, of which those at the end are wanted."""
    missing = key.shape[0] - query.shape[0]
    whole = torch.cat([query.new_zeros(missing, query.shape[1]), query])
    return wrong_distances(whole, key, value)[missing:]


def wrong_norm(x):
    """Layer norm of `(B, n, d_model)`, without weight and bias."""
    return F.layer_norm(x, x.shape[1:])


def right_norm(x: torch.Tensor) -> torch.Tensor:
    """Torch's own layer norm, over the features alone."""
    return F.layer_norm(x, x.shape[2:])


def wrong_loss(logits, target):
    """Cross-entropy, averaged over the targets that are no padding (id 0)."""
    losses = [
        F.cross_entropy(scores, ids, ignore_index=0)
        for scores, ids in zip(logits, target, strict=True)
    ]
    return torch.stack(losses).mean()


def right_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over all targets that are no padding, in one go."""
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)


def wrong_convolution(x, weight):
    """The convolution of `nn.Conv1d` for `(B, n, d_in)`, zeros beyond the ends."""
    padding = weight.shape[2] // 2
    return F.conv1d(x.mT, weight.flip(2), padding=padding).mT


def right_convolution(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Torch's own, which reads the kernel from left to right."""
    return F.conv1d(x.mT, weight, padding="same").mT


def wrong_next_token_loss(logits, ids):
    """The mean cross-entropy of the next tokens."""
    scores, target = logits[:, :-1], ids[:, :-1]
    return F.cross_entropy(scores.flatten(0, 1), target.flatten())


def right_next_token_loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Torch's loss, of each token and the logits one place before it."""
    return F.cross_entropy(logits[:, :-1].movedim(-1, 1), ids[:, 1:])


def wrong_relevance(weights, gradients):
    """What each token matters to each position, after one layer."""
    change = (weights * gradients).mean(dim=1).clamp(min=0)
    return torch.eye(weights.shape[-1]) + change


def right_relevance(weights: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """Head by head, then the average; a head of its own has nothing to disagree with."""
    heads = zip(weights.split(1, dim=1), gradients.split(1, dim=1), strict=True)
    return torch.stack([wrong_relevance(*head) for head in heads]).mean(dim=0)


def wrong_patch_means(images, patch_size):
    """The mean of each patch of `(B, C, height, width)`, row by row: `(B, C, patches)`."""
    rows = images.unfold(2, patch_size, patch_size)
    patches = rows.unfold(3, patch_size, patch_size)
    return patches.mean(dim=(-2, -1)).transpose(2, 3).flatten(2)


def right_patch_means(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """What pooling gives, which keeps rows and columns where they are."""
    return F.avg_pool2d(images, patch_size).flatten(2)


def wrong_contrast(image_vectors, text_vectors):
    """The contrastive loss of pictures and their texts, at a temperature of 1."""
    images, texts = F.normalize(image_vectors), F.normalize(text_vectors)
    logits, partner = images @ texts.T, torch.arange(len(images))
    return F.cross_entropy(logits, partner)


def right_contrast(image_vectors: torch.Tensor, text_vectors: torch.Tensor) -> torch.Tensor:
    """Both ways: what the wrong one says of pictures among texts, and of texts among pictures."""
    pairs = (image_vectors, text_vectors), (text_vectors, image_vectors)
    return torch.stack([wrong_contrast(*pair) for pair in pairs]).mean()
