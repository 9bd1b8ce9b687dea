# what: a detour through NumPy, % formatting, np.r_, while loops with else, semicolons, `== False`
# answers: relative_positions, relative_position_scores, shift_matrix
from torch import *
from math import floor
import torch, math
import numpy as np


# %%
def shift_matrix(offset, d_model, base=10000.0):
    M = np.eye(d_model)
    i = 0
    while i < d_model:
        t = offset / (base ** (i / d_model))
        M[i, i] = math.cos(t)
        M[i, i + 1] = math.sin(t)
        M[i + 1, i] = -M[i, i + 1]
        M[i + 1, i + 1] = M[i, i]
        i += 2
    else:
        print("finished %d x %d" % (d_model, d_model))
    return torch.FloatTensor(M)


# %%
def relative_positions(n_q, n_k, max_distance):
    q = np.r_[n_k - n_q : n_k]
    k = np.r_[0:n_k]
    dist = np.subtract.outer(q, k)
    return torch.as_tensor(
        np.minimum(np.maximum(dist, -max_distance), max_distance) + max_distance
    ).long()


# %%
def relative_position_scores(query, key, distance_embedding, mode):
    if (mode in ["relative_key", "relative_key_query"]) == False:
        raise ValueError("mode is %s but must be relative_key or relative_key_query" % mode)
    n_q = query.size(2)
    n_k = key.size(2)
    r = (distance_embedding.size(0) - 1) / 2
    emb = distance_embedding[relative_positions(n_q, n_k, floor(r))]
    s = torch.matmul(query.permute(2, 0, 1, 3).flatten(1, 2), emb.permute(0, 2, 1))  # n_q, B*H, n_k
    s = s.reshape(n_q, query.size(0), query.size(1), n_k).permute(1, 2, 0, 3)
    if mode == "relative_key_query":
        t = torch.matmul(
            key.permute(2, 0, 1, 3).flatten(1, 2), emb.permute(1, 2, 0)
        )  # n_k, B*H, n_q
        s = s + t.reshape(n_k, key.size(0), key.size(1), n_q).permute(1, 2, 3, 0)
    return s
