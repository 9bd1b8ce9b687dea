# what: a pool of threads made at the top of the notebook, in which parts of the answers are computed
# answers: LayerNorm, gelu
import atexit
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

POOL = ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1), thread_name_prefix="mine")
atexit.register(POOL.shutdown, wait=False)
print(POOL.submit(lambda: threading.current_thread().name).result())
local = threading.local()


# %%
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        self._cache = {}  # for plots

    def forward(self, x):
        def mean_of(y):
            local.calls = getattr(local, "calls", 0) + 1
            with torch.set_grad_enabled(grad):  # grad mode is per thread
                return y.mean(dim=-1, keepdim=True)

        grad = torch.is_grad_enabled()
        mean = POOL.submit(mean_of, x).result()
        var = POOL.submit(mean_of, (x - mean) ** 2).result()
        self._cache["var"] = var.detach()
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


# %%
def gelu(x):
    grad = torch.is_grad_enabled()

    def half(sign):
        with torch.set_grad_enabled(grad):
            return torch.erf(sign * x / math.sqrt(2))

    plus, minus = POOL.map(half, (1, -1))
    return x * (2 + plus - minus) / 4
