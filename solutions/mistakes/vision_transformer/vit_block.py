"""Known answers to `ViTBlock`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import vision_transformer as right
from solutions.vision_transformer import PackedAttention

BANK = Bank("ViTBlock", right, globals())

BANK.changes("""
post_norm
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.drop_path(self.dropout(self.linear2(h)))
    + x = self.norm1(x + self.drop_path(self.attn(x)))
    + h = self.dropout(F.gelu(self.linear1(x)))
    + return self.norm2(x + self.drop_path(self.dropout(self.linear2(h))))
    The norms come after the sums, as in BERT. In ViT each comes before its sublayer.
norm_of_what_is_added
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.drop_path(self.dropout(self.linear2(h)))
    + x = x + self.drop_path(self.norm1(self.attn(x)))
    + h = self.dropout(F.gelu(self.linear1(x)))
    + return x + self.drop_path(self.norm2(self.dropout(self.linear2(h))))
    The norms come behind the sublayers. Each comes before its sublayer.
residual_of_the_normalised
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    + x = self.norm1(x)
    + x = x + self.drop_path(self.attn(x))
    What attention gives is added to the normalised x. It should be added to x itself.
second_residual_of_the_normalised
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    + x = self.norm2(x)
    + h = self.dropout(F.gelu(self.linear1(x)))
    What the feed-forward gives is added to the normalised x. It should be added to x itself.
residual_forgotten
    ~ x = x + self.drop_path → x = self.drop_path
    ~ return x + self.drop_path → return self.drop_path
    Nothing is added to the input: the residual connections are missing.
only_attention_has_a_residual: return x + self.drop_path → return self.drop_path
    The feed-forward has no residual connection: its result replaces x instead of being added.
only_the_feed_forward_has_a_residual: x = x + self.drop_path → x = self.drop_path
    Attention has no residual connection: its result replaces x instead of being added.
parallel
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    + given = x
    + x = x + self.drop_path(self.attn(self.norm1(x)))
    ~ self.linear1(self.norm2(x)) → self.linear1(self.norm2(given))
    Both sublayers work on the block's input. The feed-forward should work on what attention has
    made of it.
residual_of_the_input
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    + given = x
    + x = x + self.drop_path(self.attn(self.norm1(x)))
    ~ return x + → return given +
    The second sum adds the block's input. It should add what the first sublayer has made of it.
one_norm_for_both: self.norm2(x) → self.norm1(x)
    norm1 serves both sublayers, and norm2 learns nothing.
norms_swapped
    ~ self.norm1(x) → self.norm0(x)
    ~ self.norm2(x) → self.norm1(x)
    ~ self.norm0(x) → self.norm2(x)
    norm2 goes with attention and norm1 with the feed-forward; their numbers should follow the order
    of the sublayers.
first_norm_forgotten: self.attn(self.norm1(x)) → self.attn(x)
    Attention reads x as it is: norm1 is not used.
second_norm_forgotten: self.linear1(self.norm2(x)) → self.linear1(x)
    The feed-forward reads x as it is: norm2 is not used.
feed_forward_first
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.drop_path(self.dropout(self.linear2(h)))
    + h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    + x = x + self.drop_path(self.dropout(self.linear2(h)))
    + return x + self.drop_path(self.attn(self.norm1(x)))
    The feed-forward comes before attention. A patch first gathers, then thinks.
attention_forgotten: x = x + self.drop_path(self.attn(self.norm1(x))) → pass
    Attention is never used: every patch is alone.
feed_forward_forgotten: return x + self.drop_path(self.dropout(self.linear2(h))) → return x
    What the feed-forward computes is never added.
relu_for_gelu: F.gelu → F.relu
    The feed-forward uses ReLU. ViT has GELU.
tanh_gelu
    - F.gelu(self.linear1(self.norm2(x)))
    + F.gelu(self.linear1(self.norm2(x)), approximate="tanh")
    GELU is computed by the tanh formula, which only comes near it: the numbers are off in the
    fourth digit. Here it should be the exact one.
sigmoid_gelu: F.gelu( → (lambda x: x * torch.sigmoid(1.702 * x))(
    GELU is computed as x·σ(1.702 x), which only comes near it: the numbers are off in the second
    digit. Here it should be the exact one.
silu_for_gelu: F.gelu → F.silu
    The feed-forward uses SiLU, x·σ(x). ViT has GELU.
activation_forgotten: F.gelu(self.linear1(self.norm2(x))) → self.linear1(self.norm2(x))
    There is no activation between linear1 and linear2, and two linear layers in a row amount to
    one.
activation_behind_linear2
    - h = self.dropout(F.gelu(self.linear1(self.norm2(x))))
    - return x + self.drop_path(self.dropout(self.linear2(h)))
    + h = self.dropout(self.linear1(self.norm2(x)))
    + return x + self.drop_path(self.dropout(F.gelu(self.linear2(h))))
    The GELU comes after linear2 instead of between the two linear layers.
eps_of_torch: eps=1e-6 → eps=1e-5 ×2
    The norms have torch's eps, 1e-5. ViT's is 1e-6, and where the inputs are small, that shows.
drop_path_forgotten
    ~ x + self.drop_path(self.attn → x + (self.attn
    ~ x + self.drop_path(self.dropout → x + (self.dropout
    drop_path is not used: every block always counts.
no_drop_path_on_attention: x + self.drop_path(self.attn → x + (self.attn
    Stochastic depth acts on the feed-forward only. It should act on both branches.
no_drop_path_on_the_feed_forward: x + self.drop_path(self.dropout → x + (self.dropout
    Stochastic depth acts on attention only. It should act on both branches.
drop_path_on_the_sum
    ~ x + self.drop_path(self.attn(self.norm1(x))) → self.drop_path(x + self.attn(self.norm1(x)))
    - x + self.drop_path(self.dropout(self.linear2(h)))
    + self.drop_path(x + self.dropout(self.linear2(h)))
    Stochastic depth acts on the sums, so an image that is dropped loses x as well. It should act on
    what is added.
one_drop_for_both_branches
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    + given, x = x, x + self.attn(self.norm1(x))
    - return x + self.drop_path(self.dropout(self.linear2(h)))
    + x = x + self.dropout(self.linear2(h))
    > result = given + self.drop_path(x - given)
    drop_path is called once, for both branches together. Each branch should be drawn on its own.
drop_path_is_dropout: DropPath(drop_path) → nn.Dropout(drop_path)
    Single numbers are dropped with the chance of drop_path. It should be whole images.
no_dropout_inside
    ~ self.dropout(F.gelu(self.linear1(self.norm2(x)))) → F.gelu(self.linear1(self.norm2(x)))
    There is dropout behind linear2, but none inside the feed-forward, between GELU and linear2.
no_dropout_behind_linear2
    - self.drop_path(self.dropout(self.linear2(h)))
    + self.drop_path(self.linear2(h))
    There is dropout inside the feed-forward, but none behind linear2.
attention_dropped_twice
    - self.drop_path(self.attn(self.norm1(x)))
    + self.drop_path(self.dropout(self.attn(self.norm1(x))))
    What attn gives is dropped once more. It has done so already: attn has a dropout of its own
    behind proj.
no_dropout_in_attention: num_heads, dropout=dropout) → num_heads)
    attn is built without dropout, so what attention adds is never dropped.
dropout_on_the_sum
    - x + self.drop_path(self.dropout(self.linear2(h)))
    + self.dropout(x + self.drop_path(self.linear2(h)))
    Dropout acts on the sum, and therefore on the residual path as well. Only what a sublayer adds
    should be dropped.
dropout_in_eval: self.dropout(self.linear2(h)) → F.dropout(self.linear2(h), self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
gradient_cut: x = x + self.drop_path → x = x.detach() + self.drop_path
    The residual path is detached, so gradients only flow through attention.
branch_detached: self.linear1(self.norm2(x)) → self.linear1(self.norm2(x.detach()))
    What the feed-forward reads is detached, so attention does not learn from it.
rounded_to_single: > result = result.float()
    The result is float32 whatever the input is.
adds_in_place
    - x = x + self.drop_path(self.attn(self.norm1(x)))
    + x += self.drop_path(self.attn(self.norm1(x)))
    `x += …` writes into the caller's x.
switches_the_default: + torch.set_default_dtype(torch.float64)
    forward changes torch's default dtype for the whole program.
""")


class _Parts(right.ViTBlock):
    """The block in small parts."""

    def think(self, x):
        return self.dropout(self.linear2(self.dropout(F.gelu(self.linear1(x)))))

    def forward(self, x):
        x = self.drop_path(self.attn(self.norm1(x))) + x
        return self.drop_path(self.think(self.norm2(x))) + x


@BANK.right
class block_in_small_parts(_Parts):
    pass


@BANK.right
class block_of_the_blocks(blocks.ViTBlock):
    pass


@BANK.right
class block_with_gelu_written_out(_Parts):
    def think(self, x):
        h = x @ self.linear1.weight.mT + self.linear1.bias
        h = self.dropout(h * (1 + torch.erf(h / math.sqrt(2))) / 2)
        return self.dropout(h @ self.linear2.weight.mT + self.linear2.bias)


@BANK.right
class block_in_other_parts(nn.Module):
    """Dropouts and activation as modules of their own, and two drop paths."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, drop_path=0.0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, 1e-6) for _ in range(2))
        self.attn = PackedAttention(d_model, num_heads, dropout=dropout)
        self.path1, self.path2 = blocks.DropPath(drop_path), blocks.DropPath(drop_path)
        self.inside = [nn.GELU(), nn.Dropout(dropout), nn.Dropout(dropout)]
        self.drops = nn.ModuleList(self.inside)

    def forward(self, x):
        activation, first, second = self.drops
        x = torch.add(x, self.path1(self.attn(self.norm1(x))))
        h = first(activation(self.linear1(self.norm2(x))))
        return torch.add(x, self.path2(second(self.linear2(h))))


@BANK.right
class block_wide_inside(_Parts):
    def think(self, x):
        hidden = x.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(F.gelu(hidden))
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return self.dropout(out).to(x.dtype)


forgotten(BANK, "x")
