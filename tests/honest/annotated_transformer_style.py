# what: a whole model after The Annotated Transformer: clones, SublayerConnection, lambdas, Generator
# answers: EncoderLayer, DecoderLayer, TokenEmbedding, Transformer
import copy
import math

import torch
import torch.nn as nn
from torch.nn.functional import log_softmax, pad  # noqa

from attention_by_hand.blocks import MultiHeadAttention, sinusoidal_encoding

# Set to False to skip notebook execution (e.g. for debugging)
warnings = __import__("warnings")
warnings.filterwarnings("ignore")
RUN_EXAMPLES = False


def is_interactive_notebook():
    return __name__ == "__main__"


def show_example(fn, args=[]):
    if __name__ == "__main__" and RUN_EXAMPLES:
        return fn(*args)


def clones(module, N):
    "Produce N identical layers."
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


class SublayerConnection:
    "A residual connection followed by a layer norm (or the other way round)."

    def __init__(self, norm, dropout, norm_first):
        self.norm, self.dropout, self.norm_first = norm, dropout, norm_first

    def __call__(self, x, sublayer):
        "Apply residual connection to any sublayer with the same size."
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


# %%
class EncoderLayer(nn.Module):
    "Encoder is made up of self-attn and feed forward (defined below)"

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super(EncoderLayer, self).__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def feed_forward(self, x):
        return self.linear2(self.dropout(self.linear1(x).relu()))

    def sublayer(self, norm):
        return SublayerConnection(norm, self.dropout, self.norm_first)

    def forward(self, x, mask=None):
        "Follow Figure 1 (left) for connections."
        attend = lambda x: self.self_attn(x, x, x, mask=mask, need_weights=False)[0]
        x = self.sublayer(self.norm1)(x, attend)
        return self.sublayer(self.norm2)(x, self.feed_forward)


# %%
class DecoderLayer(EncoderLayer):
    "Decoder is made of self-attn, src-attn, and feed forward (defined below)"

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super(DecoderLayer, self).__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.cross_attn = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        "Follow Figure 1 (right) for connections."
        m = memory
        x = self.sublayer(self.norm1)(
            x, lambda x: self.self_attn(x, x, x, mask=self_mask, need_weights=False)[0]
        )
        x = self.sublayer(self.norm2)(
            x, lambda x: self.cross_attn(x, m, m, mask=cross_mask, need_weights=False)[0]
        )
        return self.sublayer(self.norm3)(x, self.feed_forward)


# %%
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super(TokenEmbedding, self).__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
        self.d_model = d_model

    def forward(self, ids):
        return self.weight[ids] * math.sqrt(self.d_model)

    def logits(self, h):
        return torch.matmul(h, self.weight.transpose(0, 1))


# %%
def subsequent_mask(size):
    "Mask out subsequent positions."
    attn_shape = (1, 1, size, size)
    subsequent_mask = torch.triu(torch.ones(attn_shape), diagonal=1).type(torch.uint8)
    return subsequent_mask == 0


class Transformer(nn.Module):
    """
    A standard Encoder-Decoder architecture. Base for this and many
    other models.
    """

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
        super(Transformer, self).__init__()
        c = copy.deepcopy
        self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        self.encoder_layers = clones(
            EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers
        )
        self.decoder_layers = clones(
            DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers
        )
        self.encoder_norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.decoder_norm = c(self.encoder_norm)
        self.dropout = nn.Dropout(dropout)
        self.pad_id = pad_id
        self.register_buffer("positions", sinusoidal_encoding(512, d_model), persistent=False)
        # This was important from their code.
        # Initialize parameters with Glorot / fan_avg.
        for layers in (self.encoder_layers, self.decoder_layers):
            for p in layers.parameters():
                if p.dim() > 1:
                    nn.init.xavier_uniform_(p)

    def embed(self, embedding, ids, offset=0):
        end = offset + ids.shape[1]
        if end > len(self.positions):
            self.positions = sinusoidal_encoding(2 * end, self.positions.shape[1]).to(
                self.positions
            )
        return self.dropout(embedding(ids) + self.positions[offset:end])

    def encode(self, source):
        src_mask = (source != self.pad_id).unsqueeze(-2).unsqueeze(-2)
        x = self.embed(self.source_embedding, source)
        for layer in self.encoder_layers:
            x = layer(x, src_mask)
        return self.encoder_norm(x)

    def decode(self, target, memory, source):
        src_mask = (source != self.pad_id).unsqueeze(-2).unsqueeze(-2)
        tgt_mask = (target != self.pad_id).unsqueeze(-2).unsqueeze(-2)
        tgt_mask = tgt_mask & subsequent_mask(target.size(-1)).type_as(tgt_mask.data)
        x = self.embed(self.target_embedding, target)
        for layer in self.decoder_layers:
            x = layer(x, memory, tgt_mask, src_mask)
        return self.decoder_norm(x)

    def forward(self, source, target):
        "Take in and process masked src and target sequences."
        return self.target_embedding.logits(self.decode(target, self.encode(source), source))


# %%
def inference_test():
    test_model = Transformer(11, 11, num_layers=2, d_model=32, d_ff=64, num_heads=4)
    test_model.eval()
    ys = torch.zeros(1, 1).long()
    for i in range(9):
        prob = log_softmax(test_model(torch.arange(1, 11)[None], ys)[:, -1], dim=-1)
        ys = torch.cat([ys, torch.max(prob, dim=1)[1].view(1, 1)], dim=1)
    print("Example Untrained Model Prediction:", ys)


show_example(inference_test)
