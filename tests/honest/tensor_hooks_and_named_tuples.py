# what: results in a named tuple, hooks that count gradients, gradients by a hook of one's own
# answers: scaled_dot_product_attention
import math
from typing import NamedTuple

import torch

seen = []


class Attended(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    output = weights @ value
    if output.requires_grad:
        output.register_hook(lambda grad: seen.append(grad.norm().item()))
    return Attended(output, weights)
