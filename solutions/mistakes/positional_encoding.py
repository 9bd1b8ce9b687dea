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


def _both(attention, x, permutation):
    """The output for the permuted input, and the permuted output."""
    with torch.no_grad():
        return attention(x[:, permutation]), attention(x)[:, permutation]


@PERMUTATION_GAP.mistake
def output_not_permuted(attention, x, permutation):
    """The output is compared as it is, without being permuted. That asks whether order changes
    nothing at all; plain attention does move its outputs, in step with its inputs.
    """
    with torch.no_grad():
        return (attention(x[:, permutation]) - attention(x)).abs().max().item()


@PERMUTATION_GAP.mistake
def output_permuted_backwards(attention, x, permutation):
    """The output is permuted by the inverse permutation. Both sides must be permuted in the same
    way; with a mere exchange of two tokens, which is its own inverse, nothing shows.
    """
    with torch.no_grad():
        gap = attention(x[:, permutation]) - attention(x)[:, permutation.argsort()]
    return gap.abs().max().item()


@PERMUTATION_GAP.mistake
def batch_permuted(attention, x, permutation):
    """The permutation is applied to axis 0, the sequences of the batch. They never see each other,
    so the gap is always 0, or there are too few of them. Positions are axis 1.
    """
    with torch.no_grad():
        return (attention(x[permutation]) - attention(x)[permutation]).abs().max().item()


@PERMUTATION_GAP.mistake
def features_permuted(attention, x, permutation):
    """The permutation is applied to the last axis, the features. Positions are axis 1."""
    with torch.no_grad():
        gap = attention(x[..., permutation]) - attention(x)[..., permutation]
    return gap.abs().max().item()


@PERMUTATION_GAP.mistake
def input_not_permuted(attention, x, permutation):
    """Both outputs are computed from x as it came, and both are permuted: the gap is 0 whatever the
    attention does. One of them has to start from the permuted input.
    """
    with torch.no_grad():
        return (attention(x)[:, permutation] - attention(x)[:, permutation]).abs().max().item()


@PERMUTATION_GAP.mistake
def sign_kept(attention, x, permutation):
    """The largest difference is taken without its absolute value: a large negative one is missed,
    and the two sides are not treated alike.
    """
    left, other = _both(attention, x, permutation)
    return (left - other).max().item()


@PERMUTATION_GAP.mistake
def mean_for_max(attention, x, permutation):
    """The differences are averaged. A single token that notices its place is lost in the average:
    take the largest.
    """
    left, other = _both(attention, x, permutation)
    return (left - other).abs().mean().item()


@PERMUTATION_GAP.mistake
def norm_for_max(attention, x, permutation):
    """This is the length of the difference, which grows with the number of tokens. Asked is the
    largest absolute difference.
    """
    left, other = _both(attention, x, permutation)
    return (left - other).norm().item()


@PERMUTATION_GAP.mistake
def sums_compared(attention, x, permutation):
    """The sums over the positions are compared. That is blind to an output that stands at the wrong
    place: compare position by position.
    """
    left, other = _both(attention, x, permutation)
    return (left.sum(1) - other.sum(1)).abs().max().item()


@PERMUTATION_GAP.mistake
def first_sequence_only(attention, x, permutation):
    """Only the first sequence of the batch is looked at."""
    left, other = _both(attention, x, permutation)
    return (left - other)[0].abs().max().item()


@PERMUTATION_GAP.mistake
def permutation_ignored(attention, x, permutation):
    """The order is always reversed, and `permutation` is not used."""
    with torch.no_grad():
        return (attention(x.flip(1)) - attention(x).flip(1)).abs().max().item()


@PERMUTATION_GAP.mistake
def a_tensor_for_a_number(attention, x, permutation):
    """The result is a tensor. Asked is a Python number."""
    left, other = _both(attention, x, permutation)
    return (left - other).abs().max()


@PERMUTATION_GAP.mistake
def last_axis_of_the_output(attention, x, permutation):
    """The positions are looked for on the last axis but one. They are axis 1; an output may have
    more axes behind it.
    """
    with torch.no_grad():
        gap = attention(x[:, permutation]) - attention(x)[..., permutation, :]
    return gap.abs().max().item()


@PERMUTATION_GAP.mistake
def input_permuted_in_place(attention, x, permutation):
    """The caller's x is permuted itself. Indexing makes a new tensor, assigning to x[…] none."""
    gap = right.permutation_gap(attention, x, permutation)
    with torch.no_grad():
        x.copy_(x[:, permutation])
    return gap


@PERMUTATION_GAP.mistake
def settings_left_changed(attention, x, permutation):
    """What the caller had set is left changed: the module's train/eval mode, or whether torch keeps
    gradients. A measurement leaves what it measures as it was; `with torch.no_grad():` ends.
    """
    if isinstance(attention, nn.Module):
        attention.eval()
    return right.permutation_gap(attention, x, permutation)


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


def _table(max_len, d_model, base, sine=None, cosine=None, first=0):
    """The table, with the exponents of the sines and of the cosines to be exchanged."""
    sine = sine or (lambda i: 2 * i / d_model)
    cosine = cosine or sine
    rows = [
        [
            (math.sin, math.cos)[c % 2](pos / base ** ((sine, cosine)[c % 2](c // 2)))
            for c in range(d_model)
        ]
        for pos in range(first, first + max_len)
    ]
    return torch.tensor(rows, dtype=torch.float32).reshape(max_len, d_model)


@SINUSOIDAL_ENCODING.mistake
def cosine_exponent_2i_plus_1(max_len, d_model, base=10000.0):
    """The cosines have an exponent of their own, (2i + 1)/d_model. Sine and cosine of a pair share
    the exponent 2i/d_model; otherwise they are not two coordinates of one point on a circle, and a
    shift is no rotation.
    """
    return _table(max_len, d_model, base, cosine=lambda i: (2 * i + 1) / d_model)


@SINUSOIDAL_ENCODING.mistake
def exponent_doubled(max_len, d_model, base=10000.0):
    """The exponent is 4i/d_model: a loop with step 2 runs over 0, 2, 4, …, which is 2i already, and
    the formula's 2 doubles it again. The frequencies fall twice as fast.
    """
    return _table(max_len, d_model, base, lambda i: 4 * i / d_model)


@SINUSOIDAL_ENCODING.mistake
def exponent_halved(max_len, d_model, base=10000.0):
    """The exponent is i/d_model, without the 2: the slowest pair turns about √base radians too
    fast, and far positions look alike.
    """
    return _table(max_len, d_model, base, lambda i: i / d_model)


@SINUSOIDAL_ENCODING.mistake
def column_taken_for_pair(max_len, d_model, base=10000.0):
    """The i in the exponent 2i/d_model counts columns: each column has a frequency of its own, and
    they fall twice as fast. It counts pairs; two columns share it.
    """
    return _table(
        max_len, d_model, base, lambda i: 2 * (2 * i) / d_model, lambda i: 2 * (2 * i + 1) / d_model
    )


@SINUSOIDAL_ENCODING.mistake
def inverted_frequency(max_len, d_model, base=10000.0):
    """The position is multiplied by base^(2i/d_model) instead of divided: later pairs turn faster
    and faster, thousands of radians per step, which is noise.
    """
    return _table(max_len, d_model, base, lambda i: -2 * i / d_model)


@SINUSOIDAL_ENCODING.mistake
def halves_for_interleaved(max_len, d_model, base=10000.0):
    """All sines come first and all cosines after them. The paper's table takes them in turn. (Some
    code has halves; a trained model needs the order that it was trained with.)
    """
    table = right.sinusoidal_encoding(max_len, d_model, base)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


@SINUSOIDAL_ENCODING.mistake
def sine_and_cosine_swapped(max_len, d_model, base=10000.0):
    """The even columns hold cosines and the odd ones sines. Row 0 has to be 0, 1, 0, 1, …"""
    whole = _table(max_len, d_model + d_model % 2, base, lambda i: 2 * i / d_model)
    return whole.unflatten(1, (-1, 2)).flip(-1).flatten(1)[:, :d_model]


@SINUSOIDAL_ENCODING.mistake
def sines_only(max_len, d_model, base=10000.0):
    """Every column is a sine. Without the cosine an angle is known only up to its reflection, and
    no matrix can shift it.
    """
    whole = _table(max_len, d_model + d_model % 2, base, lambda i: 2 * i / d_model)
    return whole[:, 0::2].repeat_interleave(2, dim=1)[:, :d_model]


@SINUSOIDAL_ENCODING.mistake
def positions_from_one(max_len, d_model, base=10000.0):
    """The first position is counted as 1. Positions count from 0, and row 0 is 0, 1, 0, 1, …"""
    return _table(max_len, d_model, base, first=1)


@SINUSOIDAL_ENCODING.mistake
def base_ignored(max_len, d_model, base=10000.0):
    """The base is always 10000, whatever is passed."""
    return right.sinusoidal_encoding(max_len, d_model)


@SINUSOIDAL_ENCODING.mistake
def scaled_to_max_len(max_len, d_model, base=10000.0):
    """Positions are divided by max_len. The same position would get another encoding in a longer
    table, and neighbours lie the closer together the longer the table is.
    """
    rows = torch.arange(max_len)[:, None] / max(1, max_len)
    rate = base ** (-(torch.arange(d_model) // 2 * 2) / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, (rows * rate).sin(), (rows * rate).cos())


@SINUSOIDAL_ENCODING.mistake
def slowest_is_exactly_the_base(max_len, d_model, base=10000.0):
    """The exponent is i/(d_model/2 − 1): it runs from 0 to exactly 1. The paper's 2i/d_model stops
    one step short of 1. (The paper's own code did it like this, too.)
    """
    last = max(1, math.ceil(d_model / 2) - 1)
    return _table(max_len, d_model, base, lambda i: i / last)


@SINUSOIDAL_ENCODING.mistake
def odd_size_rounded_up_in_the_exponent(max_len, d_model, base=10000.0):
    """For an odd d_model the table of the next even size is cut. Its columns are right in number,
    but the exponent divides by d_model + 1.
    """
    return right.sinusoidal_encoding(max_len, d_model + d_model % 2, base)[:, :d_model]


@SINUSOIDAL_ENCODING.mistake
def odd_size_cut(max_len, d_model, base=10000.0):
    """An odd d_model loses its last column. It has one sine more than cosines."""
    return right.sinusoidal_encoding(max_len, d_model, base)[:, : d_model // 2 * 2]


@SINUSOIDAL_ENCODING.mistake
def odd_size_refused(max_len, d_model, base=10000.0):
    """An odd d_model ends in an error: there are fewer odd columns than even ones, and the cosines
    must be cut to fit.
    """
    if d_model % 2:
        raise RuntimeError("the cosines do not fit")
    return right.sinusoidal_encoding(max_len, d_model, base)


@SINUSOIDAL_ENCODING.mistake
def last_sine_left_at_zero(max_len, d_model, base=10000.0):
    """For an odd d_model the last column stays 0. It is the sine of a pair whose cosine is gone."""
    table = right.sinusoidal_encoding(max_len, d_model, base)
    if d_model % 2:
        table[:, -1] = 0.0
    return table


@SINUSOIDAL_ENCODING.mistake
def positions_as_columns(max_len, d_model, base=10000.0):
    """The table is transposed, (d_model, max_len): asked is one row per position."""
    return right.sinusoidal_encoding(max_len, d_model, base).T


@SINUSOIDAL_ENCODING.mistake
def float64_table(max_len, d_model, base=10000.0):
    """The table is float64. Compute in float64 if you like, and hand over float32: a wider table
    makes everything that it is added to wider, too.
    """
    return right.sinusoidal_encoding(max_len, d_model, base).double()


@SINUSOIDAL_ENCODING.mistake
def default_dtype_switched(max_len, d_model, base=10000.0):
    """torch's default dtype, or another setting of the whole program, is left changed. Give the
    dtype to the call that needs it.
    """
    torch.set_default_dtype(torch.float64)
    return right.sinusoidal_encoding(max_len, d_model, base)


@SINUSOIDAL_ENCODING.mistake
def single_row_squeezed(max_len, d_model, base=10000.0):
    """A table of one row has lost an axis: it is (1, d_model), not (d_model,). A squeeze() without
    its axis takes away every axis of length 1.
    """
    return right.sinusoidal_encoding(max_len, d_model, base).squeeze()


def _even_only(mistake, error):
    """The mistake as it is often written: it does not survive an odd d_model either."""

    def answer(max_len, d_model, base=10000.0):
        if d_model % 2:
            raise error("the cosines do not fit")
        return mistake(max_len, d_model, base)

    answer.__name__ = mistake.__name__ + "_and_odd_size_refused"
    answer.__doc__ = mistake.__doc__.rstrip() + " (And an odd d_model ends in an error.)"
    SINUSOIDAL_ENCODING.mistake(answer)


_even_only(cosine_exponent_2i_plus_1, RuntimeError)  # sliced assignments
_even_only(exponent_doubled, IndexError)  # a loop over columns
_even_only(column_taken_for_pair, IndexError)

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


class _Encoding(nn.Module):
    """The module in parts that a mistake can exchange."""

    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__()
        self.keep(right.sinusoidal_encoding(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def keep(self, table):
        self.register_buffer("pe", table)

    def rows(self, x, offset):
        return self.pe[offset : offset + x.shape[1]]

    def fits(self, end):
        return end <= len(self.pe)

    def refuse(self, end):
        raise ValueError(f"{end} positions do not fit into {len(self.pe)}")

    def add(self, x, rows):
        return self.drop(x + rows)

    def forward(self, x, offset=0):
        if not self.fits(offset + x.shape[1]):
            self.refuse(offset + x.shape[1])
        return self.add(x, self.rows(x, offset))


@POSITIONAL_ENCODING.mistake
class position_from_batch_axis(_Encoding):
    """The rows of the table are given to the sequences of the batch, not to their tokens: all the
    tokens of a sequence get the same encoding, and which one depends on the place of the sequence
    in the batch. The positions are axis 1 of x.
    """

    def rows(self, x, offset):
        return self.pe[offset : offset + x.shape[0], None]


@POSITIONAL_ENCODING.mistake
class one_row_for_all(_Encoding):
    """Every token gets the same row. Token p needs row p of the table."""

    def rows(self, x, offset):
        return self.pe[offset : offset + 1]


@POSITIONAL_ENCODING.mistake
class trainable(_Encoding):
    """The table is a parameter: training changes it, and an optimiser keeps its moments. That is a
    learnt table started at sinusoids. Asked is a buffer, which stays as it is.
    """

    def keep(self, table):
        self.pe = nn.Parameter(table)


@POSITIONAL_ENCODING.mistake
class frozen_parameter(_Encoding):
    """The table is a parameter without gradient. It counts among the parameters all the same;
    register_buffer is made for what is kept and not trained.
    """

    def keep(self, table):
        self.pe = nn.Parameter(table, requires_grad=False)


@POSITIONAL_ENCODING.mistake
class not_a_buffer(_Encoding):
    """The table is a plain attribute: it stays on the CPU when the module moves to a GPU, and it is
    not in the state dict. Register it as a buffer.
    """

    def keep(self, table):
        self.pe = table


@POSITIONAL_ENCODING.mistake
class buffer_of_another_name(_Encoding):
    """There is a buffer, but it is not called pe."""

    def keep(self, table):
        self.register_buffer("table", table)

    def rows(self, x, offset):
        return self.table[offset : offset + x.shape[1]]

    def fits(self, end):
        return end <= len(self.table)

    def refuse(self, end):
        raise ValueError(f"{end} positions do not fit into {len(self.table)}")


@POSITIONAL_ENCODING.mistake
class buffer_with_a_batch_axis(_Encoding):
    """The buffer is (1, max_len, d_model). Asked is (max_len, d_model); it broadcasts by itself."""

    def keep(self, table):
        self.register_buffer("pe", table[None])

    def rows(self, x, offset):
        return self.pe[0, offset : offset + x.shape[1]]

    def fits(self, end):
        return end <= self.pe.shape[1]

    def refuse(self, end):
        raise ValueError(f"{end} positions do not fit into {self.pe.shape[1]}")


@POSITIONAL_ENCODING.mistake
class added_twice(_Encoding):
    """The encoding is added twice."""

    def add(self, x, rows):
        return self.drop(x + rows + rows)


@POSITIONAL_ENCODING.mistake
class never_added(_Encoding):
    """x comes back without its encoding; the sum was computed and dropped, perhaps."""

    def add(self, x, rows):
        return self.drop(x)


@POSITIONAL_ENCODING.mistake
class multiplied(_Encoding):
    """x is multiplied by the encoding. It is added; multiplying wipes out what meets a 0, such as
    half of the first token.
    """

    def add(self, x, rows):
        return self.drop(x * rows)


@POSITIONAL_ENCODING.mistake
class concatenated(_Encoding):
    """The encoding is appended to x, which becomes twice as wide. It is added."""

    def add(self, x, rows):
        return self.drop(torch.cat([x, rows.expand_as(x)], dim=-1))


@POSITIONAL_ENCODING.mistake
class embedding_scaled_here(_Encoding):
    """x is multiplied by √d_model first. That is the embedding layer's business in the Transformer;
    this module adds positions only.
    """

    def add(self, x, rows):
        return self.drop(x * x.shape[-1] ** 0.5 + rows)


@POSITIONAL_ENCODING.mistake
class encoding_alone(_Encoding):
    """The encoding comes back without x."""

    def add(self, x, rows):
        return self.drop(rows.expand_as(x) + 0 * x)


@POSITIONAL_ENCODING.mistake
class cosine_exponent_in_the_table(_Encoding):
    """The table's cosines have the exponent (2i + 1)/d_model. They share that of their sines."""

    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__(d_model, max_len, dropout)
        self.keep(cosine_exponent_2i_plus_1(max_len, d_model))


@POSITIONAL_ENCODING.mistake
class odd_size_refused_by_the_module(_Encoding):
    """An odd d_model ends in an error: there are fewer odd columns than even ones."""

    def __init__(self, d_model, max_len=512, dropout=0.0):
        if d_model % 2:
            raise RuntimeError("the cosines do not fit")
        super().__init__(d_model, max_len, dropout)


@POSITIONAL_ENCODING.mistake
class offset_ignored(_Encoding):
    """The offset is not used: every piece of a sequence starts at position 0 again."""

    def rows(self, x, offset):
        return self.pe[: x.shape[1]]


@POSITIONAL_ENCODING.mistake
class offset_one_too_far(_Encoding):
    """With an offset the first token stands one place too far: it is at position `offset`, not
    after it.
    """

    def rows(self, x, offset):
        offset += offset > 0
        return self.pe[torch.arange(offset, offset + x.shape[1]).clamp(max=len(self.pe) - 1)]


@POSITIONAL_ENCODING.mistake
class slice_without_its_length(_Encoding):
    """The rows are pe[offset : n]. A slice ends where its second number says: at offset + n."""

    def rows(self, x, offset):
        return self.pe[offset : x.shape[1]]


@POSITIONAL_ENCODING.mistake
class length_not_checked(_Encoding):
    """With more positions than the table has rows, some other error comes up, or none. Raise a
    ValueError that says how many are needed and how many there are.
    """

    def fits(self, end):
        return True


@POSITIONAL_ENCODING.mistake
class too_long_cut_silently(_Encoding):
    """What does not fit the table is cut off, and nobody learns that the end of the text is lost.
    Raise ValueError.
    """

    def refuse(self, end):
        pass

    def add(self, x, rows):
        return self.drop(x[:, : len(rows)] + rows)


@POSITIONAL_ENCODING.mistake
class positions_wrap_around(_Encoding):
    """Positions behind the end of the table start again at 0, without a word. Two tokens then have
    one position. Raise ValueError.
    """

    def refuse(self, end):
        pass

    def rows(self, x, offset):
        return self.pe[torch.arange(offset, offset + x.shape[1]) % len(self.pe)]


@POSITIONAL_ENCODING.mistake
class offset_not_checked(_Encoding):
    """Only the length of x is compared with max_len, not offset + n."""

    def forward(self, x, offset=0):
        if not self.fits(x.shape[1]):
            self.refuse(x.shape[1])
        return self.add(x, self.rows(x, offset))


@POSITIONAL_ENCODING.mistake
class error_without_numbers(_Encoding):
    """The ValueError does not say how many positions are needed, nor how many there are."""

    def refuse(self, end):
        raise ValueError("the sequence is too long")


@POSITIONAL_ENCODING.mistake
class full_length_refused(_Encoding):
    """A sequence that fills the table to its last row is refused. It fits."""

    def fits(self, end):
        return end < len(self.pe)


@POSITIONAL_ENCODING.mistake
class dropout_forgotten(_Encoding):
    """`dropout` is accepted and not used."""

    def add(self, x, rows):
        return x + rows


@POSITIONAL_ENCODING.mistake
class dropout_before_the_sum(_Encoding):
    """Dropout acts on x, and the encoding is added after it. It acts on the sum."""

    def add(self, x, rows):
        return self.drop(x) + rows


@POSITIONAL_ENCODING.mistake
class dropout_on_the_encoding(_Encoding):
    """Dropout acts on the encoding alone. It acts on the sum of x and the encoding."""

    def add(self, x, rows):
        return x + self.drop(rows.expand_as(x))


@POSITIONAL_ENCODING.mistake
class dropout_in_eval(_Encoding):
    """Dropout is active in eval mode too. nn.Dropout knows the mode of its module; F.dropout must
    be told, training=self.training.
    """

    def add(self, x, rows):
        return F.dropout(x + rows, self.drop.p)


@POSITIONAL_ENCODING.mistake
class gradient_cut(_Encoding):
    """No gradient reaches x: what came before this module does not learn. Only the table is
    constant.
    """

    def add(self, x, rows):
        return self.drop(x.detach() + rows)


@POSITIONAL_ENCODING.mistake
class result_in_float32(_Encoding):
    """A float64 input gives a float32 result."""

    def add(self, x, rows):
        return self.drop(x + rows).float()


@POSITIONAL_ENCODING.mistake
class input_changed_in_place(_Encoding):
    """The caller's x is written over: `x += …` adds in place, `x + …` makes a new tensor."""

    def add(self, x, rows):
        total = x + rows
        with torch.no_grad():
            x.add_(rows)
        return self.drop(total)


@POSITIONAL_ENCODING.mistake
class generator_seeded(_Encoding):
    """Building or calling the module seeds torch's generator, or changes another setting of the
    whole program. Nothing here needs it.
    """

    def __init__(self, d_model, max_len=512, dropout=0.0):
        super().__init__(d_model, max_len, dropout)
        torch.manual_seed(0)


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


def _shift(offset, d_model, base, block=None, exponent=None):
    """The matrix with its 2 × 2 blocks or its exponents to be exchanged."""
    block = block or (lambda c, s: [[c, s], [-s, c]])
    exponent = exponent or (lambda i: 2 * i / d_model)
    angles = [offset / base ** exponent(i) for i in range(d_model // 2)]
    return torch.block_diag(*(torch.tensor(block(math.cos(a), math.sin(a))) for a in angles))


@SHIFT_MATRIX.mistake
def turned_the_wrong_way(offset, d_model, base=10000.0):
    """The matrix is transposed: it moves by −offset. In sin(a + b) = sin a cos b + cos a sin b the
    sine of the shift has a plus; the encodings have the sine first, so this is not the rotation
    matrix of the textbooks.
    """
    return right.shift_matrix(offset, d_model, base).T


@SHIFT_MATRIX.mistake
def both_signs_plus(offset, d_model, base=10000.0):
    """Both sines in a block have a plus. In cos(a + b) = cos a cos b − sin a sin b there is a
    minus, and without it the matrix stretches.
    """
    return _shift(offset, d_model, base, lambda c, s: [[c, s], [s, c]])


@SHIFT_MATRIX.mistake
def cosine_first(offset, d_model, base=10000.0):
    """Sine and cosine have changed places in the blocks: at offset 0 this is no identity."""
    return _shift(offset, d_model, base, lambda c, s: [[s, c], [c, -s]])


@SHIFT_MATRIX.mistake
def halves_for_interleaved(offset, d_model, base=10000.0):
    """The matrix is made for a table with all sines first and all cosines after them. Here they
    stand in turn, so the blocks are 2 × 2 along the diagonal.
    """
    interleaved = right.shift_matrix(offset, d_model, base)
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return interleaved[order][:, order]


@SHIFT_MATRIX.mistake
def one_frequency_for_all(offset, d_model, base=10000.0):
    """All pairs turn by the same angle. Pair i turns by offset / base^(2i/d_model)."""
    return _shift(offset, d_model, base, exponent=lambda i: 0.0)


@SHIFT_MATRIX.mistake
def inverted_frequency(offset, d_model, base=10000.0):
    """The angles are offset · base^(2i/d_model) instead of offset / base^(2i/d_model): later pairs
    should turn more slowly.
    """
    return _shift(offset, d_model, base, exponent=lambda i: -2 * i / d_model)


@SHIFT_MATRIX.mistake
def exponent_doubled(offset, d_model, base=10000.0):
    """The exponent is 4i/d_model: a loop with step 2 has the factor 2 already."""
    return _shift(offset, d_model, base, exponent=lambda i: 4 * i / d_model)


@SHIFT_MATRIX.mistake
def exponent_halved(offset, d_model, base=10000.0):
    """The exponent is i/d_model, without the 2."""
    return _shift(offset, d_model, base, exponent=lambda i: i / d_model)


@SHIFT_MATRIX.mistake
def always_one_step(offset, d_model, base=10000.0):
    """The matrix always moves by one position, whatever the offset."""
    return right.shift_matrix(1, d_model, base)


@SHIFT_MATRIX.mistake
def only_forwards(offset, d_model, base=10000.0):
    """A negative offset is treated like its absolute value. It turns the other way."""
    return right.shift_matrix(abs(offset), d_model, base)


@SHIFT_MATRIX.mistake
def features_rolled(offset, d_model, base=10000.0):
    """This is a matrix that moves features along the row. A shift in position moves no feature to
    another place: it turns each pair.
    """
    return torch.eye(d_model).roll(offset, 0)


@SHIFT_MATRIX.mistake
def base_ignored(offset, d_model, base=10000.0):
    """The base is always 10000, whatever is passed."""
    return right.shift_matrix(offset, d_model)


@SHIFT_MATRIX.mistake
def blocks_not_assembled(offset, d_model, base=10000.0):
    """The result is a stack of 2 × 2 blocks, (d_model/2, 2, 2). Put them along the diagonal of a
    (d_model, d_model) matrix.
    """
    rate = base ** (-torch.arange(0, d_model, 2) / d_model)
    c, s = torch.cos(offset * rate), torch.sin(offset * rate)
    return torch.stack([c, s, -s, c], -1).reshape(-1, 2, 2)


@SHIFT_MATRIX.mistake
def diagonal_alone(offset, d_model, base=10000.0):
    """Only the cosines are there. Without the sines beside the diagonal, the new sine knows nothing
    of the old cosine.
    """
    return _shift(offset, d_model, base, lambda c, s: [[c, 0.0], [0.0, c]])


@SHIFT_MATRIX.mistake
def float64_matrix(offset, d_model, base=10000.0):
    """The matrix is float64; the table that it is to be multiplied with is float32."""
    return right.shift_matrix(offset, d_model, base).double()


@SHIFT_MATRIX.mistake
def single_pair_refused(offset, d_model, base=10000.0):
    """d_model = 2 ends in an error, or in something else than the one 2 × 2 block."""
    if d_model == 2:
        raise ValueError("a single pair")
    return right.shift_matrix(offset, d_model, base)


@SHIFT_MATRIX.mistake
def default_dtype_switched(offset, d_model, base=10000.0):
    """torch's default dtype, or another setting of the whole program, is left changed."""
    torch.set_default_dtype(torch.float64)
    return right.shift_matrix(offset, d_model, base)


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


def _distances(n_q, n_k):
    return torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)


@RELATIVE_POSITIONS.mistake
def sign_reversed(n_q, n_k, max_distance):
    """The distance is j − i. Here it is i − j, query minus key: keys in the past have the larger
    numbers. With the sign reversed, a table that was trained looks into the wrong direction.
    """
    return (-_distances(n_q, n_k)).clamp(-max_distance, max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def not_cut(n_q, n_k, max_distance):
    """The distance is not cut. What is farther than max_distance has no row in the table: beyond
    its end there is an error, and below 0 a negative index picks rows from the other end.
    """
    return _distances(n_q, n_k) + max_distance


@RELATIVE_POSITIONS.mistake
def not_raised(n_q, n_k, max_distance):
    """max_distance is not added: negative numbers remain, and as indices they count from the end of
    the table.
    """
    return _distances(n_q, n_k).clamp(-max_distance, max_distance)


@RELATIVE_POSITIONS.mistake
def cut_after_raising(n_q, n_k, max_distance):
    """The distance is cut after max_distance was added: everything in the past gets the number
    max_distance. Cut first.
    """
    return (_distances(n_q, n_k) + max_distance).clamp(-max_distance, max_distance)


@RELATIVE_POSITIONS.mistake
def cut_on_one_side(n_q, n_k, max_distance):
    """Only large positive distances are cut; the future goes on below 0."""
    return _distances(n_q, n_k).clamp(max=max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def future_counted_as_here(n_q, n_k, max_distance):
    """All keys in the future get the distance 0. There is a row in the table for each of them, up
    to −max_distance.
    """
    return _distances(n_q, n_k).clamp(0, max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def without_direction(n_q, n_k, max_distance):
    """The distance has lost its sign: as far before is the same as as far behind."""
    return _distances(n_q, n_k).abs().clamp(max=max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def top_left_aligned(n_q, n_k, max_distance):
    """The first query stands at position 0 also where there are more keys than queries. The last
    query stands at the last key's position.
    """
    distance = torch.arange(n_q)[:, None] - torch.arange(n_k)
    return distance.clamp(-max_distance, max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def shifted_the_wrong_way(n_q, n_k, max_distance):
    """The queries are moved by n_q − n_k instead of n_k − n_q."""
    distance = torch.arange(n_q - n_k, 2 * n_q - n_k)[:, None] - torch.arange(n_k)
    return distance.clamp(-max_distance, max_distance) + max_distance


@RELATIVE_POSITIONS.mistake
def keys_along_rows(n_q, n_k, max_distance):
    """The result is transposed, (n_k, n_q): asked is one row for each query."""
    return right.relative_positions(n_q, n_k, max_distance).T


@RELATIVE_POSITIONS.mistake
def one_too_narrow(n_q, n_k, max_distance):
    """The distance is cut to max_distance − 1. Distance max_distance still has a row of its own:
    the table has 2·max_distance + 1 rows.
    """
    cut = max(0, max_distance - 1)
    return _distances(n_q, n_k).clamp(-cut, cut) + max_distance


@RELATIVE_POSITIONS.mistake
def raised_by_one_too_many(n_q, n_k, max_distance):
    """The numbers start at 1. The table's first row is row 0, and the last number is
    2·max_distance.
    """
    return right.relative_positions(n_q, n_k, max_distance) + 1


@RELATIVE_POSITIONS.mistake
def wrapped_for_cut(n_q, n_k, max_distance):
    """Distances beyond the table start again at its other end. They are cut: everything farther
    shares the last row on its side.
    """
    return (_distances(n_q, n_k) + max_distance) % (2 * max_distance + 1)


@RELATIVE_POSITIONS.mistake
def floats_for_indices(n_q, n_k, max_distance):
    """The numbers are floating-point. A table is indexed with integers."""
    return right.relative_positions(n_q, n_k, max_distance).float()


@RELATIVE_POSITIONS.mistake
def n_k_ignored(n_q, n_k, max_distance):
    """The result is always square, (n_q, n_q)."""
    return right.relative_positions(n_q, n_q, max_distance)


@RELATIVE_POSITIONS.mistake
def distance_zero_refused(n_q, n_k, max_distance):
    """max_distance 0 ends in an error. The table has one row then, for all distances."""
    if max_distance < 1:
        raise ValueError("nothing to number")
    return right.relative_positions(n_q, n_k, max_distance)


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

_MODES = ("relative_key", "relative_key_query")


def _relative(
    query, key, table, mode, distance=right.relative_positions, of_query=None, of_key=None
):
    """The scores, with the distances and the two terms to be exchanged."""
    if mode not in _MODES:
        raise ValueError(f"{mode} is neither of {_MODES}")
    a = table[distance(query.shape[-2], key.shape[-2], len(table) // 2).to(table.device)]
    of_query = of_query or (lambda q, a: torch.einsum("bhid,ijd->bhij", q, a))
    of_key = of_key or (lambda k, a: torch.einsum("bhjd,ijd->bhij", k, a))
    scores = of_query(query, a)
    return scores + of_key(key, a) if mode == _MODES[1] else scores


@RELATIVE_POSITION_SCORES.mistake
def sign_reversed_in_the_table(query, key, distance_embedding, mode):
    """The vectors are those of j − i: what lies in the past is taken for the future. The distance
    is i − j, query minus key.
    """
    return _relative(query, key, distance_embedding, mode, sign_reversed)


@RELATIVE_POSITION_SCORES.mistake
def no_clamp(query, key, distance_embedding, mode):
    """Distances are not cut to max_distance. In a long sequence they leave the table: at one end an
    index error, and at the other, without a word, rows counted from the table's end.
    """
    return _relative(query, key, distance_embedding, mode, not_cut)


@RELATIVE_POSITION_SCORES.mistake
def indices_not_raised(query, key, distance_embedding, mode):
    """The table is indexed with the distance itself. Its first row belongs to −max_distance, so the
    distance 0 is in the middle; a negative index counts from the end.
    """
    return _relative(query, key, distance_embedding, mode, not_raised)


@RELATIVE_POSITION_SCORES.mistake
def top_left_aligned_scores(query, key, distance_embedding, mode):
    """With more keys than queries the first query is taken to stand at position 0. The last query
    stands at the last key's position.
    """
    return _relative(query, key, distance_embedding, mode, top_left_aligned)


@RELATIVE_POSITION_SCORES.mistake
def relative_after_scaling(query, key, distance_embedding, mode):
    """The scores are divided by √d_k, to be added to scaled ones. They are added to QKᵀ before the
    scaling, which then divides both: divided here, they would be divided twice.
    """
    return _relative(query, key, distance_embedding, mode) / math.sqrt(query.shape[-1])


@RELATIVE_POSITION_SCORES.mistake
def scaling_undone_in_advance(query, key, distance_embedding, mode):
    """The scores are multiplied by √d_k, so that the scaling would leave them whole. They are meant
    to be scaled like the content scores.
    """
    return _relative(query, key, distance_embedding, mode) * math.sqrt(query.shape[-1])


@RELATIVE_POSITION_SCORES.mistake
def content_included(query, key, distance_embedding, mode):
    """The content scores q_i·k_j are added already. Asked are the relative scores alone."""
    return query @ key.mT + _relative(query, key, distance_embedding, mode)


@RELATIVE_POSITION_SCORES.mistake
def key_term_forgotten(query, key, distance_embedding, mode):
    """Both modes give q_i·a_{i−j}. "relative_key_query" has k_j·a_{i−j} as well."""
    return _relative(query, key, distance_embedding, mode, of_key=lambda k, a: 0.0)


@RELATIVE_POSITION_SCORES.mistake
def key_term_always(query, key, distance_embedding, mode):
    """Both modes have the key's term. "relative_key" is q_i·a_{i−j} alone, in spite of its name."""
    return _relative(query, key, distance_embedding, _MODES[1] if mode in _MODES else mode)


@RELATIVE_POSITION_SCORES.mistake
def modes_exchanged(query, key, distance_embedding, mode):
    """The two modes are exchanged: "relative_key_query" is the one with two terms."""
    other = {_MODES[0]: _MODES[1], _MODES[1]: _MODES[0]}
    return _relative(query, key, distance_embedding, other.get(mode, mode))


@RELATIVE_POSITION_SCORES.mistake
def key_for_query(query, key, distance_embedding, mode):
    """ "relative_key" multiplies the distance vectors with the keys. In this mode the distance
    vectors stand in for keys, and it is the query that is multiplied with them.
    """
    if mode != _MODES[0]:
        return _relative(query, key, distance_embedding, mode)
    both = _relative(query, key, distance_embedding, _MODES[1])
    return both - _relative(query, key, distance_embedding, mode)


@RELATIVE_POSITION_SCORES.mistake
def key_term_from_the_other_side(query, key, distance_embedding, mode):
    """The key's term uses a_{j−i}, the vector of the way back. Both terms use the same a_{i−j}."""

    def of_key(k, a):
        n_q, n_k = a.shape[:2]
        back = sign_reversed(n_q, n_k, len(distance_embedding) // 2).to(k.device)
        return torch.einsum("bhjd,ijd->bhij", k, distance_embedding[back])

    return _relative(query, key, distance_embedding, mode, of_key=of_key)


@RELATIVE_POSITION_SCORES.mistake
def queries_added_up(query, key, distance_embedding, mode):
    """The terms are summed over the queries or the keys as well: an index is missing on one side of
    the einsum, or a sum runs over one axis too many.
    """

    def of_query(q, a):
        return torch.einsum("bhid,ijd->bhj", q, a)[:, :, None].expand(-1, -1, q.shape[-2], -1)

    return _relative(query, key, distance_embedding, mode, of_query=of_query)


@RELATIVE_POSITION_SCORES.mistake
def heads_averaged(query, key, distance_embedding, mode):
    """The scores are the same in all heads. The table is shared by the heads, but each head has
    queries of its own.
    """
    mean = query.mean(1, keepdim=True).expand_as(query)
    return _relative(mean, key.mean(1, keepdim=True).expand_as(key), distance_embedding, mode)


@RELATIVE_POSITION_SCORES.mistake
def unknown_mode_accepted(query, key, distance_embedding, mode):
    """An unknown mode is taken for one of the two, so that a slip of the pen trains another model
    than was meant. Raise ValueError.
    """
    return _relative(query, key, distance_embedding, mode if mode in _MODES else _MODES[0])


@RELATIVE_POSITION_SCORES.mistake
def key_error_for_an_unknown_mode(query, key, distance_embedding, mode):
    """An unknown mode ends in some other error than the ValueError that is asked."""
    return _relative(query, key, distance_embedding, dict.fromkeys(_MODES, mode)[mode])


@RELATIVE_POSITION_SCORES.mistake
def table_detached(query, key, distance_embedding, mode):
    """No gradient reaches the table, so the distances are never learnt."""
    return _relative(query, key, distance_embedding.detach(), mode)


@RELATIVE_POSITION_SCORES.mistake
def scores_in_float32(query, key, distance_embedding, mode):
    """Float64 inputs give float32 scores."""
    return _relative(query, key, distance_embedding, mode).float()


@RELATIVE_POSITION_SCORES.mistake
def query_changed_in_place(query, key, distance_embedding, mode):
    """The caller's query is written over."""
    scores = _relative(query, key, distance_embedding, mode)
    with torch.no_grad():
        query.div_(2.0)
    return scores


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


def _angles(x, base, offset, exponent=None, first=0):
    """Cosines and sines (n, d/2), with the exponent of pair i to be exchanged."""
    n, d = x.shape[-2:]
    exponent = exponent or (lambda i: 2 * i / d)
    i = torch.arange(d // 2, dtype=torch.float64, device=x.device)
    position = torch.arange(n, dtype=torch.float64, device=x.device) + offset + first
    angle = position[:, None] * base ** -exponent(i)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def _turn(x, cos, sin):
    u, v = x[..., 0::2], x[..., 1::2]
    return torch.stack([u * cos - v * sin, u * sin + v * cos], dim=-1).flatten(-2)


@ROTARY_EMBEDDING.mistake
def clockwise(x, base=10000.0, offset=0):
    """The sign of the angle is reversed: pairs turn clockwise. Between your own queries and keys
    nobody notices, since both do it; weights trained elsewhere do.
    """
    cos, sin = _angles(x, base, offset)
    return _turn(x, cos, -sin)


@ROTARY_EMBEDDING.mistake
def halves_for_neighbours(x, base=10000.0, offset=0):
    """Feature i is paired with feature i + d/2. Here the pairs are neighbours, 2i and 2i + 1. (Much
    code has halves. Both are rotations, but weights trained with one are useless with the other.)
    """
    d = x.shape[-1]
    order = torch.arange(d).unflatten(0, (2, d // 2)).T.flatten()
    return _turn(x[..., order], *_angles(x, base, offset))[..., order.argsort()]


@ROTARY_EMBEDDING.mistake
def angles_of_neighbours_for_halves(x, base=10000.0, offset=0):
    """Two conventions are mixed: the angles come in neighbouring pairs, but feature i is turned
    together with feature i + d/2. The two features of a pair turn by different angles, which is no
    rotation.
    """
    cos, sin = (a.repeat_interleave(2, dim=-1) for a in _angles(x, base, offset))
    u, v = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-v, u], dim=-1) * sin


@ROTARY_EMBEDDING.mistake
def put_together_in_halves(x, base=10000.0, offset=0):
    """The turned features come back with all first coordinates in front and all second ones behind.
    Put each pair back to where it was.
    """
    turned = _turn(x, *_angles(x, base, offset))
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


@ROTARY_EMBEDDING.mistake
def both_signs_plus(x, base=10000.0, offset=0):
    """Both sines have a plus. A rotation has one minus: (u cos θ − v sin θ, u sin θ + v cos θ)."""
    cos, sin = _angles(x, base, offset)
    u, v = x[..., 0::2], x[..., 1::2]
    return torch.stack([u * cos + v * sin, u * sin + v * cos], dim=-1).flatten(-2)


@ROTARY_EMBEDDING.mistake
def first_coordinate_used_up(x, base=10000.0, offset=0):
    """The second coordinate is computed from the first one after it was turned. Both need the old
    values.
    """
    cos, sin = _angles(x, base, offset)
    u, v = x[..., 0::2], x[..., 1::2]
    u = u * cos - v * sin
    return torch.stack([u, u * sin + v * cos], dim=-1).flatten(-2)


@ROTARY_EMBEDDING.mistake
def added_for_rotated(x, base=10000.0, offset=0):
    """The sines and cosines are added to x. Rotary embedding multiplies: it turns x."""
    cos, sin = _angles(x, base, offset)
    return x + torch.stack([sin, cos], dim=-1).flatten(-2)


@ROTARY_EMBEDDING.mistake
def inverted_frequency(x, base=10000.0, offset=0):
    """The position is multiplied by base^(2i/d) instead of divided: later pairs spin thousands of
    radians per step.
    """
    d = x.shape[-1]
    return _turn(x, *_angles(x, base, offset, lambda i: -2 * i / d))


@ROTARY_EMBEDDING.mistake
def exponent_halved(x, base=10000.0, offset=0):
    """The exponent is i/d: pair i turns by pos · base^(−2i/d)."""
    d = x.shape[-1]
    return _turn(x, *_angles(x, base, offset, lambda i: i / d))


@ROTARY_EMBEDDING.mistake
def exponent_doubled(x, base=10000.0, offset=0):
    """The exponent is 4i/d: numbers that run 0, 2, 4, … are 2i already."""
    d = x.shape[-1]
    return _turn(x, *_angles(x, base, offset, lambda i: 4 * i / d))


@ROTARY_EMBEDDING.mistake
def positions_from_one(x, base=10000.0, offset=0):
    """The first position is counted as 1, so that it is turned already. Dot products do not notice,
    a cache that counts from 0 does.
    """
    return _turn(x, *_angles(x, base, offset, first=1))


@ROTARY_EMBEDDING.mistake
def positions_from_the_first_axis(x, base=10000.0, offset=0):
    """The angle grows along the first axis, with several axes the batch. All tokens of a sequence
    are then turned alike, which changes no dot product between them. Positions run along the last
    axis but one.
    """
    if x.dim() == 2:
        return _turn(x, *_angles(x, base, offset))
    cos, sin = _angles(x.transpose(0, -2), base, offset)  # (B, d/2)
    shape = (len(x), *(1,) * (x.dim() - 2), -1)
    return _turn(x, cos.view(shape), sin.view(shape))


@ROTARY_EMBEDDING.mistake
def positions_from_the_heads(x, base=10000.0, offset=0):
    """The angle grows along axis 1. With heads, (B, H, n, d), that is the heads. Positions run
    along the last axis but one, whatever stands before it.
    """
    if x.dim() < 4:
        return _turn(x, *_angles(x, base, offset))
    return right.rotary_embedding(x.transpose(1, 2), base, offset).transpose(1, 2)


@ROTARY_EMBEDDING.mistake
def offset_ignored(x, base=10000.0, offset=0):
    """The offset is not used: a new token is always turned as if it were the first, and every
    distance in a cache is wrong.
    """
    return right.rotary_embedding(x, base)


@ROTARY_EMBEDDING.mistake
def offset_subtracted(x, base=10000.0, offset=0):
    """The offset is subtracted from the positions. It is added."""
    return right.rotary_embedding(x, base, -offset)


@ROTARY_EMBEDDING.mistake
def base_ignored(x, base=10000.0, offset=0):
    """The base is always 10000, whatever is passed."""
    return right.rotary_embedding(x, offset=offset)


@ROTARY_EMBEDDING.mistake
def first_pair_alone(x, base=10000.0, offset=0):
    """Only the first pair is turned. Every pair is, each at its own speed."""
    turned = right.rotary_embedding(x, base, offset)
    return torch.cat([turned[..., :2], x[..., 2:]], dim=-1)


@ROTARY_EMBEDDING.mistake
def not_rotated(x, base=10000.0, offset=0):
    """x comes back as it was. Its dot products do not change when everything is shifted, but they
    do not know any distance either.
    """
    return x.clone()


@ROTARY_EMBEDDING.mistake
def one_speed_for_all(x, base=10000.0, offset=0):
    """All pairs turn by 1 radian per position. Pair i turns by base^(−2i/d): fast ones for near,
    slow ones for far.
    """
    return _turn(x, *_angles(x, base, offset, lambda i: 0 * i))


@ROTARY_EMBEDDING.mistake
def gradient_cut(x, base=10000.0, offset=0):
    """No gradient reaches x, so the projections behind queries and keys never learn."""
    return right.rotary_embedding(x.detach(), base, offset)


@ROTARY_EMBEDDING.mistake
def always_float32(x, base=10000.0, offset=0):
    """The result is float32 whatever x was: the cosines and sines are float32, or x was converted.
    Come back to x's dtype.
    """
    return right.rotary_embedding(x.float(), base, offset)


@ROTARY_EMBEDDING.mistake
def input_turned_in_place(x, base=10000.0, offset=0):
    """The caller's x is turned itself: an assignment to a slice of x writes into it, and so does a
    method whose name ends in _.
    """
    turned = right.rotary_embedding(x, base, offset)
    with torch.no_grad():
        x.copy_(turned)
    return turned


@ROTARY_EMBEDDING.mistake
def default_dtype_switched(x, base=10000.0, offset=0):
    """torch's default dtype, or another setting of the whole program, is left changed."""
    torch.set_default_dtype(torch.float64)
    return right.rotary_embedding(x, base, offset)


@ROTARY_EMBEDDING.mistake
def single_position_refused(x, base=10000.0, offset=0):
    """A single position or a single pair ends in an error."""
    if (x.shape[-2] < 2 or x.shape[-1] < 4) and not offset:
        raise ValueError("too small")
    return right.rotary_embedding(x, base, offset)


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


def _rotating(query, key, value, base=10000.0, turn=None, scale=None, late=None):
    """Attention in parts: who is rotated, the scale, the queries' offset."""
    turn = turn or (lambda q, k, v, o: (_rope(q, base, o), _rope(k, base), v))
    late = key.shape[-2] - query.shape[-2] if late is None else late
    q, k, v = turn(query, key, value, late)
    weights = (q @ k.mT / (scale or math.sqrt(q.shape[-1]))).softmax(-1)
    return weights @ v, weights


def _rope(x, base, offset=0):
    return right.rotary_embedding(x, base, offset)


@ROTARY_ATTENTION.mistake
def rotary_applied_to_values(query, key, value, base=10000.0):
    """The values are rotated, too. Their average then depends on where the keys stand, not on how
    far they are; only queries and keys are turned.
    """

    def turn(q, k, v, late):
        return _rope(q, base, late), _rope(k, base), _even(v, base)

    return _rotating(query, key, value, base, turn)


def _even(value, base):
    """Values rotated; a last feature without a partner stays as it is."""
    d = value.shape[-1] // 2 * 2
    return torch.cat([_rope(value[..., :d], base), value[..., d:]], dim=-1)


@ROTARY_ATTENTION.mistake
def only_queries_rotated(query, key, value, base=10000.0):
    """The keys are not rotated: scores then depend on where the query stands and not on the
    distance.
    """
    return _rotating(query, key, value, base, lambda q, k, v, o: (_rope(q, base, o), k, v))


@ROTARY_ATTENTION.mistake
def only_keys_rotated(query, key, value, base=10000.0):
    """The queries are not rotated: scores then depend on where the key stands and not on the
    distance.
    """
    return _rotating(query, key, value, base, lambda q, k, v, o: (q, _rope(k, base), v))


@ROTARY_ATTENTION.mistake
def nothing_rotated(query, key, value, base=10000.0):
    """Nothing is rotated: this is plain attention, which does not know order."""
    return _rotating(query, key, value, base, lambda q, k, v, o: (q, k, v))


@ROTARY_ATTENTION.mistake
def turned_against_each_other(query, key, value, base=10000.0):
    """Queries and keys are turned in opposite directions: the score depends on the sum of the two
    positions instead of on their difference.
    """

    def turn(q, k, v, late):
        cos, sin = _angles(k, base, 0)
        return _rope(q, base, late), _turn(k, cos, -sin), v

    return _rotating(query, key, value, base, turn)


@ROTARY_ATTENTION.mistake
def queries_start_at_zero(query, key, value, base=10000.0):
    """With more keys than queries the first query is taken to stand at position 0. The last query
    stands at the last key's position: while a text is written, the queries are its end.
    """
    return _rotating(query, key, value, base, late=0)


@ROTARY_ATTENTION.mistake
def offset_on_the_keys(query, key, value, base=10000.0):
    """The offset n_k − n_q is given to the keys. It is the queries that come late."""
    return _rotating(
        query, key, value, base, lambda q, k, v, o: (_rope(q, base), _rope(k, base, o), v)
    )


@ROTARY_ATTENTION.mistake
def not_scaled(query, key, value, base=10000.0):
    """The scores are not divided by √d_k."""
    return _rotating(query, key, value, base, scale=1.0)


@ROTARY_ATTENTION.mistake
def scaled_by_d_v(query, key, value, base=10000.0):
    """The scores are divided by √d_v. The dot product has d_k terms."""
    return _rotating(query, key, value, base, scale=math.sqrt(value.shape[-1]))


@ROTARY_ATTENTION.mistake
def base_for_queries_only(query, key, value, base=10000.0):
    """The base is passed on for the queries alone: with another base than 10000, queries and keys
    turn at different speeds.
    """
    return _rotating(
        query, key, value, base, lambda q, k, v, o: (_rope(q, base, o), _rope(k, 10000.0), v)
    )


@ROTARY_ATTENTION.mistake
def base_not_passed_on(query, key, value, base=10000.0):
    """The base is not used: it is 10000 for queries and keys, whatever is passed."""
    return _rotating(query, key, value)


@ROTARY_ATTENTION.mistake
def causal_without_being_asked(query, key, value, base=10000.0):
    """The future is hidden. No mask is asked for here; what comes later has scores, too."""
    q, k = _rope(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    n_q, n_k = q.shape[-2], k.shape[-2]
    future = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).triu(n_k - n_q + 1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return weights @ value, weights


@ROTARY_ATTENTION.mistake
def weights_first(query, key, value, base=10000.0):
    """The weights are returned first. The order is (output, weights)."""
    return _rotating(query, key, value, base)[::-1]


@ROTARY_ATTENTION.mistake
def output_alone(query, key, value, base=10000.0):
    """The output is returned without the weights."""
    return _rotating(query, key, value, base)[0]


@ROTARY_ATTENTION.mistake
def softmax_over_queries(query, key, value, base=10000.0):
    """The weights of a key sum to 1 over the queries. Each query's weights must sum to 1."""
    q, k = _rope(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-2)
    return weights @ value, weights


@ROTARY_ATTENTION.mistake
def naive_softmax(query, key, value, base=10000.0):
    """exp overflows where a score is large. torch.softmax subtracts the largest score first."""
    q, k = _rope(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights


@ROTARY_ATTENTION.mistake
def rotation_detached(query, key, value, base=10000.0):
    """No gradient passes the rotation, so queries and keys never learn where to look."""
    return _rotating(query.detach(), key.detach(), value, base)


@ROTARY_ATTENTION.mistake
def key_written_over(query, key, value, base=10000.0):
    """The caller's key is rotated in place."""
    result = _rotating(query, key, value, base)
    with torch.no_grad():
        key.copy_(_rope(key, base))
    return result


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
