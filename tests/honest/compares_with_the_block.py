# what: tests of one's own that compare with the course's block, and a plot of both left in
# answers: split_heads, MultiHeadAttention, head_importance
import math
import unittest

import matplotlib.pyplot as plt
import torch
from torch import nn

from attention_by_hand import blocks
from autograder import check
from attention_by_hand.blocks import MultiHeadAttention as TheirAttention


# %%
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} / {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


# %%
def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} / {num_heads}")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = [nn.Linear(d_model, d_model, bias) for _ in "qkvo"]
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (
            split_heads(W(x), self.num_heads)
            for W, x in [(self.W_q, query), (self.W_k, key), (self.W_v, value)]
        )
        weights = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), -1)
        used = self.dropout(weights)
        if head_mask is not None:
            used = used * head_mask.unsqueeze(-1).unsqueeze(-1)
        return self.W_o(merge_heads(used @ v)), weights


# %%
class TestAttention(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(2, 5, 12)
        self.mine, self.theirs = MultiHeadAttention(12, 3), TheirAttention(12, 3)
        self.theirs.load_state_dict(self.mine.state_dict())

    def test_same_as_block(self):
        for a, b in zip(self.mine(self.x, self.x, self.x), self.theirs(self.x, self.x, self.x)):
            torch.testing.assert_close(a, b)

    def test_round_trip(self):
        self.assertTrue(torch.equal(merge_heads(split_heads(self.x, 4)), self.x))

    def test_rejects(self):
        with self.assertRaises(ValueError):
            MultiHeadAttention(10, 3)


unittest.main(argv=["ignored", "-v"], exit=False)

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3))
x = torch.randn(1, 6, 12)
for ax, attention in zip(axes, (MultiHeadAttention(12, 3), blocks.MultiHeadAttention(12, 3))):
    ax.imshow(attention(x, x, x)[1][0, 0].detach())
    ax.set_title(type(attention).__module__)
plt.show()


# %%
def head_importance(attention, x):
    H = attention.num_heads
    with torch.inference_mode():
        y = attention(x, x, x)[0]
        without = torch.stack(
            [attention(x, x, x, head_mask=(torch.arange(H) != h).to(x))[0] for h in range(H)]
        )
    return (without - y).pow(2).sum(-1).sqrt().flatten(1).mean(1)
