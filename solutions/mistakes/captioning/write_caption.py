"""Known answers to `write_caption`: mistakes, then right answers."""

from contextlib import contextmanager

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("write_caption", right, globals())

BANK.changes("""
encodes_at_every_step
    - best = model.decode(ids, memory)[:, -1].argmax(dim=-1)
    + best = model.decode(ids, model.encode(images))[:, -1].argmax(dim=-1)
    The pictures are encoded anew for each token. The memory does not change: encode them once.
prompt_lost
    > result = result[:, len(prompt_ids) :]
    The prompt is missing in the captions that are returned.
prompt_not_read
    ~ model.decode(ids, memory) → model.decode(ids[:, -1:], memory)
    The model gets the last token alone. Give it all that is written, the prompt included.
bos_only: prompt_ids[:max_len].repeat → prompt_ids[:1].repeat
    Captions begin with the first token of the prompt. They should begin with all of it.
prompt_for_the_first_only
    - ids = prompt_ids[:max_len].repeat(len(images), 1)
    + ids = prompt_ids[:max_len].repeat(len(images), 1)
    + ids[1:] = model.pad_id
    Only the first caption begins with the prompt.
first_position_scored: [:, -1] → [:, 0]
    The logits of the first position are read. It is the last one that predicts the next token.
second_last_scored: [:, -1] → [:, -2:][:, 0]
    The logits of the last position but one are read. The last one predicts the next token.
likeliest_over_the_batch: .argmax(dim=-1) → .argmax(dim=0)[: len(images)]
    The likeliest is looked for along the batch. Each caption has a next token of its own, along the
    vocabulary.
least_likely: .argmax(dim=-1) → .argmin(dim=-1)
    The least likely token is taken.
same_for_all
    ~ .argmax(dim=-1) → .argmax(dim=-1)[:1].expand(len(images))
    Every caption is that of the first picture.
drawn_at_random: [:, -1].argmax(dim=-1) → [:, -1].softmax(-1).multinomial(1)[:, 0]
    The next token is drawn at random. It should be the likeliest.
goes_on_after_eos: best.masked_fill(done, model.pad_id).to(ids.dtype) → best.to(ids.dtype)
    A caption that has its eos goes on. It should have pad_id from there on.
eos_after_eos: masked_fill(done, model.pad_id) → masked_fill(done, eos_id)
    A finished caption is filled up with eos. It should be filled with model.pad_id.
zero_after_eos: masked_fill(done, model.pad_id) → masked_fill(done, 0)
    A finished caption is filled up with 0, which need not be model.pad_id.
eos_dropped
    - new = best.masked_fill(done, model.pad_id).to(ids.dtype)
    - done = done | (new == eos_id)
    + done = done | (best == eos_id)
    + new = best.masked_fill(done, model.pad_id).to(ids.dtype)
    The eos itself is replaced by padding. It belongs to the caption.
stops_with_the_first: not done.all() → not done.any()
    Writing stops as soon as one caption is finished. The others are cut off.
never_stops: < max_len and not done.all() → < max_len
    Writing goes on to max_len though all captions are finished.
stops_one_step_late
    - while ids.shape[1] < max_len and not done.all():
    + last = False
    + while ids.shape[1] < max_len and not last:
    +     last = bool(done.all())
    When all captions are finished, one more token is written.
finished_is_forgotten: done = done | (new == eos_id) → done = new == eos_id
    Whether a caption is finished is decided by its last token alone, so it goes on one token after
    its eos.
max_len_of_new_tokens: while ids.shape[1] < max_len → while ids.shape[1] < max_len + len(prompt_ids)
    max_len is taken for the number of new tokens. It is the length of the whole, the prompt
    included.
one_token_too_many: while ids.shape[1] < max_len → while ids.shape[1] <= max_len
    Captions get one token longer than max_len.
one_token_too_few: while ids.shape[1] < max_len → while ids.shape[1] < max_len - 1
    Captions stop one token short of max_len.
prompt_not_cut: prompt_ids[:max_len] → prompt_ids
    A prompt longer than max_len comes back whole. It should be cut to max_len.
prompt_cut_at_the_front: prompt_ids[:max_len] → prompt_ids[-max_len:]
    Of a prompt longer than max_len, the last tokens are kept. It should be the first ones.
always_filled_up
    > missing = max_len - result.shape[1]
    > result = torch.nn.functional.pad(result, (0, missing), value=model.pad_id)
    The captions are filled up to max_len. They should be as long as the longest of them.
memory_shuffled: model.decode(ids, memory) → model.decode(ids, memory.flip(0))
    The captions look at one another's pictures: memory and captions are in different orders.
encodes_in_training_mode
    - model.eval()
    ~ memory = model.encode(images) → memory = model.encode(images); model.eval()
    The pictures are encoded before the model is put into eval mode: dropout blurs what the captions
    look at.
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
encoded_with_gradients
    - with torch.no_grad():
    -     memory = model.encode(images)
    + memory = model.encode(images)
    + with torch.no_grad():
    The pictures are encoded with gradients recorded, for a backward pass that never comes.
ids_are_narrow: > result = result.int()
    The result is int32. Token ids are long.
a_list: > result = result.tolist()
    The result is a list. Return a tensor.
prompt_written_into: + prompt_ids.add_(0).clamp_(max=eos_id)
    The caller's prompt is changed.
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
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


forgotten(BANK, "prompt_ids", numpy=True, result=True)
