"""Chapter 5's relative positions and rotations against plain loops, algebra, and torch's kernel."""

import cmath
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, close

from solutions import positional_encoding as ref

EVEN = st.integers(1, 12).map(lambda pairs: 2 * pairs)
pytestmark = pytest.mark.seed(29)


def double(*shape):
    return torch.randn(shape, dtype=torch.float64)


def test_distances_of_three_queries_and_five_keys_by_hand():
    """Queries at positions 2, 3, 4; at most 2 apart; row 2 of the table is distance 0."""
    expected = [[4, 3, 2, 1, 0], [4, 4, 3, 2, 1], [4, 4, 4, 3, 2]]
    found = ref.relative_positions(3, 5, 2)
    assert found.tolist() == expected
    assert found.dtype == torch.long


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10))
def test_distances_cell_by_cell(n_q, n_k, far):
    found = ref.relative_positions(n_q, n_k, far)
    assert found.shape == (n_q, n_k)
    assert found[-1, -1] == far, "the last query stands at the last key"
    assert 0 <= found.min() <= found.max() <= 2 * far
    for (i, j), (k, m) in product(product(range(n_q), range(n_k)), repeat=2):
        if i - j == k - m:
            assert found[i, j] == found[k, m], "the same distance has the same number"
        elif i - j > k - m:
            assert found[i, j] >= found[k, m], "farther back is never a smaller number"


# --- relative_position_scores -------------------------------------------------------------------


def relative_inputs(n_q, n_k, far, d_k=4):
    shapes = (2, 3, n_q, d_k), (2, 3, n_k, d_k), (2 * far + 1, d_k)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("mode", ["relative_key", "relative_key_query"])
@pytest.mark.parametrize(("n_q", "n_k", "far"), [(4, 4, 5), (5, 5, 2), (2, 6, 3), (4, 2, 1)])
def test_relative_scores_in_plain_loops(mode, n_q, n_k, far):
    query, key, table = relative_inputs(n_q, n_k, far)
    found = ref.relative_position_scores(query, key, table, mode)
    assert found.shape == (2, 3, n_q, n_k)
    for b, h, row, j in product(range(2), range(3), range(n_q), range(n_k)):
        distance = max(-far, min(far, row + n_k - n_q - j))
        a = table[distance + far]
        wanted = query[b, h, row] @ a
        if mode == "relative_key_query":
            wanted = wanted + key[b, h, j] @ a
        assert abs((found[b, h, row, j] - wanted).item()) < 1e-12


@pytest.mark.parametrize("mode", ["relative_key", "relative_key_query"])
def test_relative_scores_pass_gradcheck(mode):
    inputs = relative_inputs(3, 4, 1, 2)
    assert torch.autograd.gradcheck(
        lambda *x: ref.relative_position_scores(*x, mode), inputs, atol=1e-8
    )


@pytest.mark.parametrize("mode", ["", "relative", "relative_key ", "absolute"])
def test_an_unknown_mode_is_an_error_that_names_it(mode):
    with pytest.raises(ValueError, match=f"{mode!r}"):
        ref.relative_position_scores(*relative_inputs(2, 2, 1), mode)


# --- rotary_embedding ---------------------------------------------------------------------------


@PRECISION
def test_rotation_is_multiplication_by_a_complex_number(dtype, within):
    x = torch.randn(2, 3, 5, 8, dtype=dtype)
    found = ref.rotary_embedding(x, base=50.0, offset=3)
    for p, i in product(range(5), range(4)):
        u, v = x[..., p, 2 * i], x[..., p, 2 * i + 1]
        turned = torch.complex(u, v) * cmath.exp(1j * (p + 3) / 50.0 ** (2 * i / 8))
        assert close(found[..., p, 2 * i], turned.real.to(dtype), within)
        assert close(found[..., p, 2 * i + 1], turned.imag.to(dtype), within)


@settings(max_examples=50)
@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 5000), EVEN)
def test_the_rotary_score_depends_on_the_distance_only(m, n, shift, d):
    """To 1e-5, for normal numbers in float32, at positions up to 10,000."""
    q, k = torch.randn(1, d), torch.randn(1, d)

    def score(at_q, at_k):
        return (
            ref.rotary_embedding(q, offset=at_q) @ ref.rotary_embedding(k, offset=at_k).T
        ).item()

    assert abs(score(m, n) - score(m + shift, n + shift)) < 1e-5


def test_rotary_passes_gradcheck_and_leaves_position_0_alone():
    x = double(2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: ref.rotary_embedding(x, 100.0, 2), x)
    assert torch.equal(ref.rotary_embedding(x)[:, 0], x[:, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rotary_keeps_the_dtype_and_far_positions_apart(dtype):
    x = torch.ones(2, 4, dtype=dtype)
    near, far = ref.rotary_embedding(x, offset=4096)
    assert near.dtype == dtype
    assert (near - far).abs().max() > 0.1, "positions counted in half precision run together"


# --- rotary_attention ---------------------------------------------------------------------------


@PRECISION
def test_rotary_attention_equals_torchs_kernel_on_rotated_inputs_forward_and_backward(
    dtype, within
):
    query, key = (torch.randn(2, 3, n, 6, dtype=dtype, requires_grad=True) for n in (4, 7))
    value = torch.randn(2, 3, 7, 5, dtype=dtype, requires_grad=True)
    output, weights = ref.rotary_attention(query, key, value)

    def turned(x, positions):
        pairs = torch.view_as_complex(x.unflatten(-1, (3, 2)))
        rate = torch.tensor([10000.0 ** (-2 * i / 6) for i in range(3)], dtype=dtype)
        angle = torch.tensor([*positions], dtype=dtype)[:, None] * rate
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)

    theirs = F.scaled_dot_product_attention(
        turned(query, range(3, 7)), turned(key, range(7)), value
    )
    assert close(output, theirs, within)
    assert close(weights.sum(-1), torch.ones(2, 3, 4, dtype=dtype), within)
    probe = torch.randn_like(output)
    inputs = (query, key, value)
    mine = torch.autograd.grad((output * probe).sum(), inputs)
    others = torch.autograd.grad((theirs * probe).sum(), inputs)
    for a, b in zip(mine, others, strict=True):
        assert close(a, b, 10 * within)


# --- contracts ----------------------------------------------------------------------------------


def test_signatures_hold_and_refuse_what_does_not_fit():
    check = jaxtyped(typechecker=beartype)
    x = torch.randn(2, 3, 4)
    check(ref.permutation_gap)(torch.relu, x, torch.tensor([2, 0, 1]))
    check(ref.sinusoidal_encoding)(3, 5)
    check(ref.PositionalEncoding.forward)(ref.PositionalEncoding(4), x, 2)
    check(ref.shift_matrix)(-2, 4)
    check(ref.relative_positions)(2, 3, 1)
    query, key, table = relative_inputs(2, 3, 2)
    check(ref.relative_position_scores)(query, key, table, "relative_key")
    check(ref.rotary_embedding)(x, 10.0, 1)
    check(ref.rotary_attention)(x, x, torch.randn(2, 3, 5))
    with pytest.raises(TypeCheckError):
        check(ref.permutation_gap)(torch.relu, x, torch.tensor([1, 0]))
    with pytest.raises(TypeCheckError):
        check(ref.relative_position_scores)(query, key[..., :2], table, "relative_key")
    with pytest.raises(TypeCheckError):
        check(ref.rotary_attention)(x, x, torch.randn(2, 4, 5))
