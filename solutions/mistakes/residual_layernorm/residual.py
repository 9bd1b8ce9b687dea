"""Known answers to `Residual`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("Residual", right, globals())
BANK.read()


@BANK.right
class one_expression(right.Residual):
    def forward(self, x, *args, **kwargs):
        before, after = (self.norm, lambda s: s) if self.norm_first else (lambda s: s, self.norm)
        return after(x + self.dropout(self.sublayer(before(x), *args, **kwargs)))


@BANK.right
class step_by_step(right.Residual):
    def forward(self, x, *args, **kwargs):
        residual = x
        if self.norm_first:
            x = self.norm(x)
        x = self.sublayer(x, *args, **kwargs)
        x = residual + self.dropout(x)
        if not self.norm_first:
            x = self.norm(x)
        return x


@BANK.right
class functional_norm(right.Residual):
    def forward(self, x, *args, **kwargs):
        def norm(v):
            v = v - v.mean(-1, keepdim=True)
            v = v / (v.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
            return v * self.norm.weight + self.norm.bias

        y = self.dropout(self.sublayer(norm(x) if self.norm_first else x, *args, **kwargs))
        return torch.add(y, x) if self.norm_first else norm(torch.add(y, x))


@BANK.right
class dropout_mask_by_hand(right.Residual):
    def forward(self, x, *args, **kwargs):
        y = self.sublayer(self.norm(x) if self.norm_first else x, *args, **kwargs)
        p = self.dropout.p
        if self.training and p > 0:
            kept = torch.empty_like(y).bernoulli_(1 - p)
            y = y * kept / (1 - p) if p < 1 else y * 0
        return x + y if self.norm_first else self.norm(x + y)
