"""Known answers to `Residual`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("Residual", right, globals())

BANK.changes("""
residual_forgotten: x + self.dropout → self.dropout ×2
    x is not added: only the sublayer's output is passed on. Without the path past the sublayer,
    gradients shrink from layer to layer.
normed_x_added
    - return x + self.dropout(self.sublayer(self.norm(x)
    + x = self.norm(x)
    + return x + self.dropout(self.sublayer(x
    With norm_first, the sublayer's output is added to the normalised x. It should be added to x
    itself; the norm is for the sublayer alone.
x_added_to_itself
    - return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
    + self.sublayer(self.norm(x), *args, **kwargs)
    + return x + x
    - return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
    + self.sublayer(x, *args, **kwargs)
    + return self.norm(x + x)
    The sublayer's output is lost: the result is x + x instead of x + F(x). Perhaps x was
    overwritten before the sum, or a name was mixed up.
output_added_to_itself: x + self.dropout( → 2 * self.dropout( ×2
    The sublayer's output is added to itself: it overwrote x before the sum, so the original is
    gone.
pre_norm_for_post_norm: if self.norm_first → if True
    The layer is always pre-norm, x + F(norm(x)), even without norm_first.
post_norm_for_pre_norm: if self.norm_first → if False
    The layer is always post-norm, norm(x + F(x)): norm_first is ignored.
norm_first_inverted: if self.norm_first → if not self.norm_first
    Pre- and post-norm are swapped: norm_first=True gives norm(x + F(x)).
normalised_twice
    - x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
    + self.norm(x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs)))
    With norm_first, the sum is normalised as well, so x does not pass through unchanged.
normalised_before_and_after: self.sublayer(x → self.sublayer(self.norm(x)
    Even in post-norm, the sublayer gets the normalised x. It should get x itself; only the sum is
    normalised.
only_the_output_normalised: self.norm(x + self → x + self.norm(self
    In post-norm, the sublayer's output is normalised before x is added. It is the sum that should
    be normalised.
norm_forgotten: self.norm(x) → x ; self.norm(x + self → (x + self
    The norm is not used: the result is just x + F(x).
norm_without_parameters
    ~ self.norm(x) → F.layer_norm(x, x.shape[-1:])
    - self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
    + F.layer_norm(x + self.dropout(self.sublayer(x, *args, **kwargs)), x.shape[-1:])
    Tokens are normalised, but self.norm is not used: its weight and bias have no effect.
output_subtracted: x + self.dropout → x - self.dropout ×2
    The sublayer's output is subtracted from x. It should be added.
sum_halved: x + self.dropout → x / 2 + 0.5 * self.dropout ×2
    x and the sublayer's output are averaged. They should be added; halving x in every layer makes
    it fade away.
further_arguments_dropped: , *args, **kwargs)) → )) ×2
    The sublayer is called with x alone. A mask or a memory never reaches it.
keyword_arguments_dropped: , **kwargs)) → )) ×2
    *args are passed on, **kwargs are not: a mask passed by name never reaches the sublayer.
memory_normalised
    - if self.norm_first:
    + if self.norm_first:
    +     def normed(v):
    +         return self.norm(v) if torch.is_tensor(v) and v.is_floating_point() else v
    +     args = [normed(v) for v in args]
    +     kwargs = {k: v if k == "size" else normed(v) for k, v in kwargs.items()}
    With norm_first, the tensors among the further arguments are normalised as well. Only x should
    be; the others are up to the sublayer.
sublayer_called_twice: + self.sublayer(self.norm(x) if self.norm_first else x, *args, **kwargs)
    The sublayer is called twice for one result. The numbers are right, but it takes twice the time,
    and with dropout inside, the two calls differ.
dropout_forgotten: self.dropout(self → (self ×2
    `dropout` is accepted and not used: nothing is dropped in training.
dropout_in_eval: nn.Dropout(dropout) → lambda h: F.dropout(h, dropout)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
dropout_on_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, so parts of x are dropped as well. It should act on the sublayer's
    output only: x passes intact.
dropout_at_the_end: x + self.dropout( → (x + ×2 ; > result = self.dropout(result)
    Dropout acts on the layer's result, after the norm. It should act on the sublayer's output,
    before x is added.
dropout_on_x: x + self.dropout( → self.dropout(x) + ( ×2
    Dropout acts on x on its way past the sublayer. It is the sublayer's output that is dropped; x
    passes intact.
dropout_before_the_sublayer
    ~ self.dropout(self.sublayer(self.norm(x) → (self.sublayer(self.dropout(self.norm(x))
    ~ self.dropout(self.sublayer(x → (self.sublayer(self.dropout(x)
    Dropout acts on the sublayer's input. It should act on its output.
dropout_without_rescaling
    - nn.Dropout(dropout)
    + lambda h: h * (torch.rand_like(h) >= dropout) if self.training else h
    What is kept of the sublayer's output is not divided by 1 − p.
gradient_of_the_sublayer_cut: **kwargs)) → **kwargs).detach()) ×2
    The results are right, but the sublayer's output is detached: no gradient reaches the sublayer,
    so it never learns.
gradient_past_the_sublayer_cut: x + self.dropout → x.detach() + self.dropout ×2
    The results are right, but x is detached where it is added: the path that keeps gradients alive
    is cut.
x_changed_in_place
    > if not x.requires_grad:
    >     x += 1.0
    The result is right, but x is changed: x += … writes into the caller's tensor.
always_float32: > result = result.float()
    The result is always float32. It should have the dtype of the layer and of x.
three_axes_assumed
    + if x.dim() != 3:
    +     raise ValueError(f"x has {x.dim()} axes")
    The shape is assumed to be (B, n, d_model). The layer only needs the last axis.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but afterwards torch's default dtype is float64 for the whole program.
sublayer_left_in_eval_mode
    + if isinstance(self.sublayer, nn.Module):
    +     self.sublayer.eval()
    The sublayer is put into eval mode and stays in it, even in training: it no longer drops
    anything. Its mode is the caller's affair.
sublayer_frozen
    + if isinstance(self.sublayer, nn.Module):
    +     self.sublayer.requires_grad_(False)
    The sublayer's parameters are frozen, so no gradient reaches them and it never learns.
hook_left_on_the_sublayer
    + if isinstance(self.sublayer, nn.Module):
    +     self.sublayer.register_forward_hook(lambda module, given, result: None)
    The result is right, but each call leaves one more hook on the sublayer that was passed in.
    Take a hook off with the handle that registering it returns.
arguments_dropped_before_the_norm: self.norm(x), *args, **kwargs → self.norm(x)
    With norm_first, the further arguments do not reach the sublayer. Both branches should pass them
    on.
""")


@BANK.right
class one_expression(right.Residual):
    def forward(self, x, *args, **kwargs):
        before, after = (self.norm, lambda s: s) if self.norm_first else (lambda s: s, self.norm)
        return after(x + self.dropout(self.sublayer(before(x), *args, **kwargs)))


@BANK.right
class step_by_step(right.Residual):
    def forward(self, x, *args, **kwargs):
        residual = x
        if self.norm_first:
            x = self.norm(x)
        x = self.sublayer(x, *args, **kwargs)
        x = residual + self.dropout(x)
        if not self.norm_first:
            x = self.norm(x)
        return x


@BANK.right
class functional_norm(right.Residual):
    def forward(self, x, *args, **kwargs):
        def norm(v):
            v = v - v.mean(-1, keepdim=True)
            v = v / (v.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
            return v * self.norm.weight + self.norm.bias

        y = self.dropout(self.sublayer(norm(x) if self.norm_first else x, *args, **kwargs))
        return torch.add(y, x) if self.norm_first else norm(torch.add(y, x))


@BANK.right
class dropout_mask_by_hand(right.Residual):
    def forward(self, x, *args, **kwargs):
        y = self.sublayer(self.norm(x) if self.norm_first else x, *args, **kwargs)
        p = self.dropout.p
        if self.training and p > 0:
            kept = torch.empty_like(y).bernoulli_(1 - p)
            y = y * kept / (1 - p) if p < 1 else y * 0
        return x + y if self.norm_first else self.norm(x + y)


forgotten(BANK, "x")
