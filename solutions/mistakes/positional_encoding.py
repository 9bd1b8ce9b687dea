"""Known answers to chapter 5: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.positional_encoding`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from solutions import positional_encoding as right
from solutions.mistakes import Bank

PERMUTATION_GAP = Bank("permutation_gap", right, globals())
SINUSOIDAL_ENCODING = Bank("sinusoidal_encoding", right, globals())
POSITIONAL_ENCODING = Bank("PositionalEncoding", right, globals())
SHIFT_MATRIX = Bank("shift_matrix", right, globals())
RELATIVE_POSITIONS = Bank("relative_positions", right, globals())
RELATIVE_POSITION_SCORES = Bank("relative_position_scores", right, globals())
ROTARY_EMBEDDING = Bank("rotary_embedding", right, globals())
ROTARY_ATTENTION = Bank("rotary_attention", right, globals())


# --- permutation_gap: mistakes ------------------------------------------------------------------

PERMUTATION_GAP.changes("""
output_not_permuted: attention(x)[:, permutation] → attention(x)
    The output is compared as it is, without being permuted. That asks whether order changes nothing
    at all; plain attention does move its outputs, in step with its inputs.
output_permuted_backwards: attention(x)[:, permutation] → attention(x)[:, permutation.argsort()]
    The output is permuted by the inverse permutation. Both sides must be permuted in the same way;
    with a mere exchange of two tokens, which is its own inverse, nothing shows.
batch_permuted: [:, permutation] → [permutation] ×2
    The permutation is applied to axis 0, the sequences of the batch. They never see each other, so
    the gap is always 0, or there are too few of them. Positions are axis 1.
features_permuted: [:, permutation] → [..., permutation] ×2
    The permutation is applied to the last axis, the features. Positions are axis 1.
input_not_permuted: attention(x[:, permutation]) → attention(x)[:, permutation]
    Both outputs are computed from x as it came, and both are permuted: the gap is 0 whatever the
    attention does. One of them has to start from the permuted input.
sign_kept: gap.abs().max() → gap.max()
    The largest difference is taken without its absolute value: a large negative one is missed, and
    the two sides are not treated alike.
mean_for_max: max() → mean()
    The differences are averaged. A single token that notices its place is lost in the average: take
    the largest.
norm_for_max: gap.abs().max() → gap.norm()
    This is the length of the difference, which grows with the number of tokens. Return the
    largest absolute difference.
sums_compared
    ~ attention(x[:, permutation]) → attention(x[:, permutation]).sum(1)
    ~ attention(x)[:, permutation] → attention(x)[:, permutation].sum(1)
    The sums over the positions are compared. That is blind to an output that stands at the wrong
    place: compare position by position.
first_sequence_only: gap.abs() → gap[0].abs()
    Only the first sequence of the batch is looked at.
permutation_ignored
    ~ x[:, permutation] → x.flip(1)
    ~ attention(x)[:, permutation] → attention(x).flip(1)
    The order is always reversed, and `permutation` is not used.
a_tensor_for_a_number: max().item() → max()
    The result is a tensor. Return a Python number.
last_axis_of_the_output: attention(x)[:, permutation] → attention(x)[..., permutation, :]
    The positions are looked for on the last axis but one. They are axis 1; an output may have more
    axes behind it.
input_permuted_in_place
    > with torch.no_grad():
    >     x.copy_(x[:, permutation])
    The caller's x is permuted itself. Indexing makes a new tensor, assigning to x[…] none.
settings_left_changed
    + if isinstance(attention, nn.Module):
    +     attention.eval()
    What the caller had set is left changed: the module's train/eval mode, or whether torch keeps
    gradients. A measurement leaves what it measures as it was; `with torch.no_grad():` ends.
""")


# --- permutation_gap: right ---------------------------------------------------------------------


@PERMUTATION_GAP.right
def both_in_one_batch(attention, x, permutation):
    moved, still = attention(torch.cat([x[:, permutation], x])).detach().chunk(2)
    return float((moved - still[:, permutation]).abs().amax())


@PERMUTATION_GAP.right
def moved_back_by_the_inverse(attention, x, permutation):
    back = torch.argsort(permutation)
    return (attention(x.index_select(1, permutation))[:, back] - attention(x)).abs().max().item()


@PERMUTATION_GAP.right
def position_by_position(attention, x, permutation):
    shuffled = torch.stack([x[:, p] for p in permutation.tolist()], dim=1)
    moved, still = attention(shuffled), attention(x)
    gaps = [(moved[:, i] - still[:, p]).abs().max() for i, p in enumerate(permutation.tolist())]
    return max(gap.item() for gap in gaps)


@PERMUTATION_GAP.right
def by_numpy(attention, x, permutation):
    with torch.no_grad():
        outs = [attention(x[:, permutation]), attention(x)]
    moved, still = (out.cpu().numpy() for out in outs)
    return float(np.abs(moved - still[:, permutation.cpu().numpy()]).max())


@PERMUTATION_GAP.right
def by_a_permutation_matrix(attention, x, permutation):
    P = F.one_hot(permutation, len(permutation)).to(x.dtype)
    left = attention((P @ x.flatten(2)).reshape(x.shape)).flatten(2)
    other = P @ attention(x).flatten(2)
    return torch.dist(left.detach(), other.detach(), p=math.inf).item()


# --- sinusoidal_encoding: mistakes --------------------------------------------------------------

SINUSOIDAL_ENCODING.changes("""
cosine_exponent_2i_plus_1
    - rate[: d_model // 2]
    + base ** (-torch.arange(1, d_model, 2, dtype=torch.float64) / d_model)
    The cosines have an exponent of their own, (2i + 1)/d_model. Sine and cosine of a pair share the
    exponent 2i/d_model; otherwise they are not two coordinates of one point on a circle, and a
    shift is no rotation.
exponent_doubled: -torch.arange → -2 * torch.arange
    The exponent is 4i/d_model: a loop with step 2 runs over 0, 2, 4, …, which is 2i already, and
    the formula's 2 doubles it again. The frequencies fall twice as fast.
exponent_halved: / d_model → / (2 * d_model)
    The exponent is i/d_model, without the 2: the slowest pair turns about √base radians too fast,
    and far positions look alike.
column_taken_for_pair
    ~ -torch.arange → -2 * torch.arange
    - rate[: d_model // 2]
    + base ** (-2 * torch.arange(1, d_model, 2, dtype=torch.float64) / d_model)
    The i in the exponent 2i/d_model counts columns: each column has a frequency of its own, and
    they fall twice as fast. It counts pairs; two columns share it.
inverted_frequency: -torch.arange → torch.arange
    The position is multiplied by base^(2i/d_model) instead of divided: later pairs turn faster and
    faster, thousands of radians per step, which is noise.
halves_for_interleaved: > result = torch.cat([result[:, 0::2], result[:, 1::2]], dim=1)
    All sines come first and all cosines after them. The paper's table takes them in turn. (Some
    code has halves; a trained model needs the order that it was trained with.)
sine_and_cosine_swapped
    ~ torch.sin(position * rate) → torch.cos(position * rate)
    ~ torch.cos(position * rate[ → torch.sin(position * rate[
    The even columns hold cosines and the odd ones sines. Row 0 has to be 0, 1, 0, 1, …
sines_only: torch.cos → torch.sin
    Every column is a sine. Without the cosine an angle is known only up to its reflection, and no
    matrix can shift it.
positions_from_one: torch.arange(max_len → torch.arange(1, max_len + 1
    The first position is counted as 1. Positions count from 0, and row 0 is 0, 1, 0, 1, …
base_ignored: + base = 10000.0
    The base is always 10000, whatever is passed.
scaled_to_max_len: [:, None] → [:, None] / max(1, max_len)
    Positions are divided by max_len. The same position would get another encoding in a longer
    table, and neighbours lie the closer together the longer the table is.
slowest_is_exactly_the_base: / d_model → / 2 / max(1, (d_model + 1) // 2 - 1)
    The exponent is i/(d_model/2 − 1): it runs from 0 to exactly 1. The paper's 2i/d_model stops one
    step short of 1. (The paper's own code did it like this, too.)
odd_size_rounded_up_in_the_exponent: / d_model → / (d_model + d_model % 2)
    For an odd d_model the table of the next even size is cut. Its columns are right in number, but
    the exponent divides by d_model + 1.
odd_size_cut: > result = result[:, : d_model // 2 * 2]
    An odd d_model loses its last column. It has one sine more than cosines.
odd_size_refused
    + if d_model % 2:
    +     raise RuntimeError("the cosines do not fit")
    An odd d_model ends in an error: there are fewer odd columns than even ones, and the cosines
    must be cut to fit.
last_sine_left_at_zero
    > if d_model % 2:
    >     result[:, -1] = 0.0
    For an odd d_model the last column stays 0. It is the sine of a pair whose cosine is gone.
positions_as_columns: > result = result.T
    The table is transposed, (d_model, max_len): asked is one row per position.
float64_table: > result = result.double()
    The table is float64. Compute in float64 if you like, and hand over float32: a wider table makes
    everything that it is added to wider, too.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed. Give the dtype
    to the call that needs it.
single_row_squeezed: > result = result.squeeze()
    A table of one row has lost an axis: it is (1, d_model), not (d_model,). A squeeze() without its
    axis takes away every axis of length 1.
cosine_exponent_2i_plus_1_and_odd_size_refused of cosine_exponent_2i_plus_1
    + if d_model % 2:
    +     raise RuntimeError("the cosines do not fit")
    The cosines have an exponent of their own, (2i + 1)/d_model. Sine and cosine of a pair share the
    exponent 2i/d_model; otherwise they are not two coordinates of one point on a circle, and a
    shift is no rotation. (And an odd d_model ends in an error.)
exponent_doubled_and_odd_size_refused of exponent_doubled
    + if d_model % 2:
    +     raise IndexError("the cosines do not fit")
    The exponent is 4i/d_model: a loop with step 2 runs over 0, 2, 4, …, which is 2i already, and
    the formula's 2 doubles it again. The frequencies fall twice as fast. (And an odd d_model ends
    in an error.)
column_taken_for_pair_and_odd_size_refused of column_taken_for_pair
    + if d_model % 2:
    +     raise IndexError("the cosines do not fit")
    The i in the exponent 2i/d_model counts columns: each column has a frequency of its own, and
    they fall twice as fast. It counts pairs; two columns share it. (And an odd d_model ends in an
    error.)
""")


# --- sinusoidal_encoding: right -----------------------------------------------------------------


@SINUSOIDAL_ENCODING.right
def number_by_number(max_len, d_model, base=10000.0):
    table = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for column in range(d_model):
            angle = pos / base ** (2 * (column // 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


@SINUSOIDAL_ENCODING.right
def with_exp_and_log(max_len, d_model, base=10000.0):
    position = torch.arange(max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe = torch.zeros(max_len, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


@SINUSOIDAL_ENCODING.right
def by_numpy_in_float64(max_len, d_model, base=10000.0):
    column = np.arange(d_model)
    angle = np.arange(max_len)[:, None] / np.power(float(base), column // 2 * 2 / d_model)
    return torch.from_numpy(np.where(column % 2, np.cos(angle), np.sin(angle)).astype(np.float32))


@SINUSOIDAL_ENCODING.right
def by_complex_numbers(max_len, d_model, base=10000.0):
    rate = base ** (-2 * torch.arange((d_model + 1) // 2, dtype=torch.float64) / d_model)
    angle = torch.outer(torch.arange(max_len, dtype=torch.float64), rate)
    turn = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))  # cosine, sine
    return turn.flip(-1).flatten(1)[:, :d_model].float()


@SINUSOIDAL_ENCODING.right
def by_a_phase_of_a_quarter(max_len, d_model, base=10000.0):
    column = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(max_len)[:, None] * base ** (-(column - column % 2) / d_model)
    return torch.sin(angle + column % 2 * math.pi / 2).float()


@SINUSOIDAL_ENCODING.right
def by_stacking(max_len, d_model, base=10000.0):
    i = torch.arange(0, d_model + 1, 2)
    angle = torch.arange(max_len).float()[:, None] / torch.pow(float(base), i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(max_len, -1)[:, :d_model]


# --- PositionalEncoding: mistakes ---------------------------------------------------------------

POSITIONAL_ENCODING.changes("""
position_from_batch_axis: self.pe[offset:end] → self.pe[offset : offset + x.shape[0], None]
    The rows of the table are given to the sequences of the batch, not to their tokens: all the
    tokens of a sequence get the same encoding, and which one depends on the place of the sequence
    in the batch. The positions are axis 1 of x.
one_row_for_all: self.pe[offset:end] → self.pe[offset : offset + 1]
    Every token gets the same row. Token p needs row p of the table.
trainable
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = nn.Parameter(sinusoidal_encoding(max_len, d_model))
    The table is a parameter: training changes it, and an optimiser keeps its moments. That is a
    learnt table started at sinusoids. The exercise wants a buffer, which stays as it is.
frozen_parameter
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = nn.Parameter(sinusoidal_encoding(max_len, d_model), requires_grad=False)
    The table is a parameter without gradient. It counts among the parameters all the same;
    register_buffer is made for what is kept and not trained.
not_a_buffer
    - self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
    + self.pe = sinusoidal_encoding(max_len, d_model)
    The table is a plain attribute: it stays on the CPU when the module moves to a GPU, and it is
    not in the state dict. Register it as a buffer.
buffer_of_another_name: "pe" → "table" ; self.pe → self.table ×2
    There is a buffer, but it is not called pe.
buffer_with_a_batch_axis: max_len, d_model)) → max_len, d_model)[None]) ; self.pe → self.pe[0] ×2
    The buffer is (1, max_len, d_model). Make it (max_len, d_model), which broadcasts by itself.
added_twice: self.pe[offset:end] → self.pe[offset:end] + self.pe[offset:end]
    The encoding is added twice.
never_added: x + self.pe[offset:end].to(x.dtype) → x
    x comes back without its encoding; the sum was computed and dropped, perhaps.
multiplied: x + self → x * self
    x is multiplied by the encoding. It is added; multiplying wipes out what meets a 0, such as half
    of the first token.
concatenated
    - x + self.pe[offset:end].to(x.dtype)
    + torch.cat([x, self.pe[offset:end].expand_as(x)], dim=-1)
    The encoding is appended to x, which becomes twice as wide. It is added.
embedding_scaled_here: x + self → x * x.shape[-1] ** 0.5 + self
    x is multiplied by √d_model first. That is the embedding layer's business in the Transformer;
    this module adds positions only.
encoding_alone: x + self → 0 * x + self
    The encoding comes back without x.
cosine_exponent_in_the_table
    ~ sinusoidal_encoding( → SINUSOIDAL_ENCODING.mistakes["cosine_exponent_2i_plus_1"](
    The table's cosines have the exponent (2i + 1)/d_model. They share that of their sines.
odd_size_refused_by_the_module
    ~ sinusoidal_encoding( → SINUSOIDAL_ENCODING.mistakes["odd_size_refused"](
    An odd d_model ends in an error: there are fewer odd columns than even ones.
offset_ignored: self.pe[offset:end] → self.pe[: x.shape[1]]
    The offset is not used: every piece of a sequence starts at position 0 again.
offset_one_too_far
    - self.pe[offset:end]
    + self.pe[(torch.arange(offset, end) + (offset > 0)).clamp(max=max_len - 1)]
    With an offset the first token stands one place too far: it is at position `offset`, not after
    it.
slice_without_its_length: self.pe[offset:end] → self.pe[offset : x.shape[1]]
    The rows are pe[offset : n]. A slice ends where its second number says: at offset + n.
length_not_checked: end > max_len → False
    With more positions than the table has rows, some other error comes up, or none. Raise a
    ValueError that says how many are needed and how many there are.
too_long_cut_silently
    ~ end > max_len → False
    ~ x + self → x[:, : len(self.pe[offset:end])] + self
    What does not fit the table is cut off, and nobody learns that the end of the text is lost.
    Raise ValueError.
positions_wrap_around
    ~ end > max_len → False
    ~ self.pe[offset:end] → self.pe[torch.arange(offset, end) % max_len]
    Positions behind the end of the table start again at 0, without a word. Two tokens then have one
    position. Raise ValueError.
offset_not_checked: end > max_len → x.shape[1] > max_len
    Only the length of x is compared with max_len, not offset + n.
error_without_numbers
    ~ f"{end} positions are needed, and max_len is {max_len}" → "the sequence is too long"
    The ValueError does not say how many positions are needed, nor how many there are.
full_length_refused: end > max_len → end >= max_len
    A sequence that fills the table to its last row is refused. It fits.
dropout_forgotten: self.dropout(x → (x
    `dropout` is accepted and not used.
dropout_before_the_sum: (x + self.pe[offset:end].to(x.dtype)) → (x) + self.pe[offset:end]
    Dropout acts on x, and the encoding is added after it. It acts on the sum.
dropout_on_the_encoding
    - self.dropout(x + self.pe[offset:end].to(x.dtype))
    + x + self.dropout(self.pe[offset:end].expand_as(x))
    Dropout acts on the encoding alone. It acts on the sum of x and the encoding.
dropout_in_eval
    - self.dropout(x + self.pe[offset:end].to(x.dtype))
    + F.dropout(x + self.pe[offset:end], self.dropout.p)
    Dropout is active in eval mode too. nn.Dropout knows the mode of its module; F.dropout must be
    told, training=self.training.
gradient_cut: self.dropout(x → self.dropout(x.detach()
    No gradient reaches x: what came before this module does not learn. Only the table is constant.
result_in_float32: > result = result.float()
    A float64 input gives a float32 result.
input_changed_in_place
    > with torch.no_grad():
    >     x.add_(self.pe[offset:end])
    The caller's x is written over: `x += …` adds in place, `x + …` makes a new tensor.
generator_seeded
    - super().__init__()
    + super().__init__()
    + torch.manual_seed(0)
    Building or calling the module seeds torch's generator, or changes another setting of the whole
    program. Nothing here needs it.
""")


# --- PositionalEncoding: right ------------------------------------------------------------------


@POSITIONAL_ENCODING.right
class with_functional_dropout(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.register_buffer("pe", with_exp_and_log(max_len, d_model), persistent=False)

    def forward(self, x, offset=0):
        n, limit = x.size(1), self.pe.size(0)
        if n + offset > limit:
            raise ValueError(f"max_len is {limit}, position {n + offset} was asked for")
        return F.dropout(x + self.pe[offset : offset + n].unsqueeze(0), self.p, self.training)


@POSITIONAL_ENCODING.right
class by_looking_rows_up(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.max_len, self.dropout = max_len, nn.Dropout(dropout)
        self.register_buffer("pe", by_numpy_in_float64(max_len, d_model))

    def forward(self, x, offset=0):
        positions = offset + torch.arange(x.shape[1], device=x.device)
        if offset + x.shape[1] > self.max_len:
            raise ValueError(f"{offset + x.shape[1]} > {self.max_len}")
        return self.dropout(x + F.embedding(positions, self.pe))


@POSITIONAL_ENCODING.right
class token_after_token(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", number_by_number(max_len, d_model))
        self.after = nn.Sequential(nn.Identity(), nn.Dropout(p=dropout))

    def forward(self, x, offset=0):
        needed = x.shape[1] + offset
        if needed > len(self.pe):
            raise ValueError(f"needed: {needed} positions, there are: {len(self.pe)}")
        tokens = [x[:, i] + self.pe[offset + i] for i in range(x.shape[1])]
        return self.after(torch.stack(tokens, dim=1))


@POSITIONAL_ENCODING.right
class by_narrowing(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        table = by_complex_numbers(max_len, d_model)
        self.register_buffer("pe", table)
        self.shape = table.shape
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, offset=0):
        if offset + x.shape[1] > self.shape[0]:
            raise ValueError(f"max_len {self.shape[0]} is less than {offset + x.shape[1]}")
        return self.dropout(self.pe.narrow(0, offset, x.shape[1]).expand_as(x) + x)


# --- shift_matrix: mistakes ---------------------------------------------------------------------

SHIFT_MATRIX.changes("""
turned_the_wrong_way: sin, -sin → -sin, sin
    The matrix is transposed: it moves by −offset. In sin(a + b) = sin a cos b + cos a sin b the
    sine of the shift has a plus; the encodings have the sine first, so this is not the rotation
    matrix of the textbooks.
both_signs_plus: -sin → sin
    Both sines in a block have a plus. In cos(a + b) = cos a cos b − sin a sin b there is a minus,
    and without it the matrix stretches.
cosine_first: [cos, sin, -sin, cos] → [sin, cos, cos, -sin]
    Sine and cosine have changed places in the blocks: at offset 0 this is no identity.
halves_for_interleaved
    > order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    > result = result[order][:, order]
    The matrix is made for a table with all sines first and all cosines after them. Here they stand
    in turn, so the blocks are 2 × 2 along the diagonal.
one_frequency_for_all: + base = 1.0
    All pairs turn by the same angle. Pair i turns by offset / base^(2i/d_model).
inverted_frequency: -torch.arange → torch.arange
    The angles are offset · base^(2i/d_model) instead of offset / base^(2i/d_model): later pairs
    should turn more slowly.
exponent_doubled: -torch.arange → -2 * torch.arange
    The exponent is 4i/d_model: a loop with step 2 has the factor 2 already.
exponent_halved: / d_model → / (2 * d_model)
    The exponent is i/d_model, without the 2.
always_one_step: + offset = 1
    The matrix always moves by one position, whatever the offset.
only_forwards: + offset = abs(offset)
    A negative offset is treated like its absolute value. It turns the other way.
features_rolled: + return torch.eye(d_model).roll(offset, 0)
    This is a matrix that moves features along the row. A shift in position moves no feature to
    another place: it turns each pair.
base_ignored: + base = 10000.0
    The base is always 10000, whatever is passed.
blocks_not_assembled: torch.block_diag(*blocks) → blocks
    The result is a stack of 2 × 2 blocks, (d_model/2, 2, 2). Put them along the diagonal of a
    (d_model, d_model) matrix.
diagonal_alone: [cos, sin, -sin, cos] → [cos, 0 * sin, 0 * sin, cos]
    Only the cosines are there. Without the sines beside the diagonal, the new sine knows nothing of
    the old cosine.
float64_matrix: > result = result.double()
    The matrix is float64; the table that it is to be multiplied with is float32.
single_pair_refused
    + if d_model == 2:
    +     raise ValueError("a single pair")
    d_model = 2 ends in an error, or in something else than the one 2 × 2 block.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed.
""")


# --- shift_matrix: right ------------------------------------------------------------------------


@SHIFT_MATRIX.right
def entry_by_entry(offset, d_model, base=10000.0):
    M = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        angle = offset / base ** (c / d_model)
        M[c, c] = M[c + 1, c + 1] = math.cos(angle)
        M[c, c + 1], M[c + 1, c] = math.sin(angle), -math.sin(angle)
    return M


@SHIFT_MATRIX.right
def as_an_exponential(offset, d_model, base=10000.0):
    turn = torch.zeros(d_model, d_model, dtype=torch.float64)
    even = torch.arange(0, d_model, 2)
    turn[even, even + 1] = float(base) ** (-even.double() / d_model)
    return torch.matrix_exp(offset * (turn - turn.T)).float()


@SHIFT_MATRIX.right
def as_steps_of_one(offset, d_model, base=10000.0):
    one = torch.eye(d_model, dtype=torch.float64)
    for c in range(0, d_model, 2):
        a = 1.0 / base ** (c / d_model)
        one[c : c + 2, c : c + 2] = torch.tensor(
            [[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]
        )
    return torch.linalg.matrix_power(one if offset >= 0 else one.T, abs(offset)).float()


@SHIFT_MATRIX.right
def by_diagonals(offset, d_model, base=10000.0):
    angle = offset * float(base) ** (-torch.arange(0, d_model, 2) / d_model)
    beside = torch.stack([angle.sin(), torch.zeros_like(angle)], dim=1).flatten()[:-1]
    along = angle.cos().repeat_interleave(2)
    return torch.diag(along) + torch.diag(beside, 1) - torch.diag(beside, -1)


@SHIFT_MATRIX.right
def by_kronecker_products(offset, d_model, base=10000.0):
    angle = offset / np.power(float(base), np.arange(0, d_model, 2) / d_model)
    M = np.kron(np.diag(np.cos(angle)), np.eye(2))
    M += np.kron(np.diag(np.sin(angle)), np.array([[0, 1], [-1, 0]]))
    return torch.tensor(M, dtype=torch.float32)


# --- relative_positions: mistakes ---------------------------------------------------------------

RELATIVE_POSITIONS.changes("""
sign_reversed: i - j → j - i
    The distance is j − i. Here it is i − j, query minus key: keys in the past have the larger
    numbers. With the sign reversed, a table that was trained looks into the wrong direction.
not_cut: (i - j).clamp(-max_distance, max_distance) → (i - j)
    The distance is not cut. What is farther than max_distance has no row in the table: beyond its
    end there is an error, and below 0 a negative index picks rows from the other end.
not_raised: max_distance) + max_distance → max_distance)
    max_distance is not added: negative numbers remain, and as indices they count from the end of
    the table.
cut_after_raising
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance).clamp(-max_distance, max_distance)
    The distance is cut after max_distance was added: everything in the past gets the number
    max_distance. Cut first.
cut_on_one_side: clamp(-max_distance, max_distance) → clamp(max=max_distance)
    Only large positive distances are cut; the future goes on below 0.
future_counted_as_here: clamp(-max_distance → clamp(0
    All keys in the future get the distance 0. There is a row in the table for each of them, up to
    −max_distance.
without_direction: (i - j) → (i - j).abs()
    The distance has lost its sign: as far before is the same as as far behind.
top_left_aligned: torch.arange(n_k - n_q, n_k) → torch.arange(n_q)
    The first query stands at position 0 also where there are more keys than queries. The last query
    stands at the last key's position.
shifted_the_wrong_way: torch.arange(n_k - n_q, n_k) → torch.arange(n_q - n_k, 2 * n_q - n_k)
    The queries are moved by n_q − n_k instead of n_k − n_q.
keys_along_rows: > result = result.T
    The result is transposed, (n_k, n_q): asked is one row for each query.
one_too_narrow
    ~ (-max_distance, max_distance) → (min(0, 1 - max_distance), max(0, max_distance - 1))
    The distance is cut to max_distance − 1. Distance max_distance still has a row of its own: the
    table has 2·max_distance + 1 rows.
raised_by_one_too_many: > result = result + 1
    The numbers start at 1. The table's first row is row 0, and the last number is 2·max_distance.
wrapped_for_cut
    - (i - j).clamp(-max_distance, max_distance) + max_distance
    + (i - j + max_distance) % (2 * max_distance + 1)
    Distances beyond the table start again at its other end. They are cut: everything farther shares
    the last row on its side.
floats_for_indices: > result = result.float()
    The numbers are floating-point. A table is indexed with integers.
n_k_ignored: + n_k = n_q
    The result is always square, (n_q, n_q).
distance_zero_refused
    + if max_distance < 1:
    +     raise ValueError("nothing to number")
    max_distance 0 ends in an error. The table has one row then, for all distances.
""")


# --- relative_positions: right ------------------------------------------------------------------


@RELATIVE_POSITIONS.right
def pair_by_pair(n_q, n_k, max_distance):
    result = torch.zeros(n_q, n_k, dtype=torch.long)
    for row in range(n_q):
        for j in range(n_k):
            distance = row + n_k - n_q - j
            result[row, j] = max(-max_distance, min(max_distance, distance)) + max_distance
    return result


@RELATIVE_POSITIONS.right
def raised_first_and_cut_from_0(n_q, n_k, max_distance):
    query = torch.arange(n_q).view(-1, 1) + (n_k - n_q)
    return torch.clip(query - torch.arange(n_k).view(1, -1) + max_distance, 0, 2 * max_distance)


@RELATIVE_POSITIONS.right
def by_numpy(n_q, n_k, max_distance):
    distance = np.subtract.outer(np.arange(n_q) + n_k - n_q, np.arange(n_k))
    return torch.from_numpy(np.clip(distance, -max_distance, max_distance) + max_distance)


@RELATIVE_POSITIONS.right
def last_rows_of_all(n_q, n_k, max_distance):
    n = max(n_q, n_k)
    position = torch.arange(n)
    distance = position[:, None] - position[None]
    return distance[n - n_q :, n - n_k :].clamp(-max_distance, max_distance) + max_distance


@RELATIVE_POSITIONS.right
def by_minimum_and_maximum(n_q, n_k, max_distance):
    query, key = torch.meshgrid(torch.arange(n_q), torch.arange(n_k), indexing="ij")
    far = torch.tensor(max_distance)
    return torch.maximum(torch.minimum(query - key + n_k - n_q, far), -far) + far


# --- relative_position_scores: mistakes ---------------------------------------------------------

RELATIVE_POSITION_SCORES.changes("""
sign_reversed_in_the_table: relative_positions( → RELATIVE_POSITIONS.mistakes["sign_reversed"](
    The vectors are those of j − i: what lies in the past is taken for the future. The distance is i
    − j, query minus key.
no_clamp: relative_positions( → RELATIVE_POSITIONS.mistakes["not_cut"](
    Distances are not cut to max_distance. In a long sequence they leave the table: at one end an
    index error, and at the other, without a word, rows counted from the table's end.
indices_not_raised: relative_positions( → RELATIVE_POSITIONS.mistakes["not_raised"](
    The table is indexed with the distance itself. Its first row belongs to −max_distance, so the
    distance 0 is in the middle; a negative index counts from the end.
top_left_aligned_scores: relative_positions( → RELATIVE_POSITIONS.mistakes["top_left_aligned"](
    With more keys than queries the first query is taken to stand at position 0. The last query
    stands at the last key's position.
relative_after_scaling: > result = result / math.sqrt(query.shape[-1])
    The scores are divided by √d_k, to be added to scaled ones. They are added to QKᵀ before the
    scaling, which then divides both: divided here, they would be divided twice.
scaling_undone_in_advance: > result = result * math.sqrt(query.shape[-1])
    The scores are multiplied by √d_k, so that the scaling would leave them whole. They are meant to
    be scaled like the content scores.
content_included: > result = query @ key.mT + result
    The content scores q_i·k_j are added already. Asked are the relative scores alone.
key_term_forgotten: mode == "relative_key_query" → False
    Both modes give q_i·a_{i−j}. "relative_key_query" has k_j·a_{i−j} as well.
key_term_always: mode == "relative_key_query" → True
    Both modes have the key's term. "relative_key" is q_i·a_{i−j} alone, in spite of its name.
modes_exchanged: mode == "relative_key_query" → mode == "relative_key"
    The two modes are exchanged: "relative_key_query" is the one with two terms.
key_for_query
    - if mode == "relative_key_query":
    + if mode == "relative_key":
    +     scores = 0 * scores + torch.einsum("...jd,ijd->...ij", key, a)
    + else:
    "relative_key" multiplies the distance vectors with the keys. In this mode the distance vectors
    stand in for keys, and it is the query that is multiplied with them.
key_term_from_the_other_side: key, a) → key, distance_embedding[2 * max_distance - distance])
    The key's term uses a_{j−i}, the vector of the way back. Both terms use the same a_{i−j}.
queries_added_up
    - torch.einsum("...id,ijd->...ij", query, a)
    + torch.einsum("...id,ijd->...j", query, a)[..., None, :].expand(-1, -1, len(a), -1)
    The terms are summed over the queries or the keys as well: an index is missing on one side of
    the einsum, or a sum runs over one axis too many.
heads_averaged
    + query = query.mean(1, keepdim=True).expand_as(query)
    + key = key.mean(1, keepdim=True).expand_as(key)
    The scores are the same in all heads. The table is shared by the heads, but each head has
    queries of its own.
unknown_mode_accepted
    - raise ValueError(f"mode {mode!r} is neither 'relative_key' nor 'relative_key_query'")
    + pass
    An unknown mode is taken for one of the two, so that a slip of the pen trains another model than
    was meant. Raise ValueError.
key_error_for_an_unknown_mode: ValueError → KeyError
    An unknown mode raises some other error. Raise a ValueError.
table_detached: = distance_embedding[ → = distance_embedding.detach()[
    No gradient reaches the table, so the distances are never learnt.
scores_in_float32: > result = result.float()
    Float64 inputs give float32 scores.
query_changed_in_place
    > with torch.no_grad():
    >     query.div_(2.0)
    The caller's query is written over.
""")


# --- relative_position_scores: right ------------------------------------------------------------


def _known(mode):
    if mode not in {"relative_key", "relative_key_query"}:
        raise ValueError(f"unknown mode: {mode}")
    return mode == "relative_key_query"


@RELATIVE_POSITION_SCORES.right
def all_rows_first_then_gather(query, key, distance_embedding, mode):
    both = _known(mode)
    n_q, n_k = query.shape[-2], key.shape[-2]
    index = by_minimum_and_maximum(n_q, n_k, len(distance_embedding) // 2).to(query.device)
    batch = query.shape[:-2]
    scores = (query @ distance_embedding.T).gather(-1, index.expand(*batch, n_q, n_k))
    if both:
        of_key = (key @ distance_embedding.T).gather(-1, index.T.expand(*batch, n_k, n_q))
        scores = scores + of_key.mT
    return scores


@RELATIVE_POSITION_SCORES.right
def relative_pair_by_pair(query, key, distance_embedding, mode):
    both, far = _known(mode), len(distance_embedding) // 2
    n_q, n_k = query.shape[2], key.shape[2]
    rows = []
    for row in range(n_q):
        cells = []
        for j in range(n_k):
            a = distance_embedding[max(-far, min(far, row + n_k - n_q - j)) + far]
            with_whom = query[:, :, row] + key[:, :, j] if both else query[:, :, row]
            cells.append((with_whom * a).sum(-1))
        rows.append(torch.stack(cells, dim=-1))
    return torch.stack(rows, dim=-2)


@RELATIVE_POSITION_SCORES.right
def by_multiplying_and_summing(query, key, distance_embedding, mode):
    others = query[..., :, None, :]
    if _known(mode):
        others = others + key[..., None, :, :]
    index = last_rows_of_all(query.shape[-2], key.shape[-2], (len(distance_embedding) - 1) // 2)
    return (others * distance_embedding[index.to(query.device)]).sum(dim=-1)


@RELATIVE_POSITION_SCORES.right
def by_matmul(query, key, distance_embedding, mode):
    both = _known(mode)
    index = right.relative_positions(query.size(-2), key.size(-2), distance_embedding.size(0) // 2)
    a = F.embedding(index.to(query.device), distance_embedding)  # (n_q, n_k, d_k)
    scores = (a @ query.unsqueeze(-1)).squeeze(-1)
    if both:
        scores = scores + (a.transpose(0, 1) @ key.unsqueeze(-1)).squeeze(-1).transpose(-2, -1)
    return scores


@RELATIVE_POSITION_SCORES.right
def by_one_hot_distances(query, key, distance_embedding, mode):
    weight = 1.0 if _known(mode) else 0.0
    rows = len(distance_embedding)
    index = by_numpy(query.shape[-2], key.shape[-2], rows // 2)
    hot = F.one_hot(index, rows).to(query)
    table = torch.einsum("ijr,rd->ijd", hot, distance_embedding)
    of_key = torch.einsum("bhjd,ijd->bhij", key, table)
    return torch.einsum("bhid,ijd->bhij", query, table) + weight * of_key


# --- rotary_embedding: mistakes -----------------------------------------------------------------

ROTARY_EMBEDDING.changes("""
clockwise: angle.sin() → -angle.sin()
    The sign of the angle is reversed: pairs turn clockwise. Between your own queries and keys
    nobody notices, since both do it; weights trained elsewhere do.
halves_for_neighbours
    ~ x[..., 0::2], x[..., 1::2] → x.chunk(2, dim=-1)
    ~ torch.stack → torch.cat
    ~ turned.flatten(-2) → turned
    Feature i is paired with feature i + d/2. Here the pairs are neighbours, 2i and 2i + 1. (Much
    code has halves. Both are rotations, but weights trained with one are useless with the other.)
angles_of_neighbours_for_halves
    - even, odd = x[..., 0::2], x[..., 1::2]
    - turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    - return turned.flatten(-2)
    + cos, sin = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
    + u, v = x.chunk(2, dim=-1)
    + return x * cos + torch.cat([-v, u], dim=-1) * sin
    Two conventions are mixed: the angles come in neighbouring pairs, but feature i is turned
    together with feature i + d/2. The two features of a pair turn by different angles, which is no
    rotation.
put_together_in_halves: torch.stack → torch.cat ; turned.flatten(-2) → turned
    The turned features come back with all first coordinates in front and all second ones behind.
    Put each pair back to where it was.
both_signs_plus: even * cos - odd * sin → even * cos + odd * sin
    Both sines have a plus. A rotation has one minus: (u cos θ − v sin θ, u sin θ + v cos θ).
first_coordinate_used_up
    - turned = torch.stack([even * cos - odd * sin, even
    + even = even * cos - odd * sin
    + turned = torch.stack([even, even
    The second coordinate is computed from the first one after it was turned. Both need the old
    values.
added_for_rotated: [even * cos - odd * sin, even * sin + odd * cos] → [even + sin, odd + cos]
    The sines and cosines are added to x. Rotary embedding multiplies: it turns x.
inverted_frequency: -torch.arange(0 → torch.arange(0
    The position is multiplied by base^(2i/d) instead of divided: later pairs spin thousands of
    radians per step.
exponent_halved: / d) → / (2 * d))
    The exponent is i/d: pair i turns by pos · base^(−2i/d).
exponent_doubled: -torch.arange(0 → -2 * torch.arange(0
    The exponent is 4i/d: numbers that run 0, 2, 4, … are 2i already.
positions_from_one: + offset = offset + 1
    The first position is counted as 1, so that it is turned already. Dot products do not notice, a
    cache that counts from 0 does.
positions_from_the_first_axis
    ~ n, d = x.shape[-2:] → n, d = len(x), x.shape[-1]
    ~ position[:, None] → position.view(-1, *[1] * (x.dim() - 1))
    The angle grows along the first axis, with several axes the batch. All tokens of a sequence are
    then turned alike, which changes no dot product between them. Positions run along the last axis
    but one.
positions_from_the_heads
    + if x.dim() == 4:
    +     return rotary_embedding(x.transpose(1, 2), base, offset).transpose(1, 2)
    The angle grows along axis 1. With heads, (B, H, n, d), that is the heads. Positions run along
    the last axis but one, whatever stands before it.
offset_ignored: + offset = 0
    The offset is not used: a new token is always turned as if it were the first, and every distance
    in a cache is wrong.
offset_subtracted: + offset = -offset
    The offset is subtracted from the positions. It is added.
base_ignored: + base = 10000.0
    The base is always 10000, whatever is passed.
first_pair_alone: > result = torch.cat([result[..., :2], x[..., 2:]], dim=-1)
    Only the first pair is turned. Every pair is, each at its own speed.
not_rotated: + return x.clone()
    x comes back as it was. Its dot products do not change when everything is shifted, but they do
    not know any distance either.
one_speed_for_all: + base = 1.0
    All pairs turn by 1 radian per position. Pair i turns by base^(−2i/d): fast ones for near, slow
    ones for far.
gradient_cut: + x = x.detach()
    No gradient reaches x, so the projections behind queries and keys never learn.
always_float32: + x = x.float()
    The result is float32 whatever x was: the cosines and sines are float32, or x was converted.
    Come back to x's dtype.
input_turned_in_place
    > with torch.no_grad():
    >     x.copy_(result)
    The caller's x is turned itself: an assignment to a slice of x writes into it, and so does a
    method whose name ends in _.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed.
single_position_refused
    + if (x.shape[-2] < 2 or x.shape[-1] < 4) and not offset:
    +     raise ValueError("too small")
    A single position or a single pair ends in an error.
""")


# --- rotary_embedding: right --------------------------------------------------------------------


@ROTARY_EMBEDDING.right
def as_complex_numbers(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    wide = x.double().reshape(*x.shape[:-1], d // 2, 2)
    rate = base ** (-torch.arange(0, d, 2, device=x.device).double() / d)
    angle = torch.outer(torch.arange(n, device=x.device).double() + offset, rate)
    turned = torch.view_as_complex(wide) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@ROTARY_EMBEDDING.right
def with_a_quarter_turn(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    rate = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).float() / d))
    angle = torch.arange(offset, offset + n, device=x.device).float()[:, None] * rate
    angle = angle.repeat_interleave(2, dim=-1)
    quarter = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * angle.cos().to(x.dtype) + quarter * angle.sin().to(x.dtype)


@ROTARY_EMBEDDING.right
def position_by_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    out = torch.empty_like(x)
    for p in range(n):
        for c in range(0, d, 2):
            theta = (p + offset) / base ** (c / d)
            u, v = x[..., p, c], x[..., p, c + 1]
            out[..., p, c] = u * math.cos(theta) - v * math.sin(theta)
            out[..., p, c + 1] = u * math.sin(theta) + v * math.cos(theta)
    return out


@ROTARY_EMBEDDING.right
def by_two_by_two_matrices(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    i = torch.arange(d // 2, device=x.device, dtype=torch.float64)
    angle = (torch.arange(n, device=x.device)[:, None] + offset) * float(base) ** (-2 * i / d)
    rows = [
        torch.stack([angle.cos(), -angle.sin()], -1),
        torch.stack([angle.sin(), angle.cos()], -1),
    ]
    R = torch.stack(rows, dim=-2).to(x.dtype)  # (n, d/2, 2, 2)
    pairs = x.unflatten(-1, (d // 2, 2)).unsqueeze(-1)
    return (R @ pairs).squeeze(-1).flatten(-2)


@ROTARY_EMBEDDING.right
def by_one_large_matrix_per_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    matrices = []
    for p in range(offset, offset + n):
        thetas = [p / base ** (c / d) for c in range(0, d, 2)]
        blocks = [[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in thetas]
        matrices.append(torch.block_diag(*(torch.tensor(b, dtype=torch.float64) for b in blocks)))
    R = torch.stack(matrices) if matrices else torch.zeros(0, d, d)
    return torch.einsum("nij,...nj->...ni", R.to(x), x)


# --- rotary_attention: mistakes -----------------------------------------------------------------


def _rope(x, base, offset=0):
    return right.rotary_embedding(x, base, offset)


def _even(value, base):
    """Values rotated; a last feature without a partner stays as it is."""
    d = value.shape[-1] // 2 * 2
    return torch.cat([_rope(value[..., :d], base), value[..., d:]], dim=-1)


ROTARY_ATTENTION.changes("""
rotary_applied_to_values: @ value → @ _even(value, base)
    The values are rotated, too. Their average then depends on where the keys stand, not on how far
    they are; only queries and keys are turned.
only_queries_rotated: rotary_embedding(key, base) → key
    The keys are not rotated: scores then depend on where the query stands and not on the distance.
only_keys_rotated
    ~ rotary_embedding(query, base, offset=key.shape[-2] - query.shape[-2]) → query
    The queries are not rotated: scores then depend on where the key stands and not on the distance.
nothing_rotated
    ~ rotary_embedding(query, base, offset=key.shape[-2] - query.shape[-2]) → query
    ~ rotary_embedding(key, base) → key
    Nothing is rotated: this is plain attention, which does not know order.
turned_against_each_other
    ~ rotary_embedding(key, base) → ROTARY_EMBEDDING.mistakes["clockwise"](key, base)
    Queries and keys are turned in opposite directions: the score depends on the sum of the two
    positions instead of on their difference.
queries_start_at_zero: base, offset=key.shape[-2] - query.shape[-2] → base
    With more keys than queries the first query is taken to stand at position 0. The last query
    stands at the last key's position: while a text is written, the queries are its end.
offset_on_the_keys
    ~ base, offset=key.shape[-2] - query.shape[-2] → base
    ~ (key, base) → (key, base, key.shape[-2] - query.shape[-2])
    The offset n_k − n_q is given to the keys. It is the queries that come late.
not_scaled: k.transpose(-2, -1) / math.sqrt(q.shape[-1]) → k.transpose(-2, -1)
    The scores are not divided by √d_k.
scaled_by_d_v: math.sqrt(q.shape[-1]) → math.sqrt(value.shape[-1])
    The scores are divided by √d_v. The dot product has d_k terms.
base_for_queries_only: (key, base) → (key)
    The base is passed on for the queries alone: with another base than 10000, queries and keys turn
    at different speeds.
base_not_passed_on: + base = 10000.0
    The base is not used: it is 10000 for queries and keys, whatever is passed.
causal_without_being_asked
    - weights = torch.softmax(scores, dim=-1)
    + n_q, n_k = scores.shape[-2:]
    + future = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).triu(n_k - n_q + 1)
    + weights = scores.masked_fill(future, -math.inf).softmax(-1).nan_to_num(0.0)
    The future is hidden. The exercise wants no mask: what comes later has scores, too.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
output_alone: weights @ value, weights → weights @ value
    The output is returned without the weights.
softmax_over_queries: dim=-1 → dim=-2
    The weights of a key sum to 1 over the queries. Each query's weights must sum to 1.
naive_softmax
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch.softmax subtracts the largest score first.
rotation_detached: + query, key = query.detach(), key.detach()
    No gradient passes the rotation, so queries and keys never learn where to look.
key_written_over
    > with torch.no_grad():
    >     key.copy_(rotary_embedding(key, base))
    The caller's key is rotated in place.
""")


# --- rotary_attention: right --------------------------------------------------------------------


@ROTARY_ATTENTION.right
def with_complex_scores(query, key, value, base=10000.0):
    d, late = query.shape[-1], key.shape[-2] - query.shape[-2]
    rate = base ** (-torch.arange(0, d, 2, device=query.device) / d)
    q, k = (torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous()) for t in (query, key))
    i = torch.arange(late, key.shape[-2], device=query.device)
    distance = i[:, None] - torch.arange(key.shape[-2], device=query.device)
    turn = torch.polar(torch.ones_like(rate), rate * distance[..., None])  # (n_q, n_k, d/2)
    scores = torch.einsum("...ic,ijc,...jc->...ij", q, turn, k.conj()).real
    weights = torch.softmax(scores / d**0.5, dim=-1)
    return weights @ value, weights


@ROTARY_ATTENTION.right
def by_torchs_fused_kernel(query, key, value, base=10000.0):
    q, k = as_complex_numbers(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    eye = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device).expand(*k.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(q, k, eye)
    return F.scaled_dot_product_attention(q, k, value), weights


@ROTARY_ATTENTION.right
def counted_from_the_last_key(query, key, value, base=10000.0):
    """Only distances count, so the last position may be 0 and all others negative."""
    n_q, n_k = query.shape[-2], key.shape[-2]
    q, k = _rope(query, base, 1 - n_q), _rope(key, base, 1 - n_k)
    weights = F.softmax(torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5, dim=-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@ROTARY_ATTENTION.right
def row_by_row(query, key, value, base=10000.0):
    n_q, n_k = query.shape[-2], key.shape[-2]
    k, rows = with_a_quarter_turn(key, base), []
    for row in range(n_q):
        q = with_a_quarter_turn(query[..., row : row + 1, :], base, n_k - n_q + row)
        rows.append((q * k).sum(-1) / math.sqrt(query.shape[-1]))
    weights = torch.stack(rows, dim=-2).softmax(dim=-1)
    return weights @ value, weights
