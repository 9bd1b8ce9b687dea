"""What chapter 4's page says of its own cells: its sentences, a prediction, a hard problem."""

import math
from pathlib import Path

import pytest
import torch
from parity import some_mask

from benchmarks.page_cells import run_cells
from solutions import masking as ref

FILE = Path(__file__).parents[2] / "book" / "04_masking.md"
PAGE = FILE.read_text("utf-8")
pytestmark = pytest.mark.seed(31)


def test_what_a_mask_does_to_the_two_wells():
    scope = run_cells(FILE, ['features = {"sings"'], {"torch": torch} | vars(ref))
    meant = {}
    for name, mask in scope["masks_for_well"].items():
        output, _ = ref.masked_attention(scope["x"], scope["x"], scope["x"], mask)
        meant[name] = output[0, 2], output[1, 1]  # music, water
    (music, water), _ = meant["no mask"]
    assert music < water
    (music, water), (other, deep) = meant["padding hidden"]
    assert music > water and deep > other
    assert torch.equal(meant["and the future"][0], meant["padding hidden"][0])
    music, water = meant["and the future"][1]
    assert music == water


def test_a_small_leak_grows_with_depth():
    scope = {"torch": torch, "one_too_far": torch.ones(8, 8).tril(1).bool()} | vars(ref)
    scope["x"], scope["other"] = torch.randn(2, 8, 16)
    scope = run_cells(FILE, ["def three_layers(x):"], scope)
    last = [int(row.nonzero().max()) for row in scope["reach"]]
    assert last == [min(i + 3, 7) for i in range(8)]


def test_two_machines_together_give_the_whole():
    """The hard problem's model answer, with queries that see nothing on one machine or on both."""
    query, key, value = (torch.randn(n, 8, dtype=torch.float64) for n in (6, 10, 10))
    query[0] *= 1e3
    mask = some_mask(6, 10)
    mask[1], mask[2, :6], mask[3, 6:] = False, False, False
    parts = []
    for own in (slice(0, 6), slice(6, 10)):
        scores = (query @ key[own].mT / math.sqrt(8)).masked_fill(~mask[:, own], -math.inf)
        output, _ = ref.masked_attention(query, key[own], value[own], mask[:, own])
        parts.append((output, scores.logsumexp(-1)))
    (o_a, s_a), (o_b, s_b) = parts
    w = ref.masked_softmax(torch.stack([s_a, s_b], -1))
    whole, _ = ref.masked_attention(query, key, value, mask)
    torch.testing.assert_close(w[..., :1] * o_a + w[..., 1:] * o_b, whole, atol=1e-12, rtol=0)
    assert not whole[1].any() and whole[2].any() and whole[3].any()
    for quoted in ("w[..., :1] * o_A + w[..., 1:] * o_B", "torch.stack([s_A, s_B], -1)"):
        assert quoted in PAGE
