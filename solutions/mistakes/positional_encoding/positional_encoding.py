"""Known answers to `PositionalEncoding`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import sinusoidal_encoding as tables

BANK = Bank("PositionalEncoding", right, globals())

BANK.changes("""
position_from_batch_axis: self.pe[offset:end] → self.pe[offset : offset + x.shape[0], None]
    The rows of the table are assigned to the sequences of the batch instead of their tokens: all
    tokens of a sequence get the same encoding, depending on the sequence's place in the batch. The
    positions are axis 1 of x.
not_saved
    ~ (max_len, d_model)) → (max_len, d_model), persistent=False)
    The buffer is registered with persistent=False: it moves with the module, but is not saved.
one_row_for_all: self.pe[offset:end] → self.pe[offset : offset + 1]
    Every token gets the same row. Token p should get row p of the table.
trainable
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = nn.Parameter(sinusoidal_encoding(max_len, d_model))
    The table is a parameter: training changes it, and an optimiser keeps moments for it. That is a
    learnt table initialised with sinusoids. A buffer stays as it is.
frozen_parameter
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = nn.Parameter(sinusoidal_encoding(max_len, d_model), requires_grad=False)
    The table is a parameter without a gradient, and still counts among the parameters. A buffer is
    what is saved but not trained.
not_a_buffer
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = sinusoidal_encoding(max_len, d_model)
    The table is a plain attribute: it stays on the CPU when the module moves to a GPU, and it is
    missing from the state dict. It should be a buffer.
buffer_of_another_name: "pe" → "table" ; self.pe → self.table ×2
    There is a buffer, but it is not called pe.
buffer_with_a_batch_axis: max_len, d_model)) → max_len, d_model)[None]) ; self.pe → self.pe[0] ×2
    The buffer is (1, max_len, d_model). It should be (max_len, d_model), which broadcasts by
    itself.
added_twice: self.pe[offset:end] → self.pe[offset:end] + self.pe[offset:end]
    The encoding is added twice.
never_added: x + self.pe[offset:end].to(x.dtype) → x
    x is returned without its encoding; perhaps the sum was computed and not used.
multiplied: x + self → x * self
    x is multiplied by the encoding. It should be added: multiplying wipes out whatever meets a 0,
    such as half of the first token.
concatenated
    - x + self.pe[offset:end].to(x.dtype)
    + torch.cat([x, self.pe[offset:end].expand_as(x)], dim=-1)
    The encoding is appended to x, which becomes twice as wide. It should be added.
embedding_scaled_here: x + self → x * x.shape[-1] ** 0.5 + self
    x is multiplied by √d_model first. In the Transformer that is up to the embedding layer; this
    module only adds positions.
encoding_alone: x + self → 0 * x + self
    The encoding is returned without x.
cosine_exponent_in_the_table
    ~ sinusoidal_encoding( → tables.BANK.mistakes["cosine_exponent_2i_plus_1"](
    The table's cosines have the exponent (2i + 1)/d_model. They should share that of their sines.
odd_size_refused_by_the_module
    ~ sinusoidal_encoding( → tables.BANK.mistakes["odd_size_refused"](
    An odd d_model ends in an error: there are fewer odd columns than even ones.
offset_ignored: self.pe[offset:end] → self.pe[: x.shape[1]]
    The offset is not used: every piece of a sequence starts at position 0 again.
offset_one_too_far
    - self.pe[offset:end]
    + self.pe[(torch.arange(offset, end) + (offset > 0)).clamp(max=max_len - 1)]
    With an offset, the first token is placed one position too far: it is at position `offset`, not
    after it.
slice_without_its_length: self.pe[offset:end] → self.pe[offset : x.shape[1]]
    The rows are pe[offset : n]. The second number of a slice is where it ends, which should be
    offset + n.
length_not_checked: end > max_len → False
    With more positions than the table has rows, some other error comes up, or none. It should be a
    ValueError that says how many are needed and how many there are.
too_long_cut_silently
    ~ end > max_len → False
    ~ x + self → x[:, : len(self.pe[offset:end])] + self
    Whatever does not fit the table is cut off, and nobody notices that the end of the text is lost.
    It should raise a ValueError.
positions_wrap_around
    ~ end > max_len → False
    ~ self.pe[offset:end] → self.pe[torch.arange(offset, end) % max_len]
    Positions beyond the end of the table silently start again at 0, so two tokens share one
    position. It should raise a ValueError.
offset_not_checked: end > max_len → x.shape[1] > max_len
    max_len is compared with the length of x alone instead of offset + n.
error_without_numbers
    ~ f"{end} positions are needed, and max_len is {max_len}" → "the sequence is too long"
    The ValueError does not say how many positions are needed, nor how many there are.
full_length_refused: end > max_len → end >= max_len
    A sequence that fills the table to its last row is rejected. It fits.
dropout_forgotten: self.dropout(x → (x
    `dropout` is accepted and not used.
dropout_before_the_sum: (x + self.pe[offset:end].to(x.dtype)) → (x) + self.pe[offset:end]
    Dropout acts on x, and the encoding is added after it. It should act on the sum.
dropout_on_the_encoding
    - self.dropout(x + self.pe[offset:end].to(x.dtype))
    + x + self.dropout(self.pe[offset:end].expand_as(x))
    Dropout acts on the encoding alone. It should act on the sum of x and the encoding.
dropout_in_eval
    - self.dropout(x + self.pe[offset:end].to(x.dtype))
    + F.dropout(x + self.pe[offset:end], self.dropout.p)
    Dropout is active even in eval mode. nn.Dropout knows the mode of its module; F.dropout has to
    be told.
gradient_cut: self.dropout(x → self.dropout(x.detach()
    No gradient reaches x: nothing before this module can learn. Only the table is constant.
result_in_float32: > result = result.float()
    A float64 input gives a float32 result.
input_changed_in_place
    > with torch.no_grad():
    >     x.add_(self.pe[offset:end])
    The caller's x is overwritten: `x += …` adds in place.
added_in_place: (x + self.pe[offset:end].to(x.dtype)) → (x.add_(self.pe[offset:end].to(x.dtype)))
    The encoding is written into the caller's x, as by `x += …`, which torch refuses where x is to
    have gradients. Make a new tensor.
generator_seeded
    - super().__init__()
    + super().__init__()
    + torch.manual_seed(0)
    Building or calling the module seeds torch's generator, or changes another setting of the whole
    program. Nothing here needs that.
subtracted: x + self → x - self
    The encoding is subtracted. It is added.
""")


@BANK.right
class with_functional_dropout(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.register_buffer("pe", tables.with_exp_and_log(max_len, d_model))

    def forward(self, x, offset=0):
        n, limit = x.size(1), self.pe.size(0)
        if n + offset > limit:
            raise ValueError(f"max_len is {limit}, position {n + offset} was asked for")
        return F.dropout(x + self.pe[offset : offset + n].unsqueeze(0), self.p, self.training)


@BANK.right
class by_looking_rows_up(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.max_len, self.dropout = max_len, nn.Dropout(dropout)
        self.register_buffer("pe", tables.by_numpy_in_float64(max_len, d_model))

    def forward(self, x, offset=0):
        positions = offset + torch.arange(x.shape[1], device=x.device)
        if offset + x.shape[1] > self.max_len:
            raise ValueError(f"{offset + x.shape[1]} > {self.max_len}")
        return self.dropout(x + F.embedding(positions, self.pe))


@BANK.right
class token_after_token(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", tables.number_by_number(max_len, d_model))
        self.after = nn.Sequential(nn.Identity(), nn.Dropout(p=dropout))

    def forward(self, x, offset=0):
        needed = x.shape[1] + offset
        if needed > len(self.pe):
            raise ValueError(f"needed: {needed} positions, there are: {len(self.pe)}")
        tokens = [x[:, i] + self.pe[offset + i] for i in range(x.shape[1])]
        return self.after(torch.stack(tokens, dim=1))


@BANK.right
class by_narrowing(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        table = tables.by_complex_numbers(max_len, d_model)
        self.register_buffer("pe", table)
        self.shape = table.shape
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, offset=0):
        if offset + x.shape[1] > self.shape[0]:
            raise ValueError(f"max_len {self.shape[0]} is less than {offset + x.shape[1]}")
        return self.dropout(self.pe.narrow(0, offset, x.shape[1]).expand_as(x) + x)


forgotten(BANK, "x")
