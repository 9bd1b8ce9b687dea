# tries: calls the masked softmax that torch has for masked tensors
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.masked._ops.softmax

import torch


def masked_softmax(scores, mask=None):
    return torch.masked.softmax(scores, -1, mask=mask).nan_to_num(0)
