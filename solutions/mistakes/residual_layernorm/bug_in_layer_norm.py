"""Known answers to `bug_in_layer_norm`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import residual_layernorm as right

BANK = Bank("bug_in_layer_norm", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
features_alike: > result = result[0], torch.ones(1, n, d_model)
    The features of each token of the second x are alike, so that nothing is left after the mean has
    gone, whichever mean it was: let them differ.
same_means_only
    > spread = torch.arange(1.0, n + 1)[:, None]
    > result = result[0], (result[1] - result[1].mean(-1, keepdim=True)) * spread
    The tokens of the second x have the same mean, but not the same variance.
same_variances_only: > result = result[0], -result[0]
    The tokens of the second x have the same variance, but not the same mean.
tokens_alike: > result = result[1] / 2, result[1]
    All tokens of the first x have the same mean and the same variance: these are then the whole
    sequence's as well.
two_axes: > result = result[0][0], result[1]
    The first x has no batch axis: its shape is (B, n, d_model).
always_four_features: > result = result[0][..., :1].expand(1, n, d_model + 1), result[1]
    The tokens of the first x have more than d_model features.
not_a_number: > result = result[0], result[1] / 0
    The second x holds numbers that are not finite.
""")


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
