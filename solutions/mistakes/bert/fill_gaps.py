"""Known answers to `fill_gaps`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("fill_gaps", right, globals())
BANK.read()


@BANK.right
def row_after_row(model, ids, mask_id, steps):
    """Lists of Python, a row at a time."""
    rows = []
    with torch.no_grad():
        for row in ids.tolist():
            for rounds in range(steps, 0, -1):
                left = [i for i, token in enumerate(row) if token == mask_id]
                if not left:
                    break
                logits = model(torch.tensor([row], device=ids.device))[0]
                logits = logits.index_fill(1, torch.tensor(mask_id, device=ids.device), -torch.inf)
                chances = logits.softmax(1).tolist()
                left.sort(key=lambda i: -max(chances[i]))
                for i in left[: -(-len(left) // rounds)]:
                    row[i] = max(range(len(chances[i])), key=chances[i].__getitem__)
            rows.append(row)
    return torch.tensor(rows, device=ids.device)


@BANK.right
def shares_counted_first(model, ids, mask_id, steps):
    """The first gaps % steps rounds have one more; topk chooses, row by row."""
    ids = ids.clone()
    number = (ids == mask_id).sum(1).tolist()
    for r in range(steps):
        logits = model(ids).detach().clone()
        logits[:, :, mask_id] = float("-inf")
        sure, token = torch.softmax(logits, 2).max(2)
        sure = sure.where(ids == mask_id, -torch.ones_like(sure))
        for b, gaps in enumerate(number):
            chosen = sure[b].topk(gaps // steps + (r < gaps % steps)).indices
            ids[b, chosen] = token[b, chosen]
    return ids


@BANK.right
def by_the_pairs(model, ids, mask_id, steps):
    """A gap's rank is how many gaps are surer: a table of all pairs, and log-probabilities."""
    for left in reversed(range(1, steps + 1)):
        gap = ids.eq(mask_id)
        logits = model(ids)
        bar = torch.zeros_like(logits[0, 0])
        bar[mask_id] = -torch.inf
        sure = (logits + bar).log_softmax(-1).amax(-1)
        token = (logits + bar).argmax(-1)
        surer = (sure[:, None, :] > sure[:, :, None]) & gap[:, None, :]
        share = torch.ceil(gap.sum(1).double() / left)
        ids = ids.masked_fill(gap & (surer.sum(2) < share[:, None]), 0) + token * (
            gap & (surer.sum(2) < share[:, None])
        )
    return ids


@BANK.right
def without_the_mask(model, ids, mask_id, steps):
    """The column of mask_id is left out; the places chosen are scattered."""
    for left in range(steps, 0, -1):
        gap = ids == mask_id
        if not gap.any():
            break
        logits = model(ids)
        words = torch.arange(logits.shape[-1], device=ids.device)
        words = words[words != mask_id]
        chances = logits[..., words].softmax(-1)
        order = chances.amax(-1).masked_fill(~gap, 0.0).sort(dim=-1, descending=True).indices
        place = torch.arange(ids.shape[1], device=ids.device)
        first = place < gap.sum(-1, keepdim=True).div(left, rounding_mode="floor") + (
            gap.sum(-1, keepdim=True) % left > 0
        )
        chosen = torch.zeros_like(gap).scatter(1, order, first)
        ids = torch.where(chosen, words[chances.argmax(-1)], ids)
    return ids
