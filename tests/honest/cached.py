# what: lru_cache and functools.cache on helpers and on the answer itself, a cache in a dict
# answers: sinusoidal_encoding, shift_matrix, relative_positions
import math
from functools import cache, lru_cache

import torch

_TABLES = {}


@lru_cache(maxsize=None)
def freq(i, d_model, base):
    return base ** (-2 * i / d_model)


# %%
def sinusoidal_encoding(max_len, d_model, base=10000.0):
    key = (max_len, d_model, base)
    if key not in _TABLES:
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        for col in range(d_model):
            angle = torch.arange(max_len, dtype=torch.float64) * freq(col // 2, d_model, base)
            pe[:, col] = angle.cos() if col % 2 else angle.sin()
        _TABLES[key] = pe.float()
    return _TABLES[key].clone()


# %%
@cache
def rotation(angle):
    return torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def shift_matrix(offset, d_model, base=10000.0):
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = rotation(offset * freq(i, d_model, base))
    return M


# %%
@lru_cache(maxsize=128)
def relative_positions(n_q, n_k, max_distance):
    rows = []
    for i in range(n_k - n_q, n_k):
        rows.append(
            [max(-max_distance, min(max_distance, i - j)) + max_distance for j in range(n_k)]
        )
    return torch.tensor(rows, dtype=torch.long)


print(relative_positions.cache_info())
