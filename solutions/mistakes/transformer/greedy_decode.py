"""Known answers to `greedy_decode`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("greedy_decode", right, globals())

BANK.changes("""
bos_kept: ids[:, 1:] → ids
    The result begins with bos, which is not part of what was written.
eos_dropped: > result = result.masked_fill(result == eos_id, model.pad_id)
    eos is replaced by padding in the result. It is part of what was written.
writes_on_after_eos: - chosen = chosen.masked_fill(done, model.pad_id)
    A row that has its eos goes on writing while others are not done: after its eos there is noise
    instead of padding.
never_stops: + eos_id = -1
    Nothing stops at eos: every row is written up to max_len, whatever it says.
always_max_len: max_len and not done.all() → max_len
    The result is right but padded to max_len: the model is called again and again after every row
    has its eos.
asks_on_and_trims
    ~ max_len and not done.all() → max_len
    > ends = [[*row, eos_id].index(eos_id) + 1 for row in result.tolist()]
    > result = result[:, : max(ends)]
    The model is called max_len times however early the rows are done, and the padding is cut off
    afterwards: right, but slow.
stops_at_the_first_eos: done.all() → done.any()
    Writing stops as soon as any row has its eos; the others are cut short.
stops_with_the_first_row: done.all() → done[0]
    Only the first row's eos counts: as soon as it is there, all rows stop.
padded_with_eos: model.pad_id → eos_id
    Rows that are done are filled up with eos instead of model.pad_id.
padded_with_zero: model.pad_id → 0
    Rows that are done are filled up with 0. Padding is model.pad_id, which need not be 0.
one_token_short: + max_len = max_len - 1
    bos is counted: one token too few is written.
one_token_too_many: + max_len = max_len + 1
    max_len + 1 tokens are written if no eos comes.
predicts_in_train_mode: - model.eval()
    The model decodes in whatever mode it is: in training mode, dropout blurs every step, and two
    calls give two different texts.
left_in_eval_mode: module.training = training → pass
    The model is left in eval mode: whoever decodes between two epochs goes on training without
    dropout.
left_in_training_mode: > model.train()
    The model is left in training mode, whatever mode it was in.
one_mode_for_all_parts
    - for module, training in modes.items():
    -     module.training = training
    + model.train(modes[model])
    model.train(mode) puts all modules into one mode at the end. A part that was frozen in eval mode
    no longer is.
parts_left_in_eval_mode: module.training = training → model.training = modes[model]
    Only the model's own mode is restored. model.eval() reaches all of its parts, and they are still
    in eval mode: their dropout is off from then on.
first_position_scored: [:, -1] → [:, 0]
    The logits of the first position are read at every step, but it is the last that predicts the
    next token: the same token is written over and over.
only_the_last_token_read: model(source, ids) → model(source, ids[:, -1:])
    The model gets the last token alone instead of everything written so far: it does not know where
    in the text it is.
least_likely: argmax → argmin
    The least likely token is taken: argmin, or the first in ascending order.
drawn_by_lot
    - model(source, ids)[:, -1].argmax(dim=-1)
    + torch.multinomial((model(source, ids)[:, -1] / 4).softmax(-1), 1)[:, 0]
    The next token is drawn at random from the softmax. Greedy decoding takes the likeliest.
starts_with_eos: + bos_id = eos_id
    The first token that the model reads is eos, not bos.
row_by_row_of_the_first: + source = source[:1].expand_as(source)
    Every row is written from the first row's source.
ids_are_narrow: > result = result.int()
    The ids are returned as int32; token ids should be long.
recorded_for_gradients: with torch.no_grad(): → with torch.enable_grad():
    The steps are recorded for a backward pass that never comes, which costs memory at every one.
gradients_left_off: > torch.set_grad_enabled(False)
    Gradients are turned off and stay so: the next training step fails.
source_padded_in_place: > source[(result == eos_id).any(1)] = model.pad_id
    The caller's source is changed: rows that are done are turned into padding.
padded_once_and_written_on
    - chosen = chosen.masked_fill(done, model.pad_id)
    + chosen = chosen.masked_fill(ids[:, -1] == eos_id, model.pad_id)
    Only the place right after eos is padded: one step later the row goes on writing, since its last
    token is no longer eos. A row is done for good once it has its eos.
""")


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


forgotten(BANK, "source", numpy=True, result=True)
