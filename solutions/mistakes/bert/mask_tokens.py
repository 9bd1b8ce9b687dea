"""Known answers to `mask_tokens`: mistakes, then right answers."""

import random

import numpy as np
import torch

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("mask_tokens", right, globals())
BANK.read()


@BANK.right
def by_bernoulli(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """As Hugging Face's collator does it: a half of what is not masked becomes random."""

    def happens(p):
        return torch.bernoulli(torch.full(ids.shape, p, device=ids.device), generator=generator)

    inputs, labels = ids.clone(), ids.clone()
    chosen = happens(probability).bool()
    for token in special_ids:
        chosen &= ids != token
    labels[~chosen] = -100
    masked = happens(0.8).bool() & chosen
    inputs[masked] = mask_id
    replaced = happens(0.5).bool() & chosen & ~masked
    words = torch.randint(
        0, vocab_size, labels.shape, dtype=torch.long, device=ids.device, generator=generator
    )
    inputs[replaced] = words[replaced]
    return inputs, labels


@BANK.right
def only_where_needed(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """Fates and random ids for the chosen tokens alone."""
    special = torch.zeros_like(ids, dtype=torch.bool)
    for token in set(special_ids):
        special |= ids == token
    draw = torch.rand(ids.shape, device=ids.device, generator=generator)
    chosen = torch.nonzero((draw < probability) & ~special, as_tuple=True)
    truth = ids[chosen]
    kind = torch.randint(10, truth.shape, device=ids.device, generator=generator)
    words = torch.randint(vocab_size, truth.shape, device=ids.device, generator=generator)
    new = torch.where(kind < 8, torch.full_like(truth, mask_id), truth)
    new = torch.where(kind == 8, words, new)
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    inputs[chosen], labels[chosen] = new, truth
    return inputs, labels


@BANK.right
def token_by_token(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """Lists of Python, with all chances from one tensor."""
    chances = torch.rand(*ids.shape, 3, generator=generator, device=ids.device).tolist()
    inputs, labels = [], []
    for row, draws in zip(ids.tolist(), chances, strict=True):
        inputs.append([])
        labels.append([])
        for token, (first, second, third) in zip(row, draws, strict=True):
            chosen = first < probability and token not in special_ids
            labels[-1].append(token if chosen else -100)
            fate = int(second * 10) if chosen else 9
            inputs[-1].append(
                mask_id if fate < 8 else int(third * vocab_size) if fate < 9 else token
            )
    made = (torch.tensor(x, dtype=torch.long, device=ids.device) for x in (inputs, labels))
    return tuple(made)


@BANK.right
def by_multinomial(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """One draw of five fates, and one of the ids."""
    shares = torch.tensor([0.8, 0.1, 0.1, 0.0], dtype=torch.double) * probability
    shares[3] = 1 - probability
    shares = shares.to(ids.device)
    fate = torch.multinomial(shares, ids.numel(), replacement=True, generator=generator)
    fate = fate.view(ids.shape)
    allowed = torch.ones_like(ids, dtype=torch.bool)
    for token in special_ids:
        allowed = allowed & ids.ne(token)
    fate = fate.where(allowed, 3)
    words = torch.rand(ids.shape, generator=generator, device=ids.device) * vocab_size
    inputs = torch.where(fate == 0, mask_id, ids)
    inputs = torch.where(fate == 1, words.long(), inputs)
    return inputs, torch.where(fate < 3, ids, -100)


@BANK.right
def a_seed_for_everything(
    ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None
):
    """One number from torch seeds a generator of Python's own."""
    seed = int(torch.randint(2**62, (1,), generator=generator, device=ids.device))
    draw = random.Random(seed)
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    for i, row in enumerate(ids.tolist()):
        for j, token in enumerate(row):
            if token in special_ids or draw.random() >= probability:
                continue
            labels[i, j] = token
            fate = draw.random()
            if fate < 0.8:
                inputs[i, j] = mask_id
            elif fate < 0.9:
                inputs[i, j] = draw.randrange(vocab_size)
    return inputs, labels


_OWN = torch.Generator().manual_seed(0)


@BANK.mistake
def generator_of_its_own(
    ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None
):
    """Without a generator, all is drawn from one that lies beside the function, so that torch's
    seed changes nothing. Draw from torch's own: pass on generator, which may be None."""
    given = ids, mask_id, vocab_size, special_ids, probability
    return right.mask_tokens(*given, generator=generator or _OWN)
