"""Known answers to `greedy_decode`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("greedy_decode", right, globals())
BANK.read()


class _evaluating:
    """Put a model into eval mode, and afterwards each of its modules back into its own mode."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()

    def __exit__(self, *error):
        for m, training in self.modes:
            m.training = training


def _start(source, bos_id):
    return torch.full((len(source), 1), bos_id, dtype=torch.long, device=source.device)


@BANK.right
def greedy_row_by_row(model, source, bos_id, eos_id, max_len):
    rows = []
    with _evaluating(model), torch.inference_mode():
        for one in source:
            ids = [bos_id]
            while len(ids) <= max_len and eos_id not in ids[1:]:
                written = torch.tensor([ids], device=source.device)
                ids.append(int(model(one[None], written)[0, -1].argmax()))
            rows.append(ids[1:])
    width = max(map(len, rows))
    full = [row + [model.pad_id] * (width - len(row)) for row in rows]
    return torch.tensor(full, device=source.device)


@BANK.right
def greedy_into_a_table(model, source, bos_id, eos_id, max_len):
    ids = torch.full((len(source), max_len + 1), model.pad_id, device=source.device)
    ids[:, 0], length = bos_id, 0
    going = torch.ones(len(source), dtype=torch.bool, device=source.device)
    with _evaluating(model), torch.no_grad():
        while length < max_len and going.any():
            length += 1
            best = model(source, ids[:, :length])[:, -1].softmax(-1).max(-1).indices
            ids[going, length] = best[going]
            going = going & (best != eos_id)
    return ids[:, 1 : length + 1]


@BANK.right
def greedy_in_parts(model, source, bos_id, eos_id, max_len):
    ids = _start(source, bos_id)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            chosen = model(source, ids)[:, -1].argmax(-1).masked_fill(done, model.pad_id)
            ids = torch.cat([ids, chosen[:, None]], 1)
            done = done | (chosen == eos_id)
            if done.all():
                break
    return ids[:, 1:]


@BANK.right
def greedy_at_most_max_len_times(model, source, bos_id, eos_id, max_len):
    columns, done = [_start(source, bos_id)[:, 0]], torch.zeros(len(source)).to(source.device) > 0
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            logits = model(source, torch.stack(columns, 1))[:, -1]
            columns.append(torch.where(done, model.pad_id, logits.topk(1).indices[:, 0]))
            done = done | (columns[-1] == eos_id)
            if int(done.sum()) == len(done):
                break
    return torch.stack(columns[1:], 1)
