"""Known answers to `DecoderBlock`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right

BANK = Bank("DecoderBlock", right, globals())

BANK.changes("""
post_norm
    - h = self.norm1(x)
    - x = x + self.dropout(self.attn(h, h, h, mask=mask, need_weights=False)[0])
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.dropout(self.linear2(h))
    + x = self.norm1(x + self.dropout(self.attn(x, x, x, mask=mask, need_weights=False)[0]))
    + h = self.dropout(F.gelu(self.linear1(x)))
    + return self.norm2(x + self.dropout(self.linear2(h)))
    The norms come after the sums, as in the Transformer of 2017. In GPT-2 each comes before its
    sublayer.
residual_of_the_normalised
    ~ x = x + self.dropout(self.attn → x = h + self.dropout(self.attn
    What attention gives is added to the normalised x. It should be added to x itself: there is no
    norm on the residual path.
second_residual_of_the_normalised
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    + x = self.norm2(x)
    + h = self.dropout(F.gelu(self.linear1(x)))
    What the feed-forward gives is added to the normalised x. It should be added to x itself: there
    is no norm on the residual path.
residual_forgotten: x + self.dropout( → self.dropout( ×2
    Nothing is added to the input: the residual connections are missing, and with them the path on
    which gradients reach the first layers undiminished.
only_attention_has_a_residual: return x + self.dropout → return self.dropout
    The feed-forward has no residual connection: its result replaces x instead of being added.
only_the_feed_forward_has_a_residual: x = x + self.dropout → x = self.dropout
    Attention has no residual connection: its result replaces x instead of being added.
parallel
    ~ self.linear1(self.norm2(x)) → self.linear1(self.norm2(given))
    ~ h = self.norm1(x) → given = x; h = self.norm1(x)
    Both sublayers work on the block's input. The feed-forward should work on what attention has
    made of it.
one_norm_for_both: self.norm2(x) → self.norm1(x)
    norm1 serves both sublayers, and norm2 learns nothing.
norms_swapped
    ~ self.norm1(x) → self.norm0(x)
    ~ self.norm2(x) → self.norm1(x)
    ~ self.norm0(x) → self.norm2(x)
    norm2 goes with attention and norm1 with the feed-forward; their numbers should follow the order
    of the sublayers.
second_norm_forgotten: self.linear1(self.norm2(x)) → self.linear1(x)
    The feed-forward reads x as it is: norm2 is not used.
first_norm_forgotten: h = self.norm1(x) → h = x
    Attention reads x as it is: norm1 is not used.
keys_not_normalised: self.attn(h, h, h → self.attn(h, x, x
    Only the queries are normalised; keys and values come from x as it is. In self-attention all
    three are the normalised x.
feed_forward_first
    - h = self.norm1(x)
    - x = x + self.dropout(self.attn(h, h, h, mask=mask, need_weights=False)[0])
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.dropout(self.linear2(h))
    + h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    + x = x + self.dropout(self.linear2(h))
    + h = self.norm1(x)
    + return x + self.dropout(self.attn(h, h, h, mask=mask, need_weights=False)[0])
    The feed-forward comes before attention. A position first gathers, then thinks.
relu_for_gelu: F.gelu → F.relu
    The feed-forward uses ReLU. GPT-2 has GELU.
tanh_gelu
    - F.gelu(self.linear1(self.norm2(x)))
    + F.gelu(self.linear1(self.norm2(x)), approximate="tanh")
    GELU is computed by the tanh formula, which only comes near it: the numbers are off in the
    fourth digit. Here it should be the exact one.
sigmoid_gelu: F.gelu( → (lambda x: x * torch.sigmoid(1.702 * x))(
    GELU is computed as x·σ(1.702 x), which only comes near it: the numbers are off in the second
    digit. Here it should be the exact one.
silu_for_gelu: F.gelu → F.silu
    The feed-forward uses SiLU, x·σ(x). GPT-2 has GELU.
activation_forgotten: F.gelu(self.linear1(self.norm2(x))) → self.linear1(self.norm2(x))
    There is no activation between linear1 and linear2, and two linear layers in a row amount to
    one.
activation_behind_linear2
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.dropout(self.linear2(h))
    + h = self.dropout(self.linear1(self.norm2(x)))
    + return x + self.dropout(F.gelu(self.linear2(h)))
    The GELU comes after linear2 instead of between the two linear layers, so the feed-forward can
    add next to nothing that is negative.
mask_ignored: mask=mask → mask=None
    The mask does not reach attn: every position sees what comes after it.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted on its way to attn. In both places, True means may attend.
always_causal
    + n = x.shape[1]
    + past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
    + mask = past if mask is None else mask & past
    The block makes a causal mask of its own. What may be seen is for the mask to say; without one,
    every position sees all.
no_dropout: x + self.dropout( → x + ( ×2
    What the sublayers add is never dropped.
no_dropout_behind_attention: x = x + self.dropout( → x = x + (
    What attention adds is never dropped; only what the feed-forward adds is.
no_dropout_behind_the_feed_forward: return x + self.dropout( → return x + (
    What the feed-forward adds is never dropped as a whole; only what attention adds is.
no_dropout_inside
    ~ self.dropout(F.gelu(self.linear1(self.norm2(x)))) → F.gelu(self.linear1(self.norm2(x)))
    There is dropout after each sublayer, but none inside the feed-forward, between GELU and
    linear2.
dropout_on_the_weights_too
    - MultiHeadAttention(d_model, num_heads)
    + MultiHeadAttention(d_model, num_heads, dropout)
    attn gets a dropout of its own, which acts on the attention weights. Here only what a sublayer
    adds is dropped, and the inside of the feed-forward.
dropout_behind_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, and therefore on the residual path as well. Only what a sublayer adds
    should be dropped.
dropout_in_eval: x + self.dropout(self.linear2(h)) → x + F.dropout(self.linear2(h), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
gradient_cut: x = x + self.dropout → x = x.detach() + self.dropout
    The residual path is detached, so gradients only flow through the sublayers.
rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
adds_in_place: x = x + self.dropout → x += self.dropout
    `x += …` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.DecoderBlock):
    """The block in small parts."""

    def see(self, h, mask):
        return self.attn(h, h, h, mask=mask)[0]

    def think(self, h):
        return self.linear2(self.dropout(F.gelu(self.linear1(h))))

    def forward(self, x, mask=None):
        x = x + self.dropout(self.see(self.norm1(x), mask))
        return x + self.dropout(self.think(self.norm2(x)))


@BANK.right
class block_of_the_blocks(blocks.DecoderBlock):
    pass


@BANK.right
class block_with_attention_by_hand(_Parts):
    def see(self, h, mask):
        H = self.attn.num_heads
        parts = self.attn.W_q(h), self.attn.W_k(h), self.attn.W_v(h)
        q, k, v = (p.unflatten(-1, (H, -1)).transpose(-3, -2) for p in parts)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            return self.attn.W_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        mask = mask.expand_as(scores)
        some = mask.any(-1, keepdim=True)
        weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
        out = self.attn.W_o((weights @ v).transpose(1, 2).flatten(2))
        return out * some.any(1)


@BANK.right
class block_with_gelu_written_out(_Parts):
    def think(self, h):
        h = h @ self.linear1.weight.mT + self.linear1.bias
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return F.dropout(h, self.dropout.p, self.training) @ self.linear2.weight.mT + (
            self.linear2.bias
        )


@BANK.right
class block_in_other_parts(nn.Module):
    """Three dropouts and an activation as modules of their own."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = blocks.MultiHeadAttention(d_model, num_heads)
        self.activation = nn.GELU()
        self.drop1, self.drop2, self.drop3 = (nn.Dropout(dropout) for _ in range(3))

    def forward(self, x, mask=None):
        h = self.norm1(x)
        attended, _ = self.attn(query=h, key=h, value=h, mask=mask)
        x = torch.add(x, self.drop1(attended))
        h = self.drop2(self.activation(self.linear1(self.norm2(x))))
        return torch.add(x, self.drop3(self.linear2(h)))


@BANK.right
class block_wide_inside(_Parts):
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(F.gelu(hidden))
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)


forgotten(BANK, "x")
