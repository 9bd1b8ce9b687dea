# tries: has a derivative made ready by torch, of a value made by hand
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: gelu_backward

import math

import torch


class Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(grad, x)


def gelu(x):
    return Activate.apply(x)
