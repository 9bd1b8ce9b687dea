"""Chapter 4's attention and its cache against numbers by hand, plain loops, and torch's own."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, close, some_mask
from scoring import softmax_of_some
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention
from solutions import masking as ref

pytestmark = pytest.mark.seed(23)


def qkv(n_q, n_k, d_k, d_v, *batch, dtype=torch.float64):
    shapes = [(*batch, n_q, d_k), (*batch, n_k, d_k), (*batch, n_k, d_v)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def test_masked_attention_in_plain_python():
    query, key, value = (x.detach() for x in qkv(3, 5, 4, 2, 2))
    mask = some_mask(2, 3, 5)
    mask[1, 0] = False
    output, weights = ref.masked_attention(query, key, value, mask)
    for b, i in product(range(2), range(3)):
        scores = [
            sum(query[b, i, c].item() * key[b, j, c].item() for c in range(4)) / 2 for j in range(5)
        ]
        row = softmax_of_some(scores, mask[b, i].tolist())
        mean = [sum(row[j] * value[b, j, c].item() for j in range(5)) for c in range(2)]
        assert close(weights[b, i], torch.tensor(row, dtype=torch.float64), 1e-14)
        assert close(output[b, i], torch.tensor(mean, dtype=torch.float64), 1e-14)


@PRECISION
@pytest.mark.parametrize("masked", [False, True])
def test_masked_attention_equals_torchs_fused_kernel_forward_and_backward(dtype, within, masked):
    inputs = qkv(4, 6, 3, 5, 2, 3, dtype=dtype)
    mask = some_mask(2, 1, 4, 6) if masked else None
    ours, _ = ref.masked_attention(*inputs, mask)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    assert close(ours, theirs, within)
    probe = torch.randn_like(ours)
    for mine, wanted in zip(
        torch.autograd.grad((ours * probe).sum(), inputs),
        torch.autograd.grad((theirs * probe).sum(), inputs),
        strict=True,
    ):
        assert close(mine, wanted, 4 * within)


def test_masked_attention_passes_gradcheck_with_a_query_that_sees_nothing():
    mask = some_mask(2, 3, 4)
    mask[0, 1] = False
    assert torch.autograd.gradcheck(
        lambda *inputs: ref.masked_attention(*inputs, mask), qkv(3, 4, 2, 3, 2)
    )


# --- attend_with_cache --------------------------------------------------------------------------


def made(d_model=6, num_heads=3, dtype=torch.float64, bias=True):
    attention = MultiHeadAttention(d_model, num_heads, bias=bias).to(dtype).eval()
    if bias:
        for layer in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            nn.init.normal_(layer.bias)
    return attention


def in_chunks(attention, x, sizes):
    cache, outputs = None, []
    for chunk in x.split(list(sizes), dim=1):
        output, cache = ref.attend_with_cache(attention, chunk, cache)
        outputs.append(output)
    return torch.cat(outputs, dim=1), cache


def test_every_way_of_cutting_twelve_positions_gives_the_full_causal_pass():
    attention, x = made(), torch.randn(2, 12, 6, dtype=torch.float64)
    mask = torch.tensor([[j <= i for j in range(12)] for i in range(12)])
    with torch.no_grad():
        full, _ = attention(x, x, x, mask=mask)
        keys, values = (
            torch.stack(W(x).chunk(3, dim=-1), dim=1) for W in (attention.W_k, attention.W_v)
        )
        ways = 0
        for cuts in product([False, True], repeat=11):
            ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [12]
            sizes = [b - a for a, b in zip([0, *ends], ends, strict=False)]
            output, cache = in_chunks(attention, x, sizes)
            assert close(output, full, 1e-12), sizes
            assert close(cache[0], keys, 1e-12), sizes
            assert close(cache[1], values, 1e-12), sizes
            ways += 1
    assert ways == 2**11


@PRECISION
@pytest.mark.parametrize("bias", [False, True])
def test_the_cached_pass_equals_torchs_module_forward_and_backward(dtype, within, bias):
    ours = made(8, 2, dtype, bias)
    theirs = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, dtype=dtype)
    projections = (ours.W_q, ours.W_k, ours.W_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            theirs.out_proj.bias.copy_(ours.W_o.bias)
    x = torch.randn(2, 5, 8, dtype=dtype, requires_grad=True)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    output, _ = in_chunks(ours, x, [2, 1, 2])
    wanted, _ = theirs(x, x, x, attn_mask=future)
    assert close(output, wanted, within)
    probe = torch.randn_like(output)
    mine = torch.autograd.grad((output * probe).sum(), [x, ours.W_o.weight])
    others = torch.autograd.grad((wanted * probe).sum(), [x, theirs.out_proj.weight])
    for a, b in zip(mine, others, strict=True):
        assert close(a, b, 10 * within)


def test_the_old_cache_stays_as_it_was():
    attention, x = made(), torch.randn(1, 7, 6, dtype=torch.float64)
    _, cache = ref.attend_with_cache(attention, x[:, :4])
    before = [part.clone() for part in cache]
    once, grown = ref.attend_with_cache(attention, x[:, 4:], cache)
    again, _ = ref.attend_with_cache(attention, x[:, 4:], cache)
    assert torch.equal(once, again)
    assert all(torch.equal(a, b) for a, b in zip(cache, before, strict=True))
    assert [part.shape for part in grown] == [(1, 3, 7, 2)] * 2


# --- contracts ----------------------------------------------------------------------------------


def test_signatures_hold_and_refuse_what_does_not_fit():
    check = jaxtyped(typechecker=beartype)
    attend, softmax = check(ref.masked_attention), check(ref.masked_softmax)
    attend(*qkv(3, 4, 2, 5, 2), some_mask(2, 3, 4))
    softmax(torch.randn(2, 3), torch.tensor([True, False, True]))
    check(ref.causal_mask)(2, 3)
    check(ref.padding_mask)(torch.tensor([1, 2]), max_len=4)
    check(ref.pack)([torch.tensor([1, 2]), torch.tensor([3])], 4, causal=True)
    cached, attention = check(ref.attend_with_cache), made()
    _, cache = cached(attention, torch.randn(2, 3, 6, dtype=torch.float64))
    cached(attention, torch.randn(2, 1, 6, dtype=torch.float64), cache)
    query, key, value = qkv(3, 4, 2, 5)
    with pytest.raises(TypeCheckError):
        attend(query, key[:, :1], value)
    with pytest.raises(TypeCheckError):
        attend(query, key, value[1:])
    with pytest.raises(TypeCheckError):
        softmax(torch.randn(2, 3), torch.tensor([1, 0, 1]))
