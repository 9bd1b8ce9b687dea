"""Known answers to `AttentionDecoder`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("AttentionDecoder", right, globals())
BANK.read()


class _Decoder(right.AttentionDecoder):
    """The scores, and a softmax in which a row of False gives zeros."""

    def attend(self, state, memory, mask):
        hidden = torch.tanh(self.W_k(memory) + self.W_q(state).unsqueeze(1))
        return _weights(self.w_v(hidden).squeeze(2), mask)


def _weights(scores, mask):
    if mask is None:
        return F.softmax(scores, dim=1)
    empty = ~mask.any(dim=1, keepdim=True)
    scores = torch.where(mask | empty, scores, torch.full_like(scores, -1e30))
    return F.softmax(scores, dim=1).masked_fill(empty, 0.0)


@BANK.right
class OutputAtTheEnd(_Decoder):
    """The logits of all steps at once, and the products as einsum."""

    def forward(self, target, memory, state, memory_mask=None):
        read, seen = [], []
        for t in range(target.shape[1]):
            seen.append(self.attend(state, memory, memory_mask))
            context = torch.einsum("bn,bnd->bd", seen[-1], memory)
            state = self.cell(torch.hstack([self.embedding(target[:, t]), context]), state)
            read.append(torch.hstack([state, context]))
        return self.output(torch.stack(read, 1)), torch.stack(seen, 1)


@BANK.right
class WrittenIntoTensors(_Decoder):
    def forward(self, target, memory, state, memory_mask=None):
        (B, m), n = target.shape, memory.shape[1]
        logits = memory.new_zeros(B, m, self.output.out_features)
        weights = memory.new_zeros(B, m, n)
        embedded = self.embedding(target)
        for t in range(m):
            row = self.w_v(torch.tanh(self.W_q(state)[:, None] + self.W_k(memory)))[..., 0]
            if memory_mask is not None:
                row = row.masked_fill(~memory_mask, float("-inf"))
            row = row.softmax(-1).nan_to_num(0.0)
            context = torch.bmm(row.unsqueeze(1), memory)[:, 0]
            state = self.cell(torch.cat((embedded[:, t], context), 1), state)
            logits[:, t] = self.output(torch.cat((state, context), 1))
            weights[:, t] = row
        return logits, weights


@BANK.right
class OfTheParts(_Decoder):
    """The matrices of cell and output, cut up; the cell by formula."""

    def forward(self, target, memory, state, memory_mask=None):
        d_embed, d_hidden = self.embedding.embedding_dim, state.shape[1]
        of_token, of_context = self.cell.weight_ih.split([d_embed, memory.shape[2]], 1)
        of_state, of_seen = self.output.weight.split([d_hidden, memory.shape[2]], 1)
        logits, weights = [], []
        for ids in target.T:
            row = self.attend(state, memory, memory_mask)
            context = (row.unsqueeze(2) * memory).sum(1)
            left = self.embedding(ids) @ of_token.T + context @ of_context.T + self.cell.bias_ih
            r, z, n = left.chunk(3, 1)
            R, Z, N = F.linear(state, self.cell.weight_hh, self.cell.bias_hh).chunk(3, 1)
            z = torch.sigmoid(z + Z)
            state = (1 - z) * torch.tanh(n + torch.sigmoid(r + R) * N) + z * state
            logits.append(state @ of_state.T + context @ of_seen.T + self.output.bias)
            weights.append(row)
        return torch.stack(logits).transpose(0, 1), torch.stack(weights).transpose(0, 1)


@BANK.right
class ByTorchsKernel(_Decoder):
    """The context from torch's fused attention, with the scores as its mask."""

    def forward(self, target, memory, state, memory_mask=None):
        nothing = memory.new_zeros(len(memory), memory.shape[1], 1)
        steps = []
        for embedded in self.embedding(target).split(1, dim=1):
            hidden = (self.W_q(state)[:, None] + self.W_k(memory)).tanh()
            row = _weights((hidden @ self.w_v.weight[0]), memory_mask)
            scores = row.clamp_min(torch.finfo(row.dtype).tiny).log()[:, None]
            context = F.scaled_dot_product_attention(nothing[:, :1], nothing, memory, scores)[:, 0]
            if memory_mask is not None:
                context = context * memory_mask.any(1, keepdim=True)
            state = self.cell(torch.cat([embedded[:, 0], context], 1), state)
            steps.append((self.output(torch.cat([state, context], 1)), row))
        logits, rows = zip(*steps, strict=True)
        return torch.stack(logits, 1), torch.stack(rows, 1)
