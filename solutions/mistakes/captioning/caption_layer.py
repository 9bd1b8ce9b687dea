"""Known answers to `CaptionLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("CaptionLayer", right, globals())

BANK.changes("""
norm2_kept_for_text_alone
    - x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    + x = x + self.dropout(self.cross_attn(x, memory, memory_mask)[0])
    ~ h = self.dropout( → x = self.norm2(x); h = self.dropout(
    Without a memory, norm2 is applied all the same. It belongs to cross-attention, and is left out
    with it.
norm1_left_out_for_text_alone
    - x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    + x = x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0])
    + x = x if memory is None else self.norm1(x)
    Without a memory, norm1 is left out. It is norm2 that goes with cross-attention.
looks_at_itself
    - if memory is not None:
    + memory = x if memory is None else memory
    + if True:
    Without a memory, cross-attention is given the text itself. It should be left out.
cross_before_self
    - x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    - if memory is not None:
    -     x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    + if memory is not None:
    +     x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    + x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    Cross-attention comes before self-attention. A word first gathers from the other words, then
    from the picture.
memory_never_read: if memory is not None: → if False:
    The memory is never looked at, whether there is one or not.
cross_after_feed_forward
    - if memory is not None:
    -     x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    - h = self.dropout(F.gelu(self.linear1(x)))
    - return self.norm3(x + self.dropout(self.linear2(h)))
    + h = self.dropout(F.gelu(self.linear1(x)))
    + x = self.norm3(x + self.dropout(self.linear2(h)))
    + if memory is not None:
    +     x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    + return x
    Cross-attention comes last. It stands between self-attention and the feed-forward network.
queries_from_the_input
    + given = x
    ~ self.cross_attn(x, memory → self.cross_attn(given, memory
    Cross-attention takes its queries from the layer's input. They should come from what
    self-attention has made of it.
residual_of_the_input
    + given = x
    ~ self.norm2(x + → self.norm2(given +
    After cross-attention, the layer's input is added. It should be what self-attention has made of
    it.
no_residual_around_self_attention: self.norm1(x + self.dropout → self.norm1(self.dropout
    Self-attention has no residual connection: its result replaces x instead of being added.
no_residual_around_cross_attention: self.norm2(x + self.dropout → self.norm2(self.dropout
    Cross-attention has no residual connection: what the words have gathered from each other is
    lost.
no_residual_around_feed_forward
    ~ self.norm3(x + self.dropout(self.linear2(h))) → self.norm3(self.dropout(self.linear2(h)))
    The feed-forward network has no residual connection: its result replaces x instead of being
    added.
pre_norm
    - x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    - if memory is not None:
    -     x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    - h = self.dropout(F.gelu(self.linear1(x)))
    - return self.norm3(x + self.dropout(self.linear2(h)))
    + h = self.norm1(x)
    + x = x + self.dropout(self.self_attn(h, h, h, mask=self_mask)[0])
    + if memory is not None:
    +     x = x + self.dropout(self.cross_attn(self.norm2(x), memory, memory_mask)[0])
    + h = self.dropout(F.gelu(self.linear1(self.norm3(x))))
    + return x + self.dropout(self.linear2(h))
    The norms come before their sublayers, as in ViT and GPT-2. In BLIP's text side, as in BERT,
    each comes after the sum.
norm1_forgotten
    - x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    + x = x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0])
    There is no norm after self-attention: norm1 is not used.
norm2_forgotten
    - x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
    + x = x + self.dropout(self.cross_attn(x, memory, memory_mask)[0])
    There is no norm after cross-attention: norm2 is not used.
norm3_forgotten
    - return self.norm3(x + self.dropout(self.linear2(h)))
    + return x + self.dropout(self.linear2(h))
    There is no norm after the feed-forward network: norm3 is not used.
norm1_twice: self.norm2(x → self.norm1(x
    norm1 serves cross-attention as well, and norm2 learns nothing.
norm2_for_the_feed_forward: self.norm3(x → self.norm2(x
    norm2 serves the feed-forward network as well, and norm3 learns nothing.
norms_two_and_three_exchanged
    ~ self.norm2(x → self.norm0(x
    ~ self.norm3(x → self.norm2(x
    ~ self.norm0(x → self.norm3(x
    norm2 and norm3 have changed places: norm2 is for cross-attention, norm3 for the feed-forward
    network.
memory_normalised
    - if memory is not None:
    + if memory is not None:
    +     memory = F.layer_norm(memory, memory.shape[-1:])
    The memory is normalised once more. The encoder has done that.
relu_for_gelu: F.gelu → F.relu
    The feed-forward network uses ReLU, as in the Transformer of 2017. Here it is GELU.
tanh_gelu: F.gelu(self.linear1(x)) → F.gelu(self.linear1(x), approximate="tanh")
    GELU is computed by the tanh formula, which only comes near it: the numbers are off in the
    fourth digit. Here it should be the exact one.
sigmoid_gelu: F.gelu( → (lambda x: x * torch.sigmoid(1.702 * x))(
    GELU is computed as x·σ(1.702 x), which only comes near it: the numbers are off in the second
    digit. Here it should be the exact one.
silu_for_gelu: F.gelu → F.silu
    The feed-forward network uses SiLU, x·σ(x). Here it is GELU.
activation_forgotten: F.gelu(self.linear1(x)) → self.linear1(x)
    There is no activation between linear1 and linear2, and two linear layers in a row amount to
    one.
self_mask_ignored: mask=self_mask → mask=None
    self_mask does not reach self-attention: while it learns, each word sees the one that it is to
    predict.
self_mask_inverted: + self_mask = None if self_mask is None else ~self_mask
    self_mask is inverted. True means may attend.
always_causal
    + n = x.shape[1]
    + past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
    + self_mask = past if self_mask is None else self_mask & past
    The layer makes a causal mask of its own. As an encoder of text, it has to see both sides; what
    may not be seen is for the mask to say.
memory_mask_ignored: self.cross_attn(x, memory, memory_mask) → self.cross_attn(x, memory)
    memory_mask does not reach cross-attention.
memory_mask_inverted: + memory_mask = None if memory_mask is None else ~memory_mask
    memory_mask is inverted. True means may attend.
masks_exchanged: + self_mask, memory_mask = memory_mask, self_mask
    Self-attention gets memory_mask, and cross-attention gets self_mask.
self_mask_for_both: self.cross_attn(x, memory, memory_mask) → self.cross_attn(x, memory, self_mask)
    Cross-attention is masked with self_mask, as if a word might look only at the first places of
    the picture.
no_dropout: self.dropout( → ( ×4
    Nothing is ever dropped.
no_dropout_behind_self_attention: x + self.dropout(self.self_attn → x + (self.self_attn
    What self-attention adds is never dropped.
no_dropout_behind_cross_attention: x + self.dropout(self.cross_attn → x + (self.cross_attn
    What cross-attention adds is never dropped.
no_dropout_behind_the_feed_forward: x + self.dropout(self.linear2(h)) → x + self.linear2(h)
    What the feed-forward network adds is never dropped; only what is inside it is.
no_dropout_inside: self.dropout(F.gelu(self.linear1(x))) → F.gelu(self.linear1(x))
    There is dropout after each sublayer, but none inside the feed-forward network, between GELU and
    linear2.
dropout_behind_the_sum
    ~ x + self.dropout( → self.dropout(x + ×3
    Dropout acts on the sum, and therefore on the residual path as well. Only what a sublayer adds
    should be dropped.
dropout_in_eval: x + self.dropout(self.linear2(h)) → x + F.dropout(self.linear2(h), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
memory_cut_off: + memory = None if memory is None else memory.detach()
    The memory is detached: the output is right, but the encoder never learns anything.
gradient_cut: F.gelu(self.linear1(x)) → F.gelu(self.linear1(x.detach()))
    What goes into the feed-forward network is detached, so attention learns less than it should.
rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
adds_in_place
    - x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
    + x = self.norm1(x.add_(self.dropout(self.self_attn(x, x, x, mask=self_mask)[0])))
    `x.add_(…)` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.CaptionLayer):
    """The layer in small parts."""

    def add(self, x, change, norm):
        return norm(x + self.dropout(change))

    def see(self, x, mask):
        return self.self_attn(x, x, x, mask=mask)[0]

    def look(self, x, memory, mask):
        return self.cross_attn(x, memory, mask=mask)[0]

    def think(self, x):
        return self.linear2(self.dropout(F.gelu(self.linear1(x))))

    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        x = self.add(x, self.see(x, self_mask), self.norm1)
        if memory is not None:
            x = self.add(x, self.look(x, memory, memory_mask), self.norm2)
        return self.add(x, self.think(x), self.norm3)


@BANK.right
class layer_in_small_parts(_Parts):
    pass


@BANK.right
class layer_of_the_blocks(blocks.CaptionLayer):
    pass


@BANK.right
class two_ways_apart(_Parts):
    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        words = self.norm1(self.dropout(self.see(x, self_mask)) + x)
        if memory is None:
            return self.norm3(self.dropout(self.think(words)) + words)
        both = self.norm2(self.dropout(self.look(words, memory, memory_mask)) + words)
        return self.norm3(self.dropout(self.think(both)) + both)


@BANK.right
class without_weights(_Parts):
    def see(self, x, mask):
        return self.self_attn(x, x, x, mask=mask, need_weights=False)[0]


@BANK.right
class wide_inside(_Parts):
    def think(self, x):
        hidden = x.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(F.gelu(hidden))
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(x.dtype)


@BANK.right
class gelu_written_out(_Parts):
    def think(self, x):
        h = self.linear1(x)
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return self.linear2(self.dropout(h))


@BANK.right
class in_other_parts(nn.Module):
    """Dropouts of their own, and attention's weights dropped as well, as BLIP's code does."""

    def __init__(self, d_model, d_encoder, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attn = blocks.CrossAttention(d_model, d_encoder, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(4))
        self.activation = nn.GELU()

    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        first, second, inside, third = self.drops
        x = self.norm1(x + first(self.self_attn(x, x, x, self_mask)[0]))
        if memory is not None:
            x = self.norm2(x + second(self.cross_attn(x, memory, memory_mask)[0]))
        return self.norm3(x + third(self.linear2(inside(self.activation(self.linear1(x))))))


forgotten(BANK, "x")
