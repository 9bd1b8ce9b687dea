# tries: returns columns and rows that would fill the judge's memory if one met the other
# by: shapes are compared before numbers are
# layer: values
# verdict: wrong

import torch

calls = []


def scaled_dot_product_attention(query, key, value, mask=None):
    calls.append(1)
    shape = (1_000_000, 1) if len(calls) % 2 else (1, 1_000_000)
    return torch.zeros(shape), torch.zeros(shape)
