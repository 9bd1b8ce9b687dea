"""Known answers to `pack`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("pack", right, globals())
BANK.read()


def split_over_rows(sequences, length, causal=False):
    """The sequences are joined and cut every `length` tokens, so that some go on in the next row,
    where they do not see their own beginning. Each should stay in one piece."""
    if max(map(len, sequences)) > length:
        raise ValueError(f"{max(map(len, sequences))} > {length}")
    ids = torch.cat(sequences)
    lengths = torch.tensor([len(s) for s in sequences])
    number = torch.arange(len(sequences)).repeat_interleave(lengths)
    places = torch.arange(len(ids)) - (lengths.cumsum(0) - lengths).repeat_interleave(lengths)
    rows = max(-(-len(ids) // length), 1)
    rest = (0, rows * length - len(ids))
    owner = F.pad(number, rest, value=-1).view(rows, length)
    mask = (owner[:, :, None] == owner[:, None]) & (owner >= 0)[:, :, None]
    if causal:
        mask = mask.tril()
    starts = lengths.cumsum(0) - lengths
    where = torch.stack([starts // length, starts % length], 1)
    tokens, positions = (F.pad(x, rest).view(rows, length) for x in (ids, places))
    return tokens, positions, mask[:, None], where


BANK.mistake(split_over_rows)


def _rows(sequences, length):
    """Lists of the numbers of the sequences in each row, by first fit."""
    rows = []
    for i, sequence in enumerate(sequences):
        if len(sequence) > length:
            raise ValueError(f"length {len(sequence)} exceeds {length}")
        for row in rows:
            if sum(len(sequences[j]) for j in row) + len(sequence) <= length:
                row.append(i)
                break
        else:
            rows.append([i])
    return rows


@BANK.right
def in_lists_of_python(sequences, length, causal=False):
    """Lists only, tensors at the end."""
    texts = [s.tolist() for s in sequences]
    tokens, positions, owners, places = [], [], [], [None] * len(texts)
    for row in _rows(texts, length):
        ids, at, whose = [], [], []
        for i in row:
            places[i] = [len(tokens), len(ids)]
            ids += texts[i]
            at += range(len(texts[i]))
            whose += [i] * len(texts[i])
        rest = length - len(ids)
        tokens.append(ids + [0] * rest)
        positions.append(at + [0] * rest)
        owners.append(whose + [None] * rest)
    mask = [
        [
            [
                [a is not None and a == b and (not causal or k <= q) for k, b in enumerate(whose)]
                for q, a in enumerate(whose)
            ]
        ]
        for whose in owners
    ]
    first = sequences[0]
    tokens = torch.tensor(tokens, dtype=first.dtype, device=first.device)
    return (tokens, *(torch.tensor(x, device=first.device) for x in (positions, mask, places)))


@BANK.right
def blocks_along_the_diagonal(sequences, length, causal=False):
    """cat and block_diag, a row at a time."""
    tokens, positions, masks, places = [], [], [], {}
    for r, row in enumerate(_rows(sequences, length)):
        parts = [sequences[i] for i in row]
        full = sum(map(len, parts))
        for i in row:
            places[i] = (r, sum(len(sequences[j]) for j in row if j < i))
        device = parts[0].device
        squares = [torch.ones(len(p), len(p), device=device) for p in parts if len(p)]
        mask = torch.zeros(length, length, device=device)
        if squares:
            mask[:full, :full] = torch.block_diag(*squares)
        masks.append((mask.tril() if causal else mask).bool())
        tokens.append(F.pad(torch.cat(parts), (0, length - full)))
        at = torch.cat([torch.arange(len(p), device=device) for p in parts])
        positions.append(F.pad(at, (0, length - full)))
    where = torch.tensor([places[i] for i in range(len(sequences))], device=device)
    return torch.stack(tokens), torch.stack(positions), torch.stack(masks).unsqueeze(1), where


@BANK.right
def all_tokens_at_once(sequences, length, causal=False):
    """One index for each token in the flattened rows; the mask compares begins and distances."""
    rows = _rows(sequences, length)
    places = [(0, 0)] * len(sequences)
    for r, row in enumerate(rows):
        start = 0
        for i in row:
            places[i] = r, start
            start += len(sequences[i])
    first = sequences[0]
    where = first.new_tensor(places).long()
    lengths = first.new_tensor([len(s) for s in sequences]).long()
    begins = (where[:, 0] * length + where[:, 1]).repeat_interleave(lengths)
    within = torch.cat([torch.arange(len(s), device=first.device) for s in sequences])
    size = len(rows) * length
    tokens = torch.zeros(size, dtype=first.dtype, device=first.device)
    positions, begin = torch.zeros_like(tokens).long(), torch.zeros_like(tokens).long() - 1
    tokens[begins + within] = torch.cat(list(sequences))
    positions[begins + within] = within
    begin[begins + within] = begins
    tokens, positions, begin = (x.unflatten(0, (-1, length)) for x in (tokens, positions, begin))
    mask = (begin.unsqueeze(2) == begin.unsqueeze(1)) & begin.ge(0).unsqueeze(1)
    if causal:
        at = torch.arange(length, device=first.device)
        mask &= at <= at[:, None]
    return tokens, positions, mask.unsqueeze(1), where


@BANK.right
def by_numpy(sequences, length, causal=False):
    """Arrays of the largest size that may be needed, cut in the end; the mask is filled square by
    square."""
    texts = [s.cpu().numpy() for s in sequences]
    n = len(texts)
    left = np.full(n, length)
    tokens = np.zeros((n, length), texts[0].dtype)
    positions, places = np.zeros((n, length), np.int64), np.zeros((n, 2), np.int64)
    mask = np.zeros((n, 1, length, length), bool)
    for i, text in enumerate(texts):
        size = len(text)
        if size > length:
            raise ValueError(f"{size} tokens, but a row has {length}")
        row = int(np.argmax(left >= size))
        start = length - left[row]
        left[row] -= size
        places[i] = row, start
        here = slice(start, start + size)
        tokens[row, here], positions[row, here] = text, np.arange(size)
        square = np.ones((size, size), bool)
        mask[row, 0, here, here] = np.tril(square) if causal else square
    rows = places[:, 0].max() + 1
    made = (tokens[:rows], positions[:rows], mask[:rows], places)
    return tuple(torch.from_numpy(x.copy()).to(sequences[0].device) for x in made)


@BANK.right
def read_off_the_positions(sequences, length, causal=False):
    """A sequence begins where the position is 0: the mask counts the beginnings so far."""
    rows, places = [], []
    for s in sequences:
        if s.numel() > length:
            raise ValueError(f"{s.numel()} is more than {length}")
        r = 0
        while r < len(rows) and rows[r].shape[1] + s.numel() > length:
            r += 1
        if r == len(rows):
            rows.append(torch.empty(2, 0, dtype=torch.long, device=s.device))
        places.append(torch.tensor([r, rows[r].shape[1]], device=s.device))
        more = torch.stack([s.long(), torch.arange(s.numel(), device=s.device)])
        rows[r] = torch.cat([rows[r], more], dim=1)
    both = torch.stack([F.pad(row, (0, length - row.shape[1]), value=-1) for row in rows], 1)
    real = torch.stack([torch.arange(length, device=row.device) < row.shape[1] for row in rows])
    number = ((both[1] == 0) & real).cumsum(1)
    mask = number[:, :, None].eq(number[:, None, :]) & real[:, :, None] & real[:, None, :]
    if causal:
        mask = mask.tril()
    tokens, positions = both.where(real, torch.zeros_like(both))
    return tokens.to(sequences[0].dtype), positions, mask[:, None], torch.stack(places)
