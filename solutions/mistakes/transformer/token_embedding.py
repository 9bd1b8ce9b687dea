"""Known answers to `TokenEmbedding`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("TokenEmbedding", right, globals())
BANK.read()


@BANK.right
class embedding_of_the_blocks(blocks.TokenEmbedding):
    pass


@BANK.right
class embedding_by_one_hot(right.TokenEmbedding):
    def forward(self, ids):
        rows = F.one_hot(ids, len(self.weight)).to(self.weight) @ self.weight
        return rows * self.weight.shape[1] ** 0.5

    def logits(self, h):
        return torch.einsum("...d,vd->...v", h, self.weight)


@BANK.right
class embedding_scaled_before(right.TokenEmbedding):
    def forward(self, ids):
        return F.embedding(ids, self.weight * math.sqrt(self.weight.shape[1]))

    def logits(self, h):
        return F.linear(h, self.weight)


@BANK.right
class embedding_gathered(right.TokenEmbedding):
    def forward(self, ids):
        rows = self.weight.index_select(0, ids.reshape(-1))
        return rows.view(*ids.shape, -1) * self.weight.new_tensor(self.weight.shape[1]).sqrt()

    def logits(self, h):
        return (h.unsqueeze(-2) * self.weight).sum(-1)
