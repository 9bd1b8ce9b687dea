# tries: is a partial application of torch's own function
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu

from functools import partial

import torch.nn.functional as F

gelu = partial(F.gelu, approximate="none")
