"""Chapter 2's references against numbers by hand, plain loops, and torch's own functions.

Ours and torch's fused kernel agree forward and backward, to 1e-6 in float32 and 1e-12 in float64.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION
from scoring import SIZES, assert_same, gradients, qkv

from solutions import attention_scoring as ref

Q = np.array([[1, 0, 2], [2, 2, 2], [2, 1, 3]])
K = np.array([[0, 1, 1], [4, 4, 0], [2, 3, 1]])
V = np.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]])
pytestmark = pytest.mark.seed(17)


def test_the_example_by_hand():
    """Scores 2, 4, 4: exponentials 1 : e² : e², so weights 1, e², e² over 1 + 2e²."""
    output, weights = ref.simple_attention(Q, K, V)
    small = 1 / (1 + 2 * math.e**2)
    large = math.e**2 / (1 + 2 * math.e**2)
    assert np.allclose(weights[0], [small, large, large], rtol=1e-14)
    by_hand = [small + 2 * large + 2 * large, 2 * small + 14 * large, 3 * small + 3 * large]
    assert np.allclose(output[0], by_hand, rtol=1e-14)
    assert weights[0].round(3).tolist() == [0.063, 0.468, 0.468]
    assert output[0].round(3).tolist() == [1.937, 6.683, 1.595]


# --- NumPy --------------------------------------------------------------------------------------


def plain_attention(query, key, value, scale=1.0):
    """Attention for lists of lists, one number at a time."""
    output, table = [], []
    for q in query:
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) / scale for k in key]
        counts = [math.exp(s - max(scores)) for s in scores]
        table.append([c / sum(counts) for c in counts])
        output.append(
            [
                sum(w * v[c] for w, v in zip(table[-1], value, strict=True))
                for c in range(len(value[0]))
            ]
        )
    return np.array(output), np.array(table)


@SIZES
def test_numpy_attention_is_the_loop(batch, n_q, n_k, d_k, d_v):
    query, key, value = (t.detach().numpy() for t in qkv(batch, n_q, n_k, d_k, d_v))
    output, weights = ref.simple_attention(query, key, value)
    assert output.shape == (*batch, n_q, d_v)
    for index in np.ndindex(*batch):
        one = (x[index].tolist() for x in (query, key, value))
        by_loop = plain_attention(*one)
        assert np.abs(output[index] - by_loop[0]).max() < 1e-12
        assert np.abs(weights[index] - by_loop[1]).max() < 1e-12


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_numpy_attention_stands_large_scores(size):
    query, key = np.array([[size], [1.0]]), np.array([[1.0], [0.999], [1.0001]])
    output, weights = ref.simple_attention(query, key, np.eye(3))
    best = [2] if size > 0 else [1]
    assert np.isfinite(output).all()
    assert np.allclose(weights.sum(-1), 1)
    assert weights[0].argmax() == best[0]
    far = np.array([[100.0, 0.0], [0.0, 100.0], [100.0, 0.1]])
    _, similar = ref.simple_attention(far, far, far)
    assert np.isfinite(similar).all()


def test_a_score_of_minus_infinity_gets_no_weight():
    key = np.array([[1.0, 0.0], [-np.inf, 0.0], [2.0, 1.0]])
    output, weights = ref.simple_attention(np.array([[1.0, 1.0]]), key, np.eye(3))
    assert weights[0, 1] == 0.0
    assert np.allclose(weights[0, [0, 2]], [1 / (1 + math.e**2), 1 / (1 + math.e**-2)])
    assert np.isfinite(output).all()


def test_numpy_dtypes():
    single = [x.astype(np.float32) for x in (Q, K, V)]
    assert [x.dtype for x in ref.simple_attention(*single)] == [np.float32] * 2
    assert [x.dtype for x in ref.simple_attention(Q, K, V)] == [np.float64] * 2


# --- scaled dot-product attention ---------------------------------------------------------------


@PRECISION
@SIZES
def test_scaled_attention_is_torchs_fused_kernel(batch, n_q, n_k, d_k, d_v, dtype, within):
    x = qkv(batch, n_q, n_k, d_k, d_v, dtype)
    output, weights = ref.scaled_dot_product_attention(*x)
    assert_same(output, F.scaled_dot_product_attention(*x), x, within)
    identity = torch.eye(n_k, dtype=dtype).expand(*batch, n_k, n_k)
    fused = F.scaled_dot_product_attention(*x[:2], identity)
    assert_same(weights, fused, x[:2], within)


@pytest.mark.parametrize("d", [4, 64, 1024])
def test_scaled_scores_have_variance_one_whatever_d_k(d):
    """Of two scores with variance 1 the difference has 2; ln of the weights' ratio is that."""
    query, key = torch.randn(20_000, 1, d).double(), torch.randn(20_000, 2, d).double()
    _, weights = ref.scaled_dot_product_attention(query, key, key)
    difference = weights.log().diff(dim=-1).flatten()
    assert difference.var().item() == pytest.approx(2, rel=0.1)  # at d = 4, 6 deviations


def test_without_the_scale_the_softmax_saturates_and_its_gradient_vanishes():
    def seen(d, scale):
        """Mean of the largest of ten weights, and mean norm of the softmax's Jacobian."""
        query, key = torch.randn(500, d), torch.randn(10, d)
        query = query if scale else query * d**0.5
        _, alpha = ref.scaled_dot_product_attention(query, key, key)
        jacobian = torch.diag_embed(alpha) - alpha[:, :, None] * alpha[:, None, :]
        return alpha.amax(-1).mean().item(), jacobian.norm(dim=(1, 2)).mean().item()

    plain, scaled = ([seen(d, by) for d in (16, 256, 4096)] for by in (False, True))
    assert plain[0][0] < plain[1][0] < plain[2][0]
    assert plain[2][0] > 0.95
    assert plain[0][1] > plain[1][1] > plain[2][1]
    assert plain[2][1] < 0.06
    assert all(0.2 < largest < 0.45 and 0.3 < slope < 0.4 for largest, slope in scaled)


def test_large_scores_keep_forward_and_backward_finite():
    x = [t.detach().mul(100).requires_grad_() for t in qkv((2,), 3, 5, 4, 2, torch.float32)]
    output, weights = ref.scaled_dot_product_attention(*x)
    assert bool(torch.isfinite(output).all() and torch.isfinite(weights).all())
    assert all(bool(torch.isfinite(g).all()) for g in gradients(output, x))


def test_signatures_say_the_shapes_that_hold():
    check = jaxtyped(typechecker=beartype)
    assert check(ref.simple_attention)(Q, K, V)[0].shape == (3, 3)
    x = [torch.ones(2, 3, 4), torch.ones(2, 5, 4), torch.ones(2, 5, 1)]
    output, weights = check(ref.scaled_dot_product_attention)(*x)
    assert (output.shape, weights.shape) == ((2, 3, 1), (2, 3, 5))
    assert check(ref.cosine_scores)(*x[:2]).shape == (2, 3, 5)
    forward = check(ref.AdditiveAttention.forward)
    assert forward(ref.AdditiveAttention(4, 4, 6), *x)[0].shape == (2, 3, 1)
    forward = check(ref.BilinearAttention.forward)
    assert forward(ref.BilinearAttention(4, 4), *x)[1].shape == (2, 3, 5)
    assert check(ref.SelfAttention.forward)(ref.SelfAttention(4, 2, 3), x[0])[0].shape == (2, 3, 3)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (5, 3), (5, 2)),  # query and key of different size
        ((3, 4), (5, 4), (4, 2)),  # a value too few
        ((2, 3, 4), (5, 4), (5, 2)),  # a batch of queries only
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes):
    check = jaxtyped(typechecker=beartype)
    with pytest.raises(TypeCheckError):
        check(ref.simple_attention)(*(np.ones(shape) for shape in shapes))
    with pytest.raises(TypeCheckError):
        check(ref.scaled_dot_product_attention)(*(torch.ones(shape) for shape in shapes))
