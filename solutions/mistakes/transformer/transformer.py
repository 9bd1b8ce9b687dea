"""Known answers to `Transformer`: mistakes, then right answers."""

import torch
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("Transformer", right, globals())
BANK.read()


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
