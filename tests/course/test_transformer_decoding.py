"""Chapter 7's loss, rate and decoding against torch's loss, exhaustive search, and plain Python."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import PRECISION, assert_same_gradients, close, tokens
from torch import nn

from attention_by_hand.blocks import noam_rate
from solutions import transformer as ref

D, H, D_FF = 8, 2, 12
pytestmark = pytest.mark.seed(29)


@PRECISION
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("pad_id", [0, 3, -100])
def test_the_loss_is_torchs_forward_and_backward(dtype, within, smoothing, pad_id):
    logits = torch.randn(3, 5, 6, dtype=dtype, requires_grad=True)
    target = torch.randint(0, 6, (3, 5))
    target[0, 3:], target[1, 1:] = pad_id, pad_id
    ours = ref.label_smoothed_cross_entropy(logits, target, smoothing, pad_id)
    theirs = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )
    assert close(ours, theirs, within)
    mine, wanted = (torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs))
    assert_same_gradients({"logits": mine}, {"logits": wanted}, within)
    assert (mine[target == pad_id] == 0).all()


def test_nothing_but_padding_costs_nothing():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = ref.label_smoothed_cross_entropy(logits, torch.zeros(2, 3, dtype=torch.long))
    assert loss.item() == 0.0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


# --- the rate -----------------------------------------------------------------------------------


def test_the_rate_by_hand():
    assert noam_rate(4, 16, 4) == pytest.approx(1 / 8)  # 16^−½ · 4^−½
    assert noam_rate(1, 16, 4) == pytest.approx(1 / 32)
    assert noam_rate(16, 16, 4) == pytest.approx(1 / 16)
    assert noam_rate(4000, 512) == pytest.approx(6.987712e-4)  # (512 · 4000)^−½


@settings(max_examples=60)
@given(st.integers(1, 5000), st.integers(1, 300))
def test_the_rate_rises_to_its_peak_at_warmup_and_falls(step, warmup):
    here, after = noam_rate(step, 64, warmup), noam_rate(step + 1, 64, warmup)
    assert (after > here) == (step < warmup)
    assert here <= noam_rate(warmup, 64, warmup) * (1 + 1e-12)


# --- decoding -----------------------------------------------------------------------------------


class Table(nn.Module):
    """Log-probabilities of the next token by all that is written: a random table of histories."""

    def __init__(self, vocab, depth, seed, pad_id=-1, sharp=1.5):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.vocab, self.pad_id, self.calls = vocab, pad_id, 0
        self.tables = [
            sharp * torch.randn(vocab**n, vocab, generator=generator) for n in range(depth)
        ]

    def forward(self, source, ids):
        assert len(source) == len(ids)
        self.calls += 1
        out = []
        for n in range(ids.shape[1]):
            place = torch.zeros(len(ids), dtype=torch.long)
            for i in range(1, n + 1):
                place = place * self.vocab + ids[:, i].clamp(min=0)
            out.append(self.tables[n][place])
        return torch.stack(out, 1)


def texts(vocab, eos, max_len):
    """Every text there is: it ends with eos, or is max_len long."""
    for n in range(1, max_len + 1):
        for ids in itertools.product(range(vocab), repeat=n):
            if eos not in ids[:-1] and (ids[-1] == eos or n == max_len):
                yield ids


def scored(model, ids, alpha):
    """log p of a text, token by token, over the length penalty."""
    total = 0.0
    for i, token in enumerate(ids):
        written = torch.tensor([[0, *ids[:i]]])
        total += model(torch.zeros(1, 1), written)[0, -1].log_softmax(-1)[token].item()
    return total / ((5 + len(ids)) / 6) ** alpha


SOURCE = torch.zeros(1, 1, dtype=torch.long)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("max_len", [1, 2, 3])
def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_three_tokens(seed, max_len):
    """Three tokens, three beams: exhaustive by construction up to two steps.

    With three steps, one of nine beginnings is not followed; it never held the best text here.
    """
    model = Table(3, 3, seed)
    best = max(texts(3, 2, max_len), key=lambda ids: scored(model, ids, 0.6))
    ids, score = ref.beam_search(model, SOURCE, 0, 2, max_len, beam_size=3)[0]
    assert ids.tolist() == [*best]
    assert score == pytest.approx(scored(model, best, 0.6), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_wider_than_everything_returns_all_texts_in_order(seed, alpha):
    model = Table(3, 3, seed)
    every = sorted(texts(3, 1, 3), key=lambda ids: -scored(model, ids, alpha))
    found = ref.beam_search(model, SOURCE, 0, 1, 3, beam_size=99, length_penalty=alpha)
    assert [tuple(ids.tolist()) for ids, _ in found] == every
    for ids, score in found:
        assert score == pytest.approx(scored(model, tuple(ids.tolist()), alpha), abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_one_beam_is_greedy(seed):
    model = Table(5, 6, seed)
    greedy = ref.greedy_decode(model, SOURCE, 0, 3, 6)
    ((ids, _),) = ref.beam_search(model, SOURCE, 0, 3, 6, beam_size=1)
    assert ids.tolist() == greedy[0].tolist()


def test_two_beams_see_past_a_tempting_first_word():
    """p(a) = 0.6 but then 0.5 at best: 0.3. p(b) = 0.4, then 0.9: 0.36."""
    model = Table(4, 3, 0)
    never = 1e-9
    model.tables[0] = torch.tensor([[never, 0.6, 0.4, never]]).log()
    model.tables[1] = torch.full((4, 4), 0.25).log()
    model.tables[1][1] = torch.tensor([0.5, 0.5, never, never]).log()
    model.tables[1][2] = torch.tensor([0.9, 0.1, never, never]).log()
    assert ref.greedy_decode(model, SOURCE, 0, 3, 2)[0].tolist()[0] == 1
    ids, score = ref.beam_search(model, SOURCE, 0, 3, 2, beam_size=2, length_penalty=0.0)[0]
    assert ids.tolist() == [2, 0]
    assert score == pytest.approx(math.log(0.36), abs=1e-5)


def test_greedy_rows_do_not_see_each_other_and_stop_together():
    model = ref.Transformer(9, 7, D, H, 1, D_FF)
    source = tokens(6, 5)
    together = ref.greedy_decode(model, source, 1, 2, 8)
    for row, one in zip(together.tolist(), source, strict=True):
        alone = ref.greedy_decode(model, one[None], 1, 2, 8)[0].tolist()
        assert row == alone + [0] * (len(row) - len(alone))


class Clock(nn.Module):
    """Row i writes eos (2) as its token number `ends[i]`, and 5 before; counts its calls."""

    def __init__(self, ends):
        super().__init__()
        self.ends, self.pad_id, self.calls, self.seen = torch.tensor(ends), 7, 0, []
        self.inside = nn.Dropout()

    def forward(self, source, ids):
        self.calls += 1
        self.seen.append((self.training, torch.is_grad_enabled()))
        due = self.ends[:, None] == torch.arange(1, ids.shape[1] + 1)
        return F.one_hot(torch.where(due, 2, 5), 8).float()


def test_greedy_pads_behind_eos_and_asks_no_more_than_it_must():
    model = Clock([2, 1, 3])
    ids = ref.greedy_decode(model, torch.zeros(3, 1), 1, 2, 99)
    assert ids.tolist() == [[5, 2, 7], [2, 7, 7], [5, 5, 2]]
    assert ids.dtype == torch.long
    assert model.calls == 3
    assert ref.greedy_decode(Clock([9]), torch.zeros(1, 1), 1, 2, 4).tolist() == [[5, 5, 5, 5]]


@pytest.mark.parametrize("training", [True, False])
def test_decoding_is_done_in_eval_mode_and_every_mode_comes_back(training):
    for decode in (ref.greedy_decode, ref.beam_search):
        model = Clock([3]).train(training)
        model.inside.train(not training)
        decode(model, torch.zeros(1, 1), 1, 2, 5)
        assert set(model.seen) == {(False, False)}
        assert (model.training, model.inside.training) == (training, not training)
        assert torch.is_grad_enabled()


def test_two_beams_can_miss_the_text_of_one():
    """The chapter's hard problem: A X is pruned for B X and B Y, which then spread thin."""
    chances = {
        (): {"A": 0.55, "B": 0.45},
        ("A",): {"X": 0.3, "Y": 0.3, "P": 0.2, "Q": 0.2},
        ("B",): {"X": 0.5, "Y": 0.5},
    }
    letters = ["", *"ABXYPQ", *"0123456789"]
    eos, bos = 0, len(letters)

    class Language(nn.Module):
        pad_id = bos + 1

        def forward(self, source, ids):
            logits = torch.full((*ids.shape, len(letters)), -1e4)
            for row, tokens_read in enumerate(ids[:, 1:].tolist()):
                text = tuple(letters[i] for i in tokens_read)
                options = chances.get(text)
                if options is None:
                    spread = len(text) == 2 and text[0] == "B"
                    options = dict.fromkeys("0123456789", 0.1) if spread else {"": 1.0}
                for letter, p in options.items():
                    logits[row, -1, letters.index(letter)] = math.log(p)
            return logits

    best = {size: ref.beam_search(Language(), SOURCE, bos, eos, 5, size, 0.0)[0] for size in (1, 2)}
    written = {size: "".join(letters[i] for i in ids) for size, (ids, _) in best.items()}
    assert written[1] in ("AX", "AY")
    assert written[2].startswith(("BX", "BY"))
    scores = {size: math.exp(score) for size, (_, score) in best.items()}
    assert scores == pytest.approx({1: 0.165, 2: 0.0225}, rel=1e-5)
