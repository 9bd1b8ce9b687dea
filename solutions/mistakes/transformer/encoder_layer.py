"""Known answers to `EncoderLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("EncoderLayer", right, globals())

BANK.changes("""
residual_forgotten
    ~ x + self.dropout(sublayer(norm(x))) → self.dropout(sublayer(norm(x)))
    ~ x + self.dropout(sublayer(x)) → sublayer(x)
    Nothing is added to the input: the residual connections are missing, and with them the path on
    which gradients reach the first layers undiminished.
only_attention_has_a_residual: x + self.dropout → (x if sublayer is attend else 0) + self.dropout ×2
    The feed-forward has no residual connection: its result replaces x instead of being added.
norm_first_ignored: if self.norm_first → if False
    The norms come after the sums whatever `norm_first` says.
always_norm_first: if self.norm_first → if True
    The norms come before the sublayers whatever `norm_first` says; by default, and in the paper,
    they come after the sums.
norm_first_the_wrong_way_round: if self.norm_first → if not self.norm_first
    With `norm_first` the norms come last, without it first: it should be the other way round.
residual_of_the_normalised
    - x = x + self.dropout(sublayer(norm(x)))
    + x = norm(x)
    + x = x + self.dropout(sublayer(x))
    With `norm_first`, a sublayer's result is added to the normalised x. It should be added to x
    itself: there is no norm on the residual path.
norm_before_the_sum: norm(x + self.dropout(sublayer(x))) → x + norm(self.dropout(sublayer(x)))
    Without `norm_first`, the sublayer's result is normalised and then added. The norm should come
    after the sum.
one_norm_for_both: (feed_forward, self.norm2) → (feed_forward, self.norm1)
    norm1 serves both sublayers, and norm2 learns nothing.
one_norm_for_both_after_the_sum
    - x = norm(x + self.dropout(sublayer(x)))
    + x = self.norm1(x + self.dropout(sublayer(x)))
    Without `norm_first`, norm1 serves both sublayers. The second is to be followed by norm2.
norms_swapped
    ~ (attend, self.norm1) → (attend, self.norm2)
    ~ (feed_forward, self.norm2) → (feed_forward, self.norm1)
    norm2 goes with attention and norm1 with the feed-forward; their numbers should follow the order
    of the sublayers.
feed_forward_first
    - (attend, self.norm1), (feed_forward, self.norm2)
    + (feed_forward, self.norm2), (attend, self.norm1)
    The feed-forward comes before attention. A position first gathers, then thinks.
activation_forgotten: torch.relu(self.linear1(h)) → self.linear1(h)
    There is no ReLU between linear1 and linear2, and two linear layers in a row amount to one.
gelu_for_relu: torch.relu → F.gelu
    The feed-forward uses GELU. Here, as in the paper, it should be ReLU.
activation_behind_linear2
    - self.linear2(self.dropout(torch.relu(self.linear1(h))))
    + torch.relu(self.linear2(self.dropout(self.linear1(h))))
    The ReLU comes after linear2 instead of between the two linear layers, so the feed-forward can
    never add anything negative.
mask_ignored: mask=mask → mask=None
    The mask does not reach self_attn: padding is attended to like any token.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted on its way to self_attn. In both places, True means may attend.
keys_not_normalised: h, h, h → h, x, x
    With `norm_first`, only the queries are normalised; keys and values come from x as it is. In
    self-attention all three are the normalised x.
no_dropout: x + self.dropout( → x + ( ×2
    What the sublayers add is never dropped.
no_dropout_behind_attention
    ~ x + self.dropout( → x + (nn.Identity() if sublayer is attend else self.dropout)( ×2
    What attention adds is never dropped; only what the feed-forward adds is.
no_dropout_inside: self.dropout(torch.relu(self.linear1(h))) → torch.relu(self.linear1(h))
    There is dropout after each sublayer, but none inside the feed-forward, between ReLU and
    linear2.
dropout_behind_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, and therefore on the residual path as well. Only what a sublayer adds
    should be dropped.
dropout_in_eval
    ~ self.dropout(sublayer(norm(x))) → F.dropout(sublayer(norm(x)), self.dropout.p)
    ~ self.dropout(sublayer(x)) → F.dropout(sublayer(x), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
gradient_cut: x + self.dropout → x.detach() + self.dropout ×2
    The residual path is detached, so gradients only flow through the sublayers.
rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
adds_in_place
    - x + self.dropout(sublayer(norm(x)))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(norm(x))))
    - x + self.dropout(sublayer(x))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(x)))
    `x += …` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
normalised_at_the_end_as_well: > result = self.norm2(result) if self.norm_first else result
    With norm_first, the result is normalised as well. Before the sublayers is enough: the residual
    path is never normalised.
""")


@BANK.right
class encoder_of_the_blocks(blocks.EncoderLayer):
    pass


@BANK.right
class encoder_spelled_out(right.EncoderLayer):
    def forward(self, x, mask=None):
        if self.norm_first:
            h = self.norm1(x)
            x = x + self.dropout(self.self_attn(h, h, h, mask)[0])
            h = self.norm2(x)
            return x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(h)))))
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)[0]))
        return self.norm2(x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x))))))


def _attend_by_hand(attention, query, source, mask):
    """Multi-head attention written out, with the layers of a block."""
    H = attention.num_heads
    q = attention.W_q(query).unflatten(-1, (H, -1)).transpose(-3, -2)
    k = attention.W_k(source).unflatten(-1, (H, -1)).transpose(-3, -2)
    v = attention.W_v(source).unflatten(-1, (H, -1)).transpose(-3, -2)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is None:
        heads = scores.softmax(-1) @ v
        return attention.W_o(heads.transpose(-3, -2).flatten(-2))
    mask = mask.expand_as(scores)
    some = mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
    out = attention.W_o((weights @ v).transpose(-3, -2).flatten(-2))
    return out * some.any(1)


class _Parts:
    """Encoder and decoder layers in small parts; it comes before the layer's own class."""

    def see(self, attention, query, source, mask):
        return attention(query, source, source, mask=mask)[0]

    def think(self, h):
        return self.linear2(self.dropout(self.linear1(h).relu()))

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


class _Encoder(_Parts, right.EncoderLayer):
    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.see(self.self_attn, h, h, mask), self.norm1)
        return self.around(x, self.think, self.norm2)


class _Decoder(_Parts, right.DecoderLayer):
    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.see(self.self_attn, h, h, self_mask), self.norm1)
        x = self.around(x, lambda h: self.see(self.cross_attn, h, memory, cross_mask), self.norm2)
        return self.around(x, self.think, self.norm3)


class _WideInside:
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(hidden.relu())
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)


@BANK.right
class encoder_with_attention_by_hand(_Encoder):
    def see(self, attention, query, source, mask):
        return _attend_by_hand(attention, query, source, mask)

    def think(self, h):
        hidden = h @ self.linear1.weight.mT + self.linear1.bias
        hidden = F.dropout(hidden.clamp(min=0), self.dropout.p, self.training)
        return hidden @ self.linear2.weight.mT + self.linear2.bias


@BANK.right
class encoder_wide_inside(_WideInside, _Encoder):
    pass


@BANK.right
class encoder_with_dropout_on_the_weights(_Encoder):
    """As in torch's own layer, the attention weights are dropped as well."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


forgotten(BANK, "x")
