"""Known answers to `BertLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import bert as right

BANK = Bank("BertLayer", right, globals())

BANK.changes("""
pre_norm
    - x = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    + h = self.norm1(x)
    + x = x + self.dropout(self.attention(h, h, h, mask=mask)[0])
    ~ chunks = x.split → chunks = self.norm2(x).split
    ~ self.norm2(x + self.dropout(h)) → x + self.dropout(h)
    The norms come before their sublayers, as in GPT-2. In BERT each comes after the sum.
second_pre_norm
    ~ chunks = x.split → chunks = self.norm2(x).split
    ~ self.norm2(x + self.dropout(h)) → x + self.dropout(h)
    norm2 comes before the feed-forward network. It should come after the sum, like norm1.
first_norm_forgotten
    - self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    + x + self.dropout(self.attention(x, x, x, mask=mask)[0])
    There is no norm after attention: norm1 is not used.
second_norm_forgotten: self.norm2(x + self.dropout(h)) → x + self.dropout(h)
    There is no norm after the feed-forward network: norm2 is not used.
one_norm_for_both: self.norm2(x + → self.norm1(x +
    norm1 serves both sublayers, and norm2 learns nothing.
norms_swapped
    ~ self.norm1(x + → self.norm0(x +
    ~ self.norm2(x + → self.norm1(x +
    ~ self.norm0(x + → self.norm2(x +
    norm2 goes with attention and norm1 with the feed-forward; their numbers should follow the order
    of the sublayers.
norm_of_what_is_added
    - self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    + x + self.norm1(self.dropout(self.attention(x, x, x, mask=mask)[0]))
    ~ self.norm2(x + self.dropout(h)) → x + self.norm2(self.dropout(h))
    What a sublayer gives is normalised, and then added. It is the sum that should be normalised.
residual_forgotten
    ~ self.norm1(x + self.dropout → self.norm1(self.dropout
    ~ self.norm2(x + self.dropout → self.norm2(self.dropout
    Nothing is added to the input: the residual connections are missing.
only_the_feed_forward_has_a_residual: self.norm1(x + → self.norm1(
    Attention has no residual connection: its result replaces x instead of being added.
only_attention_has_a_residual: self.norm2(x + self.dropout(h)) → self.norm2(self.dropout(h))
    The feed-forward has no residual connection: its result replaces x instead of being added.
residual_of_the_input
    ~ x = self.norm1 → given = x; x = self.norm1
    ~ self.norm2(x + → self.norm2(given +
    The second sum adds the layer's input. It should add what the first sublayer has made of it.
parallel
    ~ x = self.norm1 → given = x; x = self.norm1
    ~ chunks = x.split → chunks = given.split
    Both sublayers work on the layer's input. The feed-forward should work on what attention has
    made of it.
feed_forward_first
    - x = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    ~ return self.norm2(x + self.dropout(h)) → x = self.norm2(x + self.dropout(h))
    > result = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    The feed-forward comes before attention. A position first gathers, then thinks.
eps_of_torch: eps=1e-12 → eps=1e-5 ×2
    The norms have torch's eps, 1e-5. BERT's is 1e-12, and where the sums are small, that shows.
eps_of_torch_in_norm1
    - self.norm1 = nn.LayerNorm(d_model, eps=1e-12)
    + self.norm1 = nn.LayerNorm(d_model)
    norm1 has torch's eps, 1e-5. BERT's is 1e-12 in both norms, and where the sums are small, that
    shows.
eps_of_torch_in_norm2
    - self.norm2 = nn.LayerNorm(d_model, eps=1e-12)
    + self.norm2 = nn.LayerNorm(d_model)
    norm2 has torch's eps, 1e-5. BERT's is 1e-12 in both norms, and where the sums are small, that
    shows.
eps_too_large: eps=1e-12 → eps=1e-6 ×2
    The norms' eps is 1e-6. BERT's is 1e-12, and where the sums are small, that shows.
relu_for_gelu: F.gelu → F.relu
    The feed-forward uses ReLU, as in the Transformer of 2017. BERT has GELU.
tanh_gelu: F.gelu(self.linear1(chunk)) → F.gelu(self.linear1(chunk), approximate="tanh")
    GELU is computed by the tanh formula, which only comes near it: the numbers are off in the
    fourth digit. Here it should be the exact one.
sigmoid_gelu: F.gelu( → (lambda x: x * torch.sigmoid(1.702 * x))(
    GELU is computed as x·σ(1.702 x), which only comes near it: the numbers are off in the second
    digit. Here it should be the exact one.
silu_for_gelu: F.gelu → F.silu
    The feed-forward uses SiLU, x·σ(x). BERT has GELU.
activation_forgotten: F.gelu(self.linear1(chunk)) → self.linear1(chunk)
    There is no activation between linear1 and linear2, and two linear layers in a row amount to
    one.
activation_behind_linear2
    - self.linear2(F.gelu(self.linear1(chunk)))
    + F.gelu(self.linear2(self.linear1(chunk)))
    The GELU comes after linear2 instead of between the two linear layers.
chunk_dropped: x.split(self.chunk_size or x.shape[1], dim=1) → x.split(x.shape[1], dim=1)
    chunk_size makes no difference: everything goes through the feed-forward in one go.
chunks_along_the_batch
    ~ x.split(self.chunk_size or x.shape[1], dim=1) → x.split(self.chunk_size or x.shape[0], dim=0)
    ~ for chunk in chunks], dim=1) → for chunk in chunks], dim=0)
    The chunks are cut along the batch. They should be cut along axis 1, the positions.
joined_along_the_batch
    - h = torch.cat([self.linear2(F.gelu(self.linear1(chunk))) for chunk in chunks], dim=1)
    + h = torch.cat([self.linear2(F.gelu(self.linear1(chunk))) for chunk in chunks], dim=0)
    + h = h.reshape(x.shape)
    The chunks are joined along the batch, and then cut anew: positions change their places.
chunks_joined_backwards: for chunk in chunks] → for chunk in chunks[::-1]]
    The chunks are joined in the opposite order, so positions change their places.
number_of_chunks
    - x.split(self.chunk_size or x.shape[1], dim=1)
    + x.chunk(self.chunk_size or 1, dim=1)
    chunk_size is taken for the number of chunks. It is the number of positions in one.
last_chunk_left_out
    - h = torch.cat
    + size = self.chunk_size or x.shape[1]
    + whole = chunks[: max(x.shape[1] // size, 1)]
    + h = torch.cat
    ~ for chunk in chunks], dim=1) → for chunk in whole], dim=1)
    ~ return self.norm2 → h = F.pad(h, (0, 0, 0, x.shape[1] - h.shape[1])); return self.norm2
    The last chunk is left out where chunk_size does not divide n: its positions get nothing from
    the feed-forward network.
only_linear1_in_chunks
    - h = torch.cat([self.linear2(F.gelu(self.linear1(chunk))) for chunk in chunks], dim=1)
    + h = self.linear2(F.gelu(torch.cat([self.linear1(chunk) for chunk in chunks], dim=1)))
    Only linear1 works in chunks. Its results are joined before the GELU, so the memory that chunks
    save is used all the same.
chunks_must_divide
    + if self.chunk_size and x.shape[1] % self.chunk_size:
    +     raise ValueError("chunk_size does not divide n")
    A chunk_size that does not divide n is refused. The last chunk may be shorter.
chunk_norm_as_well
    - chunks = x.split(self.chunk_size or x.shape[1], dim=1)
    + chunks = x.split(self.chunk_size or x.shape[1], dim=1)
    + chunks = [chunk - chunk.mean(1, keepdim=True) for chunk in chunks]
    What a chunk's positions have in common is taken away first. The feed-forward network works on
    each position alone.
mask_ignored: mask=mask → mask=None
    The mask does not reach attention: padding is read like any token.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted on its way to attention. In both places, True means may attend.
always_causal
    + n = x.shape[1]
    + past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
    + mask = past if mask is None else mask & past
    The layer makes a causal mask of its own, as a GPT does. BERT sees both sides; what may not be
    seen is for the mask to say.
heads_fixed
    - MultiHeadAttention(d_model, num_heads, dropout)
    + MultiHeadAttention(d_model, 1, dropout)
    The attention has one head whatever num_heads is.
no_dropout: self.dropout( → ( ×2
    What the sublayers add is never dropped; only the attention weights are.
no_dropout_behind_attention: x + self.dropout(self.attention → x + (self.attention
    What attention adds is never dropped; only what the feed-forward adds is.
no_dropout_behind_the_feed_forward: x + self.dropout(h) → x + h
    What the feed-forward adds is never dropped; only what attention adds is.
no_dropout_on_the_weights
    - MultiHeadAttention(d_model, num_heads, dropout)
    + MultiHeadAttention(d_model, num_heads)
    The attention weights are never dropped. BERT drops them in training: leave `__init__` as given.
nothing_dropped
    ~ self.dropout( → ( ×2
    ~ num_heads, dropout) → num_heads)
    Nothing is ever dropped: neither what the sublayers add nor attention weights.
dropout_behind_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, and therefore on the residual path as well. Only what a sublayer adds
    should be dropped.
dropout_behind_the_norm
    - self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    + self.dropout(self.norm1(x + self.attention(x, x, x, mask=mask)[0]))
    ~ self.norm2(x + self.dropout(h)) → self.dropout(self.norm2(x + h))
    Dropout acts behind the norms. It should act on what a sublayer gives, before that is added.
dropout_before_attention_as_well
    ~ x = self.norm1( → d = self.dropout(x); x = self.norm1(
    ~ self.attention(x, x, x, → self.attention(d, d, d,
    What goes into attention is dropped as well. Dropout acts on what a sublayer adds, and on the
    attention weights.
chunks_of_one_in_one_go
    - x.split(self.chunk_size or x.shape[1], dim=1)
    + x.split(self.chunk_size if self.chunk_size > 1 else x.shape[1], dim=1)
    A chunk_size of 1 is treated like 0: everything goes through the feed-forward in one go.
small_chunks_in_one_go
    - x.split(self.chunk_size or x.shape[1], dim=1)
    + x.split(self.chunk_size if self.chunk_size > 2 else x.shape[1], dim=1)
    A small chunk_size is treated like 0: everything goes through the feed-forward in one go.
dropout_in_eval: x + self.dropout(h) → x + F.dropout(h, self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
whole_tokens_dropped: nn.Dropout(dropout) → nn.Dropout1d(dropout)
    Dropout takes everything that is added to a token at a time. It should take single numbers.
gradient_cut: chunks = x.split → chunks = x.detach().split
    What goes into the feed-forward network is detached, so attention does not learn from it.
rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
adds_in_place
    - self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
    + self.norm1(x.add_(self.dropout(self.attention(x, x, x, mask=mask)[0])))
    `x.add_(…)` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.BertLayer):
    """The layer in small parts."""

    def see(self, x, mask):
        return self.attention(x, x, x, mask=mask, need_weights=False)[0]

    def think(self, x):
        return self.linear2(F.gelu(self.linear1(x)))

    def forward(self, x, mask=None):
        x = self.norm1(self.dropout(self.see(x, mask)) + x)
        if self.chunk_size == 0:
            return self.norm2(self.dropout(self.think(x)) + x)
        h = [self.think(part) for part in torch.split(x, self.chunk_size, 1)]
        return self.norm2(self.dropout(torch.cat(h, 1)) + x)


@BANK.right
class layer_in_small_parts(_Parts):
    pass


@BANK.right
class layer_of_the_blocks(blocks.BertLayer):
    pass


@BANK.right
class with_attention_by_hand(_Parts):
    def see(self, x, mask):
        H = self.attention.num_heads
        parts = self.attention.W_q(x), self.attention.W_k(x), self.attention.W_v(x)
        q, k, v = (p.unflatten(-1, (H, -1)).transpose(-3, -2) for p in parts)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        some = None
        if mask is None:
            weights = scores.softmax(-1)
        else:
            mask = mask.expand_as(scores)
            some = mask.any(-1, keepdim=True)
            weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
        weights = F.dropout(weights, self.attention.dropout, self.training)
        out = self.attention.W_o((weights @ v).transpose(1, 2).flatten(2))
        return out if some is None else out * some.any(1)


@BANK.right
class with_gelu_written_out(_Parts):
    def think(self, x):
        h = x @ self.linear1.weight.mT + self.linear1.bias
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return h @ self.linear2.weight.mT + self.linear2.bias


@BANK.right
class dropout_inside_as_well(_Parts):
    """As torch's own layer and those of chapter 7 have it."""

    def think(self, x):
        return self.linear2(self.dropout(F.gelu(self.linear1(x))))


@BANK.right
class in_other_parts(nn.Module):
    """Two dropouts and an activation as modules of their own; chunks by their first positions."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, chunk_size=0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, 1e-12) for _ in range(2))
        self.attention = blocks.MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.activation = nn.GELU()
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.size = chunk_size

    def forward(self, x, mask=None):
        attended, _ = self.attention(query=x, key=x, value=x, mask=mask)
        x = self.norm1(torch.add(x, self.drop1(attended)))
        n = x.shape[1]
        size = self.size if self.size > 0 else n
        h = []
        for start in range(0, n, size):
            wide = self.activation(self.linear1(x[:, start : start + size]))
            h.append(self.linear2(wide))
        return self.norm2(torch.add(x, self.drop2(torch.cat(h, dim=-2))))


@BANK.right
class wide_inside(_Parts):
    def think(self, x):
        hidden = x.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        out = F.gelu(hidden) @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(x.dtype)


forgotten(BANK, "x")
