"""Known answers to `generate`: mistakes, then right answers."""

from contextlib import contextmanager

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right
from solutions.language_model import next_token_probabilities

BANK = Bank("generate", right, globals())

BANK.changes("""
keeps_the_first_of_the_context: ids[:, -model.context_size :] → ids[:, : model.context_size]
    The model reads the first context_size tokens. It should read the last ones: what was written
    long ago stays before its eyes, and what it wrote just now does not.
context_not_cut: ids[:, -model.context_size :] → ids
    The model gets everything that is written, also where that is more than it can read.
context_one_short: ids[:, -model.context_size :] → ids[:, -max(model.context_size - 1, 1) :]
    The model reads one token less than it could.
context_cut_once
    + ids = ids[:, -model.context_size :]
    The given tokens are cut to the context, once and for all: what was cut off is missing in the
    result.
only_the_context_returned: > result = result[:, -model.context_size :]
    The result holds the last context_size tokens. It should hold all of them.
prompt_dropped
    + n = ids.shape[1]
    > result = result[:, n:]
    The given tokens are missing in the result, which holds the new ones only.
prompt_last
    + n = ids.shape[1]
    > result = torch.cat([result[:, n:], result[:, :n]], dim=1)
    The new tokens stand in front of the given ones.
one_token_too_few: + max_new_tokens = max(max_new_tokens - 1, 0)
    One token too few is written.
one_token_too_many: + max_new_tokens = max_new_tokens + 1
    One token too many is written.
length_for_new_tokens: range(max_new_tokens) → range(max_new_tokens - ids.shape[1])
    max_new_tokens is taken for the length of the whole text. It is the number of new tokens.
first_position_scored: [:, -1] → [:, 0]
    The logits of the first position are read. It is the last one that predicts the next token.
all_at_once
    - for _ in range(max_new_tokens):
    -     logits = model(ids[:, -model.context_size :])[:, -1]
    + logits = model(ids[:, -model.context_size :])[:, -1]
    + for _ in range(max_new_tokens):
    The model is called once, and all new tokens are drawn from its distribution for the first.
only_the_last_token_read: ids[:, -model.context_size :] → ids[:, -1:]
    The model gets the last token alone instead of everything that it can read.
likeliest_for_drawn: torch.multinomial(p, 1, generator=generator) → p.argmax(dim=-1, keepdim=True)
    The likeliest token is taken at every step. It should be drawn at random.
uniformly_drawn: torch.multinomial(p, 1 → torch.multinomial((p > 0).to(p), 1
    All tokens that may come are drawn with the same chance. Give torch.multinomial their
    probabilities.
one_draw_for_all_rows
    - torch.multinomial(p, 1, generator=generator)
    + torch.multinomial(p[:1], 1, generator=generator).expand(len(ids), 1)
    One token is drawn, for all rows. Each row is a text of its own.
temperature_ignored
    ~ (logits, temperature, top_k, top_p) → (logits, float(temperature > 0), top_k, top_p)
    The temperature is not passed on.
top_k_ignored: temperature, top_k, top_p) → temperature, None, top_p)
    top_k is not passed on.
top_p_ignored: temperature, top_k, top_p) → temperature, top_k, None)
    top_p is not passed on.
softmax_only: next_token_probabilities(logits, temperature, top_k, top_p) → logits.softmax(dim=-1)
    The tokens are drawn from the plain softmax: temperature, top_k and top_p make no difference.
generator_ignored: generator=generator → generator=None
    The generator is not passed on: the global random numbers move on instead, and the same seed
    gives another text each time.
generator_seeded_anew
    + if generator is not None:
    +     generator = torch.Generator(ids.device).manual_seed(generator.initial_seed())
    The draws come from a copy of the generator, made anew in each call. The generator itself stays
    where it was, and the next call draws the same.
seeded_at_every_step: drawn = → generator is None or generator.manual_seed(0); drawn =
    The generator is seeded anew at every step: whatever its seed, the text is the same.
writes_in_train_mode: - model.eval()
    The model writes in whatever mode it is: in training mode, dropout blurs every step.
left_in_eval_mode: module.training = training → pass
    The model is left in eval mode: whoever writes between two epochs goes on training without
    dropout.
left_in_training_mode: > model.train()
    The model is left in training mode, whatever mode it was in.
one_mode_for_all_parts
    - for module, training in modes.items():
    -     module.training = training
    + model.train(modes[model])
    model.train(mode) puts all modules into one mode at the end. A part that was frozen in eval mode
    no longer is.
with_gradients: with torch.no_grad(): → with torch.enable_grad():
    The steps are recorded for a backward pass that never comes, which costs memory at every one.
gradients_left_off: > torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
grown_in_place
    + given = ids
    > result = result.clone()
    > given.zero_()
    The caller's ids are changed.
ids_are_narrow: > result = result.int()
    The result is int32. Token ids are long.
seeded_at_the_start: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program: what is drawn at random is the same
    each time.
""")


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


forgotten(BANK, "ids", numpy=True, result=True)
