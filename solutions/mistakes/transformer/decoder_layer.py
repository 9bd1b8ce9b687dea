"""Known answers to `DecoderLayer`: mistakes, then right answers."""

import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import transformer as right
from solutions.mistakes.transformer.encoder_layer import _attend_by_hand, _Decoder, _WideInside

BANK = Bank("DecoderLayer", right, globals())
BANK.read()


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
