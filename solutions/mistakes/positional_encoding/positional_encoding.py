"""Known answers to `PositionalEncoding`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import sinusoidal_encoding as tables

BANK = Bank("PositionalEncoding", right, globals())
BANK.read()


@BANK.right
class with_functional_dropout(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.register_buffer("pe", tables.with_exp_and_log(max_len, d_model))

    def forward(self, x, offset=0):
        n, limit = x.size(1), self.pe.size(0)
        if n + offset > limit:
            raise ValueError(f"expected at most {limit} positions, got {n + offset}")
        return F.dropout(x + self.pe[offset : offset + n].unsqueeze(0), self.p, self.training)


@BANK.right
class by_looking_rows_up(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.max_len, self.dropout = max_len, nn.Dropout(dropout)
        self.register_buffer("pe", tables.by_numpy_in_float64(max_len, d_model))

    def forward(self, x, offset=0):
        positions = offset + torch.arange(x.shape[1], device=x.device)
        if offset + x.shape[1] > self.max_len:
            raise ValueError(f"{offset + x.shape[1]} > {self.max_len}")
        return self.dropout(x + F.embedding(positions, self.pe))


@BANK.right
class token_after_token(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", tables.number_by_number(max_len, d_model))
        self.after = nn.Sequential(nn.Identity(), nn.Dropout(p=dropout))

    def forward(self, x, offset=0):
        needed = x.shape[1] + offset
        if needed > len(self.pe):
            raise ValueError(f"needed: {needed} positions, there are: {len(self.pe)}")
        tokens = [x[:, i] + self.pe[offset + i] for i in range(x.shape[1])]
        return self.after(torch.stack(tokens, dim=1))


@BANK.right
class by_narrowing(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        table = tables.by_complex_numbers(max_len, d_model)
        self.register_buffer("pe", table)
        self.shape = table.shape
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, offset=0):
        if offset + x.shape[1] > self.shape[0]:
            raise ValueError(f"max_len {self.shape[0]} is less than {offset + x.shape[1]}")
        return self.dropout(self.pe.narrow(0, offset, x.shape[1]).expand_as(x) + x)
