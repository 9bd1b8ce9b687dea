"""Known answers to `contrastive_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("contrastive_loss", right, globals())
BANK.read()


@BANK.right
def by_log_softmax(image_vectors, text_vectors, temperature=0.07):
    similar = F.cosine_similarity(image_vectors[:, None], text_vectors[None], dim=-1)
    rows, columns = (F.log_softmax(similar / temperature, dim=d).diagonal() for d in (1, 0))
    return -(rows.mean() + columns.mean()) / 2


@BANK.right
def by_logsumexp(image_vectors, text_vectors, temperature=0.07):
    images = image_vectors / image_vectors.norm(dim=1, keepdim=True)
    texts = text_vectors / text_vectors.norm(dim=1, keepdim=True)
    logits = torch.einsum("id,td->it", images, texts) / temperature
    own = logits.diagonal()
    return (logits.logsumexp(1) + logits.logsumexp(0) - 2 * own).mean() / 2


@BANK.right
def temperature_on_the_vectors(image_vectors, text_vectors, temperature=0.07):
    scale = temperature**-0.5
    images, texts = (nn.functional.normalize(x) * scale for x in (image_vectors, text_vectors))
    logits = images.matmul(texts.mT)
    partner = torch.arange(logits.shape[0], device=logits.device)
    loss = nn.CrossEntropyLoss()
    return torch.stack([loss(logits, partner), loss(logits.mT, partner)]).mean()


@BANK.right
def with_one_hot_targets(image_vectors, text_vectors, temperature=0.07):
    lengths = [x.square().sum(-1, keepdim=True).sqrt() for x in (image_vectors, text_vectors)]
    logits = (image_vectors / lengths[0]) @ (text_vectors / lengths[1]).T / temperature
    target = torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    return 0.5 * F.cross_entropy(logits, target) + 0.5 * F.cross_entropy(logits.T, target)
