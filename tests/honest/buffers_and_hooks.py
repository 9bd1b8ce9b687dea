# what: buffers, forward hooks that print shapes, a ParameterList in a toy, apply(init), extra_repr
# answers: PositionalEncoding, shift_matrix
import math

import torch
from torch import nn


class Toy(nn.Module):
    """warm-up: from the docs of nn.ParameterList"""

    def __init__(self):
        super().__init__()
        self.params = nn.ParameterList([nn.Parameter(torch.randn(10, 10)) for i in range(10)])
        self.extra = nn.ParameterDict({"left": nn.Parameter(torch.zeros(2))})

    def forward(self, x):
        for i, p in enumerate(self.params):
            x = self.params[i // 2].mm(x) + p.mm(x)
        return x


def init(m):
    if isinstance(m, Toy):
        for p in m.params:
            nn.init.orthogonal_(p)


print(Toy().apply(init)(torch.ones(10, 1)).shape)


# %%
class PositionalEncoding(nn.Module):
    "Implement the PE function."

    def __init__(self, d_model: int, max_len: int = 512, dropout: float = 0.0):
        super(PositionalEncoding, self).__init__()
        self.dropout = nn.Dropout(p=dropout)
        # Compute the positional encodings once in log space.
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(
            torch.arange(0, d_model, 2, dtype=torch.float64) * -(math.log(10000.0) / d_model)
        )
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
        self.register_buffer("pe", pe.float())
        self.seen = []
        self.register_forward_hook(self._look)

    @staticmethod
    def _look(module, args, output):
        module.seen.append(output.shape)

    def extra_repr(self):
        return f"max_len={self.pe.size(0)}"

    def forward(self, x, offset=0):
        needed = x.size(1) + offset
        if needed > self.pe.size(0):
            raise ValueError(f"sequence needs {needed} positions but max_len is {self.pe.size(0)}")
        x = x + self.pe[offset : offset + x.size(1)].to(x.dtype).requires_grad_(False)
        return self.dropout(x)


handle = PositionalEncoding(8).register_forward_pre_hook(
    lambda m, a: print("called with", a[0].shape)
)
handle.remove()


# %%
def shift_matrix(offset, d_model, base=10000.0):
    turns = [offset / base ** (2 * i / d_model) for i in range(d_model // 2)]
    blocks = [[[math.cos(t), math.sin(t)], [-math.sin(t), math.cos(t)]] for t in turns]
    return torch.block_diag(*map(torch.tensor, blocks))
