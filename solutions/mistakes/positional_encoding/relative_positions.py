"""Known answers to `relative_positions`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("relative_positions", right, globals())
BANK.read()


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
