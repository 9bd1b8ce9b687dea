"""Known answers to `pack`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, MADE_ON_THE_CPU, THROUGH_NUMPY
from solutions import masking as right

BANK = Bank("pack", right, globals())

BANK.changes("""
positions_run_on
    ~ torch.arange(len(sequence), device=device) → torch.arange(start, end, device=device)
    The positions run on through the row. Each sequence begins anew at 0, as if it stood alone:
    otherwise its meaning depends on what happens to stand before it.
positions_of_padding_run_on
    - positions = torch.zeros(len(taken), length, dtype=torch.long, device=device)
    + positions = torch.arange(length, device=device).repeat(len(taken), 1)
    The positions of padding are its columns. They should be 0.
positions_from_one: positions[row, start:end] = torch → positions[row, start:end] = 1 + torch
    The first token of a sequence has position 1. Count from 0.
mask_hides_padding_only
    ~ (owner[:, :, None] == owner[:, None, :]) → (owner[:, None, :] >= 0)
    The mask hides the padding and nothing else: a token sees all sequences of its row. It may see
    its own only.
nothing_begins_anew of mask_hides_padding_only
    ~ torch.arange(len(sequence), device=device) → torch.arange(start, end, device=device)
    The row is treated as one long sequence: the positions run on, and a token sees all that stands
    in its row. Each sequence should have its own positions, from 0, and see itself alone.
padding_sees_padding
    - mask = (owner[:, :, None] == owner[:, None, :]) & (owner[:, :, None] >= 0)
    + mask = owner[:, :, None] == owner[:, None, :]
    Padding sees padding, as if the rest of a row were one more sequence. It sees nothing.
token_0_is_padding
    - & (owner[:, :, None] >= 0)
    + & (tokens != 0)[:, :, None] & (tokens != 0)[:, None, :]
    Tokens with the id 0 are hidden as if they were padding. What is padding, the lengths say: 0 may
    be a token.
equal_tokens_see_each_other
    ~ owner[:, :, None] == owner[:, None, :] → tokens[:, :, None] == tokens[:, None, :]
    A token sees those with its own id. It sees those of its own sequence.
causal_ignored: if causal → if False
    causal=True changes nothing: a token sees what comes after it in its sequence.
always_causal: if causal → if True
    The mask is causal, though causal is False: a token does not see what comes after it.
causal_mask_alone
    - mask = mask & causal_mask(length, device=device)
    + mask = causal_mask(length, device=device).expand(len(taken), -1, -1)
    With causal=True the mask is the triangle of the whole row: a token sees the sequences before
    its own, and padding sees everything. Both must allow: the same sequence, and not later.
causal_or_same: mask & causal_mask → mask | causal_mask
    With causal=True one of the two is enough: the same sequence, or not later. Both must hold.
itself_hidden
    - mask & causal_mask(length, device=device)
    + mask & causal_mask(length, device=device).tril(-1)
    With causal=True a token does not see itself. It does.
the_future_for_the_past
    - mask & causal_mask(length, device=device)
    + mask & causal_mask(length, device=device).T
    With causal=True a token sees itself and what is after it. It should be what is before.
polarity_inverted: mask[:, None] → ~mask[:, None]
    True and False are swapped in the mask. In this book True means may attend.
head_axis_missing: mask[:, None] → mask
    The mask has the shape (rows, length, length). Against scores (rows, heads, length, length) its
    rows line up with the heads: it needs an axis of size 1 for these.
numbers_for_booleans: mask[:, None] → mask[:, None].float()
    The mask holds 1 and 0 instead of True and False.
only_the_last_row_is_tried
    - next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
    + len(taken) - 1 if taken and taken[-1] + n <= length else len(taken)
    Only the last row is looked at (that is next fit). A short sequence may still fit into an
    earlier row: look through all of them, from the first on.
fullest_row_that_has_room
    - row = next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
    + room = [r for r, used in enumerate(taken) if used + n <= length]
    + row = max(room, key=taken.__getitem__, default=len(taken))
    Of the rows that have room the fullest is taken (that is best fit). It should be the first.
emptiest_row_that_has_room
    - row = next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
    + room = [r for r, used in enumerate(taken) if used + n <= length]
    + row = min(room, key=taken.__getitem__, default=len(taken))
    Of the rows that have room the emptiest is taken. It should be the first.
last_row_that_has_room
    - row = next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
    + room = [r for r, used in enumerate(taken) if used + n <= length]
    + row = max(room, default=len(taken))
    Of the rows that have room the last is taken. It should be the first.
longest_first: + sequences = sorted(sequences, key=len, reverse=True)
    The longest sequences are laid down first. That often needs fewer rows, but here the given order
    counts.
shortest_first: + sequences = sorted(sequences, key=len)
    The shortest sequences are laid down first. Here the given order counts.
a_row_for_each
    - next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
    + len(taken)
    Each sequence has a row of its own: that is padding, not packing.
exact_fit_refused: used + n <= length → used + n < length
    A sequence that would fill a row to the last place goes elsewhere. It fits: n places are enough
    for n tokens.
full_length_refused: n > length → n >= length
    A sequence as long as a row is a ValueError. It fits: it fills a row of its own.
empty_sequence_begins_a_row: used + n <= length → n and used + n <= length
    An empty sequence begins a row of its own. It fits into the first row, and takes no room.
empty_sequence_left_out: + sequences = [s for s in sequences if len(s)] or sequences[:1]
    Empty sequences are left out, so the places are fewer than the sequences, and those behind have
    another's place.
too_long_is_cut
    - for sequence in sequences:
    -     n = len(sequence)
    -     if n > length:
    -         raise ValueError(f"a sequence of {n} tokens does not fit into a row of {length}")
    + sequences = [sequence[:length] for sequence in sequences]
    + for sequence in sequences:
    +     n = len(sequence)
    What is longer than a row is cut off in silence. Raise a ValueError.
error_without_numbers
    - f"a sequence of {n} tokens does not fit into a row of {length}"
    + "a sequence does not fit"
    The ValueError does not say how long the sequence is, nor what it should fit into.
assert_for_an_error: ValueError → AssertionError
    A sequence that does not fit raises an AssertionError. A caller's mistake deserves a ValueError.
gap_between_sequences
    ~ used + n <= length → used + (used > 0) + n <= length
    - places.append((row, taken[row]))
    + taken[row] += taken[row] > 0
    + places.append((row, taken[row]))
    One place is left free between two sequences. The mask separates them; lay them right behind one
    another.
as_wide_as_the_fullest_row
    - device = sequences[0].device
    + device, length = sequences[0].device, max(taken)
    The rows are as long as the fullest of them. They have `length` places, full or not.
last_row_lost
    - return tokens, positions, mask[:, None], torch.tensor(places, device=device)
    + last = max(len(taken) - 1, 1)
    + where = torch.tensor(places, device=device)
    + return tokens[:last], positions[:last], mask[:last, None], where
    The last row is missing. A row must be kept although no other begins after it.
places_in_the_order_of_the_rows: (places, device=device) → (sorted(places), device=device)
    The places come row after row. They belong to the sequences in the order in which these were
    given.
column_before_row: (places, device=device) → (places, device=device).flip(-1)
    The places are (column, row). Rows come first.
where_each_ends
    - torch.tensor(places, device=device)
    + torch.tensor([(r, c + len(s)) for (r, c), s in zip(places, sequences)], device=device)
    The places say where the sequences end. They should say where they begin.
places_left_out: > result = result[:3]
    The places are not returned: (tokens, positions, mask, places).
positions_in_the_sequences_dtype: tokens, positions, mask → tokens, positions.to(tokens), mask
    The positions have the sequences' dtype. They are long, whatever that is.
tokens_always_long: tokens, positions, mask → tokens.long(), positions, mask
    The tokens are long, whatever the sequences' dtype is. Keep it.
sequences_used_up: > del sequences[:]
    The caller's list is empty afterwards: pop takes out of the list that was passed in.
""")


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


BANK.changes(f"""
made_on_the_cpu: causal_mask(length, device=device) → causal_mask(length)
    {MADE_ON_THE_CPU}
through_numpy: + sequences = [torch.from_numpy(sequence.numpy()) for sequence in sequences]
    {THROUGH_NUMPY}
left_on_the_cpu: > result = tuple(part.cpu() for part in result)
    {LEFT_ON_THE_CPU}
""")
