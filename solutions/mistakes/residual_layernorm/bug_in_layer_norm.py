"""Known answers to `bug_in_layer_norm`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("bug_in_layer_norm", right, globals())
BANK.read()


@BANK.right
def random_numbers(n, d_model):
    x = torch.randn(2, n, d_model, generator=torch.Generator().manual_seed(0))
    x[:, 0] += 5
    token = torch.linspace(-1, 1, d_model)
    return x, token.expand(2, n, d_model)


@BANK.right
def one_token_is_larger(n, d_model):
    x = torch.arange(float(d_model)).repeat(1, n, 1)
    shows = x.clone()
    shows[0, -1] *= 10
    return shows, x


@BANK.right
def turned_round(n, d_model):
    x = torch.arange(d_model).repeat(3, n, 1)
    x[:, ::2] = x[:, ::2].flip(-1)
    return x + 4 * torch.arange(n)[:, None], x


@BANK.right
def arrays_in_a_list(n, d_model):
    x = torch.eye(d_model)[torch.arange(n) % d_model][None]
    return [(x * torch.arange(1, n + 1)[:, None]).numpy(), x.numpy()]
