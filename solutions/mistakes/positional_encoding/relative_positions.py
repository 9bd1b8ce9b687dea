"""Known answers to `relative_positions`: mistakes, then right answers."""

import numpy as np
import torch

from solutions import positional_encoding as right
from solutions.mistakes import Bank

BANK = Bank("relative_positions", right, globals())

BANK.changes("""
sign_reversed: i - j → j - i
    The distance is j − i. Here it is i − j, query minus key: keys in the past have the larger
    numbers. With the sign reversed, a table that was trained looks into the wrong direction.
not_cut: (i - j).clamp(-max_distance, max_distance) → (i - j)
    The distance is not cut. What is farther than max_distance has no row in the table: beyond its
    end there is an error, and below 0 a negative index picks rows from the other end.
not_raised: max_distance) + max_distance → max_distance)
    max_distance is not added: negative numbers remain, and as indices they count from the end of
    the table.
cut_after_raising
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance).clamp(-max_distance, max_distance)
    The distance is cut after max_distance was added: everything in the past gets the number
    max_distance. Cut first.
cut_on_one_side: clamp(-max_distance, max_distance) → clamp(max=max_distance)
    Only large positive distances are cut; the future goes on below 0.
future_counted_as_here: clamp(-max_distance → clamp(0
    All keys in the future get the distance 0. There is a row in the table for each of them, up to
    −max_distance.
without_direction: (i - j) → (i - j).abs()
    The distance has lost its sign: as far before is the same as as far behind.
top_left_aligned: torch.arange(n_k - n_q, n_k) → torch.arange(n_q)
    The first query stands at position 0 also where there are more keys than queries. The last query
    stands at the last key's position.
shifted_the_wrong_way: torch.arange(n_k - n_q, n_k) → torch.arange(n_q - n_k, 2 * n_q - n_k)
    The queries are moved by n_q − n_k instead of n_k − n_q.
keys_along_rows: > result = result.T
    The result is transposed, (n_k, n_q): asked is one row for each query.
one_too_narrow
    ~ (-max_distance, max_distance) → (min(0, 1 - max_distance), max(0, max_distance - 1))
    The distance is cut to max_distance − 1. Distance max_distance still has a row of its own: the
    table has 2·max_distance + 1 rows.
raised_by_one_too_many: > result = result + 1
    The numbers start at 1. The table's first row is row 0, and the last number is 2·max_distance.
wrapped_for_cut
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance) % (2 * max_distance + 1)
    Distances beyond the table start again at its other end. They are cut: everything farther shares
    the last row on its side.
floats_for_indices: > result = result.float()
    The numbers are floating-point. A table is indexed with integers.
n_k_ignored: + n_k = n_q
    The result is always square, (n_q, n_q).
distance_zero_refused
    + if max_distance < 1:
    +     raise ValueError("nothing to number")
    max_distance 0 ends in an error. The table has one row then, for all distances.
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
