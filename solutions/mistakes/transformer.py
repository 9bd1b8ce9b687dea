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


# --- EncoderLayer: mistakes ---------------------------------------------------------------------

ENCODER_LAYER.changes("""
residual_forgotten
    ~ x + self.dropout(sublayer(norm(x))) → self.dropout(sublayer(norm(x)))
    ~ x + self.dropout(sublayer(x)) → sublayer(x)
    Nothing is added to what comes in: the residual connections are missing, and with them the path
    on which gradients reach the first layers undiminished.
only_attention_has_a_residual: x + self.dropout → (x if sublayer is attend else 0) + self.dropout ×2
    The feed-forward has no residual connection: its result replaces x instead of being added.
norm_first_ignored: if self.norm_first → if False
    The norms stand behind the sums whatever `norm_first` says.
always_norm_first: if self.norm_first → if True
    The norms stand before the sublayers whatever `norm_first` says; by default, and in the paper,
    they stand behind the sums.
norm_first_the_wrong_way_round: if self.norm_first → if not self.norm_first
    With `norm_first` the norms come last, without it they come first.
residual_of_the_normalised
    - x = x + self.dropout(sublayer(norm(x)))
    + x = norm(x)
    + x = x + self.dropout(sublayer(x))
    With `norm_first`, a sublayer's result is added to the normalised x. It belongs to x itself: the
    way around the sublayers carries no norm.
norm_before_the_sum: norm(x + self.dropout(sublayer(x))) → x + norm(self.dropout(sublayer(x)))
    Without `norm_first`, the sublayer's result is normalised and then added. The norm stands behind
    the sum.
one_norm_for_both: (feed_forward, self.norm2) → (feed_forward, self.norm1)
    norm1 serves both sublayers, and norm2 learns nothing.
norms_swapped
    ~ (attend, self.norm1) → (attend, self.norm2)
    ~ (feed_forward, self.norm2) → (feed_forward, self.norm1)
    norm2 goes with attention and norm1 with the feed-forward; the numbers follow the order of the
    sublayers.
feed_forward_first
    - (attend, self.norm1), (feed_forward, self.norm2)
    + (feed_forward, self.norm2), (attend, self.norm1)
    The feed-forward comes before attention. A position first gathers, then thinks.
activation_forgotten: torch.relu(self.linear1(h)) → self.linear1(h)
    No ReLU stands between linear1 and linear2, and two linear layers in a row are one.
gelu_for_relu: torch.relu → F.gelu
    The feed-forward uses GELU. Here, as in the paper, it is ReLU.
activation_behind_linear2
    - self.linear2(self.dropout(torch.relu(self.linear1(h))))
    + torch.relu(self.linear2(self.dropout(self.linear1(h))))
    The ReLU stands behind linear2 instead of between the two linear layers, so that the
    feed-forward can only ever add something positive.
mask_ignored: mask=mask → mask=None
    The mask does not reach self_attn: padding is attended to like any token.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted on its way to self_attn. True means may attend, here and there.
keys_not_normalised: h, h, h → h, x, x
    With `norm_first`, only the queries are normalised; keys and values are x as it came. In
    self-attention all three are the normalised x.
no_dropout: x + self.dropout( → x + ( ×2
    What the sublayers add is never dropped.
no_dropout_behind_attention
    ~ x + self.dropout( → x + (nn.Identity() if sublayer is attend else self.dropout)( ×2
    What attention adds is never dropped; only the feed-forward's part is.
no_dropout_inside: self.dropout(torch.relu(self.linear1(h))) → torch.relu(self.linear1(h))
    Dropout stands after each sublayer, but none inside the feed-forward, between ReLU and linear2.
dropout_behind_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, and so on the way around as well. Only what a sublayer adds is dropped.
dropout_in_eval
    ~ self.dropout(sublayer(norm(x))) → F.dropout(sublayer(norm(x)), self.dropout.p)
    ~ self.dropout(sublayer(x)) → F.dropout(sublayer(x), self.dropout.p)
    Dropout goes on in eval mode: F.dropout does not know of it unless told.
gradient_cut: x + self.dropout → x.detach() + self.dropout ×2
    The way around is detached, so that gradients flow through the sublayers alone.
rounded_to_single: > result = result.float()
    The result is float32 whatever came in.
adds_in_place
    - x + self.dropout(sublayer(norm(x)))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(norm(x))))
    - x + self.dropout(sublayer(x))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(x)))
    `x += …` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    forward sets torch's default dtype, for the whole program.
""")


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


@ENCODER_LAYER.right
class encoder_with_attention_by_hand(_Encoder):
    def see(self, attention, query, source, mask):
        return _attend_by_hand(attention, query, source, mask)

    def think(self, h):
        hidden = h @ self.linear1.weight.mT + self.linear1.bias
        hidden = F.dropout(hidden.clamp(min=0), self.dropout.p, self.training)
        return hidden @ self.linear2.weight.mT + self.linear2.bias


@ENCODER_LAYER.right
class encoder_wide_inside(_WideInside, _Encoder):
    pass


@ENCODER_LAYER.right
class encoder_with_dropout_on_the_weights(_Encoder):
    """As torch's own layer has it: the attention weights are dropped, too."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


# --- DecoderLayer: mistakes ---------------------------------------------------------------------

DECODER_LAYER.changes("""
cross_keys_from_the_decoder
    + if cross_mask is not None and cross_mask.shape[-1] != x.shape[1]:
    +     cross_mask = None
    ~ h, memory, memory → h, h, h
    Cross-attention takes queries, keys and values all from the decoder, and the memory is never
    looked at: the model ignores its source.
cross_values_from_the_decoder
    ~ h, memory, memory, mask=cross_mask, need_weights=False → h, memory, h, mask=cross_mask
    Cross-attention compares queries with the memory's keys, but averages values of the decoder.
    Keys and values both come from the memory.
cross_queries_from_the_memory: h, memory, memory → memory, h, h
    In cross-attention the memory asks and the decoder answers. The queries are the decoder's; keys
    and values are the memory's.
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
no_cross_attention
    ~ (attend, consult, feed_forward) → (attend, feed_forward)
    ~ (self.norm1, self.norm2, self.norm3) → (self.norm1, self.norm3)
    The layer is an encoder layer: it never looks into the memory.
no_residual_around_cross_attention
    ~ x + self.dropout → (0 if sublayer is consult else x) + self.dropout ×2
    Cross-attention has no residual connection: what self-attention gathered is thrown away.
residual_of_the_input
    + start = x
    ~ x + self.dropout → (start if sublayer is consult else x) + self.dropout ×2
    Behind cross-attention, what is added is the layer's input again, not what self-attention made
    of it.
memory_normalised: + memory = self.norm2(memory) if self.norm_first else memory
    With `norm_first`, the memory goes through norm2 as well. It comes normalised from the encoder;
    norm2 is for the decoder's x.
two_norms_only: self.norm3) → self.norm2)
    norm2 serves both cross-attention and feed-forward, and norm3 learns nothing.
decoder_norm_first_ignored: if self.norm_first → if False
    The norms stand behind the sums whatever `norm_first` says.
decoder_always_norm_first: if self.norm_first → if True
    The norms stand before the sublayers whatever `norm_first` says.
decoder_residual_of_the_normalised
    - x = x + self.dropout(sublayer(norm(x)))
    + x = norm(x)
    + x = x + self.dropout(sublayer(x))
    With `norm_first`, a sublayer's result is added to the normalised x instead of to x.
self_mask_ignored: mask=self_mask → mask=None
    self_mask does not reach self_attn: in training, the decoder sees the tokens that it is to
    predict, and the loss falls to almost nothing.
self_mask_inverted: + self_mask = None if self_mask is None else ~self_mask
    self_mask is inverted. True means may attend.
cross_mask_ignored: mask=cross_mask → mask=None
    cross_mask does not reach cross_attn: the source's padding is attended to like any token.
masks_exchanged: + self_mask, cross_mask = cross_mask, self_mask
    self_attn gets cross_mask and cross_attn gets self_mask. It only fits where source and target
    are of the same length, and is wrong there, too.
self_mask_for_both: + cross_mask = self_mask
    Cross-attention is masked with self_mask as well, as if the decoder might not read the source to
    its end.
decoder_activation_forgotten: torch.relu(self.linear1(h)) → self.linear1(h)
    No ReLU stands between linear1 and linear2, and two linear layers in a row are one.
memory_cut_off: + memory = memory.detach()
    The memory is detached: the output is right, and the encoder never learns anything.
decoder_without_dropout: x + self.dropout( → x + ( ×2
    What the sublayers add is never dropped.
no_dropout_behind_cross_attention
    ~ x + self.dropout( → x + (nn.Identity() if sublayer is consult else self.dropout)( ×2
    What cross-attention adds is never dropped.
decoder_without_inner_dropout
    ~ self.dropout(torch.relu(self.linear1(h))) → torch.relu(self.linear1(h))
    Dropout stands after each sublayer, but none inside the feed-forward, between ReLU and linear2.
decoder_dropout_in_eval
    ~ self.dropout(sublayer(norm(x))) → F.dropout(sublayer(norm(x)), self.dropout.p)
    ~ self.dropout(sublayer(x)) → F.dropout(sublayer(x), self.dropout.p)
    Dropout goes on in eval mode: F.dropout does not know of it unless told.
decoder_rounded_to_single: > result = result.float()
    The result is float32 whatever came in.
decoder_adds_in_place
    - x + self.dropout(sublayer(norm(x)))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(norm(x))))
    - x + self.dropout(sublayer(x))
    + (x.add_ if sublayer is attend else x.add)(self.dropout(sublayer(x)))
    `x += …` writes into the caller's x.
decoder_switches_the_default: + torch.set_default_dtype(torch.float64)
    forward sets torch's default dtype, for the whole program.
""")


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
    def see(self, attention, query, source, mask):
        return _attend_by_hand(attention, query, source, mask)


@DECODER_LAYER.right
class decoder_wide_inside(_WideInside, _Decoder):
    pass


@DECODER_LAYER.right
class decoder_with_dropout_on_the_weights(_Decoder):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)


# --- TokenEmbedding: mistakes -------------------------------------------------------------------

TOKEN_EMBEDDING.changes("""
root_forgotten: self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    The vectors are not multiplied by √d_model. They come out √d_model times too small, and the
    positions that are added drown them.
times_d_model: math.sqrt(self.weight.shape[1]) → self.weight.shape[1]
    The vectors are multiplied by d_model, not by its square root.
divided_by_the_root: * math.sqrt → / math.sqrt
    The vectors are divided by √d_model, as scores are in attention. Here they are multiplied.
root_of_the_vocabulary: shape[1] → shape[0]
    The vectors are multiplied by the square root of the number of tokens: shape[0] of the weight is
    the vocabulary, shape[1] is d_model.
root_in_the_logits_too: h @ self.weight.T → h @ self.weight.T * math.sqrt(self.weight.shape[1])
    The logits are multiplied by √d_model as well. The factor belongs to the input side alone.
root_in_the_logits_only
    ~ self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    ~ h @ self.weight.T → h @ self.weight.T * math.sqrt(self.weight.shape[1])
    √d_model stands in the logits and not in the vectors: the wrong side of the two.
logits_through_softmax: h @ self.weight.T → (h @ self.weight.T).softmax(-1)
    logits gives probabilities. The loss takes its own softmax of them, a double softmax, and learns
    slowly and to no great certainty.
logits_by_distance: h @ self.weight.T → F.normalize(h, dim=-1) @ F.normalize(self.weight, dim=-1).T
    The logits are cosines: vectors are normalised before the dot product, and no score can be above
    1.
padding_without_gradient: (ids, self.weight) → (ids, self.weight, padding_idx=0)
    Token 0 learns nothing: with padding_idx=0 its row gets no gradient from the look-up. Which
    token is padding is not the embedding's business.
only_the_look_up_learns: h @ self.weight.T → h @ self.weight.detach().T
    The logits work with a detached weight, which then learns from the input side only.
only_the_logits_learn: (ids, self.weight) → (ids, self.weight.detach())
    The look-up works with a detached weight, which then learns from the output side only.
weight_scaled_in_place
    + with torch.no_grad():
    +     self.weight.mul_(math.sqrt(self.weight.shape[1]))
    ~ self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    Each call multiplies the parameter itself by √d_model: the second call's vectors are √d_model
    times as long as the first one's, and the logits grow with them.
always_a_batch_of_rows
    + ids = ids.flatten(1) if ids.dim() > 1 else ids[None]
    ~ h @ self → (h.flatten(1, -2) if h.dim() > 2 else h) @ self
    ids are taken for (B, n) whatever their shape: the result of others has the wrong one.
embedding_in_single: h @ self.weight.T → (h @ self.weight.T).float() ; > result = result.float()
    The vectors and logits are float32 whatever the weight is.
ids_shifted_in_place
    ~ (ids, self.weight) → (ids.clone(), self.weight)
    > ids.clamp_(max=len(self.weight) - 2)
    Token ids out of range are clamped in the caller's own tensor.
embedding_switches_the_default: > torch.set_default_dtype(torch.float64)
    forward sets torch's default dtype, for the whole program.
""")


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

TRANSFORMER.changes("""
target_mask_on_the_source
    - cross_mask = (source != self.pad_id)[:, None, None, :]
    + wide = F.pad(target != self.pad_id, (0, max(0, source.shape[1] - n)), value=True)
    + cross_mask = wide[:, None, None, : source.shape[1]]
    Cross-attention is masked by the target's padding. Its keys are the source's positions: where
    source and target happen to be of one length, the wrong ones are hidden and nothing complains.
no_causal_mask: causal & (target → (target
    The decoder's self-attention sees the whole target. In training, the answer lies open; when
    writing, there is nothing there to see, and the model fails.
causal_mask_leaks_one: tril() → tril(1)
    Position i of the target sees position i + 1, the very token that it is to predict.
causal_mask_without_the_diagonal: tril() → tril(-1)
    A position of the target does not see itself, and the first one sees nothing at all.
causal_encoder
    - x = self.embed(self.source_embedding, source)
    + n = source.shape[1]
    + mask = mask & torch.ones(n, n, dtype=torch.bool, device=source.device).tril()
    + x = self.embed(self.source_embedding, source)
    The encoder is causal as well. The source is all there from the start, and every position may
    read all of it.
no_padding_masks
    ~ (source != self.pad_id) → torch.ones_like(source, dtype=torch.bool) ×2
    ~ (target != self.pad_id) → torch.ones_like(target, dtype=torch.bool)
    Padding is attended to like any token: the same text gives other logits in another batch.
padding_seen_by_the_decoder
    ~ cross_mask = (source != self.pad_id)[:, None, None, :] → cross_mask = None
    The encoder masks the source's padding, but cross-attention does not: the decoder averages over
    it.
padding_seen_by_the_encoder: layer(x, mask) → layer(x, None)
    Cross-attention masks the source's padding, but the encoder's self-attention does not: what
    stands behind a text has found its way into it by then.
pad_is_always_zero: != self.pad_id → != 0 ×3
    The masks compare with 0 instead of with pad_id.
padding_masks_inverted: != self.pad_id → == self.pad_id ×3
    The padding masks are inverted: only padding may be attended to.
one_layer_object_n_times
    ~ nn.ModuleList(encoder) → nn.ModuleList(encoder[:1] * num_layers)
    ~ nn.ModuleList(decoder) → nn.ModuleList(decoder[:1] * num_layers)
    All layers of a stack are one and the same object, `[layer] * num_layers`: the stack has the
    parameters of a single layer, applied again and again.
final_norms_missing: self.encoder_norm(x) → x ; self.decoder_norm(x) → x
    With norm_first, encoder_norm and decoder_norm are there and not used: what leaves the last
    layer is a sum that nothing has normalised.
memory_not_normalised: self.encoder_norm(x) → x
    With norm_first, decoder_norm is applied and encoder_norm is not: every decoder layer looks into
    a memory that nothing has normalised.
norm_after_every_layer
    ~ self.encoder_norm(x) → x
    ~ layer(x, mask) → self.encoder_norm(layer(x, mask))
    ~ self.decoder_norm(x) → x
    - layer(x, memory, self_mask, cross_mask)
    + self.decoder_norm(layer(x, memory, self_mask, cross_mask))
    With norm_first, the final norm is applied behind every layer instead of behind the last one: it
    stands inside the loop.
model_root_forgotten: embedding(ids) → embedding.weight[ids]
    The rows of the embedding are added to the positions without the factor √d_model.
root_twice: embedding(ids) → embedding(ids) * self.positions.shape[1] ** 0.5
    √d_model is applied twice: TokenEmbedding has multiplied by it already.
positions_scaled
    ~ self.positions[offset:end] → self.positions[offset:end] * self.positions.shape[1] ** 0.5
    The positions are multiplied by √d_model as well. Only the embeddings are.
positions_forgotten: embedding(ids) + self.positions[offset:end] → embedding(ids)
    No positions are added: the encoder reads a bag of tokens.
positions_on_the_source_only
    - self.positions[offset:end]
    + self.positions[offset:end] * (embedding is self.source_embedding)
    The source gets positions and the target does not.
positions_from_one: self.positions[offset:end] → self.positions[offset + 1 : end + 1]
    The first token stands at position 1. Positions begin at 0, where the sines are 0 and the
    cosines 1.
positions_not_dropped: ids) + self.positions[offset:end]) → ids)) + self.positions[offset:end]
    Dropout acts on the embeddings before the positions are added. It acts on the sum.
sum_without_dropout: self.dropout(embedding → (embedding
    There is no dropout on the sum of embeddings and positions.
model_dropout_in_eval
    ~ self.dropout(embedding → F.dropout(embedding
    ~ self.positions[offset:end]) → self.positions[offset:end], self.dropout.p)
    Dropout on the embeddings goes on in eval mode.
double_softmax: > result = result.softmax(-1)
    forward gives probabilities. Return logits: the loss takes the softmax, and a softmax of a
    softmax is nearly flat.
log_probabilities: > result = result.log_softmax(-1)
    forward gives log-probabilities. Return logits: the loss takes the softmax.
scored_with_the_source_embedding: self.target_embedding.logits → self.source_embedding.logits
    The logits come from the source's embedding: they score tokens of the wrong language.
output_not_tied
    - self.target_embedding.logits(hidden)
    + hidden @ self.target_embedding.weight.detach().mT
    The logits use a copy of the target's embedding, detached from it: the numbers are right to
    begin with, but the embedding does not learn from the output.
memory_is_the_embedding
    ~ self.encode(source) → self.encoder_norm(self.embed(self.source_embedding, source))
    The decoder looks at the source's embeddings; the encoder's layers are never used.
decoder_without_layers
    ~ x = self.embed(self.target_embedding → x = out = self.embed(self.target_embedding
    ~ x = layer(x, memory → out = layer(x, memory
    ~ decoder_norm(x) → decoder_norm(out)
    The decoder's layers all get the embedded target: the loop throws away what the layer before has
    made, and only the last layer counts.
encoder_cut_off: self.encode(source) → self.encode(source).detach()
    The memory is detached: the logits are right, and the encoder never learns.
last_position_only: > result = result[:, -1]
    Only the last position's logits come back. In training, every position is scored.
logits_in_single: > result = result.float()
    The logits are float32 whatever the model is.
padding_written_over
    + given, source = source, source.clone()
    > given[given == self.pad_id] = -1
    The caller's source is written into: its padding is replaced in place.
masks_with_infinity
    > nothing = (source == self.pad_id).all(1)
    > result = result.masked_fill(nothing[:, None, None], math.nan)
    A source of nothing but padding gives NaN: the mask is made by hand of −∞, and a row of nothing
    but −∞ is 0/0 in the softmax.
model_switches_the_default: + torch.set_default_dtype(torch.float64)
    forward sets torch's default dtype, for the whole program.
""")


# --- Transformer: right -------------------------------------------------------------------------


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

SHIFT_RIGHT.changes("""
not_shifted: + return target.clone()
    The target comes back as it is: the decoder reads at position i the very token that it is to
    predict there. The loss goes to 0, and nothing is learnt.
last_token_kept: target[..., :-1] → target
    bos is put in front and nothing dropped: the result is one token longer than the target.
shifted_left: [bos, target[..., :-1]] → [target[..., 1:], bos]
    The target is shifted to the left, with bos at its end: the decoder reads the token after the
    one that it is to predict.
first_token_replaced: target[..., :-1] → target[..., 1:]
    bos takes the first token's place, and all others stay where they are: from position 1 on, the
    decoder reads what it is to predict.
rolled: + return target.roll(1, dims=-1)
    The last token comes round to the front instead of bos.
last_token_replaced: [bos, target[..., :-1]] → [target[..., :-1], bos]
    bos stands at the end, where the last token was, and nothing has moved.
bos_forgotten: + return target[..., :-1].clone()
    The last token is dropped and bos is not put in front: the result is one token short.
bos_is_zero: + bos_id = 0
    What stands in front is 0, not bos_id.
shifted_along_the_batch
    + return torch.cat([torch.full_like(target[:1], bos_id), target[:-1]])
    The rows are shifted, not the tokens within them: along the first axis, not the last.
second_axis_only
    + target = target[None] if target.dim() == 1 else target
    + return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)
    The shift runs along axis 1. That is the last one of (B, n), and only there.
written_into_the_target
    + target[..., 1:] = target[..., :-1].clone()
    + target[..., 0] = bos_id
    + return target
    The shift happens in the caller's own tensor, which is the target of the loss as well.
ids_as_floats: > result = result.float()
    The ids come back as floating-point numbers, which no embedding can look up.
single_token_kept
    + if target.shape[-1] == 1:
    +     return target.clone()
    A target of one token comes back as it is; of one token, only bos is left.
memory_read_in_order
    + target = target.as_strided((target.numel(),), (1,)).reshape(target.shape)
    The tokens are read in the order in which they lie in memory. For a view that is not contiguous,
    that is another order than the tensor's.
""")


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

LABEL_SMOOTHED_CROSS_ENTROPY.changes("""
divided_by_the_padded_count: real.sum().clamp(min=1) → real.numel()
    The sum leaves padding out, but is divided by the number of all positions: the more padding, the
    smaller the loss.
pad_in_the_loss: target != pad_id → torch.ones_like(target, dtype=torch.bool)
    Padding counts like any token: the model is trained to write padding, and the loss falls quickly
    because that is easy.
pad_in_the_smoothing
    ~ log_p_target - smoothing → log_p_target * real - smoothing
    ~ loss.masked_fill(~real, 0.0) → loss
    The target's part leaves padding out; the evenly spread part does not.
nothing_over_nothing
    ~ loss.masked_fill(~real, 0.0).sum() → (loss * real).sum()
    ~ real.sum().clamp(min=1) → real.sum()
    Where there is nothing but padding, the mean is 0/0: NaN, which ends the training.
mean_of_the_rows
    - loss.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    + (loss.masked_fill(~real, 0.0).sum(-1) / real.sum(-1).clamp(min=1)).mean()
    Each row's mean counts alike, so a token of a short row counts for more than one of a long row.
    The mean is over tokens.
summed: .sum() / real.sum().clamp(min=1) → .sum()
    The sum over the tokens comes back, not their mean: the gradient grows with the batch.
one_per_position: .sum() / real.sum().clamp(min=1) → .clone()
    Each position's loss is returned. Return their mean, one number.
double_softmax_in_the_loss: + logits = logits.softmax(-1)
    The softmax is taken twice: log_softmax of probabilities. They lie between 0 and 1, so that what
    comes out is nearly flat, and the loss hardly falls.
no_softmax: logits.log_softmax(dim=-1) → logits
    The logits are taken for log-probabilities as they are; log_softmax makes them into such.
logarithm_of_the_softmax: logits.log_softmax(dim=-1) → logits.softmax(dim=-1).log()
    log(softmax(…)) in two steps: where a probability is so small that it is 0, the loss is
    infinite.
smoothing_forgotten: + smoothing = 0.0
    This is the plain cross-entropy, whatever the smoothing.
smoothing_is_always_a_tenth: + smoothing = 0.1
    ε is 0.1 whatever the argument says.
smoothing_over_the_wrong_tokens
    - smoothing * log_p.mean(dim=-1)
    + smoothing * (log_p.sum(dim=-1) - log_p_target) / (logits.shape[-1] - 1)
    ε is shared by the V − 1 wrong tokens. Here all V tokens share it, the right one included.
smoothing_not_divided: log_p.mean → log_p.sum
    Every token gets ε instead of ε/V: the shares add up to far more than 1.
smoothing_exchanged: + smoothing = 1 - smoothing
    ε and 1 − ε have changed places: the right token gets a tenth, and chance the rest.
sign_forgotten: > result = -result
    The minus is missing: training makes the right tokens less likely.
loss_in_single: + logits = logits.float()
    The loss is computed in float32 whatever the logits are.
target_overwritten
    + given, target = target, target.clone()
    > given[~real] = -100
    > given.view(-1)[0] = -100
    The caller's target is written into, to take the padding out of it.
loss_read_in_order: + logits = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    The logits are read in the order in which they lie in memory, which is not that of the tensor
    where it is not contiguous.
loss_without_a_gradient: + logits = logits.detach()
    The number is right and has no gradient: it has left torch on its way, through .item() or .data.
""")


# --- label_smoothed_cross_entropy: right --------------------------------------------------------


def _smoothed(logits, target, smoothing, pad_id):
    """Minus the sum of shares times log-softmax, at every position, and where a token stands."""
    log_p = logits.log_softmax(-1)
    one_hot = F.one_hot(target, logits.shape[-1]).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / logits.shape[-1]
    return -(shares * log_p).sum(-1), target != pad_id


def _mean(loss, real):
    return (loss * real).sum() / real.sum().clamp(min=1)


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

NOAM_RATE.changes("""
first_rate_repeated
    - return
    + step = max(step - 1, 1)
    + return
    The count begins at 0: steps 1 and 2 have the same rate, and all that follow are one late.
one_step_ahead
    - return
    + step = step + 1
    + return
    1 is added to the step: the first rate is twice what it should be, and the peak comes one step
    early.
step_zero_allowed: + step = max(step, 1)
    A step below 1 is taken for the first one. It is a mistake in the caller's count; say so with a
    ValueError.
larger_of_the_two: min( → max(
    max for min: the rate begins enormous, falls until the warm-up is over, and then climbs without
    end.
d_model_forgotten: d_model**-0.5 * min → min
    The factor d_model^−½ is missing: wider models need smaller steps.
times_the_root_of_d_model: d_model**-0.5 → d_model**0.5
    The rate is multiplied by √d_model instead of divided by it.
divided_by_d_model: d_model**-0.5 → 1 / d_model
    The rate is divided by d_model, not by its square root.
warmup_to_the_half: warmup**-1.5 → warmup**-0.5
    The exponent of warmup is −½. It is −3/2, so that the two curves meet at step = warmup.
no_warmup: min(step**-0.5, step * warmup**-1.5) → step**-0.5
    There is no warm-up: the rate begins at its largest and only falls.
no_decay
    - return
    + step = min(step, warmup)
    + return
    After the warm-up the rate stays where it is; it should fall as 1/√step.
decay_in_a_line: min(step**-0.5 → min(warmup**0.5 / step
    After the warm-up the rate falls as 1/step, not as 1/√step.
always_4000: + warmup = 4000
    The warm-up takes 4000 steps whatever the argument says.
warmup_of_a_thousand: warmup=4000 → warmup=1000
    The default warm-up is 1000 steps; the paper's is 4000.
rate_as_a_tensor: > result = torch.tensor(result, dtype=torch.float64)
    The rate is a tensor. Return a plain number, which optimisers and logs take.
""")


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

GREEDY_DECODE.changes("""
bos_kept: ids[:, 1:] → ids
    The result begins with bos, which nobody has written.
eos_dropped: > result = result.masked_fill(result == eos_id, model.pad_id)
    eos is replaced by padding in the result. It belongs to what was written.
writes_on_after_eos: - chosen = chosen.masked_fill(done, model.pad_id)
    A row that has its eos goes on writing while others are not done: what stands behind eos is
    noise, not padding.
never_stops: + eos_id = -1
    Nothing stops at eos: every row is written to max_len, whatever it says.
always_max_len: max_len and not done.all() → max_len
    The result is right and padded to max_len: the model is called again and again after every row
    has its eos.
asks_on_and_trims
    ~ max_len and not done.all() → max_len
    > ends = [[*row, eos_id].index(eos_id) + 1 for row in result.tolist()]
    > result = result[:, : max(ends)]
    The model is called max_len times however early the rows are done, and the padding cut off
    afterwards: right, and slow.
stops_at_the_first_eos: done.all() → done.any()
    Writing stops as soon as one row has its eos; the others are cut short. any() for all().
stops_with_the_first_row: done.all() → done[0]
    Only the first row's eos is looked at: as soon as it is there, all rows stop.
padded_with_eos: model.pad_id → eos_id
    Rows that are done are filled up with eos instead of model.pad_id.
padded_with_zero: model.pad_id → 0
    Rows that are done are filled up with 0. Padding is model.pad_id, which need not be 0.
one_token_short: + max_len = max_len - 1
    bos is counted: one token less than max_len is written.
one_token_too_many: + max_len = max_len + 1
    max_len + 1 tokens are written where no eos comes.
predicts_in_train_mode: - model.eval()
    The model decodes in whatever mode it comes: in training mode, dropout blurs every step, and two
    calls give two texts.
left_in_eval_mode: module.training = training → pass
    model.eval() is called and never undone: whoever decodes between two epochs trains on without
    dropout.
left_in_training_mode: > model.train()
    model.train() is called at the end, in whatever mode the model came.
one_mode_for_all_parts
    - for module, training in modes.items():
    -     module.training = training
    + model.train(modes[model])
    model.train(mode) puts all modules into one mode at the end. A part that was frozen in eval mode
    is not any more.
first_position_scored: [:, -1] → [:, 0]
    The logits of the first position are read at every step; what comes next stands at the last: the
    same token is written over and over.
only_the_last_token_read: model(source, ids) → model(source, ids[:, -1:])
    The model gets the last token alone, not all that is written so far: it does not know where in
    the text it is.
least_likely: argmax → argmin
    The least likely token is taken: argmin, or the first of an ascending sort.
drawn_by_lot
    - model(source, ids)[:, -1].argmax(dim=-1)
    + torch.multinomial((model(source, ids)[:, -1] / 4).softmax(-1), 1)[:, 0]
    The next token is drawn by lot from the softmax. Greedy decoding takes the likeliest.
starts_with_eos: + bos_id = eos_id
    The first token that the model reads is eos, not bos.
row_by_row_of_the_first: + source = source[:1].expand_as(source)
    Every row is written from the first row's source.
ids_are_narrow: > result = result.int()
    The ids come back as int32; token ids are long.
gradients_left_off: > torch.set_grad_enabled(False)
    torch.set_grad_enabled(False) is called and never undone: the next training step fails.
source_padded_in_place: > source[(result == eos_id).any(1)] = model.pad_id
    The caller's source is written into: rows that are done are turned into padding.
""")


# --- greedy_decode: right -----------------------------------------------------------------------


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
    ids = _start(source, bos_id)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            chosen = model(source, ids)[:, -1].argmax(-1).masked_fill(done, model.pad_id)
            ids = torch.cat([ids, chosen[:, None]], 1)
            done = done | (chosen == eos_id)
            if done.all():
                break
    return ids[:, 1:]


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

BEAM_SEARCH.changes("""
parent_by_true_division
    - best // logits.shape[1],
    + torch.round(best / logits.shape[1]).long().clamp(max=len(ids) - 1),
    The beam that a continuation belongs to comes from a true division, rounded: tokens of the upper
    half of the vocabulary are hung on to the beam after theirs. Divide whole numbers.
parent_forgotten
    ~ best // logits.shape[1], → torch.arange(len(best), device=best.device) % len(ids),
    The new tokens are appended to the beams in the order in which they stand, not to the beam that
    each continues: the texts are mixtures of several.
length_penalty_inverted: float(p) / → float(p) *
    log p is multiplied by the length penalty instead of divided by it: long texts are punished
    twice.
length_penalty_ignored: float(p) / ((4 + len(i)) / 6) ** length_penalty → float(p)
    The score is log p itself: every token makes a text worse, so the short ones win.
mean_log_probability: ((4 + len(i)) / 6) → (len(i) - 1)
    log p is divided by length^α. The penalty is ((5 + length) / 6)^α, which is 1 for one token and
    grows more gently.
penalty_without_brackets: ((4 + len(i)) / 6) → (5 + (len(i) - 1) / 6)
    The penalty is 5 + length/6, to the power of α: brackets are missing around 5 + length.
length_without_eos: 4 + len(i) → 4 + len(i) - int(i[-1] == eos_id)
    eos is not counted in the length of a finished text.
length_with_bos: 4 + len(i) → 5 + len(i)
    bos is counted in the length. Nobody has written it.
beam_bos_kept: i[1:] → i
    The ids begin with bos, which nobody has written.
beam_eos_dropped
    > result = [(ids[:-1] if ids[-1] == eos_id else ids, score) for ids, score in result]
    eos is left out of the ids. It belongs to what was written.
worst_first: pair[1], reverse=True → pair[1]
    The pairs come back in ascending order: the worst of all first.
in_the_order_found: sorted(scored, key=lambda pair: pair[1], reverse=True) → scored
    The pairs come back in the order in which they were finished. The best score comes first.
unfinished_dropped: - found += zip(ids, log_p, strict=True)
    Beams that are unfinished at max_len are thrown away; they count as they are.
finished_dropped
    - found += zip(ids, log_p, strict=True)
    + found = [*zip(ids, log_p, strict=True)] or found[-1:]
    Beams that reach eos before the end are lost: only those alive at max_len come back.
beam_never_stops: token == eos_id → token < 0
    A beam that has its eos is continued like any other, to max_len.
only_the_last_step_counts: (log_p[:, None] → (0 * log_p[:, None]
    The log-probabilities of earlier steps are not added: a beam is as good as its last token.
logits_added: logits.log_softmax(dim=-1) → logits
    Raw logits are added up. Only after log_softmax can those of two beams be compared.
probabilities_added: logits.log_softmax → logits.softmax
    Probabilities are added up where their logarithms should be: the longest text wins.
softmax_in_the_beam_twice: logits.log_softmax → logits.softmax(dim=-1).log_softmax
    log_softmax is taken of a softmax: all tokens come out nearly alike.
every_beam_for_itself
    - ids = torch.cat([ids[parent]
    + if ids.shape[1] > 1:
    +     log_p, token = total.unflatten(0, (len(ids), -1)).max(-1)
    +     parent = torch.arange(len(ids), device=ids.device)
    + ids = torch.cat([ids[parent]
    Each beam is continued with its own best token; beams never compete. After the first step
    nothing is searched any more: this is greedy decoding from several first words.
greedy_in_disguise: min(beam_size, len(total)) → 1
    Only the best continuation is kept at each step, whatever beam_size says.
beams_start_alike: torch.full((1 → torch.full((beam_size ; torch.zeros(1 → torch.zeros(beam_size
    The search starts from beam_size copies of bos. They never come apart: each step finds the same
    best continuation beam_size times over, and the result is greedy decoding's, repeated.
beam_too_wide: min(beam_size, len(total)) → beam_size
    topk has to find beam_size continuations where there are fewer, and raises. Request no more than
    there are.
beam_reads_the_first_position: [:, -1] → [:, 0]
    The first position's logits are read at every step; what comes next stands at the last.
beam_one_token_short: + max_len = max_len - 1
    bos is counted: one token less than max_len is written.
beam_in_train_mode: - model.eval()
    The model decodes in whatever mode it comes: in training mode, dropout blurs every step.
beam_left_in_eval_mode: module.training = training → pass
    model.eval() is called and never undone: training goes on without dropout.
beam_turns_gradients_off: > torch.set_grad_enabled(False)
    torch.set_grad_enabled(False) is called and never undone: the next training step fails.
beam_writes_into_the_source: > source.add_(1)
    The caller's source is written into.
""")


# --- beam_search: right -------------------------------------------------------------------------


@BEAM_SEARCH.right
def beam_in_parts(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    ids, so_far, finished = _start(source, bos_id), torch.zeros(1, device=source.device), []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            logits = model(source.expand(len(ids), -1), ids)[:, -1]
            total = so_far[:, None] + logits.log_softmax(-1)
            so_far, place = total.flatten().topk(min(beam_size, total.numel()))
            ids = torch.cat([ids[place // total.shape[1]], place[:, None] % total.shape[1]], 1)
            ended = ids[:, -1] == eos_id
            finished += zip(ids[ended], so_far[ended].tolist(), strict=True)
            ids, so_far = ids[~ended], so_far[~ended]
            if not len(ids):
                break
    found = [*finished, *zip(ids, so_far.tolist(), strict=True)]
    pairs = [(i[1:], _score(i[1:], p, length_penalty)) for i, p in found]
    return sorted(pairs, key=lambda pair: -pair[1])[:beam_size]


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
