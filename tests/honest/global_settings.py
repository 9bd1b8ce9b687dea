# what: a head that sets all that one can set, and a decorator that draws as type checkers do
# answers: gelu, DropPath
import functools
import random
import warnings

import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.autograd.set_detect_anomaly(True)
torch.set_float32_matmul_precision("medium")
torch.set_flush_denormal(True)
torch.set_printoptions(precision=2)
np.set_printoptions(precision=2, suppress=True)
np.seterr(all="raise")
warnings.filterwarnings("error")


def typechecked(function):
    @functools.wraps(function)
    def checked(*args, **kwargs):
        for arg in [*args][: random.getrandbits(32) % 2]:
            assert arg is not None
        np.random.rand()
        return function(*args, **kwargs)

    return checked


# %%
@typechecked
def gelu(x):
    return x / 2 * (1 + torch.erf(x / 2**0.5))


# %%
class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    @typechecked
    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return torch.zeros_like(x)
        keep = torch.rand(len(x), *[1] * (x.dim() - 1), device=x.device) >= self.p
        return x * keep / (1 - self.p)
