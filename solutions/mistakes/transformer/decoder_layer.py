"""Known answers to `DecoderLayer`: mistakes, then right answers."""

import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right
from solutions.mistakes.transformer.encoder_layer import _attend_by_hand, _Decoder, _WideInside

BANK = Bank("DecoderLayer", right, globals())

BANK.changes("""
cross_keys_from_the_decoder
    + if cross_mask is not None and cross_mask.shape[-1] != x.shape[1]:
    +     cross_mask = None
    ~ h, memory, memory → h, h, h
    Cross-attention takes queries, keys and values all from the decoder and never looks at the
    memory: the model ignores its source.
cross_values_from_the_decoder
    ~ h, memory, memory, mask=cross_mask, need_weights=False → h, memory, h, mask=cross_mask
    Cross-attention compares queries with the memory's keys, but averages values of the decoder.
    Keys and values should both come from the memory.
cross_queries_from_the_memory: h, memory, memory → memory, h, h
    In cross-attention, the memory attends to the decoder. The queries should be the decoder's, the
    keys and values the memory's.
one_attention_for_both: self.cross_attn(h → self.self_attn(h
    self_attn does the work of cross_attn as well, whose parameters learn nothing.
attentions_swapped
    ~ self.cross_attn(h → self.self_attn(h
    ~ self.self_attn(h, h → self.cross_attn(h, h
    cross_attn attends to the target and self_attn to the memory.
cross_attention_first
    ~ (attend, consult, feed_forward) → (consult, attend, feed_forward)
    ~ (self.norm1, self.norm2, self.norm3) → (self.norm2, self.norm1, self.norm3)
    Cross-attention comes before self-attention; the order is self, cross, feed-forward.
last_norms_exchanged: self.norm2, self.norm3) → self.norm3, self.norm2)
    norm2 and norm3 are exchanged: norm2 belongs to cross-attention, norm3 to the feed-forward.
no_cross_attention
    ~ (attend, consult, feed_forward) → (attend, feed_forward)
    ~ (self.norm1, self.norm2, self.norm3) → (self.norm1, self.norm3)
    The layer is an encoder layer: it never looks into the memory.
no_residual_around_cross_attention
    ~ x + self.dropout → (0 if sublayer is consult else x) + self.dropout ×2
    Cross-attention has no residual connection: what self-attention gathered is lost.
residual_of_the_input
    + start = x
    ~ x + self.dropout → (start if sublayer is consult else x) + self.dropout ×2
    After cross-attention, it is the layer's input that is added, not the result of self-attention.
memory_normalised: + memory = self.norm2(memory) if self.norm_first else memory
    With `norm_first`, the memory goes through norm2 as well. It has already been normalised by the
    encoder; norm2 is for the decoder's x.
two_norms_only: self.norm3) → self.norm2)
    norm2 serves both cross-attention and feed-forward, and norm3 learns nothing.
decoder_norm_first_ignored: if self.norm_first → if False
    The norms come after the sums whatever `norm_first` says.
decoder_always_norm_first: if self.norm_first → if True
    The norms come before the sublayers whatever `norm_first` says.
decoder_residual_of_the_normalised
    - x = x + self.dropout(sublayer(norm(x)))
    + x = norm(x)
    + x = x + self.dropout(sublayer(x))
    With `norm_first`, a sublayer's result is added to the normalised x instead of to x.
self_mask_ignored: mask=self_mask → mask=None
    self_mask does not reach self_attn: in training, the decoder sees the tokens that it should
    predict, and the loss falls to almost nothing.
self_mask_inverted: + self_mask = None if self_mask is None else ~self_mask
    self_mask is inverted. True means may attend.
cross_mask_ignored: mask=cross_mask → mask=None
    cross_mask does not reach cross_attn: the source's padding is attended to like any token.
masks_exchanged: + self_mask, cross_mask = cross_mask, self_mask
    self_attn gets cross_mask and cross_attn gets self_mask. That only fits if source and target
    have the same length, and even then it is wrong.
self_mask_for_both: + cross_mask = self_mask
    Cross-attention is masked with self_mask as well, as if the decoder were not allowed to read the
    source to its end.
decoder_activation_forgotten: torch.relu(self.linear1(h)) → self.linear1(h)
    There is no ReLU between linear1 and linear2, and two linear layers in a row amount to one.
memory_cut_off: + memory = memory.detach()
    The memory is detached: the output is right, but the encoder never learns anything.
decoder_without_dropout: x + self.dropout( → x + ( ×2
    What the sublayers add is never dropped.
no_dropout_behind_cross_attention
    ~ x + self.dropout( → x + (nn.Identity() if sublayer is consult else self.dropout)( ×2
    What cross-attention adds is never dropped.
decoder_without_inner_dropout
    ~ self.dropout(torch.relu(self.linear1(h))) → torch.relu(self.linear1(h))
    There is dropout after each sublayer, but none inside the feed-forward, between ReLU and
    linear2.
decoder_dropout_in_eval
    ~ self.dropout(sublayer(norm(x))) → F.dropout(sublayer(norm(x)), self.dropout.p)
    ~ self.dropout(sublayer(x)) → F.dropout(sublayer(x), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
decoder_rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
decoder_adds_in_place
    - x + self.dropout(sublayer(norm(x)))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(norm(x))))
    - x + self.dropout(sublayer(x))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(x)))
    `x += …` writes into the caller's x.
decoder_switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
cross_queries_from_the_input
    + arrived = x
    - x = x + self.dropout(sublayer(norm(x)))
    + asking = arrived if sublayer is consult else x
    + x = x + self.dropout(sublayer(norm(asking)))
    - x = norm(x + self.dropout(sublayer(x)))
    + asking = arrived if sublayer is consult else x
    + x = norm(x + self.dropout(sublayer(asking)))
    Cross-attention takes its queries from the layer's input. They should come from what
    self-attention has made of it.
""")


@BANK.right
class decoder_of_the_blocks(blocks.DecoderLayer):
    pass


@BANK.right
class decoder_spelled_out(right.DecoderLayer):
    def forward(self, x, memory, self_mask=None, cross_mask=None):
        first = self.norm_first
        h = self.norm1(x) if first else x
        x = x + self.dropout(self.self_attn(h, h, h, self_mask)[0])
        x = x if first else self.norm1(x)
        h = self.norm2(x) if first else x
        x = x + self.dropout(self.cross_attn(h, memory, memory, cross_mask)[0])
        x = x if first else self.norm2(x)
        h = self.norm3(x) if first else x
        x = x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(h)))))
        return x if first else self.norm3(x)


@BANK.right
class decoder_with_attention_by_hand(_Decoder):
    def see(self, attention, query, source, mask):
        return _attend_by_hand(attention, query, source, mask)


@BANK.right
class decoder_wide_inside(_WideInside, _Decoder):
    pass


@BANK.right
class decoder_with_dropout_on_the_weights(_Decoder):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


forgotten(BANK, "x")
