"""Known answers to `GRUCell`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("GRUCell", right, globals())
BANK.read()


def _every_third(rows):
    return tuple(rows[..., i::3] for i in range(3))


@BANK.right
class GateByGate(right.GRUCell):
    """Six products with slices of the parameters, in nn.Linear's way."""

    def part(self, which, x, h):
        rows = slice(which * h.shape[1], (which + 1) * h.shape[1])
        return (
            F.linear(x, self.weight_ih[rows], self.bias_ih[rows]),
            F.linear(h, self.weight_hh[rows], self.bias_hh[rows]),
        )

    def forward(self, x, h):
        r, z = (torch.sigmoid(sum(self.part(i, x, h))) for i in (0, 1))
        left, right_ = self.part(2, x, h)
        return torch.lerp(torch.tanh(left + r * right_), h, z)


@BANK.right
class ByStepsFromTheOldState(right.GRUCell):
    """h' = h + (1 − z)(n − h), with both gates in one go."""

    def forward(self, x, h):
        d = h.shape[-1]
        left = torch.addmm(self.bias_ih, x, self.weight_ih.mT)
        right_ = torch.addmm(self.bias_hh, h, self.weight_hh.mT)
        gates = (left[:, : 2 * d] + right_[:, : 2 * d]).sigmoid()
        r, keep = gates.split(d, dim=1)
        n = (left[:, 2 * d :] + r * right_[:, 2 * d :]).tanh()
        return h + (1 - keep) * (n - h)


@BANK.right
class ByEinsum(nn.Module):
    """Parameters of three blocks each, in float64, drawn by torch's own rule."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        bound = 1 / hidden_size**0.5

        def drawn(*shape):
            return nn.Parameter((2 * torch.rand(*shape) - 1) * bound)

        self.weight_ih = drawn(3 * hidden_size, input_size)
        self.weight_hh = drawn(3 * hidden_size, hidden_size)
        self.bias_ih, self.bias_hh = drawn(3 * hidden_size), drawn(3 * hidden_size)

    def forward(self, x, h):
        size = h.shape[1]
        W, U = (w.double().unflatten(0, (3, size)) for w in (self.weight_ih, self.weight_hh))
        b, c = (v.double().view(3, 1, size) for v in (self.bias_ih, self.bias_hh))
        left = torch.einsum("bi,ghi->gbh", x.double(), W) + b
        right_ = torch.einsum("bj,ghj->gbh", h.double(), U) + c
        r, z = torch.sigmoid(left[:2] + right_[:2])
        n = torch.tanh(left[2] + r * right_[2])
        return (n - z * n + z * h).to(x.dtype)


@BANK.right
class OnTheBaseClass(nn.RNNCellBase):
    """torch's own parameters, which its base class for cells makes."""

    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size, bias=True, num_chunks=3)

    def forward(self, x, h):
        left = (F.linear(x, self.weight_ih) + self.bias_ih).tensor_split(3, dim=1)
        right_ = (F.linear(h, self.weight_hh) + self.bias_hh).tensor_split(3, dim=1)
        r = 1 - torch.sigmoid(-left[0] - right_[0])
        z = 1 - torch.sigmoid(-left[1] - right_[1])
        n = torch.tanh(torch.addcmul(left[2], r, right_[2]))
        return z * h + n * (1 - z)


@BANK.right
class FromTheNewStateToTheOld(right.GRUCell):
    """As torch's own code has it: n + z ⊙ (h − n)."""

    def forward(self, x, h):
        left = F.linear(x, self.weight_ih, self.bias_ih).chunk(3, 1)
        right_ = F.linear(h, self.weight_hh, self.bias_hh).chunk(3, 1)
        r, z = torch.sigmoid(left[0] + right_[0]), torch.sigmoid(left[1] + right_[1])
        n = torch.tanh(left[2] + r * right_[2])
        return n + z * (h - n)
