# what: version after version in one cell and in several; the last definition wins
# answers: Residual, gelu, FeedForward
import torch
from torch import nn


# %%
def gelu(x):
    return torch.sigmoid(1.702 * x) * x


def gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


old_gelu = gelu


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0, dtype=x.dtype))))


print((old_gelu(torch.arange(3.0)) - gelu(torch.arange(3.0))).abs().max())


# %%
if True:

    class FeedForward(nn.Module):
        def __init__(self, d_model, d_ff, dropout=0.0, activation=torch.relu):
            super().__init__()
            self.linear1 = nn.Linear(d_model, d_ff)
            self.linear2 = nn.Linear(d_ff, d_model)
            self.dropout = nn.Dropout(dropout)
            self.activation = activation

        def forward(self, x):
            return self.linear2(self.dropout(self.activation(self.linear1(x))))
else:
    FeedForward = nn.Sequential


# %%
class Residual(nn.Module):  # version 1
    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x, *args, **kwargs):
        return x + self.sublayer(x)


class ResidualV2(Residual):
    def forward(self, x, *args, **kwargs):
        raise NotImplementedError("think again")


class Residual(nn.Module):  # version 3, works!
    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, *args, **kwargs):
        h = self.norm(x) if self.norm_first else x
        h = self.dropout(self.sublayer(h, *args, **kwargs))
        return x + h if self.norm_first else self.norm(x + h)
