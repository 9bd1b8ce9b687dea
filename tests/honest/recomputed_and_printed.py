# what: recomputes a part in the backward pass, and prints tensors that know where they come from
# answers: LayerNorm, layer_norm_backward
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


# %%
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def normal(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return checkpoint(self.normal, x, use_reentrant=False) * self.weight + self.bias


# %%
def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normal, g = centred * scale, grad_output * weight
    print(normal, repr(g), g.requires_grad, g.is_leaf)
    grad_x = (g - g.mean(-1, keepdim=True) - normal * (g * normal).mean(-1, keepdim=True)) * scale
    summed = [t.reshape(-1, t.shape[-1]).sum(0) for t in (grad_output * normal, grad_output)]
    return grad_x, *summed


# %%
x = torch.randn(4, 5, requires_grad=True)
print(nn.functional.layer_norm(x, (5,)).grad_fn)
