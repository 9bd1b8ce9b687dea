# tries: calls torch's own function in an operator of its own
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: gelu in line

import torch
import torch.nn.functional as F


@torch.library.custom_op("mine::activate", mutates_args=())
def activate(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


@torch.library.custom_op("mine::derive", mutates_args=())
def derive(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.gelu_backward(grad, x)


def backward(ctx, grad):
    return derive(grad, *ctx.saved_tensors)


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


activate.register_autograd(backward, setup_context=setup)


def gelu(x):
    return activate(x)
