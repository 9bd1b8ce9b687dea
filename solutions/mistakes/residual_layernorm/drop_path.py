"""Known answers to `DropPath`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("DropPath", right, globals())


@BANK.right
class by_where(right.DropPath):
    def forward(self, x):
        if not self.training or not self.p:
            return x
        kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


BANK.read()


@BANK.right
class by_bernoulli(right.DropPath):
    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        draws = x.new_empty(x.shape[:1] + (1,) * (x.dim() - 1)).bernoulli_(keep)
        return x * (draws.div_(keep) if keep > 0 else draws)


@BANK.right
class by_floor(right.DropPath):
    def forward(self, x):
        if not (self.training and self.p):
            return x
        if self.p == 1:
            return 0 * x
        keep, shape = 1 - self.p, x.shape[:1] + (1,) * (x.dim() - 1)
        draws = torch.floor(keep + torch.rand(shape, dtype=x.dtype, device=x.device))
        return x.div(keep) * draws


@BANK.right
class sample_by_sample(right.DropPath):
    def forward(self, x):
        if self.p == 0 or not self.training:
            return x
        one = [sample / max(1 - self.p, 1e-9) for sample in x]
        return torch.stack([s * 0 if torch.rand(()) < self.p else s for s in one])


@BANK.mistake
class zero_over_zero(right.DropPath):
    """With p = 1 everything is dropped, and dividing by 1 − p makes NaN of it: 0/0."""

    def forward(self, x):
        if not self.training:
            return x
        keep, shape = 1 - self.p, (len(x), *[1] * (x.dim() - 1))
        return x * (torch.rand(shape, device=x.device) < keep).to(x.dtype) / keep


@BANK.right
class by_feature_dropout(right.DropPath):
    def forward(self, x):
        rows = x.reshape(1, len(x), -1)
        return F.dropout1d(rows, self.p, self.training).reshape(x.shape)


@BANK.mistake
class seeded_of_its_own(right.DropPath):
    """Every new module drops the same samples, whatever seed torch has: its generator is made
    with a fixed one. Draw from torch's own generator."""

    def __init__(self, p=0.0):
        super().__init__(p)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x):
        if not self.training or not self.p:
            return x
        shape = x.shape[0], *[1] * (x.dim() - 1)
        kept = (torch.rand(shape, generator=self.generator) >= self.p).to(x.device)
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
