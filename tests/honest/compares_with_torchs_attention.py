# what: cells of one's own compare with nn.MultiheadAttention and scaled_dot_product_attention
# answers: MultiHeadAttention
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W_o"""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by {num_heads}")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, head_mask=None):
        B, n_q, d_model = query.shape
        n_k, d_k = key.shape[1], d_model // self.num_heads
        # NOT F.scaled_dot_product_attention: we are to write it
        q = self.W_q(query).reshape(B, n_q, self.num_heads, d_k).transpose(1, 2)
        k = self.W_k(key).reshape(B, n_k, self.num_heads, d_k).transpose(1, 2)
        v = self.W_v(value).reshape(B, n_k, self.num_heads, d_k).transpose(1, 2)
        weights = F.softmax(q @ k.transpose(2, 3) / math.sqrt(d_k), dim=3)
        out = self.dropout(weights) @ v
        if head_mask is not None:
            out = out * head_mask.reshape(1, -1, 1, 1)
        return self.W_o(out.transpose(1, 2).flatten(start_dim=2)), weights


# %% does it agree with torch?
torch.manual_seed(42)
mine = MultiHeadAttention(32, 4).eval()
theirs = nn.MultiheadAttention(32, 4, batch_first=True).eval()
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.cat([mine.W_q.weight, mine.W_k.weight, mine.W_v.weight]))
    theirs.in_proj_bias.copy_(torch.cat([mine.W_q.bias, mine.W_k.bias, mine.W_v.bias]))
    theirs.out_proj.weight.copy_(mine.W_o.weight)
    theirs.out_proj.bias.copy_(mine.W_o.bias)
x = torch.randn(2, 7, 32)
a, wa = mine(x, x, x)
b, wb = theirs(x, x, x, average_attn_weights=False)
print(torch.allclose(a, b, atol=1e-6), torch.allclose(wa, wb, atol=1e-6))
torch.testing.assert_close(a, b)


# %% and with the functional one
def compare(q, k, v):
    ours = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v))
    return True


assert compare(*torch.randn(3, 2, 4, 5, 8))
layer = nn.TransformerEncoderLayer(32, 4, batch_first=True)
print(sum(p.numel() for p in layer.parameters()), "parameters in a whole layer")
