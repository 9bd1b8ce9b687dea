# what: `import pdb`, `breakpoint()` switched off, DEBUG flags, hooks for post-mortem, traceback printing
# answers: DropPath, chunked_feed_forward
import os
import pdb  # noqa: T100
import sys

os.environ["PYTHONBREAKPOINT"] = "0"
sys.breakpointhook = lambda *args, **kws: None
DEBUG = False

import torch
from torch import nn


# %%
class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        breakpoint()
        if DEBUG:
            pdb.set_trace()
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return torch.zeros_like(x)
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        mask = torch.empty(shape, dtype=x.dtype, device=x.device).bernoulli_(1 - self.p)
        # import ipdb; ipdb.set_trace()
        return x * mask / (1 - self.p)


# %%
def chunked_feed_forward(feed_forward, x, chunk_size):
    try:
        if chunk_size == 0:
            return feed_forward(x)
        outs = []
        for start in range(0, x.size(1), chunk_size):
            end = min(start + chunk_size, x.size(1))
            outs.append(feed_forward(x[:, start:end, :]))
            if DEBUG:
                print(start, end, outs[-1].shape, file=sys.stderr)
        return torch.cat(outs, 1)
    except Exception as e:
        print("!!!", sys.exc_info()[0], e)
        if DEBUG:
            pdb.post_mortem(sys.exc_info()[2])
        raise
    finally:
        if DEBUG:
            print("<- chunked_feed_forward")
