# tries: maps torch's own function over a batch by torch.vmap
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import torch
import torch.nn.functional as F

each = torch.vmap(F.gelu)


def gelu(x):
    return each(x)
