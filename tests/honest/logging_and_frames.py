# what: a logger that asks Python's frames for the caller's name, as on Stack Overflow
# answers: BilinearAttention, cosine_scores
import inspect
import logging
import sys
import traceback

import torch
from torch import nn

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger(__name__)


def here(depth=1):
    """name of the calling function: https://stackoverflow.com/q/5067604"""
    return sys._getframe(depth).f_code.co_name


def debug(message, *args):
    caller = inspect.currentframe().f_back
    log.debug("%s:%s " + message, caller.f_code.co_name, caller.f_lineno, *args)


# %%
class BilinearAttention(nn.Module):
    def __init__(self, query_size: int, key_size: int):
        super().__init__()
        self.W = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.W)
        log.debug("made by %s", inspect.stack()[1].function)

    def forward(self, query, key, value):
        scores = torch.einsum("bqi,ij,bkj->bqk", query, self.W, key) / self.W.numel() ** 0.25
        weights = nn.functional.softmax(scores, dim=-1)
        debug("weights %s", weights.shape)
        return torch.bmm(weights, value), weights


# %%
def cosine_scores(query, key, eps=1e-8):
    debug("query %s key %s", tuple(query.shape), tuple(key.shape))
    try:
        a = torch.linalg.vector_norm(query, dim=-1, keepdim=True).clamp(min=eps)
        b = torch.linalg.vector_norm(key, dim=-1, keepdim=True).clamp(min=eps)
    except RuntimeError:
        traceback.print_exc()
        raise
    out = torch.matmul(query / a, (key / b).transpose(-1, -2))
    log.info("leaving %s", here())
    return torch.clamp(out, min=-1, max=1)
