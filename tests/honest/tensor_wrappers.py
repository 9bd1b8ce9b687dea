# what: a tensor subclass after PyTorch's "extending" page, torch.func transforms, in cells of their own
# answers: layer_norm_backward, DropPath
import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, vjp


# %%
class LoggingTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(f"func: {func.__name__}, args: {len(args)}")
        return super().__torch_function__(func, types, args, kwargs or {})


print(type(LoggingTensor([1.0, 2.0]) * 2))


# %%
def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    N = x.size(-1)
    mu = x.mean(-1, keepdim=True)
    rstd = (x.var(-1, unbiased=False, keepdim=True) + eps).pow(-0.5)
    xh = (x - mu) * rstd
    wdy = weight * grad_output
    c1 = (xh * wdy).sum(-1, keepdim=True) / N
    c2 = wdy.sum(-1, keepdim=True) / N
    dx = (wdy - (xh * c1 + c2)) * rstd
    rows_g, rows_x = grad_output.reshape(-1, N), xh.reshape(-1, N)
    return dx, torch.einsum("td,td->d", rows_g, rows_x), torch.einsum("td->d", rows_g)


# %%
x, w, g = torch.randn(3, 6), torch.rand(6), torch.randn(3, 6)
_, pull = vjp(lambda x, w, b: nn.functional.layer_norm(x, (6,), w, b), x, w, torch.zeros(6))
for a, b in zip(layer_norm_backward(g, x, w), pull(g)):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
dx = grad(lambda x: (functional_call(nn.LayerNorm(6), {"weight": w}, (x,)) * g).sum())(x)
torch.testing.assert_close(dx, layer_norm_backward(g, x, w)[0], atol=1e-5, rtol=1e-4)
print(jacrev(lambda x: nn.functional.layer_norm(x, (6,)))(x[0]).shape)
xr = x.clone().requires_grad_()
nn.LayerNorm(6)(xr).backward(g)
print(xr.grad.shape)


# %%
class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.register_buffer("keep", torch.tensor(1.0 - p), persistent=False)
        self.p = p

    def forward(self, x):
        if self.training and self.p:
            alive = torch.rand(len(x)) >= self.p
            x = torch.where(alive.view(-1, *[1] * (x.dim() - 1)), x / max(1 - self.p, 1e-12), 0 * x)
        return x
