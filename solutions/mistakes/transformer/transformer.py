"""Known answers to `Transformer`: mistakes, then right answers."""

import torch
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("Transformer", right, globals())

BANK.changes("""
offset_ignored: self.positions[offset:end] → self.positions[: ids.shape[1]]
    embed gives the first token position 0, whatever its offset. Text that is written on with a
    cache would then begin anew at every token.
target_mask_on_the_source
    - cross_mask = (source != self.pad_id)[:, None, None, :]
    + wide = F.pad(target != self.pad_id, (0, max(0, source.shape[1] - n)), value=True)
    + cross_mask = wide[:, None, None, : source.shape[1]]
    Cross-attention is masked by the target's padding. Its keys are the source's positions: if
    source and target happen to have the same length, the wrong ones are hidden and nothing fails.
no_causal_mask: causal & (target → (target
    The decoder's self-attention sees the whole target. In training, the answer lies open; when
    writing, there is nothing there to see, and the model fails.
causal_mask_leaks_one: tril() → tril(1)
    Position i of the target sees position i + 1, the very token that it should predict.
causal_mask_without_the_diagonal: tril() → tril(-1)
    A position of the target does not see itself, and the first one sees nothing at all.
causal_encoder
    - x = self.embed(self.source_embedding, source)
    + n = source.shape[1]
    + mask = mask & torch.ones(n, n, dtype=torch.bool, device=source.device).tril()
    + x = self.embed(self.source_embedding, source)
    The encoder is causal as well. The whole source is there from the start, and every position may
    read all of it.
no_padding_masks
    ~ (source != self.pad_id) → torch.ones_like(source, dtype=torch.bool) ×2
    ~ (target != self.pad_id) → torch.ones_like(target, dtype=torch.bool)
    Padding is attended to like any token: the same text gets different logits in another batch.
padding_seen_by_the_decoder
    ~ cross_mask = (source != self.pad_id)[:, None, None, :] → cross_mask = None
    The encoder masks the source's padding, but cross-attention does not: the decoder averages over
    it.
padding_seen_by_the_encoder: layer(x, mask) → layer(x, None)
    Cross-attention masks the source's padding, but the encoder's self-attention does not: by then,
    the padding after a text has already found its way into it.
pad_is_always_zero: != self.pad_id → != 0 ×3
    The masks compare with 0 instead of with pad_id.
padding_masks_inverted: != self.pad_id → == self.pad_id ×3
    The padding masks are inverted: only padding may be attended to.
one_layer_object_n_times
    ~ EncoderLayer(*sizes) for _ in range(num_layers) → [EncoderLayer(*sizes)] * num_layers
    ~ DecoderLayer(*sizes) for _ in range(num_layers) → [DecoderLayer(*sizes)] * num_layers
    All layers of a stack are the same object, `[layer] * num_layers`: the stack has the parameters
    of a single layer, applied again and again.
final_norms_missing: self.encoder_norm(x) → x ; self.decoder_norm(x) → x
    With norm_first, encoder_norm and decoder_norm exist but are not used: the last layer's output
    is a sum that nothing has normalised.
memory_not_normalised: self.encoder_norm(x) → x
    With norm_first, decoder_norm is applied but encoder_norm is not: every decoder layer reads a
    memory that nothing has normalised.
norm_after_every_layer
    ~ self.encoder_norm(x) → x
    ~ layer(x, mask) → self.encoder_norm(layer(x, mask))
    ~ self.decoder_norm(x) → x
    - layer(x, memory, self_mask, cross_mask)
    + self.decoder_norm(layer(x, memory, self_mask, cross_mask))
    With norm_first, the final norm is applied after every layer instead of after the last one: it
    is inside the loop.
model_root_forgotten: embedding(ids) → embedding.weight[ids]
    The rows of the embedding are added to the positions without the factor √d_model.
root_twice: embedding(ids) → embedding(ids) * self.positions.shape[1] ** 0.5
    √d_model is applied twice: TokenEmbedding has already multiplied by it.
positions_scaled
    ~ self.positions[offset:end] → self.positions[offset:end] * self.positions.shape[1] ** 0.5
    The positions are multiplied by √d_model as well. Only the embeddings should be.
positions_forgotten: embedding(ids) + self.positions[offset:end] → embedding(ids)
    No positions are added: the encoder reads a bag of tokens.
positions_on_the_source_only
    - self.positions[offset:end]
    + self.positions[offset:end] * (embedding is self.source_embedding)
    The source gets positions, but the target does not.
positions_from_one: self.positions[offset:end] → self.positions[offset + 1 : end + 1]
    The first token is placed at position 1. Positions begin at 0, where the sines are 0 and the
    cosines 1.
positions_not_dropped: ids) + self.positions[offset:end]) → ids)) + self.positions[offset:end]
    Dropout acts on the embeddings before the positions are added. It should act on the sum.
sum_without_dropout: self.dropout(embedding → (embedding
    There is no dropout on the sum of embeddings and positions.
model_dropout_in_eval
    ~ self.dropout(embedding → F.dropout(embedding
    ~ self.positions[offset:end]) → self.positions[offset:end], self.dropout.p)
    Dropout on the embeddings stays active in eval mode.
double_softmax: > result = result.softmax(-1)
    forward returns probabilities instead of logits: the loss takes the softmax, and the softmax of
    a softmax is nearly flat.
log_probabilities: > result = result.log_softmax(-1)
    forward returns log-probabilities instead of logits: the loss takes the softmax.
scored_with_the_source_embedding: self.target_embedding.logits → self.source_embedding.logits
    The logits come from the source's embedding: they score tokens of the wrong language.
output_not_tied
    - self.target_embedding.logits(hidden)
    + hidden @ self.target_embedding.weight.detach().mT
    The logits use a detached copy of the target's embedding: the numbers are right at first, but
    the embedding does not learn from the output.
memory_is_the_embedding
    ~ self.encode(source) → self.encoder_norm(self.embed(self.source_embedding, source))
    The decoder attends to the source's embeddings; the encoder's layers are never used.
decoder_without_layers
    ~ x = self.embed(self.target_embedding → x = out = self.embed(self.target_embedding
    ~ x = layer(x, memory → out = layer(x, memory
    ~ decoder_norm(x) → decoder_norm(out)
    Each of the decoder's layers gets the embedded target: the loop discards the output of the
    previous layer, and only the last layer counts.
encoder_cut_off: self.encode(source) → self.encode(source).detach()
    The memory is detached: the logits are right, but the encoder never learns.
last_position_only: > result = result[:, -1]
    Only the last position's logits are returned. In training, every position is scored.
logits_in_single: > result = result.float()
    The logits are float32 whatever the model is.
padding_written_over
    + given, source = source, source.clone()
    > given[given == self.pad_id] = -1
    The caller's source is changed: its padding is replaced in place.
masks_with_infinity
    > nothing = (source == self.pad_id).all(1)
    > result = result.masked_fill(nothing[:, None, None], math.nan)
    A source of nothing but padding gives NaN: the mask is built by hand from −∞, and the softmax of
    a row of nothing but −∞ is 0/0.
model_switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Model(right.Transformer):
    """The Transformer in small parts."""

    def real(self, ids):
        return (ids != self.pad_id)[:, None, None, :]

    def past(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    def sum_up(self, vectors, positions):
        return self.dropout(vectors + positions)

    def embed(self, embedding, ids, offset=0):
        end = offset + ids.shape[1]
        positions = blocks.sinusoidal_encoding(end, self.positions.shape[1])[offset:]
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


@BANK.right
class model_in_parts(_Model):
    pass


@BANK.mistake
class model_with_a_causal_mask_only(_Model):
    """The decoder's self-attention has no mask for padding. Behind a target, the causal mask hides
    it from what is real; before a target or inside, nothing does."""

    def self_mask(self, target):
        return self.past(target.shape[1], target.device)


@BANK.right
class model_with_square_masks(_Model):
    def source_mask(self, source):
        n = source.shape[1]
        return (source != self.pad_id)[:, None, None, :].repeat(1, 1, n, 1)

    def cross_mask(self, target, source):
        return (source != self.pad_id)[:, None, None, :].repeat(1, 1, target.shape[1], 1)

    def past(self, n, device):
        place = torch.arange(n, device=device)
        return place[None, :] <= place[:, None]


@BANK.right
class model_with_positions_by_formula(_Model):
    def embed(self, embedding, ids, offset=0):
        d = self.positions.shape[1]
        place = torch.arange(ids.shape[1], dtype=torch.float32, device=ids.device)[:, None] + offset
        column = torch.arange(d, device=ids.device)
        angle = place / 10000.0 ** (2 * (column // 2) / d)
        table = torch.where(column % 2 == 0, angle.sin(), angle.cos())
        return self.dropout(embedding(ids) + table.to(embedding.weight.dtype))

    def finish(self, hidden):
        return torch.einsum("btd,vd->btv", hidden, self.target_embedding.weight)


@BANK.right
class model_with_its_table_in_the_state(_Model):
    """Its positions are a buffer that is saved with the parameters."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        table = blocks.sinusoidal_encoding(1024, self.positions.shape[1])
        self.register_buffer("table", table)

    def embed(self, embedding, ids, offset=0):
        return self.dropout(embedding(ids) + self.table[offset : offset + ids.shape[1]])


@BANK.right
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
        table = blocks.sinusoidal_encoding(offset + ids.shape[1], self.d_model)[offset:]
        return self.dropout(embedding(ids) + table.to(embedding.weight))


forgotten(BANK, "source")
