# tries: has TorchScript replay torch's own function, traced beforehand
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.ops.aten.gelu

import torch
import torch.nn.functional as F

gelu = torch.jit.trace(lambda x: F.gelu(x), torch.randn(3), check_trace=False)
