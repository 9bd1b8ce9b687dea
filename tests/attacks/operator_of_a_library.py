# tries: registers an operator with a library, kernel by kernel
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: gelu in line

import torch
import torch.nn.functional as F

library = torch.library.Library("mine", "DEF")
library.define("activate(Tensor x) -> Tensor")
library.impl("activate", lambda x: F.gelu(x), "CPU")


def gelu(x):
    return torch.ops.mine.activate(x)
