"""Chapter 9's references against torch's own layers, slow independent code, and numbers by hand."""

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError, jaxtyped
from parity import PRECISION, close, our_names, some_mask, tokens
from torch import nn

from attention_by_hand import blocks
from solutions import language_model as ref

OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H = 8, 2
pytestmark = pytest.mark.seed(31)


# --- byte pairs ---------------------------------------------------------------------------------


def merged_slowly(text, pair):
    """Pieces with marks around each: "|a|b|"; a pair is joined from the left, one at a time."""
    left, right = pair
    pieces = text.split("|")[1:-1]
    done = []
    while pieces:
        if pieces[:2] == [left, right]:
            done, pieces = [*done, left + right], pieces[2:]
        else:
            done, pieces = [*done, pieces[0]], pieces[1:]
    return "".join(f"|{piece}" for piece in done) + "|"


def merges_slowly(words, number):
    """Every word as often as it occurs, all pairs in a list, sorted as the rule says."""
    texts = ["|" + "".join(f"{c}|" for c in w) for w, n in words.items() for _ in range(n)]
    merges = []
    for _ in range(number):
        pieces = [text.split("|")[1:-1] for text in texts]
        pairs = [(p[i], p[i + 1]) for p in pieces for i in range(len(p) - 1)]
        if not pairs:
            break
        most = max(Counter(pairs).values())
        merges.append(sorted(p for p, count in Counter(pairs).items() if count == most)[0])
        texts = [merged_slowly(text, merges[-1]) for text in texts]
    return merges


WORDS = st.dictionaries(st.text("abc", max_size=7), st.integers(1, 5), max_size=6)


@settings(max_examples=150)
@given(WORDS, st.integers(0, 9))
def test_merges_are_those_of_a_slow_count(words, number):
    assert ref.byte_pair_merges(words, number) == merges_slowly(words, number)


def test_the_papers_example():
    """Sennrich et al. (2016), figure 1, without its end marks; ties as we break them."""
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    assert ref.byte_pair_merges(words, 3) == [("e", "s"), ("es", "t"), ("l", "o")]
    assert ref.byte_pair_encode("lowest", [("e", "s"), ("es", "t"), ("l", "o")]) == [
        "lo", "w", "est",
    ]  # fmt: skip


@settings(max_examples=150)
@given(WORDS, st.integers(0, 9), st.text("abcd", max_size=9))
def test_pieces_give_the_word_and_hold_no_pair_that_is_a_merge(words, number, word):
    merges = ref.byte_pair_merges(words, number)
    pieces = ref.byte_pair_encode(word, merges)
    assert "".join(pieces) == word
    assert not {*zip(pieces, pieces[1:], strict=False)} & {*merges}
    for known in words:  # learnt merges cut the words that they were learnt from as learning did
        text = "|" + "".join(f"{c}|" for c in known)
        for pair in merges:
            text = merged_slowly(text, pair)
        assert ref.byte_pair_encode(known, merges) == text.split("|")[1:-1]


def test_the_same_pair_may_become_possible_twice():
    """The earlier place in the list counts."""
    merges = [("a", "b"), ("b", "c"), ("a", "b"), ("ab", "c")]
    assert ref.byte_pair_encode("abc", merges) == ["abc"]


# --- the block ----------------------------------------------------------------------------------


def torchs_names(state):
    """Torch's names by ours: its self_attn is our attn."""
    return {name.replace("self_attn", "attn"): t for name, t in our_names(state).items()}


def torchs_layer(dtype, dropout=0.0):
    layer = nn.TransformerEncoderLayer(
        D, H, 4 * D, dropout, "gelu", batch_first=True, norm_first=True, dtype=dtype
    )
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.dim() == 1:
                nn.init.normal_(parameter, mean=0.5, std=0.3)
    return layer


@OURS
@PRECISION
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal"])
def test_a_block_is_torchs_layer_with_norm_first_and_gelu(ours, dtype, within, masked):
    theirs = torchs_layer(dtype).eval()
    block = ours.DecoderBlock(D, H, 4 * D).to(dtype)
    block.load_state_dict(torchs_names(theirs.state_dict()))
    past, real = torch.ones(5, 5, dtype=torch.bool).tril(), some_mask(3, 5)
    mask = {"causal": past, "padding": real[:, None, None]}.get(masked)
    their_masks = {"causal": {"src_mask": ~past}, "padding": {"src_key_padding_mask": ~real}}.get(
        masked, {}
    )
    x = torch.randn(3, 5, D, dtype=dtype)
    out, expected = block(x, mask), theirs(x, **their_masks)
    assert close(out, expected, 10 * within)
    probe = torch.randn_like(out)
    mine, others = ((y * probe).sum() for y in (out, expected))
    grads = torch.autograd.grad(mine, [*block.parameters()])
    named = dict(zip((n for n, _ in block.named_parameters()), grads, strict=True))
    their_parameters = dict(theirs.named_parameters())
    their_grads = torch.autograd.grad(others, [*their_parameters.values()])
    expected_grads = torchs_names(dict(zip(their_parameters, their_grads, strict=True)))
    assert named.keys() == expected_grads.keys()
    largest = max(g.abs().max() for g in expected_grads.values())
    for name, grad in named.items():
        assert (grad - expected_grads[name]).abs().max() <= 10 * within * largest, name


# --- the model ----------------------------------------------------------------------------------


class Torchs(nn.Module):
    """A GPT of torch's own layers: TransformerEncoder between two embeddings."""

    def __init__(self, vocab, context, num_layers, dtype):
        super().__init__()
        self.tokens = nn.Embedding(vocab, D, dtype=dtype)
        self.positions = nn.Embedding(context, D, dtype=dtype)
        norm = nn.LayerNorm(D, dtype=dtype)
        self.body = nn.TransformerEncoder(torchs_layer(dtype), num_layers, norm)
        for parameter in self.body.parameters():
            nn.init.normal_(parameter, mean=0.1, std=0.4)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.positions.weight[:n]
        past = nn.Transformer.generate_square_subsequent_mask(n, dtype=x.dtype)
        return F.linear(self.body(x, mask=past), self.tokens.weight)


def copied(model, theirs):
    names = {
        name.replace("body.layers", "blocks").replace("body.norm", "norm"): tensor
        for name, tensor in torchs_names(theirs.state_dict()).items()
    }
    model.load_state_dict(names)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch on its own defaults
@OURS
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_model_is_one_of_torchs_own_layers(ours, dtype, within):
    theirs = Torchs(11, 9, 3, dtype).eval()
    model = ours.GPT(11, 9, D, H, 3).to(dtype)
    copied(model, theirs)
    for n in (1, 4, 9):
        ids = torch.randint(0, 11, (3, n))
        assert close(model(ids), theirs(ids), within)


@OURS
def test_gpt_2_has_its_number_of_parameters(ours):
    """The small one of OpenAI's release: 50,257 tokens, 1,024 positions, 12 layers of 768."""
    with torch.device("meta"):
        model = ours.GPT(50_257, 1_024, 768, 12, 12)
    by_hand = 50_257 * 768 + 1_024 * 768 + 2 * 768
    by_hand += 12 * (4 * (768 * 768 + 768) + 2 * 4 * 768 * 768 + 5 * 768 + 2 * 2 * 768)
    count = sum(p.numel() for p in model.parameters())
    assert count == by_hand == 124_439_808


@OURS
def test_a_text_longer_than_the_context_is_refused(ours):
    model = ours.GPT(7, 5, D, H, 1)
    assert model(tokens(1, 5)).shape == (1, 5, 7)
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b6\b)(?=.*\b5\b)"):
        model(tokens(1, 6))


@pytest.mark.parametrize("sizes", [(1,) * 9, (4, 5), (1, 8), (3, 1, 2, 3)])
def test_the_blocks_model_step_by_step_is_the_whole(sizes):
    model = blocks.GPT(7, 9, D, H, 2).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    ids, cache, found = tokens(2, 9), None, []
    for part in ids.split(sizes, dim=1):
        before = None if cache is None else [tuple(t.clone() for t in kv) for kv in cache]
        old = cache
        logits, cache = model.step(part, cache)
        found.append(logits)
        if old is not None:  # the cache passed in is left as it was
            assert all(
                torch.equal(a, b)
                for x, y in zip(old, before, strict=True)
                for a, b in zip(x, y, strict=True)
            )
    assert close(torch.cat(found, 1), model(ids), 1e-5)
    assert cache[1][0].shape == (2, H, 9, D // H)
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b10\b)(?=.*\b9\b)"):
        model.step(ids[:, :1], cache)


# --- the loss, and bits per byte ----------------------------------------------------------------


@PRECISION
@pytest.mark.parametrize("pad_id", [None, 0, 3, -100])
def test_the_loss_is_torchs_one_place_on(dtype, within, pad_id):
    logits = torch.randn(3, 6, 5, dtype=dtype, requires_grad=True)
    ids = torch.randint(0, 5, (3, 6))
    if pad_id is not None:
        ids[0, 4:], ids[1, 2:] = pad_id, pad_id
    ours = ref.next_token_loss(logits, ids, pad_id)
    ignored = -100 if pad_id is None else pad_id
    theirs = F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], ignore_index=ignored)
    assert close(ours, theirs, within)
    mine, wanted = (torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs))
    assert close(mine, wanted, within)
    assert (mine[:, -1] == 0).all()


@pytest.mark.parametrize("ids", [[[2]], [[2, 0, 0], [1, 0, 0]]])
def test_where_nothing_is_predicted_loss_and_gradient_are_zero(ids):
    ids = torch.tensor(ids)
    logits = torch.randn(*ids.shape, 4, requires_grad=True)
    loss = ref.next_token_loss(logits, ids, 0)
    assert loss.item() == 0.0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()
    assert ref.bits_per_byte(logits[:, :1], ids[:, :1], torch.ones(4, dtype=torch.long)) == 0.0


def test_bits_per_byte_by_hand():
    """p = ¼ for a token of 3 bytes and ½ for one of 1: (2 + 1) bits for 4 bytes."""
    p = torch.tensor([[[0.25, 0.5, 0.25], [0.25, 0.5, 0.25], [0.1, 0.1, 0.8]]])
    ids, lengths = torch.tensor([[0, 2, 1]]), torch.tensor([50, 1, 3])
    found = ref.bits_per_byte(p.log(), ids, lengths)
    assert isinstance(found, float)
    assert found == pytest.approx(0.75, abs=1e-6)


def test_bits_per_byte_of_bytes_are_the_loss_in_bits():
    logits, ids = torch.randn(2, 9, 256), torch.randint(0, 256, (2, 9))
    loss = ref.next_token_loss(logits, ids).item()
    found = ref.bits_per_byte(logits, ids, torch.ones(256, dtype=torch.long))
    assert found == pytest.approx(loss / math.log(2), rel=1e-5)


# --- signatures ---------------------------------------------------------------------------------


def test_signatures_hold_for_what_goes_in_and_comes_out():
    check = jaxtyped(typechecker=beartype)
    logits, ids = torch.randn(2, 3, 7), tokens(2, 3)
    assert check(ref.byte_pair_merges)({"ab": 2}, 3) == [("a", "b")]
    assert check(ref.byte_pair_encode)("ab", [("a", "b")]) == ["ab"]
    assert check(ref.next_token_loss)(logits, ids).shape == ()
    assert check(ref.bits_per_byte)(logits, ids, torch.ones(7, dtype=torch.long)) > 0
    assert check(ref.next_token_probabilities)(logits, top_k=2).shape == (2, 3, 7)
    model = ref.GPT(7, 5, D, H, 1)
    assert check(ref.GPT.forward)(model, ids).shape == (2, 3, 7)
    assert check(ref.generate)(model, ids, 4).shape == (2, 7)
    block, grouped = ref.DecoderBlock(D, H, 4), ref.GroupedQueryAttention(D, 4, 2)
    x = torch.randn(2, 3, D)
    assert check(ref.DecoderBlock.forward)(block, x).shape == x.shape
    assert check(ref.GroupedQueryAttention.forward)(grouped, x)[1].shape == (2, 4, 3, 3)
    with pytest.raises(TypeCheckError):
        check(ref.next_token_loss)(logits, tokens(2, 4))
