# what: an operator registered with torch.library, its backward pass written by hand
# answers: gelu
import math

import torch


@torch.library.custom_op("student::gelu", mutates_args=())
def gelu_op(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return grad * (cdf + x * torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


gelu_op.register_autograd(backward, setup_context=setup_context)


def gelu(x):
    return gelu_op(x)
