# tries: calls torch's own function where a class of tensors implements another
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: gelu in line

import torch
import torch.nn.functional as F


class Given(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        made = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
        made.x = x
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return F.gelu(args[0].x)


def gelu(x):
    return torch.neg(Given(x))
