"""Chapter 5's references against numbers by hand, plain loops, algebra and torch's own layers."""

import cmath

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import close
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention
from solutions import positional_encoding as ref

EVEN = st.integers(1, 12).map(lambda pairs: 2 * pairs)
pytestmark = pytest.mark.seed(29)


def double(*shape):
    return torch.randn(shape, dtype=torch.float64)


def test_self_attention_does_not_know_order_until_it_is_told():
    attention = MultiHeadAttention(12, 3).double().eval()
    x, order = double(2, 7, 12), torch.randperm(7)
    table = double(7, 12)
    mask = torch.ones(7, 7).tril().bool()
    assert ref.permutation_gap(lambda x: attention(x, x, x)[0], x, order) < 1e-12
    assert ref.permutation_gap(lambda x: attention(x + table, x, x)[0], x, order) > 1e-2
    assert ref.permutation_gap(lambda x: attention(x, x, x, mask=mask)[0], x, order) > 1e-2


def test_a_causal_layer_without_places_knows_no_order_and_two_of_them_do():
    """The hard problem's model answer, with random weights and with equal ones."""
    first, second = (MultiHeadAttention(12, 3).double().eval() for _ in range(2))
    she_sings_well, mask = double(1, 3, 12), torch.ones(3, 3).tril().bool()
    sings_she_well = she_sings_well[:, [1, 0, 2]]

    def last(x, *layers):
        for layer in layers:
            x = layer(x, x, x, mask=mask)[0]
        return x[0, -1]

    one, other = (last(x, first) for x in (she_sings_well, sings_she_well))
    assert close(one, other, 1e-12)
    one, other = (last(x, first, second) for x in (she_sings_well, sings_she_well))
    assert (one - other).abs().max() > 1e-3

    equal = mask.double() / mask.double().sum(1, keepdim=True)
    shares = torch.tensor([11 / 18, 5 / 18, 2 / 18], dtype=torch.float64)
    assert close((equal @ equal)[-1], shares, 1e-12)


def test_the_gap_of_three_numbers_by_hand():
    """The running sum of 1, 2, 4 is 1, 3, 7; that of 4, 1, 2 is 4, 5, 7 against 7, 1, 3."""
    x = torch.tensor([[[1.0], [2.0], [4.0]]])
    gap = ref.permutation_gap(lambda x: x.cumsum(1), x, torch.tensor([2, 0, 1]))
    assert gap == 4.0
    assert type(gap) is float


def test_measuring_leaves_modes_and_gradients_as_they_were():
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    ref.permutation_gap(layer, torch.ones(1, 4, 3), torch.arange(4))
    assert all(m.training for m in layer.modules())
    assert torch.is_grad_enabled()


# --- sinusoidal_encoding ------------------------------------------------------------------------


@given(
    st.integers(1, 40), st.integers(1, 33), st.sampled_from([10.0, 100.0, 10000.0, 2.0]), st.data()
)
def test_each_entry_is_a_part_of_a_complex_power(max_len, d_model, base, data):
    """e^(iθ) multiplied up position times is cos + i sin of position · θ."""
    table = ref.sinusoidal_encoding(max_len, d_model, base)
    assert table.dtype == torch.float32
    assert table.shape == (max_len, d_model)
    pos = data.draw(st.integers(0, max_len - 1))
    column = data.draw(st.integers(0, d_model - 1))
    unit = cmath.exp(1j / base ** ((column - column % 2) / d_model))
    turned = 1.0 + 0j
    for _ in range(pos):
        turned *= unit
    wanted = turned.real if column % 2 else turned.imag
    assert abs(table[pos, column].item() - wanted) < 1e-6


def test_the_table_does_not_follow_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert ref.sinusoidal_encoding(2, 3).dtype == torch.float32
        assert ref.shift_matrix(2, 4).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


# --- PositionalEncoding -------------------------------------------------------------------------


def test_a_module_of_positions_keeps_one_buffer_and_no_parameter():
    module = ref.PositionalEncoding(6, 10)
    assert [name for name, _ in module.named_buffers()] == ["pe"]
    assert module.pe.shape == (10, 6)
    assert not [*module.parameters()]
    assert [*module.state_dict()] == ["pe"]
    assert module.double().pe.dtype == torch.float64
    assert ref.PositionalEncoding(4).pe.shape == (512, 4)


def test_pieces_with_offsets_make_the_whole():
    module, x = ref.PositionalEncoding(8, 12), torch.randn(2, 12, 8)
    pieces, done = [], 0
    for piece in x.split([1, 4, 2, 5], dim=1):
        pieces.append(module(piece, done))
        done += piece.shape[1]
    assert torch.equal(torch.cat(pieces, dim=1), module(x))


@pytest.mark.parametrize(("n", "offset"), [(13, 0), (3, 10), (1, 12)])
def test_too_many_positions_are_an_error_that_names_both_numbers(n, offset):
    module = ref.PositionalEncoding(4, 12)
    with pytest.raises(ValueError, match=rf"(?=.*\b{n + offset}\b)(?=.*\b12\b)"):
        module(torch.zeros(1, n, 4), offset)
    module(torch.zeros(1, n - 1, 4), offset)


def test_dropout_acts_on_the_sum_and_in_training_only():
    module = ref.PositionalEncoding(64, 64, dropout=0.25)
    x = 5.0 + torch.rand(8, 64, 64)
    out = module.train()(x)
    kept = out != 0
    assert 0.23 < 1.0 - kept.float().mean() < 0.27
    assert close(out[kept], ((x + module.pe) / 0.75)[kept], 1e-5)
    assert torch.equal(module.eval()(x), x + module.pe)


def test_half_precision_stays_half_precision():
    module, x = ref.PositionalEncoding(4), torch.zeros(1, 3, 4, dtype=torch.float16)
    assert module(x).dtype == torch.float16
    assert module(x.double()).dtype == torch.float64


# --- shift_matrix -------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(-30, 30), EVEN, st.sampled_from([10.0, 500.0, 10000.0]))
def test_a_shift_matrix_moves_every_row_by_its_offset(offset, d_model, base):
    table = ref.sinusoidal_encoding(70, d_model, base)
    M = ref.shift_matrix(offset, d_model, base)
    moved = table @ M.T
    first, last = max(0, -offset), min(70, 70 - offset)
    assert close(moved[first:last], table[first + offset : last + offset], 2e-6)
