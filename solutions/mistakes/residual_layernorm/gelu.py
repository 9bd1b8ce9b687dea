"""Known answers to `gelu`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("gelu", right, globals())
BANK.read()


@BANK.mistake
def by_numpy(x):
    """No gradient reaches x: the result is cut off from the graph, by math.erf, NumPy,
    torch.no_grad or .detach(), say."""
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))), otypes=[float])
    numbers = x.detach().cpu().double().numpy()
    made = torch.from_numpy(np.asarray(numbers * phi(numbers))) if x.numel() else x.detach() * 1
    return made.to(x)


@BANK.right
def by_erfc(x):
    return x * torch.erfc(-x * math.sqrt(0.5)) / 2


@BANK.right
def by_ndtr(x):
    return x * torch.special.ndtr(x)


@BANK.right
def by_the_normal_distribution(x):
    normal = torch.distributions.Normal(
        torch.zeros_like(x), torch.ones_like(x), validate_args=False
    )
    return x * normal.cdf(x)


@BANK.right
def number_by_number(x):
    parts = [0.5 * v * (1 + torch.erf(v / 2**0.5)) for v in x.reshape(-1)]
    return torch.stack(parts).reshape(x.shape) if parts else x * 1
