# what: torch.autograd.Function with a backward of one's own, after PyTorch's tutorial
# answers: gelu
import math

import torch


class GELUFunction(torch.autograd.Function):
    """
    We can implement our own custom autograd Functions by subclassing
    torch.autograd.Function and implementing the forward and backward passes
    which operate on Tensors.
    """

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input * 0.5 * (1 + torch.erf(input / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(input / math.sqrt(2)))
        pdf = torch.exp(-0.5 * input * input) / math.sqrt(2 * math.pi)
        return grad_output * (cdf + input * pdf)


def gelu(x):
    return GELUFunction.apply(x)


# %%
x = torch.randn(5, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(GELUFunction.apply, (x,), eps=1e-6, atol=1e-4))
