# tries: takes the weights out of a later exercise, to be helped by that one's block
# answers: masked_softmax
# by: not in the process
# layer: not in the process
# verdict: crash

import torch


def masked_softmax(scores, mask=None):
    identity = torch.eye(scores.shape[-1], dtype=scores.dtype)
    return masked_attention(scores, identity * scores.shape[-1] ** 0.5, identity, mask)[1]


def masked_attention(query, key, value, mask=None):
    weights = masked_softmax(query @ key.mT / query.shape[-1] ** 0.5, mask)
    return weights @ value, weights
