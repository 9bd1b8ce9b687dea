"""Known answers to `LayerNorm`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("LayerNorm", right, globals())
BANK.read()


@BANK.right
class by_var_mean(right.LayerNorm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt(variance + self.eps)) + self.bias


@BANK.right
class token_by_token(right.LayerNorm):
    def forward(self, x):
        rows = []
        for row in x.reshape(-1, x.shape[-1]):
            mean = row.sum() / len(row)
            variance = ((row - mean) ** 2).sum() / len(row)
            rows.append((row - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias)
        return torch.stack(rows).reshape(x.shape)


@BANK.right
class by_einsum(right.LayerNorm):
    def forward(self, x):
        d = x.shape[-1]
        x = x - torch.einsum("...d->...", x)[..., None] / d
        spread = torch.einsum("...d,...d->...", x, x)[..., None] / d + self.eps
        return torch.addcmul(self.bias, x, self.weight / spread.sqrt())


@BANK.right
class scaled_and_shifted(right.LayerNorm):
    """As fused kernels do: one product and one sum for each number."""

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        scale = (x.var(dim=-1, correction=0, keepdim=True) + self.eps).rsqrt() * self.weight
        return x * scale + (self.bias - mean * scale)


@BANK.right
class by_moments_in_float64(right.LayerNorm):
    def forward(self, x):
        wide = x.double()
        mean = wide.mean(-1, keepdim=True)
        variance = (wide.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0.0)
        normed = (wide - mean) / (variance + self.eps).sqrt()
        return (normed * self.weight + self.bias).to(x.dtype)


@BANK.right
class float64_inside(right.LayerNorm):
    def forward(self, x):
        wide = x.double()
        wide = wide - wide.mean(-1, keepdim=True)
        wide = wide / (wide.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return (wide * self.weight + self.bias).to(x.dtype)
