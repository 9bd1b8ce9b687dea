"""Known answers to `recall_at`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("recall_at", right, globals())

BANK.changes("""
exchanged: > result = result[::-1]
    The two shares have changed places: the first is that of the rows, from picture to text.
rows_twice: share(similarity), share(similarity.T) → share(similarity), share(similarity)
    Both shares are of the rows. The second should be of the columns, from text to picture.
columns_twice: share(similarity), share(similarity.T) → share(similarity.T), share(similarity.T)
    Both shares are of the columns. The first should be of the rows, from picture to text.
averaged: > result = ((result[0] + result[1]) / 2,) * 2
    Both numbers are the mean of the two shares. Return each by itself.
only_one_way: > result = result[0]
    Only one share is returned. Return two, from picture to text and from text to picture.
numbers_for_shares
    ~ .double().mean().item() → .double().sum().item()
    The partners found are counted. Return their share: divide by n.
lowest_for_highest: descending=True → descending=False
    The k lowest are taken for the best.
k_plus_one: [:, :k] → [:, : k + 1]
    The k + 1 best count as found.
k_minus_one: [:, :k] → [:, : k - 1]
    Only the k − 1 best count as found.
only_the_first: [:, :k] → [:, :1]
    Only the highest number counts, whatever k is.
the_kth_alone: [:, :k] → [:, k - 1 : k]
    Only the number at place k counts. All places up to k do.
equal_ones_pass
    - order = rows.argsort(dim=1, descending=True, stable=True)[:, :k]
    - partner = torch.arange(len(rows), device=rows.device)[:, None]
    - return (order == partner).any(dim=1).double().mean().item()
    + above = (rows >= rows.diagonal()[:, None]).sum(dim=1)
    + return (above <= k).double().mean().item()
    Those that are as high as the partner come before it, wherever they stand. Of equal numbers, the
    one with the lower index comes first.
equal_ones_do_not_count
    - order = rows.argsort(dim=1, descending=True, stable=True)[:, :k]
    - partner = torch.arange(len(rows), device=rows.device)[:, None]
    - return (order == partner).any(dim=1).double().mean().item()
    + above = (rows > rows.diagonal()[:, None]).sum(dim=1)
    + return (above < k).double().mean().item()
    Those that are as high as the partner never come before it. Of equal numbers, the one with the
    lower index does: a model that finds everything alike finds nothing.
higher_index_first
    - order = rows.argsort(dim=1, descending=True, stable=True)[:, :k]
    + order = len(rows) - 1 - rows.flip(1).argsort(dim=1, descending=True, stable=True)[:, :k]
    Of equal numbers, the one with the higher index comes first. It should be the lower.
partner_left_out: order = rows. → order = rows.clone().fill_diagonal_(-torch.inf).
    The partner is taken out before the best are looked for.
size_for_value: order = rows. → order = rows.abs().
    The numbers are compared without their signs.
half_precision: order = rows. → order = rows.half().
    The numbers are rounded to float16 before they are compared, and what hardly differs becomes
    equal.
single_precision: order = rows. → order = rows.float().
    The numbers are rounded to float32 before they are compared.
k_too_large_is_an_error
    + if k > len(similarity):
    +     raise ValueError(f"k = {k} is more than there are")
    A k above n is refused. All partners are among the best then.
no_error
    - if k < 1:
    -     raise ValueError(f"k = {k}, and the best are at least one")
    A k below 1 is accepted: expected a ValueError.
zero_for_no_best
    - if k < 1:
    -     raise ValueError(f"k = {k}, and the best are at least one")
    + if k < 1:
    +     return 0.0, 0.0
    For a k below 1, shares of 0 are returned. Expected a ValueError that names k.
only_zero_refused: if k < 1: → if k == 0:
    A negative k is accepted.
error_without_k: f"k = {k}, and the best are at least one" → "the best are at least one"
    The error does not name k.
assertion_for_error
    - if k < 1:
    -     raise ValueError(f"k = {k}, and the best are at least one")
    + assert k >= 1, f"k = {k}"
    An AssertionError is raised instead of a ValueError. `python -O` leaves assertions out.
one_refused: if k < 1: → if k <= 1:
    A k of 1 is refused. It is the strictest question that one can ask.
tensors_for_numbers: .double().mean().item() → .double().mean()
    The shares are tensors. Return floats.
percent: .double().mean().item() → .double().mean().item() * 100
    The shares are in per cent. Return numbers from 0 to 1.
rounded: .double().mean().item() → .double().mean().mul(100).round().div(100).item()
    The shares are rounded to two digits.
written_into: + similarity.fill_diagonal_(0.0)
    The caller's similarities are changed.
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


@BANK.right
def by_rank(similarity, k):
    if k <= 0:
        raise ValueError(f"expected k of 1 or more, got {k}")
    n = similarity.shape[0]
    own = similarity.diagonal()
    first = torch.ones(n, n, dtype=torch.bool, device=similarity.device).tril(-1)
    shares = []
    for rows in (similarity, similarity.mT):
        before = (rows > own[:, None]) | ((rows == own[:, None]) & first)
        shares.append(float((before.sum(1) < k).sum()) / n)
    return tuple(shares)


@BANK.right
def in_plain_python(similarity, k):
    if not k >= 1:
        raise ValueError(f"k must be at least 1, not {k}")

    def found(rows):
        hits = 0
        for i, row in enumerate(rows):
            best = sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
            hits += i in best
        return hits / len(rows)

    table = similarity.tolist()
    return found(table), found([list(column) for column in zip(*table, strict=True)])


@BANK.right
def by_sorting_twice(similarity, k):
    if k < 1:
        raise ValueError(f"no best {k}")
    places = (
        s.sort(dim=1, descending=True, stable=True).indices.argsort(dim=1).diagonal()
        for s in (similarity, similarity.transpose(0, 1))
    )
    image, text = ((place < k).to(torch.float64).mean().item() for place in places)
    return image, text


@BANK.right
def by_numpy(similarity, k):
    if k < 1:
        raise ValueError(f"k is {k}")
    table = np.array(similarity.tolist())
    shares = []
    for rows in (table, table.T):
        order = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        shares.append(float((order == np.arange(len(rows))[:, None]).any(1).mean()))
    return shares[0], shares[1]


forgotten(BANK, "similarity", numpy=True)
