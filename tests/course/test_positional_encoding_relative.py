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


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(29)


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


def relative_inputs(n_q, n_k, far, d_k=4, dtype=torch.float64):
    shapes = (2, 3, n_q, d_k), (2, 3, n_k, d_k), (2 * far + 1, d_k)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


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


def test_the_sum_of_content_and_relative_scores_is_the_product_with_moved_keys():
    """Shaw's equation 4: q_i·(k_j + a_ij); and with the query term (q_i + a)·(k_j + a) − a·a."""
    query, key, table = (x.detach() for x in relative_inputs(5, 5, 3))
    content = query @ key.mT
    a = table[ref.relative_positions(5, 5, 3)]  # (n_q, n_k, d_k)
    moved_keys = key[:, :, None] + a
    direct = (query[:, :, :, None] * moved_keys).sum(-1)
    found = content + ref.relative_position_scores(query, key, table, "relative_key")
    assert close(found, direct, 1e-12)
    both = ((query[:, :, :, None] + a) * moved_keys).sum(-1) - (a * a).sum(-1)
    found = content + ref.relative_position_scores(query, key, table, "relative_key_query")
    assert close(found, both, 1e-12)


def test_relative_scores_of_equal_tokens_depend_on_the_distance_only():
    query, key = (double(1, 1, 1, 4).expand(1, 1, 6, 4) for _ in range(2))
    scores = ref.relative_position_scores(query, key, double(11, 4), "relative_key_query")[0, 0]
    for distance in range(-5, 6):
        same = scores.diagonal(-distance)
        assert same.max() - same.min() < 1e-12


@pytest.mark.parametrize("mode", ["", "relative", "relative_key ", "absolute"])
def test_an_unknown_mode_is_an_error_that_names_it(mode):
    with pytest.raises(ValueError, match=f"{mode!r}"):
        ref.relative_position_scores(*relative_inputs(2, 2, 1), mode)


# --- rotary_embedding ---------------------------------------------------------------------------


def test_a_pair_of_small_numbers_turns_by_hand():
    """(1, 0) goes to (cos θ, sin θ), (0, 1) to (−sin θ, cos θ): counter-clockwise."""
    x = torch.tensor([[1.0, 0.0, 0.0, 1.0]] * 3)
    found = ref.rotary_embedding(x, base=100.0)  # 1 and 1/10 radian per position
    expected = [
        [1.0, 0.0, 0.0, 1.0],
        [0.540302, 0.841471, -0.099833, 0.995004],
        [-0.416147, 0.909297, -0.198669, 0.980067],
    ]
    assert close(found, torch.tensor(expected), 1e-6)


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


def test_the_rotary_score_changes_with_the_distance_and_with_its_sign():
    q, k = torch.randn(1, 8), torch.randn(1, 8)
    scores = [
        (ref.rotary_embedding(q, offset=at) @ ref.rotary_embedding(k, offset=20).T).item()
        for at in range(41)
    ]
    assert min(abs(a - b) for a, b in zip(scores, scores[1:], strict=False)) > 1e-4
    assert max(abs(a - b) for a, b in zip(scores[:20], scores[:20:-1], strict=True)) > 0.1


def test_rotations_chain_and_keep_lengths():
    x = double(2, 4, 6)
    once = ref.rotary_embedding(x, offset=5)
    twice = torch.cat(
        [ref.rotary_embedding(once[:, p : p + 1], offset=11 - p) for p in range(4)], dim=1
    )
    at_16 = torch.cat([ref.rotary_embedding(x[:, p : p + 1], offset=16) for p in range(4)], dim=1)
    assert close(twice, at_16, 1e-12)
    assert close(once.norm(dim=-1), x.norm(dim=-1), 1e-12)


def test_a_rotation_is_the_transposed_shift_of_the_sinusoids():
    """M acts on (sin, cos), a rotation of (u, v) on points: the one is the other's transpose."""
    x, p = double(1, 10), 7
    M = ref.shift_matrix(p, 10).double()
    assert close(ref.rotary_embedding(x, offset=p), x @ M, 1e-6)


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


def test_rotary_attention_over_a_longer_past_shifts_but_does_not_change_what_is_near():
    """More keys in front, hidden by scores of their own, leave the ratios of the others alone."""
    query, key, value = double(1, 2, 4), double(1, 5, 4), double(1, 5, 3)
    _, short = ref.rotary_attention(query, key, value)
    front = torch.cat([double(1, 3, 4), key], dim=1)
    _, long = ref.rotary_attention(query, front, torch.cat([double(1, 3, 3), value], dim=1))
    recent = long[..., 3:] / long[..., 3:].sum(-1, keepdim=True)
    assert close(recent, short, 1e-12)


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


def test_inputs_stay_as_they_are():
    query, key, table = (x.detach() for x in relative_inputs(3, 3, 2))
    x, order = torch.randn(2, 3, 4), torch.tensor([1, 2, 0])
    given = [query, key, table, x, order]
    before = [t.clone() for t in given]
    ref.relative_position_scores(query, key, table, "relative_key_query")
    ref.rotary_embedding(x)
    ref.rotary_attention(x, x, x)
    ref.PositionalEncoding(4)(x)
    ref.permutation_gap(torch.relu, x, order)
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))
