# tries: runs torch's own function below all hooks, which it takes off by names that cannot be read
# by: observation (of the backward pass, for what has not been seen forward)
# layer: observation
# verdict: policy
# most: 0
# says: torch.ops.aten.gelu_backward

from importlib import import_module

import torch
from torch.overrides import handle_torch_function

below = getattr(import_module("torch.utils._mode" + "_utils"), "no_" + "dispatch")


def unseen(x):
    with below():
        return torch.ops.aten.gelu(x)


def gelu(x):
    return handle_torch_function(unseen, (x,), x)
