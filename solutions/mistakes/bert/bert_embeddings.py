"""Known answers to `BertEmbeddings`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import bert as right

BANK = Bank("BertEmbeddings", right, globals())

BANK.changes("""
segments_forgotten: self.positions(position) + self.segments(segment_ids) → self.positions(position)
    The segments are left out of the sum: the model cannot tell the first text from the second.
segments_only_where_given
    - segment_ids = torch.zeros_like(ids) if segment_ids is None else segment_ids
    - position = torch.arange(n, device=ids.device)
    - total = self.tokens(ids) + self.positions(position) + self.segments(segment_ids)
    + total = self.tokens(ids) + self.positions(torch.arange(n, device=ids.device))
    + total = total if segment_ids is None else total + self.segments(segment_ids)
    Without segment_ids, no segment is added. Every token is then in segment 0, whose vector counts.
last_segment_by_default: torch.zeros_like(ids) if → torch.zeros_like(ids) - 1 if
    ~ self.segments(segment_ids) → self.segments(segment_ids % self.segments.num_embeddings)
    Without segment_ids, every token is put into the last segment. It should be segment 0.
segment_ones_by_default
    ~ torch.zeros_like(ids) if → torch.ones_like(ids) if
    ~ self.segments(segment_ids) → self.segments(segment_ids % self.segments.num_embeddings)
    Without segment_ids, every token is put into segment 1. It should be segment 0.
segment_ids_ignored: segment_ids is None → True
    segment_ids is never read: every token is in segment 0.
positions_forgotten: self.tokens(ids) + self.positions(position) → self.tokens(ids)
    The positions are left out of the sum: the model sees a text as a bag of words.
positions_of_the_batch
    ~ torch.arange(n, → torch.arange(ids.shape[0],
    ~ self.positions(position) → self.positions(position)[:, None]
    ~ total = → position = position % max_len; total =
    The positions are counted along the batch: every token of a row gets the row's number. They are
    counted along axis 1, from 0 in every row.
positions_from_one
    - total = self.tokens(ids)
    + position = (position + 1) % max_len
    + total = self.tokens(ids)
    The positions begin at 1. The first token of a text is at position 0.
positions_backwards: torch.arange(n, → torch.arange(n - 1, -1, -1,
    The positions are counted from the end. The first token of a text is at position 0.
last_positions
    ~ torch.arange(n, → torch.arange(max_len - n, max_len,
    The last n rows of the table are read, so a token's position depends on how long the text is. It
    should be the first n rows.
one_position_for_all: torch.arange(n, → torch.zeros(n, dtype=torch.long,
    Every token is at position 0.
token_as_position: self.positions(position) → self.positions(ids % max_len)
    The table of positions is read at the tokens' ids. It should be read at 0 … n − 1.
tokens_forgotten: total = self.tokens(ids) + → total =
    ~ self.positions(position) → self.positions(position)[None]
    The tokens are left out of the sum.
scaled_by_the_root: self.tokens(ids) + → self.tokens(ids) * self.norm.normalized_shape[0] ** 0.5 +
    The token's vector is multiplied by √d_model, as in the Transformer of 2017. BERT adds it as it
    is.
averaged: self.norm(total) → self.norm(total / 3)
    The mean of the three vectors is taken. The norm hides that, except for its eps, where they are
    small.
norm_before_the_sum
    - total = self.tokens(ids) + self.positions(position) + self.segments(segment_ids)
    - return self.dropout(self.norm(total))
    + total = self.norm(self.tokens(ids)) + self.positions(position) + self.segments(segment_ids)
    + return self.dropout(total)
    Only the token's vector is normalised, before the sum. It is the sum that should be.
each_normalised
    - total = self.tokens(ids) + self.positions(position) + self.segments(segment_ids)
    - return self.dropout(self.norm(total))
    + parts = self.tokens(ids), self.positions(position), self.segments(segment_ids)
    + return self.dropout(sum(self.norm(part) for part in parts))
    Each vector is normalised on its own, and then they are added. It is their sum that should be
    normalised.
segments_behind_the_norm
    - total = self.tokens(ids) + self.positions(position) + self.segments(segment_ids)
    - return self.dropout(self.norm(total))
    + total = self.tokens(ids) + self.positions(position)
    + return self.dropout(self.norm(total) + self.segments(segment_ids))
    The segments are added behind the norm. All three are added first.
norm_forgotten: self.norm(total) → total
    The sum is not normalised.
norm_over_the_positions: self.norm(total) → self.norm((total - total.mean(1, keepdim=True)))
    The mean over the positions is taken away before the norm. The norm works on each position
    alone, over its features.
norm_without_its_parameters: self.norm(total) → F.layer_norm(total, total.shape[-1:], eps=1e-12)
    The norm's weight and bias are not used.
eps_of_torch: nn.LayerNorm(d_model, eps=1e-12) → nn.LayerNorm(d_model)
    The norm has torch's eps, 1e-5. BERT's is 1e-12, and where the vectors are small, that shows.
eps_too_large: eps=1e-12 → eps=1e-6
    The norm's eps is 1e-6. BERT's is 1e-12, and where the vectors are small, that shows.
no_eps: eps=1e-12 → eps=0.0
    The norm has no eps at all. BERT's is 1e-12.
multiplied: self.positions(position) + self.segments → self.positions(position) * self.segments
    The segment's vector is multiplied with the position's. All three are added.
dropout_forgotten: self.dropout(self.norm(total)) → self.norm(total)
    Nothing is ever dropped.
dropout_before_the_norm: self.dropout(self.norm(total)) → self.norm(self.dropout(total))
    Dropout acts before the norm. It comes last, behind the norm.
dropout_in_eval: self.dropout(self.norm(total)) → F.dropout(self.norm(total), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
dropout_always_a_tenth: nn.Dropout(dropout) → nn.Dropout(0.1)
    A tenth is dropped whatever `dropout` is.
whole_tokens_dropped: nn.Dropout(dropout) → nn.Dropout1d(dropout)
    Dropout takes the whole vector of a token at a time. It should take single numbers.
not_scaled
    - return self.dropout(self.norm(total))
    + return self.norm(total) * (self.dropout(torch.ones_like(total)) > 0)
    What is kept in training is not divided by 1 − p.
no_error: if n > max_len: → if False:
    A text longer than max_len ends in an IndexError of the table. It should be a ValueError that
    names the number of tokens and max_len.
cut_off
    + ids = ids[:, : self.positions.num_embeddings]
    + segment_ids = None if segment_ids is None else segment_ids[:, : self.positions.num_embeddings]
    A text longer than max_len is cut. It should raise a ValueError.
wrapped_around
    ~ if n > max_len: → if False:
    ~ self.positions(position) → self.positions(position % max_len)
    Beyond max_len the positions begin again at 0. There should be a ValueError.
max_len_refused: n > max_len → n >= max_len
    A text of exactly max_len tokens is refused. There is a vector for each of its positions.
names_no_numbers
    - raise ValueError(f"{n} tokens, but there are positions for {max_len} only")
    + raise ValueError("the text is too long")
    The error does not say how long the text is, nor how long it may be.
short_by_default: max_len=512 → max_len=128
    max_len is 128 if nothing else is said. It should be 512.
gradient_cut: total = self.tokens(ids) → total = self.tokens(ids).detach()
    The token's vector is detached, so its table learns nothing.
frozen_positions: self.positions(position) → self.positions.weight.data[position]
    The positions are read from .data: their table learns nothing.
rounded_to_single: > result = result.float()
    The result is float32 whatever the tables are.
ids_overwritten: > ids.zero_()
    The caller's ids are changed.
switches_the_default: + torch.set_default_dtype(torch.float64)
    forward changes torch's default dtype for the whole program.
""")


@BANK.right
class by_rows(right.BertEmbeddings):
    """Slices and fancy indices instead of look-ups."""

    def forward(self, ids, segment_ids=None):
        length = ids.size(1)
        most = len(self.positions.weight)
        if length > most:
            raise ValueError(f"max_len is {most}, and the text has {length} tokens")
        segments = self.segments.weight[0 if segment_ids is None else segment_ids]
        x = self.tokens.weight[ids] + segments + self.positions.weight[:length]
        return self.dropout(self.norm(x))


@BANK.right
class one_hot(right.BertEmbeddings):
    """Each look-up as a product with a table of zeros and ones."""

    def forward(self, ids, segment_ids=None):
        (_, n), (most, _) = ids.shape, self.positions.weight.shape
        if n > most:
            raise ValueError(f"{n} > {most}")
        place = torch.arange(n, device=ids.device).expand_as(ids)
        segment_ids = ids * 0 if segment_ids is None else segment_ids
        total = 0
        for which, table in (
            (ids, self.tokens), (place, self.positions), (segment_ids, self.segments)
        ):  # fmt: skip
            rows = F.one_hot(which, table.num_embeddings).to(table.weight.dtype)
            total = total + rows @ table.weight
        return F.dropout(self.norm(total), self.dropout.p, self.training)


@BANK.right
class in_other_parts(nn.Module):
    """A buffer of positions, as Hugging Face's code has it, and max_len remembered."""

    def __init__(self, vocab_size, d_model, max_len=512, num_segments=2, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, 1e-12)
        self.segments, self.tokens = (
            nn.Embedding(num_embeddings=size, embedding_dim=d_model)
            for size in (num_segments, vocab_size)
        )
        self.positions = nn.Embedding(max_len, d_model)
        self.register_buffer("places", torch.arange(max_len)[None], persistent=False)
        self.p, self.max_len = dropout, max_len

    def forward(self, ids, segment_ids=None):
        n = ids.shape[-1]
        if self.max_len < n:
            raise ValueError(f"expected at most {self.max_len} tokens, got {n}")
        if segment_ids is None:
            segment_ids = torch.zeros(ids.shape, dtype=torch.long, device=ids.device)
        embedded = self.tokens(ids)
        embedded = embedded + self.positions(self.places[:, :n])
        embedded = embedded + self.segments(segment_ids)
        return torch.dropout(self.norm(embedded), self.p, self.training)


@BANK.right
class norm_written_out(right.BertEmbeddings):
    """The norm by its formula, in float64 inside."""

    def forward(self, ids, segment_ids=None):
        n = ids.shape[1]
        if n > self.positions.num_embeddings:
            raise ValueError(f"{n} tokens and {self.positions.num_embeddings} positions")
        segment_ids = torch.zeros_like(ids) if segment_ids is None else segment_ids
        x = self.tokens(ids) + self.positions.weight.narrow(0, 0, n) + self.segments(segment_ids)
        wide = x.double()
        away = wide - wide.mean(-1, keepdim=True)
        wide = away / (away.square().mean(-1, keepdim=True) + 1e-12).sqrt()
        return self.dropout((wide * self.norm.weight + self.norm.bias).to(x.dtype))


forgotten(BANK, "ids", numpy=True)
