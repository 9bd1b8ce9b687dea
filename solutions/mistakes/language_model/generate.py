"""Known answers to `generate`: mistakes, then right answers."""

from contextlib import contextmanager

import torch

from autograder.bank import Bank
from solutions import language_model as right
from solutions.language_model import next_token_probabilities

BANK = Bank("generate", right, globals())
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
def into_a_table(
    model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    n, size = ids.shape[1], model.context_size
    table = torch.cat([ids, ids.new_zeros(len(ids), max_new_tokens)], 1)
    with _evaluating(model), torch.no_grad():
        for end in range(n, n + max_new_tokens):
            logits = model(table[:, max(0, end - size) : end])[:, -1]
            p = next_token_probabilities(logits, temperature, top_k, top_p)
            table[:, end] = torch.multinomial(p, 1, generator=generator).squeeze(1)
    return table


@BANK.right
def row_after_row(
    model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    texts = []
    with _evaluating(model), torch.inference_mode():
        for row in ids.tolist():
            for _ in range(max_new_tokens):
                read = torch.tensor([row[-model.context_size :]], device=ids.device)
                p = next_token_probabilities(model(read)[0, -1], temperature, top_k, top_p)
                row.append(int(torch.multinomial(p, 1, generator=generator)))
            texts.append(row)
    return torch.tensor(texts, device=ids.device).reshape(len(ids), -1)


@BANK.right
@torch.no_grad()
def greedy_without_drawing(
    model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    """Nothing is drawn where there is nothing to choose."""
    modes = {m: m.training for m in model.modules()}
    model.eval()
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.context_size :])[:, -1]
        if temperature == 0 or top_k == 1:
            new = logits.argmax(-1, keepdim=True)
        else:
            p = next_token_probabilities(logits, temperature, top_k, top_p)
            new = p.multinomial(num_samples=1, generator=generator)
        ids = torch.hstack([ids, new])
    for m, mode in modes.items():
        m.training = mode
    return ids


@BANK.right
def with_columns(
    model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    columns = list(ids.unbind(1))
    with _evaluating(model), torch.no_grad():
        while len(columns) < ids.shape[1] + max_new_tokens:
            read = torch.stack(columns[-model.context_size :], 1)
            chances = next_token_probabilities(model(read), temperature, top_k, top_p)[:, -1]
            columns.append(torch.multinomial(chances, 1, True, generator=generator)[:, 0])
    return torch.stack(columns, 1)


@BANK.right
def drawn_by_the_cumulative_sum(
    model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
):
    """One uniform number for each row says where in the cumulative sum the token is."""
    with _evaluating(model), torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -model.context_size :])[:, -1]
            p = next_token_probabilities(logits, temperature, top_k, top_p).double()
            u = torch.rand(len(ids), 1, generator=generator, device=ids.device)
            sums = p.cumsum(-1)
            new = (sums <= u * sums[:, -1:]).sum(-1, keepdim=True)
            ids = torch.cat([ids, new], 1)
    return ids
