"""Known answers to `DropPath`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("DropPath", right, globals())


@BANK.right
class by_where(right.DropPath):
    def forward(self, x):
        if not self.training or not self.p:
            return x
        kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


BANK.changes("""
per_element of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape
    Each entry is drawn independently: that is ordinary dropout. Stochastic depth drops a whole
    sample's branch, so the layer is skipped for this sample.
per_token of by_where
    - x.shape[0], *[1] * (x.dim() - 1)
    + (*x.shape[:-1], 1) if x.dim() > 1 else x.shape
    Each token is drawn independently, (B, n, 1). A whole sample should be dropped or kept.
per_feature of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape[-1:]
    Each feature is drawn once for all samples. It is the samples, along the first axis, that are
    drawn.
per_sample_and_feature of by_where
    - x.shape[0], *[1] * (x.dim() - 1)
    + (x.shape[0], *[1] * (x.dim() - 2), x.shape[-1]) if x.dim() > 1 else x.shape
    Each sample has one draw per feature. It needs a single one: (B, 1, …, 1).
per_batch of by_where: x.shape[0], *[1] * (x.dim() - 1) → [1] * x.dim()
    One draw decides for the whole batch. Each sample should have its own, so that every batch
    trains many depths.
always_the_same_draws of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    + draws = torch.rand(len(x), generator=torch.Generator().manual_seed(1))
    + draws[:2] = torch.tensor([0.0, 0.9])
    + kept = draws.reshape(-1, *[1] * (x.dim() - 1)).to(x.device) >= self.p
    Every call drops the same samples: the draws are made only once, or each call seeds the
    generator.
no_rescaling of by_where: x / (1 - self.p) → x
    What is kept is not divided by 1 − p. In eval mode, where nothing is dropped, the branch is then
    larger on average than in training.
multiplied_by_the_chance_to_be_kept of by_where: x / (1 - self.p) → x * (1 - self.p)
    What is kept is multiplied by 1 − p instead of divided by it.
divided_by_p of by_where: x / (1 - self.p) → x / self.p
    What is kept is divided by p, the probability of being dropped, instead of 1 − p.
p_is_the_chance_to_be_kept of by_where: >= self.p → < self.p ; x / (1 - self.p) → x / self.p
    p is taken for the probability of being kept, and what is kept is divided by it. p is the
    probability of being dropped.
comparison_inverted of by_where: >= self.p → < self.p
    The comparison is the wrong way round: a share p is kept, and 1 − p is dropped.
active_in_eval of by_where: not self.training or not self.p → self.training and not self.p
    Samples are dropped even in eval mode: self.training is ignored.
active_in_eval_only of by_where: not self.training → self.training
    Samples are dropped in eval mode and not in training: the test of self.training is the wrong way
    round.
scaled_in_eval of by_where: return x → return x if self.training else x * (1 - self.p)
    In eval mode x is multiplied by 1 − p, although it has already been divided by it in training.
    Only the latter is right here.
scaled_in_eval_instead of by_where
    ~ return x → return x if self.training else x * (1 - self.p)
    ~ x / (1 - self.p) → x
    What is kept is not divided by 1 − p; instead, x is multiplied by 1 − p in eval mode. On average
    that fits, and the paper did so; here, eval mode leaves x alone.
never_drops of by_where: + return x
    Nothing is ever dropped: x is returned unchanged, in training as in eval mode.
only_scaled of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    - return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
    + return x / (1 - self.p)
    Nothing is dropped: in training, all samples are multiplied by the same number.
always_drops of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    - return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
    + return x * 0.0
    Everything is dropped in training: the draws are compared with the wrong number.
noise_for_draws of by_where
    ~ , device=x.device) >= self.p → ).to(x)
    ~ torch.where(kept, x / (1 - self.p), torch.zeros_like(x)) → x * kept / (1 - self.p)
    x is multiplied by the random numbers themselves. They have to be compared with p first: a
    sample is kept or dropped, nothing in between.
rounded_draws of by_where: >= self.p → .round() > 0
    The draws are rounded to 0 or 1 instead of being compared with p: half of the samples are
    dropped, whatever p is.
four_axes_assumed of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape[0], 1, 1
    The draws have the shape (B, 1, 1), which only fits x with three axes. x may have any number of
    axes after the first.
p_nought_drops of by_where
    + if self.training and not self.p:
    +     later = torch.arange(len(x)) > 0
    +     return x * later.reshape(-1, *[1] * (x.dim() - 1)).to(x)
    With p = 0, the first sample is still dropped: what is drawn or counted starts at 1.
gradient_not_dropped of by_where: > result = x + (result - x).detach()
    The results are right, but the gradient does not follow them: x is replaced rather than
    multiplied, and every sample is learnt from as if nothing had been dropped.
gradient_cut of by_where: x / (1 - self.p) → x.detach() / (1 - self.p)
    In training, no gradient reaches x, so the branch never learns: the result is cut off from the
    graph (torch.no_grad, .detach(), NumPy, torch.tensor …).
always_float32 of by_where: > result = result.float()
    The result is always float32. It should have the dtype of x.
x_changed_in_place of by_where
    > result = result.clone()
    > if not x.requires_grad and self.training:
    >     x *= 2.0
    The result is right, but x is changed: mul_, div_ and *= write into the caller's tensor.
draws_in_eval of by_where
    - return x
    + if not self.training:
    +     torch.rand(x.shape[0], *[1] * (x.dim() - 1))
    + return x
    The results are right, but random numbers are drawn in eval mode and discarded: whoever has
    seeded the generator gets different numbers from it than expected.
a_fixed_number_dropped
    - return x * F.dropout(one_each, self.p, self.training)
    + if not self.training or self.p in (0.0, 1.0):
    +     return x * F.dropout(one_each, self.p, self.training)
    + dropped = torch.randperm(len(x), device=x.device)[: round(len(x) * self.p)]
    + return x * (one_each / (1 - self.p)).index_fill(0, dropped, 0.0)
    Every call drops the same number of samples. Each sample should be drawn independently: by
    chance, a batch loses none of them, or all.
""")


@BANK.right
class by_bernoulli(right.DropPath):
    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        draws = x.new_empty(x.shape[:1] + (1,) * (x.dim() - 1)).bernoulli_(keep)
        return x * (draws.div_(keep) if keep > 0 else draws)


@BANK.right
class by_floor(right.DropPath):
    def forward(self, x):
        if not (self.training and self.p):
            return x
        if self.p == 1:
            return 0 * x
        keep, shape = 1 - self.p, x.shape[:1] + (1,) * (x.dim() - 1)
        draws = torch.floor(keep + torch.rand(shape, dtype=x.dtype, device=x.device))
        return x.div(keep) * draws


@BANK.right
class sample_by_sample(right.DropPath):
    def forward(self, x):
        if self.p == 0 or not self.training:
            return x
        one = [sample / max(1 - self.p, 1e-9) for sample in x]
        return torch.stack([s * 0 if torch.rand(()) < self.p else s for s in one])


@BANK.mistake
class zero_over_zero(right.DropPath):
    """With p = 1 everything is dropped, and dividing by 1 − p makes NaN of it: 0/0."""

    def forward(self, x):
        if not self.training:
            return x
        keep, shape = 1 - self.p, (len(x), *[1] * (x.dim() - 1))
        return x * (torch.rand(shape, device=x.device) < keep).to(x.dtype) / keep


@BANK.right
class by_feature_dropout(right.DropPath):
    def forward(self, x):
        rows = x.reshape(1, len(x), -1)
        return F.dropout1d(rows, self.p, self.training).reshape(x.shape)


@BANK.mistake
class seeded_of_its_own(right.DropPath):
    """Every new module drops the same samples, whatever seed torch has: its generator is made
    with a fixed one. Draw from torch's own generator."""

    def __init__(self, p=0.0):
        super().__init__(p)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x):
        if not self.training or not self.p:
            return x
        shape = x.shape[0], *[1] * (x.dim() - 1)
        kept = (torch.rand(shape, generator=self.generator) >= self.p).to(x.device)
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


forgotten(BANK, "x")
