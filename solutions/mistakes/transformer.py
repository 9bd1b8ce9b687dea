"""Known answers to chapter 7: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.transformer`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder import blocks
from solutions import transformer as right
from solutions.mistakes import Bank

ENCODER_LAYER = Bank("EncoderLayer", right, globals())
DECODER_LAYER = Bank("DecoderLayer", right, globals())
TOKEN_EMBEDDING = Bank("TokenEmbedding", right, globals())
TRANSFORMER = Bank("Transformer", right, globals())
SHIFT_RIGHT = Bank("shift_right", right, globals())
LABEL_SMOOTHED_CROSS_ENTROPY = Bank("label_smoothed_cross_entropy", right, globals())
NOAM_RATE = Bank("noam_rate", right, globals())
GREEDY_DECODE = Bank("greedy_decode", right, globals())
BEAM_SEARCH = Bank("beam_search", right, globals())

# --- layers in small parts, each of which a mistake can replace ----------------------------------


class _Parts:
    """What mistaken encoder and decoder layers share; it comes before the layer's own class."""

    def see(self, attention, query, source, mask):
        return attention(query, source, source, mask=mask)[0]

    def activate(self, h):
        return h.relu()

    def drop_inside(self, h):
        return self.dropout(h)

    def drop_after(self, h):
        return self.dropout(h)

    def think(self, h):
        return self.linear2(self.drop_inside(self.activate(self.linear1(h))))

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return x + self.drop_after(sublayer(norm(x)))
        return norm(x + self.drop_after(sublayer(x)))


class _Encoder(_Parts, right.EncoderLayer):
    def attend(self, h, mask):
        return self.see(self.self_attn, h, h, mask)

    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.attend(h, mask), self.norm1)
        return self.around(x, self.think, self.norm2)


class _Decoder(_Parts, right.DecoderLayer):
    def attend(self, h, mask):
        return self.see(self.self_attn, h, h, mask)

    def consult(self, h, memory, mask):
        return self.see(self.cross_attn, h, memory, mask)

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        x = self.around(x, lambda h: self.consult(h, memory, cross_mask), self.norm2)
        return self.around(x, self.think, self.norm3)


# --- EncoderLayer: mistakes ---------------------------------------------------------------------


@ENCODER_LAYER.mistake
class residual_forgotten(_Encoder):
    """Nothing is added to what comes in: the residual connections are missing, and with them the
    path on which gradients reach the first layers undiminished.
    """

    def around(self, x, sublayer, norm):
        return self.drop_after(sublayer(norm(x))) if self.norm_first else norm(sublayer(x))


@ENCODER_LAYER.mistake
class only_attention_has_a_residual(_Encoder):
    """The feed-forward has no residual connection: its result replaces x instead of being added."""

    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.attend(h, mask), self.norm1)
        if self.norm_first:
            return self.drop_after(self.think(self.norm2(x)))
        return self.norm2(self.drop_after(self.think(x)))


@ENCODER_LAYER.mistake
class norm_first_ignored(_Encoder):
    """The norms stand behind the sums whatever `norm_first` says."""

    def around(self, x, sublayer, norm):
        return norm(x + self.drop_after(sublayer(x)))


@ENCODER_LAYER.mistake
class always_norm_first(_Encoder):
    """The norms stand before the sublayers whatever `norm_first` says; by default, and in the
    paper, they stand behind the sums.
    """

    def around(self, x, sublayer, norm):
        return x + self.drop_after(sublayer(norm(x)))


@ENCODER_LAYER.mistake
class norm_first_the_wrong_way_round(_Encoder):
    """With `norm_first` the norms come last, without it they come first."""

    def around(self, x, sublayer, norm):
        if not self.norm_first:
            return x + self.drop_after(sublayer(norm(x)))
        return norm(x + self.drop_after(sublayer(x)))


@ENCODER_LAYER.mistake
class residual_of_the_normalised(_Encoder):
    """With `norm_first`, a sublayer's result is added to the normalised x. It belongs to x itself:
    the way around the sublayers carries no norm.
    """

    def around(self, x, sublayer, norm):
        if self.norm_first:
            x = norm(x)
            return x + self.drop_after(sublayer(x))
        return norm(x + self.drop_after(sublayer(x)))


@ENCODER_LAYER.mistake
class norm_before_the_sum(_Encoder):
    """Without `norm_first`, the sublayer's result is normalised and then added. The norm stands
    behind the sum.
    """

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return super().around(x, sublayer, norm)
        return x + norm(self.drop_after(sublayer(x)))


@ENCODER_LAYER.mistake
class one_norm_for_both(_Encoder):
    """norm1 serves both sublayers, and norm2 learns nothing."""

    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.attend(h, mask), self.norm1)
        return self.around(x, self.think, self.norm1)


@ENCODER_LAYER.mistake
class norms_swapped(_Encoder):
    """norm2 goes with attention and norm1 with the feed-forward; the numbers follow the order of
    the sublayers.
    """

    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.attend(h, mask), self.norm2)
        return self.around(x, self.think, self.norm1)


@ENCODER_LAYER.mistake
class feed_forward_first(_Encoder):
    """The feed-forward comes before attention. A position first gathers, then thinks."""

    def forward(self, x, mask=None):
        x = self.around(x, self.think, self.norm2)
        return self.around(x, lambda h: self.attend(h, mask), self.norm1)


@ENCODER_LAYER.mistake
class activation_forgotten(_Encoder):
    """No ReLU stands between linear1 and linear2, and two linear layers in a row are one."""

    def activate(self, h):
        return h


@ENCODER_LAYER.mistake
class gelu_for_relu(_Encoder):
    """The feed-forward uses GELU. Here, as in the paper, it is ReLU."""

    def activate(self, h):
        return F.gelu(h)


@ENCODER_LAYER.mistake
class activation_behind_linear2(_Encoder):
    """The ReLU stands behind linear2 instead of between the two linear layers, so that the
    feed-forward can only ever add something positive.
    """

    def think(self, h):
        return self.linear2(self.drop_inside(self.linear1(h))).relu()


@ENCODER_LAYER.mistake
class mask_ignored(_Encoder):
    """The mask does not reach self_attn: padding is attended to like any token."""

    def attend(self, h, mask):
        return super().attend(h, None)


@ENCODER_LAYER.mistake
class mask_inverted(_Encoder):
    """The mask is inverted on its way to self_attn. True means may attend, here and there."""

    def attend(self, h, mask):
        return super().attend(h, None if mask is None else ~mask)


@ENCODER_LAYER.mistake
class keys_not_normalised(_Encoder):
    """With `norm_first`, only the queries are normalised; keys and values are x as it came. In
    self-attention all three are the normalised x.
    """

    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.see(self.self_attn, h, x, mask), self.norm1)
        return self.around(x, self.think, self.norm2)


@ENCODER_LAYER.mistake
class no_dropout(_Encoder):
    """What the sublayers add is never dropped."""

    def drop_after(self, h):
        return h


@ENCODER_LAYER.mistake
class no_dropout_behind_attention(_Encoder):
    """What attention adds is never dropped; only the feed-forward's part is."""

    def forward(self, x, mask=None):
        dropout, self.dropout = self.dropout, nn.Identity()
        x = self.around(x, lambda h: self.attend(h, mask), self.norm1)
        self.dropout = dropout
        return self.around(x, self.think, self.norm2)


@ENCODER_LAYER.mistake
class no_dropout_inside(_Encoder):
    """Dropout stands after each sublayer, but none inside the feed-forward, between ReLU and
    linear2.
    """

    def drop_inside(self, h):
        return h


@ENCODER_LAYER.mistake
class dropout_behind_the_sum(_Encoder):
    """Dropout acts on the sum, and so on the way around as well. Only what a sublayer adds is
    dropped.
    """

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return self.dropout(x + sublayer(norm(x)))
        return norm(self.dropout(x + sublayer(x)))


@ENCODER_LAYER.mistake
class dropout_in_eval(_Encoder):
    """Dropout goes on in eval mode: F.dropout does not know of it unless told."""

    def drop_after(self, h):
        return F.dropout(h, self.dropout.p)


@ENCODER_LAYER.mistake
class gradient_cut(_Encoder):
    """The way around is detached, so that gradients flow through the sublayers alone."""

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return x.detach() + self.drop_after(sublayer(norm(x)))
        return norm(x.detach() + self.drop_after(sublayer(x)))


@ENCODER_LAYER.mistake
class rounded_to_single(_Encoder):
    """The result is float32 whatever came in."""

    def forward(self, x, mask=None):
        return super().forward(x, mask).float()


@ENCODER_LAYER.mistake
class adds_in_place(_Encoder):
    """`x += …` writes into the caller's x."""

    def forward(self, x, mask=None):
        x += self.drop_after(self.attend(self.norm1(x) if self.norm_first else x, mask))
        if self.norm_first:
            return x + self.drop_after(self.think(self.norm2(x)))
        x = self.norm1(x)
        return self.norm2(x + self.drop_after(self.think(x)))


@ENCODER_LAYER.mistake
class switches_the_default(_Encoder):
    """forward sets torch's default dtype, for the whole program."""

    def forward(self, x, mask=None):
        torch.set_default_dtype(torch.float64)
        return super().forward(x, mask)


# --- EncoderLayer: right ------------------------------------------------------------------------


@ENCODER_LAYER.right
class encoder_of_the_blocks(blocks.EncoderLayer):
    pass


@ENCODER_LAYER.right
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


@ENCODER_LAYER.right
class encoder_with_attention_by_hand(_Encoder):
    def attend(self, h, mask):
        return _attend_by_hand(self.self_attn, h, h, mask)

    def think(self, h):
        hidden = h @ self.linear1.weight.mT + self.linear1.bias
        hidden = F.dropout(hidden.clamp(min=0), self.dropout.p, self.training)
        return hidden @ self.linear2.weight.mT + self.linear2.bias


@ENCODER_LAYER.right
class encoder_wide_inside(_Encoder):
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(hidden.relu())
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)


@ENCODER_LAYER.right
class encoder_with_dropout_on_the_weights(_Encoder):
    """As torch's own layer has it: the attention weights are dropped, too."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


# --- DecoderLayer: mistakes ---------------------------------------------------------------------


@DECODER_LAYER.mistake
class cross_keys_from_the_decoder(_Decoder):
    """Cross-attention takes queries, keys and values all from the decoder, and the memory is never
    looked at: the model ignores its source.
    """

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        if cross_mask is not None and cross_mask.shape[-1] != x.shape[1]:
            cross_mask = None
        return super().forward(x, None, self_mask, cross_mask)

    def consult(self, h, memory, mask):
        return self.see(self.cross_attn, h, h, mask)


@DECODER_LAYER.mistake
class cross_values_from_the_decoder(_Decoder):
    """Cross-attention compares queries with the memory's keys, but averages values of the decoder.
    Keys and values both come from the memory.
    """

    def consult(self, h, memory, mask):
        return self.cross_attn(h, memory, h, mask=mask)[0]


@DECODER_LAYER.mistake
class cross_queries_from_the_memory(_Decoder):
    """In cross-attention the memory asks and the decoder answers. The queries are the decoder's;
    keys and values are the memory's.
    """

    def consult(self, h, memory, mask):
        return self.cross_attn(memory, h, h, mask=mask)[0]


@DECODER_LAYER.mistake
class one_attention_for_both(_Decoder):
    """self_attn does the work of cross_attn as well, whose parameters learn nothing."""

    def consult(self, h, memory, mask):
        return self.see(self.self_attn, h, memory, mask)


@DECODER_LAYER.mistake
class attentions_swapped(_Decoder):
    """cross_attn attends to the target and self_attn to the memory."""

    def attend(self, h, mask):
        return self.see(self.cross_attn, h, h, mask)

    def consult(self, h, memory, mask):
        return self.see(self.self_attn, h, memory, mask)


@DECODER_LAYER.mistake
class cross_attention_first(_Decoder):
    """Cross-attention comes before self-attention; the order is self, cross, feed-forward."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.consult(h, memory, cross_mask), self.norm2)
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class no_cross_attention(_Decoder):
    """The layer is an encoder layer: it never looks into the memory."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class no_residual_around_cross_attention(_Decoder):
    """Cross-attention has no residual connection: what self-attention gathered is thrown away."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        if self.norm_first:
            x = self.drop_after(self.consult(self.norm2(x), memory, cross_mask))
        else:
            x = self.norm2(self.drop_after(self.consult(x, memory, cross_mask)))
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class residual_of_the_input(_Decoder):
    """Behind cross-attention, what is added is the layer's input again, not what self-attention
    made of it.
    """

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        start = x
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        if self.norm_first:
            x = start + self.drop_after(self.consult(self.norm2(x), memory, cross_mask))
        else:
            x = self.norm2(start + self.drop_after(self.consult(x, memory, cross_mask)))
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class memory_normalised(_Decoder):
    """With `norm_first`, the memory goes through norm2 as well. It comes normalised from the
    encoder; norm2 is for the decoder's x.
    """

    def consult(self, h, memory, mask):
        return super().consult(h, self.norm2(memory) if self.norm_first else memory, mask)


@DECODER_LAYER.mistake
class two_norms_only(_Decoder):
    """norm2 serves both cross-attention and feed-forward, and norm3 learns nothing."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        x = self.around(x, lambda h: self.consult(h, memory, cross_mask), self.norm2)
        return self.around(x, self.think, self.norm2)


@DECODER_LAYER.mistake
class decoder_norm_first_ignored(_Decoder):
    """The norms stand behind the sums whatever `norm_first` says."""

    def around(self, x, sublayer, norm):
        return norm(x + self.drop_after(sublayer(x)))


@DECODER_LAYER.mistake
class decoder_always_norm_first(_Decoder):
    """The norms stand before the sublayers whatever `norm_first` says."""

    def around(self, x, sublayer, norm):
        return x + self.drop_after(sublayer(norm(x)))


@DECODER_LAYER.mistake
class decoder_residual_of_the_normalised(_Decoder):
    """With `norm_first`, a sublayer's result is added to the normalised x instead of to x."""

    def around(self, x, sublayer, norm):
        if self.norm_first:
            x = norm(x)
            return x + self.drop_after(sublayer(x))
        return norm(x + self.drop_after(sublayer(x)))


@DECODER_LAYER.mistake
class self_mask_ignored(_Decoder):
    """self_mask does not reach self_attn: in training, the decoder sees the tokens that it is to
    predict, and the loss falls to almost nothing.
    """

    def attend(self, h, mask):
        return super().attend(h, None)


@DECODER_LAYER.mistake
class self_mask_inverted(_Decoder):
    """self_mask is inverted. True means may attend."""

    def attend(self, h, mask):
        return super().attend(h, None if mask is None else ~mask)


@DECODER_LAYER.mistake
class cross_mask_ignored(_Decoder):
    """cross_mask does not reach cross_attn: the source's padding is attended to like any token."""

    def consult(self, h, memory, mask):
        return super().consult(h, memory, None)


@DECODER_LAYER.mistake
class masks_exchanged(_Decoder):
    """self_attn gets cross_mask and cross_attn gets self_mask. It only fits where source and target
    are of the same length, and is wrong there, too.
    """

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        return super().forward(x, memory, cross_mask, self_mask)


@DECODER_LAYER.mistake
class self_mask_for_both(_Decoder):
    """Cross-attention is masked with self_mask as well, as if the decoder might not read the
    source to its end.
    """

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        return super().forward(x, memory, self_mask, self_mask)


@DECODER_LAYER.mistake
class decoder_activation_forgotten(_Decoder):
    """No ReLU stands between linear1 and linear2, and two linear layers in a row are one."""

    def activate(self, h):
        return h


@DECODER_LAYER.mistake
class memory_cut_off(_Decoder):
    """The memory is detached: the output is right, and the encoder never learns anything."""

    def consult(self, h, memory, mask):
        return super().consult(h, memory.detach(), mask)


@DECODER_LAYER.mistake
class decoder_without_dropout(_Decoder):
    """What the sublayers add is never dropped."""

    def drop_after(self, h):
        return h


@DECODER_LAYER.mistake
class no_dropout_behind_cross_attention(_Decoder):
    """What cross-attention adds is never dropped."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.attend(h, self_mask), self.norm1)
        dropout, self.dropout = self.dropout, nn.Identity()
        x = self.around(x, lambda h: self.consult(h, memory, cross_mask), self.norm2)
        self.dropout = dropout
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class decoder_without_inner_dropout(_Decoder):
    """Dropout stands after each sublayer, but none inside the feed-forward, between ReLU and
    linear2.
    """

    def drop_inside(self, h):
        return h


@DECODER_LAYER.mistake
class decoder_dropout_in_eval(_Decoder):
    """Dropout goes on in eval mode: F.dropout does not know of it unless told."""

    def drop_after(self, h):
        return F.dropout(h, self.dropout.p)


@DECODER_LAYER.mistake
class decoder_rounded_to_single(_Decoder):
    """The result is float32 whatever came in."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        return super().forward(x, memory, self_mask, cross_mask).float()


@DECODER_LAYER.mistake
class decoder_adds_in_place(_Decoder):
    """`x += …` writes into the caller's x."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        if self.norm_first:
            x += self.drop_after(self.attend(self.norm1(x), self_mask))
        else:
            x += self.drop_after(self.attend(x, self_mask))
            x = self.norm1(x)
        x = self.around(x, lambda h: self.consult(h, memory, cross_mask), self.norm2)
        return self.around(x, self.think, self.norm3)


@DECODER_LAYER.mistake
class decoder_switches_the_default(_Decoder):
    """forward sets torch's default dtype, for the whole program."""

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        torch.set_default_dtype(torch.float64)
        return super().forward(x, memory, self_mask, cross_mask)


# --- DecoderLayer: right ------------------------------------------------------------------------


@DECODER_LAYER.right
class decoder_of_the_blocks(blocks.DecoderLayer):
    pass


@DECODER_LAYER.right
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


@DECODER_LAYER.right
class decoder_with_attention_by_hand(_Decoder):
    def attend(self, h, mask):
        return _attend_by_hand(self.self_attn, h, h, mask)

    def consult(self, h, memory, mask):
        return _attend_by_hand(self.cross_attn, h, memory, mask)


@DECODER_LAYER.right
class decoder_wide_inside(_Decoder):
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(hidden.relu())
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)


@DECODER_LAYER.right
class decoder_with_dropout_on_the_weights(_Decoder):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


# --- TokenEmbedding: mistakes -------------------------------------------------------------------


class _Embedding(right.TokenEmbedding):
    """The embedding in small parts."""

    def scale(self):
        return self.weight.shape[1] ** 0.5

    def look_up(self, ids):
        return self.weight[ids]

    def forward(self, ids):
        return self.look_up(ids) * self.scale()

    def logits(self, h):
        return h @ self.weight.mT


@TOKEN_EMBEDDING.mistake
class root_forgotten(_Embedding):
    """The vectors are not multiplied by √d_model. They come out √d_model times too small, and the
    positions that are added drown them.
    """

    def scale(self):
        return 1.0


@TOKEN_EMBEDDING.mistake
class times_d_model(_Embedding):
    """The vectors are multiplied by d_model, not by its square root."""

    def scale(self):
        return float(self.weight.shape[1])


@TOKEN_EMBEDDING.mistake
class divided_by_the_root(_Embedding):
    """The vectors are divided by √d_model, as scores are in attention. Here they are multiplied."""

    def scale(self):
        return self.weight.shape[1] ** -0.5


@TOKEN_EMBEDDING.mistake
class root_of_the_vocabulary(_Embedding):
    """The vectors are multiplied by the square root of the number of tokens: shape[0] of the
    weight is the vocabulary, shape[1] is d_model.
    """

    def scale(self):
        return self.weight.shape[0] ** 0.5


@TOKEN_EMBEDDING.mistake
class root_in_the_logits_too(_Embedding):
    """The logits are multiplied by √d_model as well. The factor belongs to the input side alone."""

    def logits(self, h):
        return super().logits(h) * self.scale()


@TOKEN_EMBEDDING.mistake
class root_in_the_logits_only(_Embedding):
    """√d_model stands in the logits and not in the vectors: the wrong side of the two."""

    def forward(self, ids):
        return self.look_up(ids)

    def logits(self, h):
        return super().logits(h) * self.scale()


@TOKEN_EMBEDDING.mistake
class logits_through_softmax(_Embedding):
    """logits gives probabilities. The loss takes its own softmax of them, a double softmax, and
    learns slowly and to no great certainty.
    """

    def logits(self, h):
        return super().logits(h).softmax(-1)


@TOKEN_EMBEDDING.mistake
class logits_by_distance(_Embedding):
    """The logits are cosines: vectors are normalised before the dot product, and no score can be
    above 1.
    """

    def logits(self, h):
        return F.normalize(h, dim=-1) @ F.normalize(self.weight, dim=-1).mT


@TOKEN_EMBEDDING.mistake
class padding_without_gradient(_Embedding):
    """Token 0 learns nothing: with padding_idx=0 its row gets no gradient from the look-up. Which
    token is padding is not the embedding's business.
    """

    def look_up(self, ids):
        return F.embedding(ids, self.weight, padding_idx=0)


@TOKEN_EMBEDDING.mistake
class only_the_look_up_learns(_Embedding):
    """The logits work with a detached weight, which then learns from the input side only."""

    def logits(self, h):
        return h @ self.weight.detach().mT


@TOKEN_EMBEDDING.mistake
class only_the_logits_learn(_Embedding):
    """The look-up works with a detached weight, which then learns from the output side only."""

    def look_up(self, ids):
        return self.weight.detach()[ids]


@TOKEN_EMBEDDING.mistake
class weight_scaled_in_place(_Embedding):
    """Each call multiplies the parameter itself by √d_model: the second call's vectors are √d_model
    times as long as the first one's, and the logits grow with them.
    """

    def forward(self, ids):
        with torch.no_grad():
            self.weight.mul_(self.scale())
        return self.look_up(ids)


@TOKEN_EMBEDDING.mistake
class always_a_batch_of_rows(_Embedding):
    """ids are taken for (B, n) whatever their shape: the result of others has the wrong one."""

    def forward(self, ids):
        return super().forward(ids.flatten(1) if ids.dim() > 1 else ids[None])

    def logits(self, h):
        return super().logits(h.flatten(1, -2) if h.dim() > 2 else h)


@TOKEN_EMBEDDING.mistake
class embedding_in_single(_Embedding):
    """The vectors and logits are float32 whatever the weight is."""

    def forward(self, ids):
        return super().forward(ids).float()

    def logits(self, h):
        return super().logits(h).float()


@TOKEN_EMBEDDING.mistake
class ids_shifted_in_place(_Embedding):
    """Token ids out of range are clamped in the caller's own tensor."""

    def forward(self, ids):
        out = super().forward(ids.clone())
        ids.clamp_(max=len(self.weight) - 2)
        return out


@TOKEN_EMBEDDING.mistake
class embedding_switches_the_default(_Embedding):
    """forward sets torch's default dtype, for the whole program."""

    def forward(self, ids):
        out = super().forward(ids)
        torch.set_default_dtype(torch.float64)
        return out


# --- TokenEmbedding: right ----------------------------------------------------------------------


@TOKEN_EMBEDDING.right
class embedding_of_the_blocks(blocks.TokenEmbedding):
    pass


@TOKEN_EMBEDDING.right
class embedding_by_one_hot(right.TokenEmbedding):
    def forward(self, ids):
        rows = F.one_hot(ids, len(self.weight)).to(self.weight) @ self.weight
        return rows * self.weight.shape[1] ** 0.5

    def logits(self, h):
        return torch.einsum("...d,vd->...v", h, self.weight)


@TOKEN_EMBEDDING.right
class embedding_scaled_before(right.TokenEmbedding):
    def forward(self, ids):
        return F.embedding(ids, self.weight * math.sqrt(self.weight.shape[1]))

    def logits(self, h):
        return F.linear(h, self.weight)


@TOKEN_EMBEDDING.right
class embedding_gathered(right.TokenEmbedding):
    def forward(self, ids):
        rows = self.weight.index_select(0, ids.reshape(-1))
        return rows.view(*ids.shape, -1) * self.weight.new_tensor(self.weight.shape[1]).sqrt()

    def logits(self, h):
        return (h.unsqueeze(-2) * self.weight).sum(-1)


# --- Transformer: mistakes ----------------------------------------------------------------------


class _Model(right.Transformer):
    """The Transformer in small parts."""

    def real(self, ids):
        return (ids != self.pad_id)[:, None, None, :]

    def past(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    def sum_up(self, vectors, positions):
        return self.dropout(vectors + positions)

    def embed(self, embedding, ids, offset=0):
        positions = blocks.sinusoidal_encoding(ids.shape[1], self.positions.shape[1])
        return self.sum_up(embedding(ids), positions.to(self.positions))

    def source_mask(self, source):
        return self.real(source)

    def self_mask(self, target):
        return self.past(target.shape[1], target.device) & self.real(target)

    def cross_mask(self, target, source):
        return self.real(source)

    def encode(self, source):
        x, mask = self.embed(self.source_embedding, source), self.source_mask(source)
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, target, memory, source):
        x = self.embed(self.target_embedding, target)
        masks = self.self_mask(target), self.cross_mask(target, source)
        for layer in self.decoder_layers:
            x = layer(x, memory, *masks)
        return self.decoder_norm(x)

    def forward(self, source, target):
        return self.finish(self.decode(target, self.encode(source), source))

    def finish(self, hidden):
        return self.target_embedding.logits(hidden)


@TRANSFORMER.mistake
class target_mask_on_the_source(_Model):
    """Cross-attention is masked by the target's padding. Its keys are the source's positions: where
    source and target happen to be of one length, the wrong ones are hidden and nothing complains.
    """

    def cross_mask(self, target, source):
        n_t, n_s = target.shape[1], source.shape[1]
        real = F.pad(target != self.pad_id, (0, max(0, n_s - n_t)), value=True)
        return real[:, None, None, :n_s]


@TRANSFORMER.mistake
class no_causal_mask(_Model):
    """The decoder's self-attention sees the whole target. In training, the answer lies open; when
    writing, there is nothing there to see, and the model fails.
    """

    def self_mask(self, target):
        return self.real(target)


@TRANSFORMER.mistake
class causal_mask_leaks_one(_Model):
    """Position i of the target sees position i + 1, the very token that it is to predict."""

    def past(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril(1)


@TRANSFORMER.mistake
class causal_mask_without_the_diagonal(_Model):
    """A position of the target does not see itself, and the first one sees nothing at all."""

    def past(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril(-1)


@TRANSFORMER.mistake
class causal_encoder(_Model):
    """The encoder is causal as well. The source is all there from the start, and every position
    may read all of it.
    """

    def source_mask(self, source):
        return self.real(source) & self.past(source.shape[1], source.device)


@TRANSFORMER.mistake
class no_padding_masks(_Model):
    """Padding is attended to like any token: the same text gives other logits in another batch."""

    def real(self, ids):
        return torch.ones_like(ids, dtype=torch.bool)[:, None, None, :]


@TRANSFORMER.mistake
class padding_seen_by_the_decoder(_Model):
    """The encoder masks the source's padding, but cross-attention does not: the decoder averages
    over it.
    """

    def cross_mask(self, target, source):
        return None


@TRANSFORMER.mistake
class padding_seen_by_the_encoder(_Model):
    """Cross-attention masks the source's padding, but the encoder's self-attention does not: what
    stands behind a text has found its way into it by then.
    """

    def source_mask(self, source):
        return None


@TRANSFORMER.mistake
class pad_is_always_zero(_Model):
    """The masks compare with 0 instead of with pad_id."""

    def real(self, ids):
        return (ids != 0)[:, None, None, :]


@TRANSFORMER.mistake
class padding_masks_inverted(_Model):
    """The padding masks are inverted: only padding may be attended to."""

    def real(self, ids):
        return (ids == self.pad_id)[:, None, None, :]


@TRANSFORMER.mistake
class one_layer_object_n_times(_Model):
    """All layers of a stack are one and the same object, `[layer] * num_layers`: the stack has the
    parameters of a single layer, applied again and again.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in ("encoder_layers", "decoder_layers"):
            layers = getattr(self, name)
            setattr(self, name, nn.ModuleList([*layers[:1]] * len(layers)))


@TRANSFORMER.mistake
class final_norms_missing(_Model):
    """With norm_first, encoder_norm and decoder_norm are there and not used: what leaves the last
    layer is a sum that nothing has normalised.
    """

    def encode(self, source):
        norm, self.encoder_norm = self.encoder_norm, nn.Identity()
        memory = super().encode(source)
        self.encoder_norm = norm
        return memory

    def decode(self, target, memory, source):
        norm, self.decoder_norm = self.decoder_norm, nn.Identity()
        hidden = super().decode(target, memory, source)
        self.decoder_norm = norm
        return hidden


@TRANSFORMER.mistake
class memory_not_normalised(_Model):
    """With norm_first, decoder_norm is applied and encoder_norm is not: every decoder layer looks
    into a memory that nothing has normalised.
    """

    def encode(self, source):
        norm, self.encoder_norm = self.encoder_norm, nn.Identity()
        memory = super().encode(source)
        self.encoder_norm = norm
        return memory


@TRANSFORMER.mistake
class norm_after_every_layer(_Model):
    """With norm_first, the final norm is applied behind every layer instead of behind the last
    one: it stands inside the loop.
    """

    def encode(self, source):
        x, mask = self.embed(self.source_embedding, source), self.source_mask(source)
        for layer in self.encoder_layers:
            x = self.encoder_norm(layer(x, mask))
        return x

    def decode(self, target, memory, source):
        x = self.embed(self.target_embedding, target)
        masks = self.self_mask(target), self.cross_mask(target, source)
        for layer in self.decoder_layers:
            x = self.decoder_norm(layer(x, memory, *masks))
        return x


@TRANSFORMER.mistake
class model_root_forgotten(_Model):
    """The rows of the embedding are added to the positions without the factor √d_model."""

    def embed(self, embedding, ids, offset=0):
        return super().embed(lambda i: embedding.weight[i], ids)


@TRANSFORMER.mistake
class root_twice(_Model):
    """√d_model is applied twice: TokenEmbedding has multiplied by it already."""

    def sum_up(self, vectors, positions):
        return super().sum_up(vectors * vectors.shape[-1] ** 0.5, positions)


@TRANSFORMER.mistake
class positions_scaled(_Model):
    """The positions are multiplied by √d_model as well. Only the embeddings are."""

    def sum_up(self, vectors, positions):
        return super().sum_up(vectors, positions * vectors.shape[-1] ** 0.5)


@TRANSFORMER.mistake
class positions_forgotten(_Model):
    """No positions are added: the encoder reads a bag of tokens."""

    def sum_up(self, vectors, positions):
        return self.dropout(vectors)


@TRANSFORMER.mistake
class positions_on_the_source_only(_Model):
    """The source gets positions and the target does not."""

    def embed(self, embedding, ids, offset=0):
        if embedding is self.target_embedding:
            return self.dropout(embedding(ids))
        return super().embed(embedding, ids)


@TRANSFORMER.mistake
class positions_from_one(_Model):
    """The first token stands at position 1. Positions begin at 0, where the sines are 0 and the
    cosines 1.
    """

    def embed(self, embedding, ids, offset=0):
        positions = blocks.sinusoidal_encoding(ids.shape[1] + 1, self.positions.shape[1])[1:]
        return self.sum_up(embedding(ids), positions.to(self.positions))


@TRANSFORMER.mistake
class positions_not_dropped(_Model):
    """Dropout acts on the embeddings before the positions are added. It acts on the sum."""

    def sum_up(self, vectors, positions):
        return self.dropout(vectors) + positions


@TRANSFORMER.mistake
class sum_without_dropout(_Model):
    """There is no dropout on the sum of embeddings and positions."""

    def sum_up(self, vectors, positions):
        return vectors + positions


@TRANSFORMER.mistake
class model_dropout_in_eval(_Model):
    """Dropout on the embeddings goes on in eval mode."""

    def sum_up(self, vectors, positions):
        return F.dropout(vectors + positions, self.dropout.p)


@TRANSFORMER.mistake
class double_softmax(_Model):
    """forward gives probabilities. It is asked for logits; the loss takes the softmax, and a
    softmax of a softmax is nearly flat.
    """

    def finish(self, hidden):
        return super().finish(hidden).softmax(-1)


@TRANSFORMER.mistake
class log_probabilities(_Model):
    """forward gives log-probabilities. It is asked for logits; the loss takes the softmax."""

    def finish(self, hidden):
        return super().finish(hidden).log_softmax(-1)


@TRANSFORMER.mistake
class scored_with_the_source_embedding(_Model):
    """The logits come from the source's embedding: they score tokens of the wrong language."""

    def finish(self, hidden):
        return self.source_embedding.logits(hidden)


@TRANSFORMER.mistake
class output_not_tied(_Model):
    """The logits use a copy of the target's embedding, detached from it: the numbers are right to
    begin with, but the embedding does not learn from the output.
    """

    def finish(self, hidden):
        return hidden @ self.target_embedding.weight.detach().mT


@TRANSFORMER.mistake
class memory_is_the_embedding(_Model):
    """The decoder looks at the source's embeddings; the encoder's layers are never used."""

    def forward(self, source, target):
        memory = self.encoder_norm(self.embed(self.source_embedding, source))
        return self.finish(self.decode(target, memory, source))


@TRANSFORMER.mistake
class decoder_without_layers(_Model):
    """The decoder's layers all get the embedded target: the loop throws away what the layer
    before has made, and only the last layer counts.
    """

    def decode(self, target, memory, source):
        x = out = self.embed(self.target_embedding, target)
        masks = self.self_mask(target), self.cross_mask(target, source)
        for layer in self.decoder_layers:
            out = layer(x, memory, *masks)
        return self.decoder_norm(out)


@TRANSFORMER.mistake
class encoder_cut_off(_Model):
    """The memory is detached: the logits are right, and the encoder never learns."""

    def forward(self, source, target):
        return self.finish(self.decode(target, self.encode(source).detach(), source))


@TRANSFORMER.mistake
class last_position_only(_Model):
    """Only the last position's logits come back. In training, every position is scored."""

    def finish(self, hidden):
        return super().finish(hidden)[:, -1]


@TRANSFORMER.mistake
class logits_in_single(_Model):
    """The logits are float32 whatever the model is."""

    def finish(self, hidden):
        return super().finish(hidden).float()


@TRANSFORMER.mistake
class padding_written_over(_Model):
    """The caller's source is written into: its padding is replaced in place."""

    def forward(self, source, target):
        logits = super().forward(source.clone(), target)
        source[source == self.pad_id] = -1
        return logits


@TRANSFORMER.mistake
class masks_with_infinity(_Model):
    """A source of nothing but padding gives NaN: the mask is made by hand of −∞, and a row of
    nothing but −∞ is 0/0 in the softmax.
    """

    def forward(self, source, target):
        logits = super().forward(source, target)
        nothing = (source == self.pad_id).all(1)
        return logits.masked_fill(nothing[:, None, None], math.nan)


@TRANSFORMER.mistake
class model_switches_the_default(_Model):
    """forward sets torch's default dtype, for the whole program."""

    def forward(self, source, target):
        torch.set_default_dtype(torch.float64)
        return super().forward(source, target)


# --- Transformer: right -------------------------------------------------------------------------


@TRANSFORMER.right
class model_in_parts(_Model):
    pass


@TRANSFORMER.right
class model_with_a_causal_mask_only(_Model):
    """Padding stands at the target's end, in the future of every real position."""

    def self_mask(self, target):
        return self.past(target.shape[1], target.device)


@TRANSFORMER.right
class model_with_square_masks(_Model):
    def source_mask(self, source):
        n = source.shape[1]
        return (source != self.pad_id)[:, None, None, :].repeat(1, 1, n, 1)

    def cross_mask(self, target, source):
        return (source != self.pad_id)[:, None, None, :].repeat(1, 1, target.shape[1], 1)

    def past(self, n, device):
        place = torch.arange(n, device=device)
        return place[None, :] <= place[:, None]


@TRANSFORMER.right
class model_with_positions_by_formula(_Model):
    def embed(self, embedding, ids, offset=0):
        d = self.positions.shape[1]
        place = torch.arange(ids.shape[1], dtype=torch.float32, device=ids.device)[:, None]
        column = torch.arange(d, device=ids.device)
        angle = place / 10000.0 ** (2 * (column // 2) / d)
        table = torch.where(column % 2 == 0, angle.sin(), angle.cos())
        return self.dropout(embedding(ids) + table.to(embedding.weight.dtype))

    def finish(self, hidden):
        return torch.einsum("btd,vd->btv", hidden, self.target_embedding.weight)


@TRANSFORMER.right
class model_with_its_table_in_the_state(_Model):
    """Its positions are a buffer that is saved with the parameters."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        table = blocks.sinusoidal_encoding(64, self.positions.shape[1])
        self.register_buffer("table", table)

    def embed(self, embedding, ids, offset=0):
        return self.dropout(embedding(ids) + self.table[: ids.shape[1]])


@TRANSFORMER.right
class model_of_the_blocks(_Model):
    def __init__(
        self,
        source_vocab,
        target_vocab,
        d_model=512,
        num_heads=8,
        num_layers=6,
        d_ff=2048,
        dropout=0.1,
        pad_id=0,
        norm_first=False,
    ):
        nn.Module.__init__(self)
        sizes = (d_model, num_heads, d_ff, dropout, norm_first)
        self.pad_id, self.d_model = pad_id, d_model
        self.source_embedding = blocks.TokenEmbedding(source_vocab, d_model)
        self.target_embedding = blocks.TokenEmbedding(target_vocab, d_model)
        self.encoder_layers, self.decoder_layers = nn.ModuleList(), nn.ModuleList()
        for _ in range(num_layers):
            self.encoder_layers.append(blocks.EncoderLayer(*sizes))
            self.decoder_layers.append(blocks.DecoderLayer(*sizes))
        if norm_first:
            self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        else:
            self.encoder_norm = self.decoder_norm = lambda x: x
        self.dropout = nn.Dropout(dropout)

    def embed(self, embedding, ids, offset=0):
        table = blocks.sinusoidal_encoding(ids.shape[1], self.d_model)
        return self.dropout(embedding(ids) + table.to(embedding.weight))


# --- shift_right: mistakes ----------------------------------------------------------------------


def _bos(target, bos_id):
    return torch.full_like(target[..., :1], bos_id)


@SHIFT_RIGHT.mistake
def not_shifted(target, bos_id):
    """The target comes back as it is: the decoder reads at position i the very token that it is to
    predict there. The loss goes to 0, and nothing is learnt.
    """
    return target.clone()


@SHIFT_RIGHT.mistake
def last_token_kept(target, bos_id):
    """bos is put in front and nothing dropped: the result is one token longer than the target."""
    return torch.cat([_bos(target, bos_id), target], dim=-1)


@SHIFT_RIGHT.mistake
def shifted_left(target, bos_id):
    """The target is shifted to the left, with bos at its end: the decoder reads the token after the
    one that it is to predict.
    """
    return torch.cat([target[..., 1:], _bos(target, bos_id)], dim=-1)


@SHIFT_RIGHT.mistake
def first_token_replaced(target, bos_id):
    """bos takes the first token's place, and all others stay where they are: from position 1 on,
    the decoder reads what it is to predict.
    """
    return torch.cat([_bos(target, bos_id), target[..., 1:]], dim=-1)


@SHIFT_RIGHT.mistake
def rolled(target, bos_id):
    """The last token comes round to the front instead of bos."""
    return target.roll(1, dims=-1)


@SHIFT_RIGHT.mistake
def last_token_replaced(target, bos_id):
    """bos stands at the end, where the last token was, and nothing has moved."""
    return torch.cat([target[..., :-1], _bos(target, bos_id)], dim=-1)


@SHIFT_RIGHT.mistake
def bos_forgotten(target, bos_id):
    """The last token is dropped and bos is not put in front: the result is one token short."""
    return target[..., :-1].clone()


@SHIFT_RIGHT.mistake
def bos_is_zero(target, bos_id):
    """What stands in front is 0, not bos_id."""
    return F.pad(target[..., :-1], (1, 0))


@SHIFT_RIGHT.mistake
def shifted_along_the_batch(target, bos_id):
    """The rows are shifted, not the tokens within them: along the first axis, not the last."""
    if target.dim() == 1:
        return torch.cat([target.new_tensor([bos_id]), target[:-1]])
    return torch.cat([torch.full_like(target[:1], bos_id), target[:-1]])


@SHIFT_RIGHT.mistake
def second_axis_only(target, bos_id):
    """The shift runs along axis 1. That is the last one of (B, n), and only there."""
    if target.dim() == 1:
        target = target[None]
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)


@SHIFT_RIGHT.mistake
def written_into_the_target(target, bos_id):
    """The shift happens in the caller's own tensor, which is the target of the loss as well."""
    target[..., 1:] = target[..., :-1].clone()
    target[..., 0] = bos_id
    return target


@SHIFT_RIGHT.mistake
def ids_as_floats(target, bos_id):
    """The ids come back as floating-point numbers, which no embedding can look up."""
    return torch.cat([_bos(target, bos_id), target[..., :-1]], dim=-1).float()


@SHIFT_RIGHT.mistake
def single_token_kept(target, bos_id):
    """A target of one token comes back as it is; of one token, only bos is left."""
    if target.shape[-1] == 1:
        return target.clone()
    return torch.cat([_bos(target, bos_id), target[..., :-1]], dim=-1)


@SHIFT_RIGHT.mistake
def memory_read_in_order(target, bos_id):
    """The tokens are read in the order in which they lie in memory. For a view that is not
    contiguous, that is another order than the tensor's.
    """
    n = target.shape[-1]
    flat = target.as_strided((target.numel(),), (1,)).reshape(target.shape)
    return torch.cat([_bos(target, bos_id), flat[..., : n - 1]], dim=-1)


# --- shift_right: right -------------------------------------------------------------------------


@SHIFT_RIGHT.right
def shifted_by_padding(target, bos_id):
    return F.pad(target[..., :-1], (1, 0), value=bos_id)


@SHIFT_RIGHT.right
def shifted_by_filling(target, bos_id):
    out = torch.empty_like(target, memory_format=torch.contiguous_format)
    out[..., 0], out[..., 1:] = bos_id, target[..., :-1]
    return out


@SHIFT_RIGHT.right
def shifted_by_rolling(target, bos_id):
    out = target.roll(1, dims=-1)
    out[..., 0] = bos_id
    return out


@SHIFT_RIGHT.right
def shifted_by_index(target, bos_id):
    place = torch.arange(target.shape[-1], device=target.device)
    return torch.where(place == 0, bos_id, target[..., (place - 1).clamp(min=0)]).to(target.dtype)


# --- label_smoothed_cross_entropy: mistakes -----------------------------------------------------


def _smoothed(logits, target, smoothing, pad_id):
    """Minus the sum of shares times log-softmax, at every position, and where a token stands."""
    log_p = logits.log_softmax(-1)
    one_hot = F.one_hot(target, logits.shape[-1]).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / logits.shape[-1]
    return -(shares * log_p).sum(-1), target != pad_id


def _mean(loss, real):
    return (loss * real).sum() / real.sum().clamp(min=1)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def divided_by_the_padded_count(logits, target, smoothing=0.1, pad_id=0):
    """The sum leaves padding out, but is divided by the number of all positions: the more padding,
    the smaller the loss.
    """
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return (loss * real).sum() / real.numel()


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def pad_in_the_loss(logits, target, smoothing=0.1, pad_id=0):
    """Padding counts like any token: the model is trained to write padding, and the loss falls
    quickly because that is easy.
    """
    return _smoothed(logits, target, smoothing, pad_id)[0].mean()


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def pad_in_the_smoothing(logits, target, smoothing=0.1, pad_id=0):
    """The target's part leaves padding out; the evenly spread part does not."""
    log_p = logits.log_softmax(-1)
    real = target != pad_id
    own = log_p.gather(-1, target[..., None])[..., 0] * real
    even = log_p.mean(-1)
    return -((1 - smoothing) * own + smoothing * even).sum() / real.sum().clamp(min=1)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def nothing_over_nothing(logits, target, smoothing=0.1, pad_id=0):
    """Where there is nothing but padding, the mean is 0/0: NaN, which ends the training."""
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return (loss * real).sum() / real.sum()


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def mean_of_the_rows(logits, target, smoothing=0.1, pad_id=0):
    """Each row's mean counts alike, so a token of a short row counts for more than one of a long
    row. The mean is over tokens.
    """
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return ((loss * real).sum(-1) / real.sum(-1).clamp(min=1)).mean()


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def summed(logits, target, smoothing=0.1, pad_id=0):
    """The sum over the tokens comes back, not their mean: the gradient grows with the batch."""
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return (loss * real).sum()


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def one_per_position(logits, target, smoothing=0.1, pad_id=0):
    """Each position's loss comes back; one number is asked for, their mean."""
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return loss * real


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def double_softmax_in_the_loss(logits, target, smoothing=0.1, pad_id=0):
    """The softmax is taken twice: log_softmax of probabilities. They lie between 0 and 1, so that
    what comes out is nearly flat, and the loss hardly falls.
    """
    return _mean(*_smoothed(logits.softmax(-1), target, smoothing, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def no_softmax(logits, target, smoothing=0.1, pad_id=0):
    """The logits are taken for log-probabilities as they are; log_softmax makes them into such."""
    one_hot = F.one_hot(target, logits.shape[-1]).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / logits.shape[-1]
    return _mean(-(shares * logits).sum(-1), target != pad_id)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def logarithm_of_the_softmax(logits, target, smoothing=0.1, pad_id=0):
    """log(softmax(…)) in two steps: where a probability is so small that it is 0, the loss is
    infinite.
    """
    log_p = logits.softmax(-1).log()
    one_hot = F.one_hot(target, logits.shape[-1]).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / logits.shape[-1]
    real = target != pad_id
    return _mean(-(shares * log_p).sum(-1), real)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def smoothing_forgotten(logits, target, smoothing=0.1, pad_id=0):
    """This is the plain cross-entropy, whatever the smoothing."""
    return _mean(*_smoothed(logits, target, 0.0, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def smoothing_is_always_a_tenth(logits, target, smoothing=0.1, pad_id=0):
    """ε is 0.1 whatever the argument says."""
    return _mean(*_smoothed(logits, target, 0.1, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def smoothing_over_the_wrong_tokens(logits, target, smoothing=0.1, pad_id=0):
    """ε is shared by the V − 1 wrong tokens. Here all V tokens share it, the right one included."""
    log_p = logits.log_softmax(-1)
    V = logits.shape[-1]
    one_hot = F.one_hot(target, V).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / (V - 1) * (1 - one_hot)
    return _mean(-(shares * log_p).sum(-1), target != pad_id)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def smoothing_not_divided(logits, target, smoothing=0.1, pad_id=0):
    """Every token gets ε instead of ε/V: the shares add up to far more than 1."""
    log_p = logits.log_softmax(-1)
    own = log_p.gather(-1, target[..., None])[..., 0]
    return _mean(-(1 - smoothing) * own - smoothing * log_p.sum(-1), target != pad_id)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def smoothing_exchanged(logits, target, smoothing=0.1, pad_id=0):
    """ε and 1 − ε have changed places: the right token gets a tenth, and chance the rest."""
    return _mean(*_smoothed(logits, target, 1 - smoothing, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def sign_forgotten(logits, target, smoothing=0.1, pad_id=0):
    """The minus is missing: training makes the right tokens less likely."""
    loss, real = _smoothed(logits, target, smoothing, pad_id)
    return -_mean(loss, real)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def loss_in_single(logits, target, smoothing=0.1, pad_id=0):
    """The loss is computed in float32 whatever the logits are."""
    return _mean(*_smoothed(logits.float(), target, smoothing, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def target_overwritten(logits, target, smoothing=0.1, pad_id=0):
    """The caller's target is written into, to take the padding out of it."""
    loss, real = _smoothed(logits, target.clone(), smoothing, pad_id)
    target[~real] = -100
    target[real] -= 0
    target.view(-1)[0] = -100
    return _mean(loss, real)


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def loss_read_in_order(logits, target, smoothing=0.1, pad_id=0):
    """The logits are read in the order in which they lie in memory, which is not that of the tensor
    where it is not contiguous.
    """
    flat = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    return _mean(*_smoothed(flat, target, smoothing, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.mistake
def loss_without_a_gradient(logits, target, smoothing=0.1, pad_id=0):
    """The number is right and has no gradient: it has left torch on its way, through .item() or
    .data.
    """
    return _mean(*_smoothed(logits.detach(), target, smoothing, pad_id))


# --- label_smoothed_cross_entropy: right --------------------------------------------------------


@LABEL_SMOOTHED_CROSS_ENTROPY.right
def loss_by_one_hot(logits, target, smoothing=0.1, pad_id=0):
    return _mean(*_smoothed(logits, target, smoothing, pad_id))


@LABEL_SMOOTHED_CROSS_ENTROPY.right
def loss_of_torch(logits, target, smoothing=0.1, pad_id=0):
    flat, ids = logits.flatten(0, -2), target.flatten()
    if (ids == pad_id).all():
        return (logits * 0).sum()
    return F.cross_entropy(flat, ids, ignore_index=pad_id, label_smoothing=smoothing)


@LABEL_SMOOTHED_CROSS_ENTROPY.right
def loss_of_the_chosen(logits, target, smoothing=0.1, pad_id=0):
    real = target != pad_id
    logits, ids = logits[real], target[real]  # (tokens, V), (tokens,)
    if len(ids) == 0:
        return logits.sum()
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    own = log_p[torch.arange(len(ids), device=ids.device), ids]
    return -((1 - smoothing) * own + smoothing * log_p.mean(-1)).mean()


@LABEL_SMOOTHED_CROSS_ENTROPY.right
def loss_in_a_loop(logits, target, smoothing=0.1, pad_id=0):
    V = logits.shape[-1]
    total, count = (logits * 0).sum(), 0
    for scores, token in zip(logits.reshape(-1, V), target.reshape(-1).tolist(), strict=True):
        if token != pad_id:
            log_p = torch.log_softmax(scores, 0)
            total = total - (1 - smoothing) * log_p[token] - smoothing / V * log_p.sum()
            count += 1
    return total / max(count, 1)


@LABEL_SMOOTHED_CROSS_ENTROPY.right
def loss_wide_inside(logits, target, smoothing=0.1, pad_id=0):
    return _mean(*_smoothed(logits.double(), target, smoothing, pad_id)).to(logits.dtype)


# --- noam_rate: mistakes ------------------------------------------------------------------------


def _noam(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def _from_one(step):
    if step < 1:
        raise ValueError(f"there is no step {step}")


@NOAM_RATE.mistake
def first_rate_repeated(step, d_model, warmup=4000):
    """The count begins at 0: steps 1 and 2 have the same rate, and all that follow are one late."""
    _from_one(step)
    return _noam(max(step - 1, 1), d_model, warmup)


@NOAM_RATE.mistake
def one_step_ahead(step, d_model, warmup=4000):
    """1 is added to the step: the first rate is twice what it should be, and the peak comes one
    step early.
    """
    _from_one(step)
    return _noam(step + 1, d_model, warmup)


@NOAM_RATE.mistake
def step_zero_allowed(step, d_model, warmup=4000):
    """A step below 1 is taken for the first one. It is a mistake in the caller's count; say so with
    a ValueError.
    """
    return _noam(max(step, 1), d_model, warmup)


@NOAM_RATE.mistake
def larger_of_the_two(step, d_model, warmup=4000):
    """max for min: the rate begins enormous, falls until the warm-up is over, and then climbs
    without end.
    """
    _from_one(step)
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@NOAM_RATE.mistake
def d_model_forgotten(step, d_model, warmup=4000):
    """The factor d_model^−½ is missing: wider models need smaller steps."""
    _from_one(step)
    return min(step**-0.5, step * warmup**-1.5)


@NOAM_RATE.mistake
def times_the_root_of_d_model(step, d_model, warmup=4000):
    """The rate is multiplied by √d_model instead of divided by it."""
    _from_one(step)
    return d_model * _noam(step, d_model, warmup)


@NOAM_RATE.mistake
def divided_by_d_model(step, d_model, warmup=4000):
    """The rate is divided by d_model, not by its square root."""
    _from_one(step)
    return d_model**-0.5 * _noam(step, d_model, warmup)


@NOAM_RATE.mistake
def warmup_to_the_half(step, d_model, warmup=4000):
    """The exponent of warmup is −½. It is −3/2, so that the two curves meet at step = warmup."""
    _from_one(step)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@NOAM_RATE.mistake
def no_warmup(step, d_model, warmup=4000):
    """There is no warm-up: the rate begins at its largest and only falls."""
    _from_one(step)
    return d_model**-0.5 * step**-0.5


@NOAM_RATE.mistake
def no_decay(step, d_model, warmup=4000):
    """After the warm-up the rate stays where it is; it should fall as 1/√step."""
    _from_one(step)
    return _noam(min(step, warmup), d_model, warmup)


@NOAM_RATE.mistake
def decay_in_a_line(step, d_model, warmup=4000):
    """After the warm-up the rate falls as 1/step, not as 1/√step."""
    _from_one(step)
    return d_model**-0.5 * min(warmup**0.5 / step, step * warmup**-1.5)


@NOAM_RATE.mistake
def always_4000(step, d_model, warmup=4000):
    """The warm-up takes 4000 steps whatever the argument says."""
    _from_one(step)
    return _noam(step, d_model, 4000)


@NOAM_RATE.mistake
def warmup_of_a_thousand(step, d_model, warmup=1000):
    """The default warm-up is 1000 steps; the paper's is 4000."""
    _from_one(step)
    return _noam(step, d_model, warmup)


@NOAM_RATE.mistake
def rate_as_a_tensor(step, d_model, warmup=4000):
    """The rate is a tensor. A plain number is asked for, which optimisers and logs take."""
    _from_one(step)
    return torch.tensor(_noam(step, d_model, warmup), dtype=torch.float64)


# --- noam_rate: right ---------------------------------------------------------------------------


@NOAM_RATE.right
def noam_in_two_pieces(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError("steps are counted from 1")
    peak = 1 / math.sqrt(d_model * warmup)
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)


@NOAM_RATE.right
def noam_by_numpy(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError(step)
    return np.minimum(step**-0.5, step * warmup**-1.5) / np.sqrt(d_model)


@NOAM_RATE.right
def noam_by_logarithms(step, d_model, warmup=4000):
    if step <= 0:
        raise ValueError(f"step {step} < 1")
    rising, falling = math.log(step) - 1.5 * math.log(warmup), -0.5 * math.log(step)
    return math.exp(min(rising, falling) - 0.5 * math.log(d_model))


@NOAM_RATE.right
def noam_by_torch(step, d_model, warmup=4000):
    if not step >= 1:
        raise ValueError(f"step {step} < 1")
    curves = torch.tensor([step**-0.5, step * warmup**-1.5], dtype=torch.float64)
    return (curves.min() / d_model**0.5).item()


# --- greedy_decode: mistakes --------------------------------------------------------------------


class _evaluating:
    """Put a model into eval mode, and each of its modules back into its own afterwards."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()

    def __exit__(self, *error):
        for m, training in self.modes:
            m.training = training


def _start(source, bos_id):
    return torch.full((len(source), 1), bos_id, dtype=torch.long, device=source.device)


def _last(model, source, ids):
    return model(source, ids)[:, -1]


def _likeliest(logits):
    return logits.argmax(-1)


def _write(
    model, source, bos_id, eos_id, max_len, pick=_likeliest, score=_last, pad=None, over=torch.all
):
    """Greedy decoding in small parts: bos and what is written."""
    pad = model.pad_id if pad is None else pad
    ids = _start(source, bos_id)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    with torch.no_grad():
        for _ in range(max_len):
            chosen = pick(score(model, source, ids)).masked_fill(done, pad)
            ids = torch.cat([ids, chosen[:, None]], 1)
            done = done | (chosen == eos_id)
            if over(done):
                break
    return ids


@GREEDY_DECODE.mistake
def bos_kept(model, source, bos_id, eos_id, max_len):
    """The result begins with bos, which nobody has written."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len)


@GREEDY_DECODE.mistake
def eos_dropped(model, source, bos_id, eos_id, max_len):
    """eos is replaced by padding in the result. It belongs to what was written."""
    with _evaluating(model):
        ids = _write(model, source, bos_id, eos_id, max_len)[:, 1:]
    return ids.masked_fill(ids == eos_id, model.pad_id)


@GREEDY_DECODE.mistake
def writes_on_after_eos(model, source, bos_id, eos_id, max_len):
    """A row that has its eos goes on writing while others are not done: what stands behind eos is
    noise, not padding.
    """
    ids = _start(source, bos_id)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    with _evaluating(model), torch.no_grad():
        while ids.shape[1] <= max_len and not done.all():
            chosen = _last(model, source, ids).argmax(-1)
            ids = torch.cat([ids, chosen[:, None]], 1)
            done = done | (chosen == eos_id)
    return ids[:, 1:]


@GREEDY_DECODE.mistake
def never_stops(model, source, bos_id, eos_id, max_len):
    """Nothing stops at eos: every row is written to max_len, whatever it says."""
    with _evaluating(model):
        return _write(model, source, bos_id, -1, max_len)[:, 1:]


@GREEDY_DECODE.mistake
def always_max_len(model, source, bos_id, eos_id, max_len):
    """The result is right and padded to max_len: the model is asked on and on after every row has
    its eos.
    """
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, over=lambda done: False)[:, 1:]


@GREEDY_DECODE.mistake
def asks_on_and_trims(model, source, bos_id, eos_id, max_len):
    """The model is called max_len times however early the rows are done, and the padding cut off
    afterwards: right, and slow.
    """
    with _evaluating(model):
        ids = _write(model, source, bos_id, eos_id, max_len, over=lambda done: False)[:, 1:]
    ends = [[*row, eos_id].index(eos_id) + 1 for row in ids.tolist()]
    return ids[:, : max(ends)]


@GREEDY_DECODE.mistake
def stops_at_the_first_eos(model, source, bos_id, eos_id, max_len):
    """Writing stops as soon as one row has its eos; the others are cut short. any() for all()."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, over=torch.any)[:, 1:]


@GREEDY_DECODE.mistake
def stops_with_the_first_row(model, source, bos_id, eos_id, max_len):
    """Only the first row's eos is looked at: as soon as it is there, all rows stop."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, over=lambda done: done[0])[:, 1:]


@GREEDY_DECODE.mistake
def padded_with_eos(model, source, bos_id, eos_id, max_len):
    """Rows that are done are filled up with eos instead of model.pad_id."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, pad=eos_id)[:, 1:]


@GREEDY_DECODE.mistake
def padded_with_zero(model, source, bos_id, eos_id, max_len):
    """Rows that are done are filled up with 0. Padding is model.pad_id, which need not be 0."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, pad=0)[:, 1:]


@GREEDY_DECODE.mistake
def one_token_short(model, source, bos_id, eos_id, max_len):
    """bos is counted: one token less than max_len is written."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len - 1)[:, 1:]


@GREEDY_DECODE.mistake
def one_token_too_many(model, source, bos_id, eos_id, max_len):
    """max_len + 1 tokens are written where no eos comes."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len + 1)[:, 1:]


@GREEDY_DECODE.mistake
def predicts_in_train_mode(model, source, bos_id, eos_id, max_len):
    """The model decodes in whatever mode it comes: in training mode, dropout blurs every step, and
    two calls give two texts.
    """
    return _write(model, source, bos_id, eos_id, max_len)[:, 1:]


@GREEDY_DECODE.mistake
def left_in_eval_mode(model, source, bos_id, eos_id, max_len):
    """model.eval() is called and never undone: whoever decodes between two epochs trains on
    without dropout.
    """
    model.eval()
    return _write(model, source, bos_id, eos_id, max_len)[:, 1:]


@GREEDY_DECODE.mistake
def left_in_training_mode(model, source, bos_id, eos_id, max_len):
    """model.train() is called at the end, in whatever mode the model came."""
    model.eval()
    ids = _write(model, source, bos_id, eos_id, max_len)[:, 1:]
    model.train()
    return ids


@GREEDY_DECODE.mistake
def one_mode_for_all_parts(model, source, bos_id, eos_id, max_len):
    """model.train(mode) puts all modules into one mode at the end. A part that was frozen in eval
    mode is not any more.
    """
    mode = model.training
    model.eval()
    ids = _write(model, source, bos_id, eos_id, max_len)[:, 1:]
    model.train(mode)
    return ids


@GREEDY_DECODE.mistake
def first_position_scored(model, source, bos_id, eos_id, max_len):
    """The logits of the first position are read at every step; what comes next stands at the last:
    the same token is written over and over.
    """
    with _evaluating(model):
        ids = _write(
            model, source, bos_id, eos_id, max_len, score=lambda m, s, ids: m(s, ids)[:, 0]
        )
    return ids[:, 1:]


@GREEDY_DECODE.mistake
def only_the_last_token_read(model, source, bos_id, eos_id, max_len):
    """The model gets the last token alone, not all that is written so far: it does not know where
    in the text it is.
    """
    with _evaluating(model):
        ids = _write(
            model, source, bos_id, eos_id, max_len, score=lambda m, s, ids: m(s, ids[:, -1:])[:, -1]
        )
    return ids[:, 1:]


@GREEDY_DECODE.mistake
def least_likely(model, source, bos_id, eos_id, max_len):
    """The least likely token is taken: argmin, or the first of an ascending sort."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, pick=lambda x: x.argmin(-1))[:, 1:]


@GREEDY_DECODE.mistake
def drawn_by_lot(model, source, bos_id, eos_id, max_len):
    """The next token is drawn by lot from the softmax. Greedy decoding takes the likeliest."""

    def pick(logits):
        return torch.multinomial((logits / 4).softmax(-1), 1)[:, 0]

    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len, pick=pick)[:, 1:]


@GREEDY_DECODE.mistake
def starts_with_eos(model, source, bos_id, eos_id, max_len):
    """The first token that the model reads is eos, not bos."""
    with _evaluating(model):
        return _write(model, source, eos_id, eos_id, max_len)[:, 1:]


@GREEDY_DECODE.mistake
def row_by_row_of_the_first(model, source, bos_id, eos_id, max_len):
    """Every row is written from the first row's source."""
    with _evaluating(model):
        same = source[:1].expand_as(source)
        return _write(model, same, bos_id, eos_id, max_len)[:, 1:]


@GREEDY_DECODE.mistake
def ids_are_narrow(model, source, bos_id, eos_id, max_len):
    """The ids come back as int32; token ids are long."""
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len)[:, 1:].int()


@GREEDY_DECODE.mistake
def gradients_left_off(model, source, bos_id, eos_id, max_len):
    """torch.set_grad_enabled(False) is called and never undone: the next training step fails."""
    with _evaluating(model):
        ids = _write(model, source, bos_id, eos_id, max_len)[:, 1:]
    torch.set_grad_enabled(False)
    return ids


@GREEDY_DECODE.mistake
def source_padded_in_place(model, source, bos_id, eos_id, max_len):
    """The caller's source is written into: rows that are done are turned into padding."""
    with _evaluating(model):
        ids = _write(model, source, bos_id, eos_id, max_len)[:, 1:]
    source[(ids == eos_id).any(1)] = model.pad_id
    return ids


# --- greedy_decode: right -----------------------------------------------------------------------


@GREEDY_DECODE.right
def greedy_row_by_row(model, source, bos_id, eos_id, max_len):
    rows = []
    with _evaluating(model), torch.inference_mode():
        for one in source:
            ids = [bos_id]
            while len(ids) <= max_len and eos_id not in ids[1:]:
                written = torch.tensor([ids], device=source.device)
                ids.append(int(model(one[None], written)[0, -1].argmax()))
            rows.append(ids[1:])
    width = max(map(len, rows))
    full = [row + [model.pad_id] * (width - len(row)) for row in rows]
    return torch.tensor(full, device=source.device)


@GREEDY_DECODE.right
def greedy_into_a_table(model, source, bos_id, eos_id, max_len):
    ids = torch.full((len(source), max_len + 1), model.pad_id, device=source.device)
    ids[:, 0], length = bos_id, 0
    going = torch.ones(len(source), dtype=torch.bool, device=source.device)
    with _evaluating(model), torch.no_grad():
        while length < max_len and going.any():
            length += 1
            best = model(source, ids[:, :length])[:, -1].softmax(-1).max(-1).indices
            ids[going, length] = best[going]
            going = going & (best != eos_id)
    return ids[:, 1 : length + 1]


@GREEDY_DECODE.right
def greedy_in_parts(model, source, bos_id, eos_id, max_len):
    with _evaluating(model):
        return _write(model, source, bos_id, eos_id, max_len)[:, 1:]


@GREEDY_DECODE.right
def greedy_with_gradients(model, source, bos_id, eos_id, max_len):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    columns, done = [_start(source, bos_id)[:, 0]], torch.zeros(len(source)).to(source.device) > 0
    for _ in range(max_len):
        logits = model(source, torch.stack(columns, 1))[:, -1].detach()
        columns.append(torch.where(done, model.pad_id, logits.topk(1).indices[:, 0]))
        done = done | (columns[-1] == eos_id)
        if int(done.sum()) == len(done):
            break
    for m, mode in modes.items():
        m.training = mode
    return torch.stack(columns[1:], 1)


# --- beam_search: mistakes ----------------------------------------------------------------------


class _Beam:
    """Beam search in small parts; a mistake replaces one and is called like the function."""

    def start(self, source, bos_id, beam_size):
        return torch.full((1, 1), bos_id, device=source.device)

    def ask(self, model, source, ids):
        return model(source.expand(len(ids), -1), ids)[:, -1]

    def log_p(self, logits):
        return logits.log_softmax(-1)

    def add(self, so_far, log_p):
        return so_far[:, None] + log_p

    def choose(self, total, beam_size):
        """Scores, parents and tokens of the best continuations."""
        best = total.flatten().topk(min(beam_size, total.numel()))
        return best.values, best.indices // total.shape[1], best.indices % total.shape[1]

    def ended(self, ids, eos_id):
        return ids[:, -1] == eos_id

    def length(self, ids):
        """The length that the penalty counts; ids have bos in front."""
        return len(ids) - 1

    def penalise(self, log_p, length, alpha):
        return log_p / ((5 + length) / 6) ** alpha

    def result(self, finished, unfinished):
        return [*finished, *unfinished]

    def shown(self, ids):
        return ids[1:]

    def order(self, pairs):
        return sorted(pairs, key=lambda pair: -pair[1])

    def search(self, model, source, bos_id, eos_id, max_len, beam_size, alpha):
        ids = self.start(source, bos_id, beam_size)
        so_far = torch.zeros(len(ids), device=source.device)
        finished = []
        for _ in range(max_len):
            total = self.add(so_far, self.log_p(self.ask(model, source, ids)))
            so_far, parent, token = self.choose(total, beam_size)
            ids = torch.cat([ids[parent], token[:, None]], 1)
            ended = self.ended(ids, eos_id)
            finished += zip(ids[ended], so_far[ended].tolist(), strict=True)
            ids, so_far = ids[~ended], so_far[~ended]
            if not len(ids):
                break
        found = self.result(finished, [*zip(ids, so_far.tolist(), strict=True)])
        pairs = [(self.shown(i), self.penalise(p, self.length(i), alpha)) for i, p in found]
        return self.order(pairs)[:beam_size]

    def run(self, model, *args):
        with _evaluating(model), torch.no_grad():
            return self.search(model, *args)


def _beam_mistake(cls):
    """Register a mistaken class as a function of its name."""

    def answer(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
        return cls().run(model, source, bos_id, eos_id, max_len, beam_size, length_penalty)

    answer.__name__, answer.__doc__ = cls.__name__, cls.__doc__
    return BEAM_SEARCH.mistake(answer)


@_beam_mistake
class parent_by_true_division(_Beam):
    """The beam that a continuation belongs to comes from a true division, rounded: tokens of the
    upper half of the vocabulary are hung on to the beam after theirs. Divide whole numbers.
    """

    def choose(self, total, beam_size):
        values, parent, token = super().choose(total, beam_size)
        place = parent * total.shape[1] + token
        rounded = torch.round(place / total.shape[1]).long()
        return values, rounded.clamp(max=len(total) - 1), token


@_beam_mistake
class parent_forgotten(_Beam):
    """The new tokens are appended to the beams in the order in which they stand, not to the beam
    that each continues: the texts are mixtures of several.
    """

    def choose(self, total, beam_size):
        values, _, token = super().choose(total, beam_size)
        return values, torch.arange(len(token), device=token.device) % len(total), token


@_beam_mistake
class length_penalty_inverted(_Beam):
    """log p is multiplied by the length penalty instead of divided by it: long texts are punished
    twice.
    """

    def penalise(self, log_p, length, alpha):
        return log_p * ((5 + length) / 6) ** alpha


@_beam_mistake
class length_penalty_ignored(_Beam):
    """The score is log p itself: every token makes a text worse, so the short ones win."""

    def penalise(self, log_p, length, alpha):
        return log_p


@_beam_mistake
class mean_log_probability(_Beam):
    """log p is divided by length^α. The penalty is ((5 + length) / 6)^α, which is 1 for one token
    and grows more gently.
    """

    def penalise(self, log_p, length, alpha):
        return log_p / length**alpha


@_beam_mistake
class penalty_without_brackets(_Beam):
    """The penalty is 5 + length/6, to the power of α: brackets are missing around 5 + length."""

    def penalise(self, log_p, length, alpha):
        return log_p / (5 + length / 6) ** alpha


@_beam_mistake
class length_without_eos(_Beam):
    """eos is not counted in the length of a finished text."""

    def search(self, *args):
        self.eos = args[3]
        return super().search(*args)

    def length(self, ids):
        return len(ids) - 1 - int(ids[-1] == self.eos)


@_beam_mistake
class length_with_bos(_Beam):
    """bos is counted in the length. Nobody has written it."""

    def length(self, ids):
        return len(ids)


@_beam_mistake
class beam_bos_kept(_Beam):
    """The ids begin with bos, which nobody has written."""

    def shown(self, ids):
        return ids


@_beam_mistake
class beam_eos_dropped(_Beam):
    """eos is left out of the ids. It belongs to what was written."""

    def search(self, *args):
        pairs = super().search(*args)
        return [(ids[:-1] if ids[-1] == args[3] else ids, score) for ids, score in pairs]


@_beam_mistake
class worst_first(_Beam):
    """The pairs come back in ascending order: the worst of all first."""

    def order(self, pairs):
        return sorted(pairs, key=lambda pair: pair[1])


@_beam_mistake
class in_the_order_found(_Beam):
    """The pairs come back in the order in which they were finished. The best score comes first."""

    def order(self, pairs):
        return pairs


@_beam_mistake
class unfinished_dropped(_Beam):
    """Beams that are unfinished at max_len are thrown away; they count as they are."""

    def result(self, finished, unfinished):
        return finished


@_beam_mistake
class finished_dropped(_Beam):
    """Beams that reach eos before the end are lost: only those alive at max_len come back."""

    def result(self, finished, unfinished):
        return unfinished or finished[-1:]


@_beam_mistake
class beam_never_stops(_Beam):
    """A beam that has its eos is continued like any other, to max_len."""

    def ended(self, ids, eos_id):
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)


@_beam_mistake
class only_the_last_step_counts(_Beam):
    """The log-probabilities of earlier steps are not added: a beam is as good as its last token."""

    def add(self, so_far, log_p):
        return log_p + 0 * so_far[:, None]


@_beam_mistake
class logits_added(_Beam):
    """Raw logits are added up. Only after log_softmax can those of two beams be compared."""

    def log_p(self, logits):
        return logits


@_beam_mistake
class probabilities_added(_Beam):
    """Probabilities are added up where their logarithms should be: the longest text wins."""

    def log_p(self, logits):
        return logits.softmax(-1)


@_beam_mistake
class softmax_in_the_beam_twice(_Beam):
    """log_softmax is taken of a softmax: all tokens come out nearly alike."""

    def log_p(self, logits):
        return logits.softmax(-1).log_softmax(-1)


@_beam_mistake
class every_beam_for_itself(_Beam):
    """Each beam is continued with its own best token; beams never compete. After the first step
    nothing is searched any more: this is greedy decoding from several first words.
    """

    def choose(self, total, beam_size):
        if len(total) == 1 and not hasattr(self, "begun"):
            self.begun = True
            return super().choose(total, beam_size)
        values, token = total.max(-1)
        return values, torch.arange(len(total), device=token.device), token


@_beam_mistake
class greedy_in_disguise(_Beam):
    """Only the best continuation is kept at each step, whatever beam_size says."""

    def choose(self, total, beam_size):
        return super().choose(total, 1)


@_beam_mistake
class beams_start_alike(_Beam):
    """The search starts from beam_size copies of bos. They never come apart: each step finds the
    same best continuation beam_size times over, and the result is greedy decoding's, repeated.
    """

    def start(self, source, bos_id, beam_size):
        return torch.full((beam_size, 1), bos_id, device=source.device)


@_beam_mistake
class beam_too_wide(_Beam):
    """topk is asked for beam_size continuations where there are fewer, and raises. Ask for no more
    than there are.
    """

    def choose(self, total, beam_size):
        best = total.flatten().topk(beam_size)
        return best.values, best.indices // total.shape[1], best.indices % total.shape[1]


@_beam_mistake
class beam_reads_the_first_position(_Beam):
    """The first position's logits are read at every step; what comes next stands at the last."""

    def ask(self, model, source, ids):
        return model(source.expand(len(ids), -1), ids)[:, 0]


@_beam_mistake
class beam_one_token_short(_Beam):
    """bos is counted: one token less than max_len is written."""

    def search(self, model, source, bos_id, eos_id, max_len, *rest):
        return super().search(model, source, bos_id, eos_id, max_len - 1, *rest)


@_beam_mistake
class beam_in_train_mode(_Beam):
    """The model decodes in whatever mode it comes: in training mode, dropout blurs every step."""

    def run(self, model, *args):
        with torch.no_grad():
            return self.search(model, *args)


@_beam_mistake
class beam_left_in_eval_mode(_Beam):
    """model.eval() is called and never undone: training goes on without dropout."""

    def run(self, model, *args):
        model.eval()
        with torch.no_grad():
            return self.search(model, *args)


@_beam_mistake
class beam_turns_gradients_off(_Beam):
    """torch.set_grad_enabled(False) is called and never undone: the next training step fails."""

    def run(self, model, *args):
        pairs = super().run(model, *args)
        torch.set_grad_enabled(False)
        return pairs


@_beam_mistake
class beam_writes_into_the_source(_Beam):
    """The caller's source is written into."""

    def run(self, model, source, *args):
        pairs = super().run(model, source.clone(), *args)
        source.add_(1)
        return pairs


# --- beam_search: right -------------------------------------------------------------------------


@BEAM_SEARCH.right
def beam_in_parts(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    return _Beam().run(model, source, bos_id, eos_id, max_len, beam_size, length_penalty)


def _score(ids, log_p, length_penalty):
    return log_p / ((5 + len(ids)) / 6) ** length_penalty


def _continued(model, source, bos_id, texts):
    """Every text with every next token: (log p, ids)."""
    ids = torch.tensor([[bos_id, *text] for _, text in texts], device=source.device)
    log_p = model(source.repeat(len(ids), 1), ids)[:, -1].log_softmax(-1).tolist()
    for (so_far, text), row in zip(texts, log_p, strict=True):
        for token, p in enumerate(row):
            yield so_far + p, (*text, token)


@BEAM_SEARCH.right
def beam_of_lists(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Plain Python; a finished text keeps its place in the beam, so that there are fewer others."""
    alive, done = [(0.0, ())], []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            best = sorted(_continued(model, source, bos_id, alive), reverse=True)
            best = best[: beam_size - len(done)]
            done += [text for text in best if text[1][-1] == eos_id]
            alive = [text for text in best if text[1][-1] != eos_id]
            if not alive:
                break
    pairs = [([*ids], _score(ids, p, length_penalty)) for p, ids in done + alive]
    return sorted(pairs, key=lambda pair: pair[1], reverse=True)


@BEAM_SEARCH.right
def beam_with_finished_competing(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """Finished texts stay among the beams and are compared with the others by their score."""
    beams = [(0.0, ())]
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            done = [text for text in beams if text[1][-1:] == (eos_id,)]
            alive = [text for text in beams if text[1][-1:] != (eos_id,)]
            if not alive:
                break
            pool = done + [*_continued(model, source, bos_id, alive)]
            pool.sort(key=lambda text: -_score(text[1], text[0], length_penalty))
            beams = pool[:beam_size]
    return [
        (torch.tensor(ids, device=source.device), _score(ids, p, length_penalty))
        for p, ids in beams
    ]


@BEAM_SEARCH.right
def beam_refilled(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Places of finished texts are filled at once; over when beam_size texts are finished."""
    alive, done = [(0.0, ())], []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            best = sorted(_continued(model, source, bos_id, alive), reverse=True)
            done += [text for text in best[:beam_size] if text[1][-1] == eos_id]
            alive = [text for text in best if text[1][-1] != eos_id][:beam_size]
            if len(done) >= beam_size:
                break
    if len(done) < beam_size:
        done += alive
    pairs = [
        (torch.tensor(ids, device=source.device), torch.tensor(_score(ids, p, length_penalty)))
        for p, ids in done
    ]
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    return pairs[:beam_size]
