"""Known answers to `FeedForward`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("FeedForward", right, globals())

BANK.changes("""
activation_forgotten: self.activation(self.linear1(x)) → self.linear1(x)
    There is no activation between the two linear layers. Together they then amount to a single
    linear layer, however wide the middle.
activation_last
    ~ self.activation(self.linear1(x)) → self.linear1(x)
    > result = self.activation(result)
    The activation comes after linear2 instead of between the layers. With ReLU, no output is
    negative any more.
activation_twice: > result = self.activation(result)
    The activation is applied after both layers. After linear2 there should be none: the result must
    be able to lower x as well as raise it.
activation_first: self.activation(self.linear1(x)) → self.linear1(self.activation(x))
    The activation acts on x, before linear1, instead of between the layers.
always_relu: self.activation(self → torch.relu(self
    The argument `activation` is accepted and not used: it is always ReLU.
always_gelu: self.activation(self → F.gelu(self
    The activation is always GELU. The default is ReLU, and the argument may be anything.
residual_inside: > result = x + result
    x is added to the result. The residual connection is a layer of its own; with this, x is added
    twice.
normalised_inside: > result = F.layer_norm(result, x.shape[-1:])
    The result is normalised. The norm belongs to the residual connection around this layer.
first_layer_transposed
    - self.linear2(self.dropout(hidden))
    + F.linear(self.dropout(hidden), self.linear1.weight.T, self.linear2.bias)
    linear2's matrix is that of linear1, transposed: two layers share one matrix, and linear2's own
    weight is not used.
biases_forgotten
    ~ self.linear1(x) → x @ self.linear1.weight.T
    ~ self.linear2(self.dropout(hidden)) → self.dropout(hidden) @ self.linear2.weight.T
    The matrices are used without their biases. nn.Linear has both.
averaged_over_the_positions
    - return
    + if x.dim() > 1:
    +     hidden = hidden.mean(-2, keepdim=True).expand_as(hidden)
    + return
    The hidden features are averaged over the positions, so every token gets the same. Position-wise
    means that each is treated separately.
reads_the_token_before: > result = result.roll(1, -2) if x.dim() > 1 else result
    Each token gets what its left neighbour has computed. Position-wise means that each is treated
    separately; only attention moves information between tokens.
dropout_forgotten: self.dropout(hidden) → hidden
    `dropout` is accepted and not used: nothing is dropped in training.
dropout_in_eval: self.dropout(hidden) → F.dropout(hidden, self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
dropout_on_the_output: self.linear2(self.dropout(hidden)) → self.dropout(self.linear2(hidden))
    Dropout acts on the result, after linear2. It belongs between the layers; the residual
    connection has its own dropout for the result.
dropout_on_the_input
    ~ self.dropout(hidden) → hidden
    ~ self.linear1(x) → self.linear1(self.dropout(x))
    Dropout acts on x, before linear1. It belongs between the layers.
dropout_twice: > result = self.dropout(result)
    Dropout acts on the hidden features and again on the result.
dropout_before_the_activation
    ~ self.dropout(hidden) → hidden
    ~ self.linear1(x) → self.dropout(self.linear1(x))
    Dropout acts before the activation. With ReLU the order does not matter, since ReLU preserves
    zeros and factors; with another activation it does, and dropout comes after it.
dropout_without_rescaling
    - return self.linear2(self.dropout(hidden))
    + if self.training:
    +     hidden = hidden * (torch.rand_like(hidden) >= self.dropout.p)
    + return self.linear2(hidden)
    What is kept is not divided by 1 − p, so the hidden features are smaller in training than in
    eval mode.
whole_tokens_dropped
    ~ self.dropout(hidden) → hidden * self.dropout(torch.ones_like(hidden[..., :1]))
    Dropout is drawn once per token, and drops all of its hidden features together. Each feature
    should be drawn independently.
gradient_cut: + x = x.detach()
    The results are right, but x is detached: no gradient flows back to the layers before.
three_axes_assumed
    + B, n, d = x.shape
    + x = x.reshape(B * n, d)
    > result = result.reshape(B, n, d)
    The shape is assumed to be (B, n, d_model). nn.Linear accepts any axes before the last, and a
    single token as well.
always_float32: > result = result.float()
    The result is always float32. It should have the dtype of the layer and of x.
x_changed_in_place
    > if not x.requires_grad:
    >     x.relu_()
    The result is right, but x is changed (by relu_, F.relu(…, inplace=True) or *=), which the
    residual connection still needs.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but afterwards torch's default dtype is float64 for the whole program.
""")


@BANK.right
class as_a_sequence(right.FeedForward):
    def forward(self, x):
        for step in (self.linear1, self.activation, self.dropout, self.linear2):
            x = step(x)
        return x


@BANK.right
class by_matrix_products(right.FeedForward):
    def forward(self, x):
        hidden = self.activation(x @ self.linear1.weight.T + self.linear1.bias)
        return self.dropout(hidden) @ self.linear2.weight.T + self.linear2.bias


@BANK.right
class by_einsum(right.FeedForward):
    def forward(self, x):
        hidden = torch.einsum("...d,fd->...f", x, self.linear1.weight) + self.linear1.bias
        hidden = self.dropout(self.activation(hidden))
        return torch.einsum("...f,df->...d", hidden, self.linear2.weight) + self.linear2.bias


@BANK.right
class position_by_position(right.FeedForward):
    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        results = [super(position_by_position, self).forward(token) for token in tokens]
        return torch.stack(results).reshape(x.shape)


@BANK.right
class mask_by_hand(right.FeedForward):
    def forward(self, x):
        hidden, p = self.activation(self.linear1(x)), self.dropout.p
        if self.training and p > 0:
            dropped = torch.rand(hidden.shape, device=x.device) < p
            hidden = torch.where(dropped, torch.zeros_like(hidden), hidden / (1 - p))
        return self.linear2(hidden)


forgotten(BANK, "x")
