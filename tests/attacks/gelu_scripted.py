# tries: has TorchScript call torch's own function
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.ops.aten.gelu

import torch

unit = torch.jit.CompilationUnit("def activate(x):\n    return torch.nn.functional.gelu(x)\n")


def gelu(x):
    return unit.activate(x)
