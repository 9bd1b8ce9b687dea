# what: cells that compare with nn.TransformerEncoderLayer and nn.TransformerDecoderLayer
# answers: EncoderLayer, DecoderLayer
import torch
from torch import nn
from torch.nn import (
    Transformer as TorchTransformer,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)

from attention_by_hand.blocks import EncoderLayer as Reference
from attention_by_hand.blocks import MultiHeadAttention


# %%
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    # self-attention block
    def _sa_block(self, x, mask):
        x, _ = self.self_attn(x, x, x, mask=mask, need_weights=False)
        return self.dropout(x)

    # feed forward block
    def _ff_block(self, x):
        x = self.linear2(self.dropout(nn.functional.relu(self.linear1(x))))
        return self.dropout(x)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask)
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, mask))
            x = self.norm2(x + self._ff_block(x))
        return x


# %%
theirs = TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).eval()
mine = EncoderLayer(16, 2, 32).eval()
sd = theirs.state_dict()
q, k, v = sd["self_attn.in_proj_weight"].chunk(3)
bq, bk, bv = sd["self_attn.in_proj_bias"].chunk(3)
mine.load_state_dict(
    {
        **{n: sd[n] for n in sd if not n.startswith("self_attn")},
        "self_attn.W_q.weight": q,
        "self_attn.W_k.weight": k,
        "self_attn.W_v.weight": v,
        "self_attn.W_q.bias": bq,
        "self_attn.W_k.bias": bk,
        "self_attn.W_v.bias": bv,
        "self_attn.W_o.weight": sd["self_attn.out_proj.weight"],
        "self_attn.W_o.bias": sd["self_attn.out_proj.bias"],
    }
)
x = torch.randn(3, 5, 16)
with torch.no_grad():
    assert torch.allclose(mine(x), theirs(x), atol=1e-5)
    reference = Reference(16, 2, 32).eval()
    reference.load_state_dict(mine.state_dict())
    torch.testing.assert_close(mine(x), reference(x))


# %%
class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.cross_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        def sa(h):
            return self.dropout(self.self_attn(h, h, h, mask=self_mask, need_weights=False)[0])

        def ca(h):
            return self.dropout(
                self.cross_attn(h, memory, memory, mask=cross_mask, need_weights=False)[0]
            )

        def ff(h):
            return self.dropout(self.linear2(self.dropout(torch.relu(self.linear1(h)))))

        if self.norm_first:
            x = x + sa(self.norm1(x))
            x = x + ca(self.norm2(x))
            return x + ff(self.norm3(x))
        x = self.norm1(x + sa(x))
        x = self.norm2(x + ca(x))
        return self.norm3(x + ff(x))


# %%
print(TransformerDecoderLayer(16, 2, 32, batch_first=True))
print(TorchTransformer(16, 2, 1, 1, 32, batch_first=True)(x, x).shape)
