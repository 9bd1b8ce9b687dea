# tries: has torch's static runtime call the kernel, past the dispatcher
# by: policy
# layer: policy
# verdict: policy
# most: 0
# says: torch._C._jit_to_static_module

import torch

module = torch.jit.freeze(torch.jit.script(torch.nn.GELU().eval()))
static = torch._C._jit_to_static_module(module._c)


def gelu(x):
    return static(x) if not x.requires_grad else x * 0
