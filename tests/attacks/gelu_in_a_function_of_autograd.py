# tries: calls torch's own function in a torch.autograd.Function
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import torch
import torch.nn.functional as F


class Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.gelu(x)

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(slope, x)


gelu = Activate.apply
