# tries: calls objects that are equal to torch's operators first, so that these are taken for them
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu

import torch
import torch.nn.functional as F
from torch.overrides import handle_torch_function


class Equal:
    __name__, __module__, called = "add", "torch", False

    def __init__(self, other):
        self.other = other

    def __hash__(self):
        return hash(self.other)

    def __eq__(self, other):
        return self.called

    def __call__(self, x):
        self.called = True


aten = torch.ops.aten
instead = [Equal(F.gelu), Equal(aten.gelu.default), Equal(aten.gelu_backward.default)]


def gelu(x):
    for one in instead:
        if not one.called:
            handle_torch_function(one, (x,), x)
    return F.gelu(x)
