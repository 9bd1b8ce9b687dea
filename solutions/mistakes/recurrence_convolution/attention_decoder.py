"""Known answers to `AttentionDecoder`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("AttentionDecoder", right, globals())

BANK.changes("""
attention_with_the_new_state
    ~ logits, weights = [], [] → logits, weights, context = [], [], torch.zeros_like(memory[:, 0])
    - for embedded in self.embedding(target).unbind(dim=1):
    + for embedded in self.embedding(target).unbind(dim=1):
    +     state = self.cell(torch.cat([embedded, context], dim=-1), state)
    - context = (attention[:, None] @ memory).squeeze(1)
    - state = self.cell(torch.cat([embedded, context], dim=-1), state)
    + context = (attention[:, None] @ memory).squeeze(1)
    The cell runs first, with the context of the step before, and its new state is the query. Here
    the query is the state before the step, and the cell reads the context that it finds.
attention_from_the_first_state
    ~ keys = self.W_k(memory) → keys, first = self.W_k(memory), state
    ~ self.W_q(state) → self.W_q(first)
    The query is the same at every step, the state to begin with: the decoder looks where it looked
    at first, whatever it has written since.
logits_from_the_old_state
    - state = self.cell(torch.cat([embedded, context], dim=-1), state)
    + old, state = state, self.cell(torch.cat([embedded, context], dim=-1), state)
    - self.output(torch.cat([state, context], dim=-1))
    + self.output(torch.cat([old, context], dim=-1))
    The logits are computed from the state before the step, which has not read the token yet. They
    come from the new one.
context_left_out_of_the_output
    - self.output(torch.cat([state, context], dim=-1))
    + self.output(torch.cat([state, 0 * context], dim=-1))
    The context is left out of the logits: `output` reads the new state and the context.
context_left_out_of_the_cell
    - self.cell(torch.cat([embedded, context], dim=-1), state)
    + self.cell(torch.cat([embedded, 0 * context], dim=-1), state)
    The context is left out of what the cell reads: the token and the context, side by side.
context_before_the_token
    ~ torch.cat([embedded, context], dim=-1) → torch.cat([context, embedded], dim=-1)
    The cell reads [context; embedding]. The token's vector comes first.
context_before_the_state
    ~ torch.cat([state, context], dim=-1) → torch.cat([context, state], dim=-1)
    The logits are computed from [context; new state]. The state comes first.
token_left_out_of_the_cell
    ~ torch.cat([embedded, context], dim=-1) → torch.cat([0 * embedded, context], dim=-1)
    The cell does not read the token.
state_not_carried
    - state = self.cell(torch.cat([embedded, context], dim=-1), state)
    + new = self.cell(torch.cat([embedded, context], dim=-1), state)
    ~ torch.cat([state, context], dim=-1) → torch.cat([new, context], dim=-1)
    The state is not carried on: every step starts from the state that was passed in.
starts_from_zeros: keys = self.W_k(memory) → keys, state = self.W_k(memory), torch.zeros_like(state)
    The state that is passed in is ignored: decoding starts from zeros, and the encoder's last word
    is lost.
own_words_read
    - for embedded in self.embedding(target).unbind(dim=1):
    + for t, embedded in enumerate(self.embedding(target).unbind(dim=1)):
    - scores = self.w_v(
    + embedded = self.embedding(logits[-1].argmax(-1)) if t else embedded
    + scores = self.w_v(
    From the second step on, the decoder reads its own likeliest token instead of the given one.
    That is for writing; here the true tokens are given (teacher forcing).
shifted_once_more
    - self.embedding(target).unbind(dim=1)
    + self.embedding(target.roll(1, 1)).unbind(dim=1)
    The target is shifted once more. It comes shifted: step t reads target[:, t].
memory_mask_ignored: if memory_mask is None: → if True:
    The mask is ignored: padding gets weight.
mask_inverted: ~memory_mask → memory_mask ; * memory_mask → * ~memory_mask
    True and False are swapped: only the padding is seen. True means may attend.
mask_after_the_softmax
    - scores = scores.masked_fill(~memory_mask, torch.finfo(scores.dtype).min)
    - attention = torch.softmax(scores, dim=-1) * memory_mask
    + attention = torch.softmax(scores, dim=-1) * memory_mask
    The forbidden weights are set to zero after the softmax, so the others do not sum to 1 any more.
mask_multiplies_the_scores
    - scores = scores.masked_fill(~memory_mask, torch.finfo(scores.dtype).min)
    - attention = torch.softmax(scores, dim=-1) * memory_mask
    + attention = torch.softmax(scores * memory_mask, dim=-1)
    The scores are multiplied by the mask. A score of 0 is no low one: padding still gets weight.
nan_where_nothing_is_seen
    ~ torch.finfo(scores.dtype).min → float("-inf")
    ~ torch.softmax(scores, dim=-1) * memory_mask → torch.softmax(scores, dim=-1)
    Where a memory is all padding, the weights are NaN: a softmax of −∞ alone is 0/0.
mean_where_nothing_is_seen
    ~ torch.softmax(scores, dim=-1) * memory_mask → torch.softmax(scores, dim=-1)
    Where a memory is all padding, its weights are equal, and the context is the mean of the
    padding. Both should be zero.
decoder_tanh_forgotten
    - torch.tanh(self.W_q(state)[:, None] + keys)
    + self.W_q(state)[:, None] + keys
    The tanh of the scores is missing. The query's part is then the same for all positions and
    cancels in the softmax: the decoder looks at the same place at every step.
query_not_projected: self.W_q(state) → state
    The state is added to the keys as it is: W_q is not used.
state_forgotten_in_the_scores: torch.tanh(self.W_q(state)[:, None] + keys) → torch.tanh(keys)
    The scores do not depend on the state, so all steps have the same weights.
multiplied_for_added: self.W_q(state)[:, None] + keys → self.W_q(state)[:, None] * keys
    Query and key are multiplied inside the tanh. Additive attention adds them.
dot_product_for_additive
    - self.w_v(torch.tanh(self.W_q(state)[:, None] + keys)).squeeze(-1)
    + (self.W_q(state)[:, None] * keys).sum(-1)
    The scores are dot products of W_q state and W_k memory_j. They should be
    w_vᵀ tanh(W_q state + W_k memory_j).
scores_scaled: keys)).squeeze(-1) → keys)).squeeze(-1) / keys.shape[-1] ** 0.5
    The scores are divided by a root, as those of dot products are. Additive scores are not.
softmax_over_the_batch
    - if memory_mask is None:
    -     attention = torch.softmax(scores, dim=-1)
    + if memory_mask is None:
    +     attention = torch.softmax(scores, dim=0)
    The softmax runs over the sequences of the batch, not over the positions.
softmax_forgotten
    - if memory_mask is None:
    -     attention = torch.softmax(scores, dim=-1)
    + if memory_mask is None:
    +     attention = scores
    Without a mask, the scores serve as weights: the softmax is missing.
scores_returned: weights.append(attention) → weights.append(scores)
    The scores are returned in the place of the weights.
steps_before_sequences
    - torch.stack(logits, dim=1), torch.stack(weights, dim=1)
    + torch.stack(logits), torch.stack(weights)
    Logits and weights are (m, B, …), with steps before sequences. The batch comes first.
last_step_only: > result = result[0][:, -1:], result[1][:, -1:]
    Only the last step is returned. There should be logits and weights for every step.
logits_only: > result = result[0]
    Only the logits are returned. The weights are wanted as well: (logits, weights).
probabilities_for_logits: > result = torch.softmax(result[0], dim=-1), result[1]
    The logits went through a softmax. The loss takes logits, and applies its own.
embedding_scaled
    - self.embedding(target)
    + (self.embedding.embedding_dim**0.5 * self.embedding(target))
    The embedded tokens are multiplied by √d_embed, as a Transformer does. This decoder takes them
    as they are.
decoder_squeezed: > result = result[0].squeeze(), result[1].squeeze()
    squeeze() without an axis removes every axis of size 1, even that of the batch.
memory_detached
    - keys = self.W_k(memory)
    + memory = memory.detach()
    + keys = self.W_k(memory)
    The memory is detached: the encoder gets no gradient and never learns.
weights_detached: (attention[:, None] @ memory) → (attention.detach()[:, None] @ memory)
    The weights are detached before they are applied: no gradient of the context reaches W_q, W_k
    and w_v, so the decoder hardly learns where to look.
detached_between_steps
    - weights.append(attention)
    + weights.append(attention)
    + state = state.detach()
    The state is detached after every step: the gradient of a late word does not reach the steps
    before it.
naive_softmax
    - if memory_mask is None:
    -     attention = torch.softmax(scores, dim=-1)
    + if memory_mask is None:
    +     attention = scores.exp() / scores.exp().sum(-1, keepdim=True)
    exp overflows where a score is large. torch's softmax guards against that.
sequences_mixed
    - state = self.cell(torch.cat([embedded, context], dim=-1), state)
    + state = self.cell(torch.cat([embedded, context], dim=-1), state).flip(0)
    The states of the batch are turned round after every step, so that sequences read each other's
    tokens.
reads_the_next_token
    - self.embedding(target).unbind(dim=1)
    + self.embedding(target.roll(-1, 1)).unbind(dim=1)
    Step t reads the token of step t + 1, the one that it is to predict.
decoder_state_overwritten
    > with torch.no_grad():
    >     _state.copy_(state)
    + _state = state
    The caller's state is overwritten with the last one. The caller may need it, for another target
    from the same source.
decoder_in_float32
    - keys = self.W_k(memory)
    + keys = self.W_k(memory)
    + dtype = memory.dtype
    ~ weights.append(attention) → weights.append(attention.float().to(dtype))
    The weights pass through float32, and lose half of float64's digits.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
""")


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


forgotten(BANK, "memory")
