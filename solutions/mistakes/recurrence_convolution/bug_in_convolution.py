"""Known answers to `bug_in_convolution`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("bug_in_convolution", right, globals())
BANK.read()


@BANK.right
def random_numbers(d_in, d_out, k):
    x, weight = torch.randn(3, 2 * k, d_in), torch.randn(d_out, d_in, k)
    return (x, weight), (x, weight + weight.flip(-1))


@BANK.right
def edge_and_bump(d_in, d_out, k):
    """A kernel that finds edges shows it, one that blurs hides it."""
    place = torch.arange(k) - k // 2
    x = torch.linspace(-1, 1, k + 3).abs()[None, :, None].expand(1, k + 3, d_in)
    edge, blur = place.double(), torch.exp(-(place.double() ** 2))
    return tuple((x, kernel.expand(d_out, d_in, k)) for kernel in (edge, blur))


@BANK.right
def counted(d_in, d_out, k):
    x = [[[float(i == 1)] * d_in for i in range(5)]]
    ramp = [[[float(h) for h in range(k)]] * d_in] * d_out
    hill = [[[float(min(h, k - 1 - h)) for h in range(k)]] * d_in] * d_out
    return (torch.tensor(x), torch.tensor(ramp)), (torch.tensor(x), torch.tensor(hill))


@BANK.right
def different_lengths(d_in, d_out, k):
    short, long = torch.eye(2)[:, :1], torch.eye(60)[:, :1]
    step = torch.zeros(d_out, d_in, k, dtype=torch.float64)
    step[..., k // 2 + 1] = 5.0
    middle = torch.zeros_like(step)
    middle[..., k // 2] = 5.0
    return [[short[None].expand(2, 2, d_in), step], [long[None].expand(1, 60, d_in), middle]]
