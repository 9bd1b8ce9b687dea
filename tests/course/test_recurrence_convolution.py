"""Chapter 8's references against torch's own layers, plain Python and graphs walked by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from attention_by_hand import blocks
from solutions import recurrence_convolution as ref
from solutions.attention_scoring import AdditiveAttention

CAUSAL = pytest.mark.parametrize("causal", [False, True])
pytestmark = pytest.mark.seed(8)


def apart(a, b):
    """The largest difference."""
    assert a.shape == b.shape
    return float((a - b).detach().abs().max())


def slopes(result, *leaves):
    """Gradients of a sum of the result, each entry with a weight of its own."""
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    return torch.autograd.grad((result * weights).sum(), leaves)


# --- recurrence -----------------------------------------------------------------------------------


@PRECISION
def test_the_cell_is_torchs_in_value_and_gradient(dtype, within):
    theirs = nn.GRUCell(5, 7, dtype=dtype)
    ours = ref.GRUCell(5, 7).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(4, 5, dtype=dtype, requires_grad=True)
    h = torch.randn(4, 7, dtype=dtype, requires_grad=True)
    assert apart(ours(x, h), theirs(x, h)) < within
    mine = slopes(ours(x, h), x, h, *ours.parameters())
    for a, b in zip(mine, slopes(theirs(x, h), x, h, *theirs.parameters()), strict=True):
        assert apart(a, b) < within * max(1.0, float(b.abs().max()))


def test_a_new_cell_is_drawn_like_torchs():
    ours, theirs = ref.GRUCell(30, 40), nn.GRUCell(30, 40)
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    for name, drawn in ours.state_dict().items():
        assert drawn.shape == theirs.state_dict()[name].shape
        assert float(drawn.abs().max()) <= 40**-0.5
        assert float(drawn.std()) == pytest.approx(float(theirs.state_dict()[name].std()), rel=0.2)


# --- attention on top -----------------------------------------------------------------------------


def decoder_and_input(dtype=torch.float64):
    decoder = ref.AttentionDecoder(9, 3, 5, 4).to(dtype)
    memory = torch.randn(2, 6, 4, dtype=dtype, requires_grad=True)
    state = torch.randn(2, 5, dtype=dtype, requires_grad=True)
    return decoder, torch.randint(9, (2, 4)), memory, state


def test_the_decoder_is_chapter_2s_attention_and_torchs_cell_in_turns():
    decoder, target, memory, state = decoder_and_input()
    attention = AdditiveAttention(5, 4, 5)
    attention.W_q, attention.W_k, attention.w_v = decoder.W_q, decoder.W_k, decoder.w_v
    logits, weights = decoder(target, memory, state)
    for t in range(4):
        context, seen = attention(state[:, None], memory, memory)
        read = torch.cat([decoder.embedding(target[:, t]), context[:, 0]], dim=1)
        state = decoder.cell(read, state)
        told = decoder.output(torch.cat([state, context[:, 0]], dim=1))
        assert apart(weights[:, t], seen[:, 0]) < 1e-12
        assert apart(logits[:, t], told) < 1e-12


def test_a_masked_position_is_as_if_it_were_not_there():
    decoder, target, memory, state = decoder_and_input()
    mask = torch.tensor([True, False, True, True, False, True]).expand(2, 6)
    logits, weights = decoder(target, memory, state, mask)
    shorter, remaining = decoder(target, memory[:, mask[0]], state)
    assert apart(logits, shorter) < 1e-12
    assert apart(weights[:, :, mask[0]], remaining) < 1e-12
    assert (weights[:, :, ~mask[0]] == 0).all()


def test_where_all_is_masked_nothing_is_seen_and_no_gradient_is_nan():
    decoder, target, memory, state = decoder_and_input()
    mask = torch.tensor([[True] * 6, [False] * 6])
    logits, weights = decoder(target, memory, state, mask)
    assert (weights[1] == 0).all()
    without, _ = decoder(target, torch.zeros_like(memory), state)
    assert apart(logits[1], without[1]) < 1e-12
    grads = slopes(logits, memory, state, *decoder.parameters())
    assert all(torch.isfinite(grad).all() for grad in grads)
    assert (grads[0][1] == 0).all()


@pytest.mark.parametrize("masked", [False, True])
@PRECISION
def test_the_block_is_the_decoder_in_value_and_gradient(dtype, within, masked):
    decoder, target, memory, state = decoder_and_input(dtype)
    block = blocks.AttentionDecoder(9, 3, 5, 4).to(dtype)
    block.load_state_dict(decoder.state_dict())
    mask = torch.tensor([[True, False] * 3, [False] * 6]) if masked else None
    results, gradients = [], []
    for module in (decoder, block):
        found = torch.cat([part.flatten() for part in module(target, memory, state, mask)])
        results.append(found)
        gradients.append(slopes(found, memory, state, *module.parameters()))
    assert apart(*results) < within
    for mine, others in zip(*gradients, strict=True):
        assert apart(mine, others) < 10 * within


def test_the_encoders_state_is_that_at_the_last_token_whatever_padding_follows():
    encoder = blocks.GRUEncoder(7, 3, 5).double()
    source = torch.tensor([[3, 1, 4, 0, 0], [1, 5, 2, 6, 5], [2, 0, 0, 0, 0]])
    states, last = encoder(source)
    assert states.shape == (3, 5, 5)
    for row, length in enumerate((3, 5, 1)):
        alone, end = encoder(source[row : row + 1, :length])
        assert apart(states[row, :length], alone[0]) < 1e-12
        assert apart(last[row], end[0]) < 1e-12
        assert (
            apart(end[0], encoder.gru(encoder.embedding(source[row, None, :length]))[1][0, 0]) == 0
        )


# --- convolution ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(9, 3), (9, 5), (4, 7), (1, 3), (6, 1)])
@PRECISION
def test_heads_convolve_as_torch_does_in_value_and_gradient(n, k, dtype, within):
    x = torch.randn(2, n, 3, dtype=dtype, requires_grad=True)
    weight = (torch.randn(4, 3, k, dtype=dtype) * (3 * k) ** -0.5).requires_grad_()
    bias = torch.randn(4, dtype=dtype, requires_grad=True)
    ours, weights = ref.convolution_by_heads(x, weight, bias)
    theirs = F.conv1d(x.mT, weight, bias, padding=(k - 1) // 2).mT
    assert apart(ours, theirs) < within
    mine, others = slopes(ours, x, weight, bias), slopes(theirs, x, weight, bias)
    for a, b in zip(mine, others, strict=True):
        assert apart(a, b) < 10 * within
    assert weights.shape == (k, n, n)
    for h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        assert weights[h, i, j] == (j - i == h - (k - 1) // 2)


def test_a_kernel_of_even_width_is_refused_by_its_number():
    with pytest.raises(ValueError, match=r"\b6\b"):
        ref.convolution_by_heads(torch.randn(1, 4, 2), torch.randn(3, 2, 6))


def test_the_pair_of_the_bug_shows_and_hides_it():
    (x, weight), (other, hidden) = ref.bug_in_convolution(2, 3, 5)
    turned = F.conv1d(x.mT, weight.flip(2), padding=2)
    assert apart(turned, F.conv1d(x.mT, weight, padding=2)) > 0.5
    assert torch.equal(
        F.conv1d(other.mT, hidden.flip(2), padding=2), F.conv1d(other.mT, hidden, padding=2)
    )


# --- how many layers ------------------------------------------------------------------------------


def walks(reads, layers):
    """What each output depends on, by walking back from it layer by layer."""
    found = []
    for i in range(len(reads)):
        here = {i}
        for _ in range(layers):
            here = {j for place in here for j in range(len(reads)) if reads[place][j]}
        found.append(here)
    return found


@pytest.mark.parametrize("density", [0.25, 0.4, 0.6])
def test_the_number_of_layers_by_walking_back(density):
    seen = set()
    for n in (1, 2, 3, 4, 5) * 8:
        reads = torch.rand(n, n) < density
        needed = [
            layers
            for layers in range(1, (n - 1) ** 2 + 2)
            if all(len(found) == n for found in walks(reads.tolist(), layers))
        ]
        try:
            assert ref.layers_to_see_all(reads) == needed[0]
            seen.add("some")
        except ValueError:
            assert not needed
            assert any(len(f) < n for f in walks(reads.tolist(), 3 * n * n))
            seen.add("never")
    assert seen == {"some", "never"}


@pytest.mark.parametrize("n", range(2, 9))
def test_wielandts_table_needs_all_the_layers_that_the_search_allows(n):
    reads = torch.eye(n, dtype=torch.bool).roll(1, dims=1)
    with pytest.raises(ValueError, match="never"):
        ref.layers_to_see_all(reads)
    reads[n - 1, 1 % n] = True
    assert ref.layers_to_see_all(reads) == (n - 1) ** 2 + 1


# --- linear attention -----------------------------------------------------------------------------


def sequences(n_q, n_k, *batch, dtype=torch.float64):
    shapes = (*batch, n_q, 3), (*batch, n_k, 3), (*batch, n_k, 2)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def phi(number):
    return number + 1 if number > 0 else math.exp(number)


@CAUSAL
def test_linear_attention_is_a_weighted_mean_number_by_number(causal):
    query, key, value = sequences(4, 4)
    found = ref.linear_attention(query, key, value, causal)
    rows = [[[phi(v) for v in row] for row in x.tolist()] for x in (query, key)]
    for i in range(4):
        seen = range(i + 1) if causal else range(4)
        weights = [sum(a * b for a, b in zip(rows[0][i], rows[1][j], strict=True)) for j in seen]
        for c in range(2):
            mean = sum(w * value[j, c].item() for w, j in zip(weights, seen, strict=True))
            assert float(found[i, c]) == pytest.approx(mean / sum(weights), rel=1e-12)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_step_form_is_the_causal_form_in_value_and_gradient(batch):
    query, key, value = sequences(7, 7, *batch)
    whole = ref.linear_attention(query, key, value, causal=True)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (query, key, value)]
    state, outputs = None, []
    for t in range(7):
        output, state = ref.linear_attention_step(*(x[:, t] for x in flat), state)
        outputs.append(output)
    stepwise = torch.stack(outputs, dim=1).reshape(whole.shape)
    assert apart(whole, stepwise) < 1e-12
    for a, b in zip(
        slopes(whole, query, key, value), slopes(stepwise, query, key, value), strict=True
    ):
        assert apart(a, b) < 1e-12


class Largest(TorchDispatchMode):
    """The most numbers that a tensor holds that is made while this lasts."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                held = tensor.untyped_storage().nbytes() // tensor.element_size()
                self.numbers = max(self.numbers, held)
        return made


def largest(n_q, n_k, backward=False):
    query, key, value = sequences(n_q, n_k)
    with Largest() as seen:
        found = ref.linear_attention(query, key, value)
        if backward:
            found.sum().backward()
    return seen.numbers


@pytest.mark.parametrize("backward", [False, True])
def test_memory_grows_with_the_queries_and_the_keys_and_not_with_their_product(backward):
    both, queries, keys = (largest(*n, backward) for n in ((800, 800), (800, 2), (2, 800)))
    assert both <= max(queries, keys) <= 3 * 800
    query, key, _ = sequences(800, 800)
    with Largest() as table:
        query @ key.mT
    assert table.numbers == 800 * 800


def test_more_queries_than_keys_or_fewer_are_refused_where_it_is_causal():
    query, key, value = sequences(4, 9)
    assert ref.linear_attention(query, key, value).shape == (4, 2)
    with pytest.raises(ValueError, match=r"(?=.*\b4\b)(?=.*\b9\b)"):
        ref.linear_attention(query, key, value, causal=True)


# --- contracts ------------------------------------------------------------------------------------


def test_signatures_hold_and_refuse_what_does_not_fit():
    check = jaxtyped(typechecker=beartype)
    x = torch.randn(2, 3, 4)
    convolve, attend = check(ref.convolution_by_heads), check(ref.linear_attention)
    convolve(x, torch.randn(6, 4, 3), torch.randn(6))
    attend(*(t.detach() for t in sequences(3, 4, 2)))
    step = check(ref.linear_attention_step)
    _, state = step(torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 4))
    step(torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 4), state)
    check(ref.layers_to_see_all)(torch.ones(3, 3, dtype=torch.bool))
    check(ref.bug_in_convolution)(2, 3, 5)
    for wrong in (
        lambda: convolve(x, torch.randn(6, 5, 3)),
        lambda: attend(torch.randn(3, 2), torch.randn(4, 3), torch.randn(4, 2)),
        lambda: step(torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 4), state[::-1]),
    ):
        with pytest.raises(TypeCheckError):
            wrong()
