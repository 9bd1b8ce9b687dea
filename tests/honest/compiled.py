# what: the answer is compiled: torch.compile as a decorator
# answers: masked_softmax
import torch


@torch.compile(backend="eager", dynamic=True)
def masked_softmax(scores, mask=None):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    mask = mask & ~torch.isneginf(scores)
    filled = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.softmax(filled, dim=-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


# %%
print(masked_softmax(torch.randn(2, 3), torch.tensor([[True, True, False], [False, False, False]])))
