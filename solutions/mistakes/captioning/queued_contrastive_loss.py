"""Known answers to `queued_contrastive_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("queued_contrastive_loss", right, globals())
BANK.read()


@BANK.right
def side_by_side(vectors, keys, queue, size, temperature=0.07):
    """Each side on its own, and the queue's logits beside those of the batch."""
    unit = [x / x.norm(dim=-1, keepdim=True) for x in (vectors, keys.detach())]
    partner = torch.arange(vectors.shape[1], device=vectors.device)
    losses = []
    for asks, answers in ((0, 1), (1, 0)):
        batch = unit[0][asks] @ unit[1][answers].T
        older = unit[0][asks] @ queue[answers].detach().T
        losses.append(F.cross_entropy(torch.cat([batch, older], 1) / temperature, partner))
    return sum(losses) / 2, torch.cat([unit[1], queue.detach()], 1)[:, :size]


@BANK.right
def by_logsumexp(vectors, keys, queue, size, temperature=0.07):
    """The partner's logit from the sum of a product; nothing is recorded of what answers."""
    with torch.no_grad():
        new = torch.cat((F.normalize(keys, dim=2), queue), dim=1)
    similar = torch.einsum("sbd,skd->sbk", F.normalize(vectors, dim=2), new[[1, 0]]) / temperature
    own = similar.diagonal(dim1=1, dim2=2)
    return (similar.logsumexp(2) - own).mean(), new[:, : min(size, new.shape[1])].clone()


@BANK.right
def with_one_hot_targets(vectors, keys, queue, size, temperature=0.07):
    """The queue stands in front in the logits, and is scaled once more."""
    B, q = vectors.shape[1], queue.shape[1]
    old_and_new = F.normalize(torch.cat([queue, keys], dim=1).detach(), dim=-1)
    logits = F.normalize(vectors, dim=-1) @ old_and_new.flip([0]).transpose(1, 2) / temperature
    target = F.pad(torch.eye(B, dtype=logits.dtype, device=logits.device), (q, 0))
    loss = [-(target * rows.log_softmax(-1)).sum(-1).mean() for rows in logits]
    kept = max(0, size - B)
    return torch.stack(loss).mean(), torch.cat(
        [old_and_new[:, q:][:, :size], old_and_new[:, :q][:, :kept]], dim=1
    )


@BANK.right
def in_parts(vectors, keys, queue, size, temperature=0.07):
    """Pictures and texts by name, and cosines from torch."""
    images, texts = vectors.unbind()
    answers = torch.cat([nn.functional.normalize(keys, dim=-1), queue], dim=1).detach()
    image_keys, text_keys = answers.unbind()
    cosine = nn.CosineSimilarity(dim=-1)
    rows = cosine(images[:, None], text_keys[None]) / temperature
    columns = cosine(texts[:, None], image_keys[None]) / temperature
    order = torch.arange(rows.shape[0], device=rows.device)
    loss = nn.CrossEntropyLoss()
    new = torch.stack([image_keys[:size], text_keys[:size]])
    return 0.5 * (loss(rows, order) + loss(columns, order)), new


@BANK.right
def one_step_with_chosen_rows(vectors, keys, queue, size, temperature=0.07):
    """The queue by index; the loss from chosen log-probabilities."""
    keys = keys.detach() / keys.detach().square().sum(-1, keepdim=True).sqrt()
    everything = torch.cat([keys, queue.detach()], dim=1)
    order = torch.arange(everything.shape[1], device=everything.device)
    asking = vectors / vectors.square().sum(-1, keepdim=True).sqrt() / temperature
    chances = (asking @ everything[[1, 0]].mT).log_softmax(dim=-1)
    i = order[: vectors.shape[1]]
    return -chances[:, i, i].mean(), everything.index_select(1, order[order < size])
