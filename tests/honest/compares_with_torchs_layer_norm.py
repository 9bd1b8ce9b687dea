# what: cells of one's own compare with F.layer_norm, nn.LayerNorm, F.gelu and autograd; all is imported
# answers: LayerNorm, layer_norm_backward, gelu
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad, gradcheck
from torch.nn import GELU, LayerNorm as TorchLayerNorm
from torch.nn.functional import gelu as torch_gelu, layer_norm

torch.manual_seed(0)


# %%
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, self.weight, (x - mean) * torch.rsqrt(var + self.eps))


# %%
x = torch.randn(4, 7, 16)
ln = LayerNorm(16)
assert torch.allclose(ln(x), F.layer_norm(x, (16,), ln.weight, ln.bias, ln.eps), atol=1e-6)
assert torch.allclose(ln(x), nn.LayerNorm(16)(x), atol=1e-6)
assert torch.allclose(TorchLayerNorm(16)(x), layer_norm(x, x.shape[-1:]))
print("LayerNorm: max error", (ln(x) - torch.nn.functional.layer_norm(x, [16])).abs().max().item())


# %%
def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    r = torch.rsqrt(var + eps)
    h = (x - mean) * r
    g = grad_output * weight
    dx = r * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    go = grad_output.reshape(-1, x.shape[-1])
    return dx, (go * h.reshape_as(go)).sum(0), go.sum(0)


# %%
def check_against_autograd(shape=(3, 5), eps=1e-5):
    x = torch.randn(*shape, dtype=torch.double, requires_grad=True)
    w = torch.randn(shape[-1], dtype=torch.double, requires_grad=True)
    b = torch.zeros(shape[-1], dtype=torch.double, requires_grad=True)
    y = F.layer_norm(x, shape[-1:], w, b, eps)
    go = torch.randn_like(y)
    y.backward(go)
    for mine, theirs in zip(
        layer_norm_backward(go, x.detach(), w.detach(), eps), (x.grad, w.grad, b.grad)
    ):
        torch.testing.assert_close(mine, theirs)
    print(torch.autograd.grad(y.sum() if not y.requires_grad else x.sum(), x))


check_against_autograd()


# %%
def gelu(x):
    return x * (1 + torch.special.erf(x / 2**0.5)) / 2


# %%
xs = torch.linspace(-5, 5, 101, dtype=torch.float64)
for reference in (F.gelu, nn.GELU(), GELU(), torch_gelu, torch.ops.aten.gelu):
    assert torch.allclose(gelu(xs), reference(xs))
gradcheck(gelu, (xs[::10].clone().requires_grad_(),))
