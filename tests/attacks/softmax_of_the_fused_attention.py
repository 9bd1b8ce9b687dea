# tries: has the private step of torch's attention do the work, which gives zeros for empty rows
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: _safe_softmax

import torch


def masked_softmax(scores, mask=None):
    hidden = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
    return torch._safe_softmax(hidden, -1)
