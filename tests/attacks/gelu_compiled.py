# tries: has torch's compiler run torch's own function
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import torch
import torch.nn.functional as F

gelu = torch.compile(lambda x: F.gelu(x), backend="eager")
