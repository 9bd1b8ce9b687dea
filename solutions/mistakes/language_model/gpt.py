"""Known answers to `GPT`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import language_model as right
from solutions.language_model import DecoderBlock

BANK = Bank("GPT", right, globals())
BANK.read()


class _Parts(right.GPT):
    """The model in small parts."""

    def embed(self, ids):
        place = torch.arange(ids.shape[1], device=ids.device)
        return self.dropout(self.tokens(ids) + self.positions(place))

    def mask(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    def score(self, h):
        return F.linear(h, self.tokens.weight)

    def forward(self, ids):
        n = ids.shape[1]
        if n > self.context_size:
            raise ValueError(f"{n} > {self.context_size}")
        x, mask = self.embed(ids), self.mask(n, ids.device)
        for block in self.blocks:
            x = block(x, mask)
        return self.score(self.norm(x))


@BANK.right
class gpt_of_the_blocks(_Parts):
    """Its blocks are the course's; all the rest is its own."""

    def __init__(self, vocab_size, context_size, d_model, num_heads, num_layers, dropout=0.0):
        nn.Module.__init__(self)
        self.context_size = context_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_size, d_model)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)
        sizes = (d_model, num_heads, 4 * d_model, dropout)
        self.blocks = nn.ModuleList([blocks.DecoderBlock(*sizes) for _ in range(num_layers)])


@BANK.right
class gpt_with_rows_of_positions(_Parts):
    def embed(self, ids):
        vectors = self.tokens.weight[ids] + self.positions.weight[: ids.shape[1]]
        return F.dropout(vectors, self.dropout.p, self.training)

    def score(self, h):
        return torch.einsum("bnd,vd->bnv", h, self.tokens.weight)


@BANK.right
class gpt_with_a_mask_in_a_buffer(_Parts):
    def __init__(self, vocab_size, context_size, *sizes, **kwargs):
        super().__init__(vocab_size, context_size, *sizes, **kwargs)
        past = torch.ones(context_size, context_size, dtype=torch.bool).tril()
        self.register_buffer("past", past)

    def mask(self, n, device):
        return self.past[:n, :n]


@BANK.right
class gpt_with_a_mask_by_comparison(_Parts):
    def mask(self, n, device):
        place = torch.arange(n, device=device)
        return (place[None, :] <= place[:, None])[None, None]


@BANK.right
class gpt_with_a_tied_linear_layer(_Parts):
    """A linear layer for the output, made anew so that the state dict has no second name for it."""

    def score(self, h):
        head = nn.Linear(*self.tokens.weight.shape[::-1], bias=False, device="meta")
        head.weight = self.tokens.weight
        return head(h)
