"""Recurrent networks that read and write sequences, as D. Bahdanau et al. (2015) have them."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import fused_attention


class GRUEncoder(nn.Module):
    """Reads a sequence of tokens from left to right and keeps every state that it goes through.

    Parts: `embedding` (`nn.Embedding`) and `gru` (`nn.GRU`, one layer). Padding, with `pad_id`,
    stands at the end of a row.
    """

    def __init__(self, vocab_size: int, d_embed: int, d_hidden: int, pad_id: int = 0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_embed)
        self.gru = nn.GRU(d_embed, d_hidden, batch_first=True)

    def forward(
        self, source: Int[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n d_hidden"], Float[Tensor, "batch d_hidden"]]:
        """source `(B, n)` → all states `(B, n, d_hidden)`, and that at each row's last token."""
        states, _ = self.gru(self.embedding(source))
        last = (source != self.pad_id).sum(dim=1).clamp(min=1) - 1
        return states, states[torch.arange(len(source), device=source.device), last]


class AttentionDecoder(nn.Module):
    """A recurrent decoder with additive attention: `decoder(target, memory, state)`.

    Arguments and parameters are those of chapter 8's `AttentionDecoder`.
    """

    def __init__(self, vocab_size: int, d_embed: int, d_hidden: int, d_memory: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embed)
        self.W_q = nn.Linear(d_hidden, d_hidden, bias=False)
        self.W_k = nn.Linear(d_memory, d_hidden, bias=False)
        self.w_v = nn.Linear(d_hidden, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_memory, d_hidden)
        self.output = nn.Linear(d_hidden + d_memory, vocab_size)

    def forward(
        self,
        target: Int[Tensor, "batch m"],
        memory: Float[Tensor, "batch n d_memory"],
        state: Float[Tensor, "batch d_hidden"],
        memory_mask: Bool[Tensor, "batch n"] | None = None,
    ) -> tuple[Float[Tensor, "batch m vocab_size"], Float[Tensor, "batch m n"]]:
        """Logits `(B, m, vocab_size)` and weights `(B, m, n)` of all steps.

        target `(B, m)`, already shifted; memory `(B, n, d_memory)`; state `(B, d_hidden)`; the mask
        `(B, n)` is boolean, True = *may attend*.
        """
        mask = None if memory_mask is None else memory_mask.unsqueeze(1)
        columns, found = (memory.shape[-1], memory.shape[1]), []
        # The weights come along as what the attention gives the rows of the identity.
        looked_up = torch.cat([memory, _identities(memory)], dim=-1)  # (B, n, d_memory + n)
        for x in self.embedding(target).movedim(1, 0):
            # With one query for all, w_v √d_hidden, dot products are the additive scores.
            keys = torch.tanh(self.W_k(memory).add(self.W_q(state).unsqueeze(1)))
            query = self.w_v.weight.mul(keys.shape[-1] ** 0.5).expand(len(x), 1, -1)
            context, weights = fused_attention(query, keys, looked_up, mask)[:, 0].split(columns, 1)
            state = self.cell(torch.hstack([x, context]), state)
            found.append((torch.hstack([state, context]), weights))
        read, weights = (torch.stack(parts, 1) for parts in zip(*found, strict=True))
        return self.output(read), weights


def _identities(memory: Tensor) -> Tensor:
    n = memory.shape[1]
    return torch.eye(n, dtype=memory.dtype, device=memory.device).expand(len(memory), n, n)
