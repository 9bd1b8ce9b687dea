"""Facts about `pack`, found by other means than the reference."""

import pytest
import torch
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention
from solutions.masking import pack


def test_a_case_by_hand():
    texts = [torch.tensor(ids) for ids in ([5, 6, 7], [8, 9], [], [4], [3])]
    tokens, positions, mask, places = pack(texts, 4, causal=True)
    assert tokens.tolist() == [[5, 6, 7, 4], [8, 9, 3, 0]]
    assert positions.tolist() == [[0, 1, 2, 0], [0, 1, 0, 0]]
    assert places.tolist() == [[0, 0], [1, 0], [0, 3], [0, 3], [1, 2]]
    assert mask[:, 0].int().tolist() == [
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
    ]


@pytest.mark.parametrize("causal", [False, True])
def test_a_model_does_not_notice(causal):
    torch.manual_seed(5)
    words, places_of = nn.Embedding(9, 8).double(), nn.Embedding(12, 8).double()
    layers = [MultiHeadAttention(8, 2).double() for _ in range(2)]

    def outputs(tokens, positions, mask):
        x = words(tokens) + places_of(positions)
        for layer in layers:
            x = x + layer(x, x, x, mask)[0]
        return x

    texts = [torch.randint(9, (n,)) for n in torch.randint(1, 13, (30,)).tolist()]
    *packed, places = pack(texts, 12, causal)
    together = outputs(*packed)
    for text, (row, start) in zip(texts, places.tolist(), strict=True):
        mask = torch.ones(len(text), len(text), dtype=torch.bool)
        alone = outputs(text[None], torch.arange(len(text))[None], mask.tril() if causal else mask)
        torch.testing.assert_close(together[row, start : start + len(text)], alone[0])


def test_no_sequence_would_have_fitted_further_up():
    """First fit, told by its result: in the given order, every row above was too full by then."""
    sizes = torch.randint(1, 10, (200,), generator=torch.Generator().manual_seed(3)).tolist()
    tokens, _, _, places = pack([torch.ones(n, dtype=torch.long) for n in sizes], 9)
    full = [0] * len(tokens)
    for n, (row, start) in zip(sizes, places.tolist(), strict=True):
        assert all(used + n > 9 for used in full[:row]) and start == full[row]
        full[row] += n
    assert full == tokens.sum(1).tolist() and min(full) > 0
