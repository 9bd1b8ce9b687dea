# what: torch.jit.script and torch.jit.trace on one's own code
# answers: gelu, chunked_feed_forward
import torch


# %%
def _gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))


gelu = torch.jit.trace(_gelu, (torch.randn(3),), check_trace=False)
print(gelu.graph)


# %%
def chunks(x: torch.Tensor, size: int):
    return [x[:, i : i + size] for i in range(0, x.shape[1], size)]


try:
    chunks = torch.jit.script(chunks)
except Exception as e:
    print("scripting did not work:", type(e).__name__)


def chunked_feed_forward(feed_forward, x, chunk_size):
    size = chunk_size if chunk_size > 0 else max(x.shape[1], 1)
    if size >= x.shape[1]:
        return feed_forward(x)
    return torch.cat(tuple(feed_forward(c) for c in chunks(x, size)), dim=1)
