"""Known answers to `relative_positions`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("relative_positions", right, globals())

BANK.changes("""
sign_reversed: i - j → j - i
    The distance is j − i. Here it is i − j, query minus key: keys in the past have larger numbers.
    With the opposite sign, a trained table looks in the wrong direction.
not_cut: (i - j).clamp(-max_distance, max_distance) → (i - j)
    The distance is not clipped. Distances beyond max_distance have no row in the table: past its
    end there is an error, and below 0 a negative index picks rows from the other end.
not_raised: max_distance) + max_distance → max_distance)
    max_distance is not added: negative numbers remain, and as indices they count from the end of
    the table.
cut_after_raising
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance).clamp(-max_distance, max_distance)
    The distance is clipped after max_distance was added: everything in the past gets the number
    max_distance. Clipping comes first.
cut_before_the_queries_are_placed
    - i = torch.arange(n_k - n_q, n_k)[:, None]
    - j = torch.arange(n_k)
    - return (i - j).clamp(-max_distance, max_distance) + max_distance
    + i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    + return (i - j).clamp(-max_distance, max_distance) + (n_k - n_q) + max_distance
    n_k − n_q is added to distances that are clipped already. It belongs to the position of the
    query: where there are more keys than queries, the numbers go beyond the table.
cut_on_one_side: clamp(-max_distance, max_distance) → clamp(max=max_distance)
    Only large positive distances are clipped; the future goes on below 0.
future_counted_as_here: clamp(-max_distance → clamp(0
    All keys in the future get the distance 0. Each distance down to −max_distance has its own row
    in the table.
without_direction: (i - j) → (i - j).abs()
    The distance has lost its sign: as far before is the same as as far after.
top_left_aligned: torch.arange(n_k - n_q, n_k) → torch.arange(n_q)
    The first query is placed at position 0 even if there are more keys than queries. The last query
    is at the last key's position.
shifted_the_wrong_way: torch.arange(n_k - n_q, n_k) → torch.arange(n_q - n_k, 2 * n_q - n_k)
    The queries are shifted by n_q − n_k instead of n_k − n_q.
keys_along_rows: > result = result.T
    The result is transposed, (n_k, n_q). There should be one row per query.
one_too_narrow
    ~ (-max_distance, max_distance) → (min(0, 1 - max_distance), max(0, max_distance - 1))
    The distance is clipped to max_distance − 1. Distance max_distance still has its own row: the
    table has 2·max_distance + 1 rows.
raised_by_one_too_many: > result = result + 1
    The numbers start at 1. The table's first row is row 0, and the last number is 2·max_distance.
wrapped_for_cut
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance) % (2 * max_distance + 1)
    Distances beyond the table start again at its other end. They should be clipped: all larger ones
    share the last row on their side.
floats_for_indices: > result = result.float()
    The numbers are floating-point. A table needs integers as indices.
n_k_ignored: + n_k = n_q
    The result is always square, (n_q, n_q).
distance_zero_refused
    + if max_distance < 1:
    +     raise ValueError("nothing to number")
    max_distance 0 ends in an error. The table then has a single row, for all distances.
never_shifted_to_the_left
    ~ torch.arange(n_k - n_q, n_k) → torch.arange(max(0, n_k - n_q), max(0, n_k - n_q) + n_q)
    With more queries than keys, the first query is placed at position 0. There is only one rule:
    the last query is at the last key's position, and the first ones come before every key.
""")


@BANK.right
def pair_by_pair(n_q, n_k, max_distance):
    result = torch.zeros(n_q, n_k, dtype=torch.long)
    for row in range(n_q):
        for j in range(n_k):
            distance = row + n_k - n_q - j
            result[row, j] = max(-max_distance, min(max_distance, distance)) + max_distance
    return result


@BANK.right
def raised_first_and_cut_from_0(n_q, n_k, max_distance):
    query = torch.arange(n_q).view(-1, 1) + (n_k - n_q)
    return torch.clip(query - torch.arange(n_k).view(1, -1) + max_distance, 0, 2 * max_distance)


@BANK.right
def by_numpy(n_q, n_k, max_distance):
    distance = np.subtract.outer(np.arange(n_q) + n_k - n_q, np.arange(n_k))
    return torch.from_numpy(np.clip(distance, -max_distance, max_distance) + max_distance)


@BANK.right
def last_rows_of_all(n_q, n_k, max_distance):
    n = max(n_q, n_k)
    position = torch.arange(n)
    distance = position[:, None] - position[None]
    return distance[n - n_q :, n - n_k :].clamp(-max_distance, max_distance) + max_distance


@BANK.right
def by_minimum_and_maximum(n_q, n_k, max_distance):
    query, key = torch.meshgrid(torch.arange(n_q), torch.arange(n_k), indexing="ij")
    far = torch.tensor(max_distance)
    return torch.maximum(torch.minimum(query - key + n_k - n_q, far), -far) + far
