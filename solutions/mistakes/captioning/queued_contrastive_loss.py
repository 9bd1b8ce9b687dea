"""Known answers to `queued_contrastive_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("queued_contrastive_loss", right, globals())

BANK.changes("""
keys_attached: keys.detach() → keys
    The keys are not detached, so the loss changes what made them, and the queue keeps the graph of
    every batch in it.
loss_learns_through_keys
    ~ keys.detach() → keys
    ~ answers[:, :size] → answers[:, :size].detach()
    The new queue is detached, but the loss sends gradients through the keys. Only the vectors
    should learn.
queue_keeps_its_graph
    ~ keys.detach() → keys
    ~ answers.flip(0) → answers.detach().flip(0)
    The loss sends nothing through the keys, but the new queue still has their graph: memory grows
    with every batch.
queue_attached: queue.detach() → queue
    The keys are detached, the given queue is not: a gradient reaches it.
nothing_detached: keys.detach() → keys ; queue.detach() → queue
    Neither the keys nor the queue are detached: the loss changes what made them, and the graph of
    every batch stays in memory as long as its keys are in the queue.
vectors_detached: F.normalize(vectors, dim=-1) → F.normalize(vectors.detach(), dim=-1)
    No gradient reaches the vectors (torch.no_grad, .detach(), NumPy, torch.tensor …), so nothing
    learns. It is keys and queue that get none.
lengths_left
    ~ F.normalize(vectors, dim=-1), F.normalize(keys.detach(), dim=-1) → vectors, keys.detach()
    Neither vectors nor keys are scaled to length 1.
vectors_not_scaled: F.normalize(vectors, dim=-1) → vectors
    The keys are scaled to length 1, the vectors are not.
keys_not_scaled: F.normalize(keys.detach(), dim=-1) → keys.detach()
    The keys are not scaled to length 1, in the loss and in the queue.
keys_enqueued_unscaled
    ~ F.normalize(keys.detach(), dim=-1) → keys.detach()
    ~ answers.flip(0) → F.normalize(answers, dim=-1).flip(0)
    The loss is right, but the keys go into the queue with the lengths they came with. There, all
    have length 1.
partner_behind_the_queue
    - answers = torch.cat([keys, queue.detach()], dim=1)
    + answers = torch.cat([queue.detach(), keys], dim=1)
    ~ answers[:, :size] → torch.cat([keys, queue.detach()], dim=1)[:, :size]
    The labels count from the first key of the queue, which stands in front in the logits. The right
    answer to i is key i of the batch.
partner_is_the_first
    - torch.arange(logits.shape[1], device=logits.device)
    + torch.zeros_like(logits[0, :, 0]).long()
    The right answer to all is key 0, as in MoCo, where each row of logits begins with its own.
    Here, the right answer to i is key i of the batch.
queue_alone
    - logits = asking @ answers.flip(0).mT / temperature
    + own = (asking * keys.flip(0)).sum(-1, keepdim=True)
    + logits = torch.cat([own, asking @ queue.detach().flip(0).mT], dim=-1) / temperature
    ~ torch.arange(logits.shape[1], device=logits.device) → torch.zeros_like(logits[0, :, 0]).long()
    The wrong answers are those of the queue alone, as in MoCo. Those of the batch count, too.
queue_not_asked: answers.flip(0) → keys.flip(0)
    The queue is kept, but the loss does not use it: the wrong answers are those of the batch alone.
texts_without_the_queue
    - logits = asking @ answers.flip(0).mT / temperature
    + logits = asking @ answers.flip(0).mT / temperature
    + logits[1, :, len(keys[0]) :] = -torch.inf
    Pictures ask among the queue as well, texts among the batch alone. Both need their queue.
only_what_is_kept: answers.flip(0) → answers[:, :max(size, len(keys[0]))].flip(0)
    The queue is cut before the loss, so its oldest keys are not among the wrong answers. `size`
    says how many are kept for the next batch.
vectors_answer
    ~ answers.flip(0) → torch.cat([asking, queue.detach()], dim=1).flip(0)
    Vectors are compared with vectors, and the keys only go into the queue. The answers in the batch
    are keys, too.
vectors_enqueued
    ~ answers[:, :size] → torch.cat([asking.detach(), queue.detach()], dim=1)[:, :size]
    What goes into the queue are the vectors. It should be the keys.
among_their_own: answers.flip(0).mT → answers.mT
    Pictures are compared with keys of pictures, and texts with keys of texts.
queues_swapped
    - answers = torch.cat([keys, queue.detach()], dim=1)
    + answers = torch.cat([keys, queue.detach().flip(0)], dim=1)
    ~ answers[:, :size] → torch.cat([keys, queue.detach()], dim=1)[:, :size]
    In the batch, pictures ask among texts, but in the queue among pictures, and texts among texts.
only_pictures_ask
    ~ logits.flatten(0, 1), partner → logits[0], partner[: len(logits[0])]
    Only one way counts: from picture to text. The other one is missing.
only_texts_ask
    ~ logits.flatten(0, 1), partner → logits[1], partner[: len(logits[1])]
    Only one way counts: from text to picture. The other one is missing.
ways_added: return F.cross_entropy → return 2 * F.cross_entropy
    The two ways are added. Take their mean.
summed_over_the_batch: 1), partner) → 1), partner, reduction="sum")
    The losses of a batch are summed: a larger batch has a larger loss. Take their mean.
temperature_ignored: .mT / temperature → .mT
    The temperature makes no difference.
temperature_on_the_batch_alone
    - logits = asking @ answers.flip(0).mT / temperature
    + logits = asking @ torch.cat([keys / temperature, queue.detach()], dim=1).flip(0).mT
    Only the similarities within the batch are divided by the temperature; those to the queue are
    not.
temperature_multiplied: / temperature → * temperature
    The similarities are multiplied by the temperature. They should be divided by it.
temperature_fixed: / temperature → / 0.07
    The temperature is 0.07, whatever is given.
temperature_is_one_by_default: temperature=0.07 → temperature=1.0
    The temperature is 1 unless it is given. It should be 0.07.
queue_grows: answers[:, :size] → answers
    Nothing leaves the queue: it grows with every batch, whatever `size` is.
oldest_kept
    ~ answers[:, :size] → torch.cat([queue.detach(), keys], dim=1)[:, :size]
    The queue is full of its oldest keys, and those of the batch find no place. The oldest should
    go.
oldest_thought_first
    - answers[:, :size]
    + torch.cat([queue.detach(), keys], dim=1)[:, -size:]
    The keys of the batch go behind the queue, and those in front leave it, as if the oldest stood
    there. The newest come first.
newest_last
    - answers[:, :size]
    + answers[:, :size].roll(answers[:, :size].shape[1] - len(keys[0, :size]), 1)
    The right keys are kept, but those of the batch stand at the end. They should come first.
batch_reversed
    - answers[:, :size]
    + torch.cat([keys.flip(1), queue.detach()], dim=1)[:, :size]
    The keys of the batch go into the queue in reverse, the last one first.
newest_replaced
    - answers[:, :size]
    + torch.cat([keys, queue.detach()[:, len(keys[0]) :]], dim=1)[:, :size]
    The batch replaces the front of the queue, which is the batch before it. The oldest should go,
    and they stand at the end.
length_stays: :size] → : len(queue[0])]
    The queue keeps the length it has, so one that begins empty never fills. Its length is `size`.
queue_stays: answers[:, :size] → queue.detach()[:, :size]
    The keys of the batch do not enter the queue.
queue_overwritten
    > n = min(len(queue[0]), len(result[1][0]))
    > queue[:, :n] = result[1][:, :n]
    The result is right, but the caller's queue is overwritten.
keys_scaled_in_place: + keys.div_(keys.norm(dim=-1, keepdim=True))
    The caller's keys are scaled, in place.
lengths_detached
    ~ F.normalize(vectors, dim=-1) → vectors / vectors.detach().norm(dim=-1, keepdim=True)
    The lengths are detached, so the gradient does not know that vectors are scaled: it pulls them
    longer and shorter as well.
rounded_to_single: > result = (result[0].float(), result[1].float())
    Loss and queue are float32 whatever the vectors are.
loss_alone: > result = result[0]
    Only the loss comes back. The new queue is wanted, too.
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


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


forgotten(BANK, "vectors")
