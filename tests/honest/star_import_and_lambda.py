# what: `from torch.nn.functional import *`, and answers that are annotated lambdas
# answers: gelu, chunked_feed_forward
from math import *
from typing import Callable

from torch import *
from torch.nn.functional import *

# %%
gelu: Callable[[Tensor], Tensor] = lambda x: x * (erf(x / 2**0.5) + 1.0) * 0.5
# %%
chunked_feed_forward: Callable[[Callable, Tensor, int], Tensor] = (
    lambda feed_forward, x, chunk_size: (
        cat([feed_forward(c) for c in x.split(chunk_size, 1)], dim=1)
        if chunk_size
        else feed_forward(x)
    )
)
