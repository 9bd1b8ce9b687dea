"""Known answers to `write_caption`: mistakes, then right answers."""

from contextlib import contextmanager

import torch

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("write_caption", right, globals())
BANK.read()


@contextmanager
def _evaluating(model):
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model.eval()
    finally:
        for module, mode in modes:
            module.training = mode


@BANK.right
def into_a_table(model, images, prompt_ids, eos_id, max_len):
    B, p = len(images), min(len(prompt_ids), max_len)
    table = torch.full((B, max_len), model.pad_id, dtype=prompt_ids.dtype, device=prompt_ids.device)
    table[:, :p] = prompt_ids[:p]
    done = torch.zeros(B, dtype=torch.bool, device=table.device)
    with _evaluating(model), torch.no_grad():
        memory = model.encode(images)
        while p < max_len and not bool(done.all()):
            best = model.decode(table[:, :p], memory)[:, -1].argmax(-1)
            table[:, p] = torch.where(done, model.pad_id, best)
            done |= table[:, p] == eos_id
            p += 1
    return table[:, :p]


@BANK.right
def with_columns(model, images, prompt_ids, eos_id, max_len):
    columns = [token.repeat(len(images)) for token in prompt_ids[:max_len]]
    alive = columns[0] == columns[0]
    with _evaluating(model), torch.inference_mode():
        memory = model.encode(images)
        while len(columns) < max_len and alive.any():
            _, best = model.decode(torch.stack(columns, 1), memory)[:, -1].max(-1)
            columns.append(torch.where(alive, best, torch.full_like(best, model.pad_id)))
            alive = alive & (columns[-1] != eos_id)
    return torch.stack(columns, 1)


@BANK.right
@torch.no_grad()
def only_those_that_go_on(model, images, prompt_ids, eos_id, max_len):
    """Finished captions leave the batch, and the memory with them."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    memory = model.encode(images)
    captions = [prompt_ids[:max_len].tolist() for _ in images]
    rows = [*range(len(images))]
    while rows and len(captions[rows[0]]) < max_len:
        ids = torch.tensor([captions[r] for r in rows], device=prompt_ids.device)
        for r, token in zip(rows, model.decode(ids, memory[rows])[:, -1].argmax(-1), strict=True):
            captions[r].append(int(token))
        rows = [r for r in rows if captions[r][-1] != eos_id]
    longest = max(map(len, captions))
    whole = [c + [model.pad_id] * (longest - len(c)) for c in captions]
    for module, mode in modes.items():
        module.training = mode
    return torch.tensor(whole, device=prompt_ids.device)


@BANK.right
def one_picture_after_another(model, images, prompt_ids, eos_id, max_len):
    found = []
    with _evaluating(model), torch.no_grad():
        for memory in model.encode(images).split(1):
            ids = prompt_ids[None, :max_len]
            while ids.shape[1] < max_len:
                best = model.decode(ids, memory)[0, -1].argmax()
                ids = torch.hstack([ids, best.reshape(1, 1)])
                if best == eos_id:
                    break
            found.append(ids[0])
    return torch.nn.utils.rnn.pad_sequence(found, batch_first=True, padding_value=model.pad_id)
