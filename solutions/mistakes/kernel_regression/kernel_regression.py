"""Known answers to `KernelRegression`: mistakes, then right answers."""

import torch
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import kernel_regression as right

BANK = Bank("KernelRegression", right, globals())

BANK.changes("""
normalised_over_queries: dim=-1 → dim=0 ×2
    The softmax runs over the queries (dim 0), so the weights behind a prediction do not sum to 1.
    Each query spreads its weight over the keys.
not_normalised: torch.softmax(scores, dim=-1) → torch.exp(scores) ×2
    The kernel is not divided by its sum over the keys: the more keys lie near a query, the larger
    its prediction.
sign_flipped: -0.5 → 0.5
    The sign of the score is wrong: the keys farthest from the query get the most weight.
distance_not_squared: (distance * self.w) ** 2 → (distance * self.w)
    The distance is not squared: a key on one side scores ever higher the farther away it is.
softmax_forgotten: torch.softmax(scores, dim=-1) → scores ×2
    The scores serve as weights: they are negative and do not sum to 1. The softmax makes weights of
    them.
w_not_squared: (distance * self.w) ** 2 → distance**2 * self.w
    w is outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along with
    it.
divided_by_w: distance * self.w → distance / self.w
    The distance is divided by w instead of multiplied. w is the inverse bandwidth: learning would
    push it the wrong way.
half_forgotten: -0.5 * (distance * self.w) ** 2 → -((distance * self.w) ** 2)
    The factor ½ is missing in the score: the kernel is narrower than w says.
one_key_per_query: + exclude_self = False ; query[:, None] - key[None, :] → query - key
    The i-th query is compared with the i-th key only: query − key is `(n,)`, not `(n_q, n_k)`, and
    fails where their numbers differ.
w_ignored: distance * self.w → distance
    `forward` does not use the parameter w: the predictions are those of w = 1, and no gradient
    reaches it.
w_detached: distance * self.w → distance * self.w.detach()
    The predictions are right, but no gradient reaches w, so it never learns: it is taken out of the
    graph (`.item()`, `.detach()`, `.data`, float), or asks for none (`requires_grad=False`).
w_of_the_beginning
    - super().__init__()
    + super().__init__()
    + self.beginning = float(w)
    - distance * self.w
    + distance * self.beginning
    `forward` uses the initial value of w instead of the parameter: whatever the optimiser does to
    the parameter, the predictions stay the same.
w_not_a_parameter: nn.Parameter(torch.tensor(float(w))) → torch.tensor(float(w))
    w is an ordinary tensor and not an nn.Parameter: the module has nothing to train, load or save.
w_of_shape_1: torch.tensor(float(w)) → torch.tensor([float(w)])
    The parameter w has the shape `(1,)`; a single number has the shape `()`. Predictions are right,
    but parameters saved elsewhere do not fit.
inputs_detached: + query, key, value = query.detach(), key.detach(), value.detach()
    The predictions are right and w learns, but no gradient reaches query, key and value: they were
    detached, or went through NumPy or `torch.tensor`.
no_gradient: > result = result.detach()
    The predictions are right, but no gradient reaches w or the inputs: they are cut off from the
    graph (torch.no_grad, .detach(), NumPy, torch.tensor …).
max_not_subtracted
    - torch.softmax(scores, dim=-1) ×2
    + ((kernel := scores.exp()) / kernel.sum(dim=-1, keepdim=True))
    exp is taken of the raw scores and divided by its sum. Where all of a row's exponentials vanish
    (a far query, a narrow kernel), 0/0 gives NaN.
keys_averaged: @ value → @ key ×2
    The weights are applied to the keys. The keys say where to look; it is the values that are
    averaged.
weights_returned_too
    - return torch.softmax(scores, dim=-1) @ value
    + weights = torch.softmax(scores, dim=-1)
    + return weights @ value, weights
    - return torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + weights = torch.softmax(scores, dim=-1).masked_fill(same, 0.0)
    + return weights @ value, weights
    Both the prediction and the weights are returned. `forward` returns the prediction alone.
exclude_self_ignored: + exclude_self = False
    `exclude_self` makes no difference: each point still helps to predict itself.
a_single_point_gives_nan: dim=-1).masked_fill(same, 0.0) → dim=-1) ; .min → .min * 2
    With `exclude_self`, a query that no key is left for predicts NaN: its scores are all −inf. It
    should predict 0.
a_single_point_predicts_itself: dim=-1).masked_fill(same, 0.0) → dim=-1)
    With `exclude_self`, a query that no key is left for gives all its weight to the very key that
    is excluded: where all scores are equally low, a softmax shares them out. It should predict 0.
exclude_self_always: + exclude_self = True
    The diagonal is left out even when `exclude_self` is False: the i-th query never sees the i-th
    key.
zero_on_the_diagonal: torch.finfo(scores.dtype).min → 0.0 ; dim=-1).masked_fill(same, 0.0) → dim=-1)
    With `exclude_self`, the score of pair (i, i) is set to 0. That is the largest score there is;
    only a score of −inf means no weight at all.
diagonal_not_low_enough
    - torch.finfo(scores.dtype).min
    + -1000.0
    - dim=-1).masked_fill(same, 0.0)
    + dim=-1)
    With `exclude_self`, the score of pair (i, i) is set to a number such as −1000. With a narrow
    kernel the other keys have lower scores than that, and then a point sees itself after all.
weight_zeroed_after_softmax: - scores = scores.masked_fill(same, torch.finfo(scores.dtype).min)
    With `exclude_self`, the weight of pair (i, i) is set to 0 after the softmax while the others
    stay as they are: they sum to less than 1.
weights_divided_again
    - scores = scores.masked_fill(same, torch.finfo(scores.dtype).min)
    - return torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + weights = torch.softmax(scores, dim=-1).masked_fill(same, 0.0)
    + return weights / weights.sum(dim=-1, keepdim=True) @ value
    With `exclude_self`, the weight of pair (i, i) is set to 0 after the softmax and the rest is
    divided by its sum. With a narrow kernel the rest is 0 as well, and 0/0 is NaN.
every_equal_x_excluded
    - torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
    + query[:, None] == key[None, :]
    `exclude_self` leaves out every key that equals the query. It should leave out pair (i, i) only,
    whatever the values are.
numbers_only
    - torch.softmax(scores, dim=-1) @ value
    + (torch.softmax(scores, dim=-1) * value).sum(dim=-1)
    - torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + (torch.softmax(scores, dim=-1).masked_fill(same, 0.0) * value).sum(dim=-1)
    Values that are vectors are not handled: weights and values are multiplied entry by entry, which
    only suits values of shape `(n_k,)`.
always_float32: + query, key, value = query.float(), key.float(), value.float()
    Everything is converted to float32. Only 7 of the 16 digits of float64 inputs are left, whatever
    the dtype of the prediction.
seeds_the_generator: + torch.manual_seed(42)
    The predictions are right, but every call sets a random seed, which changes the caller's random
    numbers. Nothing here is random.
changes_query_in_place: > query.data -= query.data.mean()
    The predictions are right, but the caller's query is changed: an operation such as `-=`, or one
    with a trailing underscore, writes into the tensor that was passed in.
exp_of_the_parameter: distance * self.w → distance * torch.exp(self.w)
    exp(w) takes the place of w, perhaps to keep it positive. The parameter is w itself; its sign
    makes no difference, since it is squared.
""")


@BANK.right
class infinity_added(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        u = self.w * (key.unsqueeze(0) - query.unsqueeze(1))
        scores = -u.square() / 2
        if exclude_self:
            scores = scores + torch.zeros_like(scores).fill_diagonal_(-torch.inf)
        return torch.tensordot(scores.softmax(-1).nan_to_num(0.0), value, dims=1)


@BANK.right
class query_by_query(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        rows = []
        for i in range(len(query)):
            keys = [j for j in range(len(key)) if not (exclude_self and i == j)]
            if not keys:
                rows.append(torch.zeros_like(value[0]))
                continue
            scores = torch.stack([-0.5 * ((query[i] - key[j]) * self.w) ** 2 for j in keys])
            weights = torch.softmax(scores, dim=0)
            rows.append(sum(weights[n] * value[j] for n, j in enumerate(keys)))
        return torch.stack(rows)


@BANK.right
class by_log_sum_exp(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        scores = -0.5 * self.w**2 * (query[:, None] - key).pow(2)
        if exclude_self:
            scores = scores.clone().fill_diagonal_(float("-inf"))
        log_weights = scores - torch.logsumexp(scores, dim=1, keepdim=True)
        return torch.einsum("qk,k...->q...", log_weights.exp().nan_to_num(0.0), value)


@BANK.right
class in_float64_and_back(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        x, x_i, y = query.double(), key.double(), value.double()
        scores = ((x[:, None] - x_i[None]) * self.w.double()) ** 2 * -0.5
        if exclude_self:
            index = torch.arange(min(scores.shape))
            scores[index, index] = -torch.inf
        return (scores.softmax(dim=1).nan_to_num(0.0) @ y).to(value.dtype)


@BANK.right
class where_the_indices_differ(nn.Module):
    def __init__(self, w=1.0):
        super().__init__()
        self.register_parameter("w", nn.Parameter(torch.as_tensor(w, dtype=torch.float32)))

    def forward(self, query, key, value, exclude_self=False):
        n_q, n_k = len(query), len(key)
        i, j = torch.arange(n_q, device=key.device), torch.arange(n_k, device=key.device)
        allowed = (i[:, None] != j[None, :]) | (not exclude_self)
        scores = -(((query.view(-1, 1) - key.view(1, -1)) * self.w) ** 2) / 2
        scores = torch.where(allowed, scores, -torch.inf)
        kernel = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
        return (kernel / kernel.sum(dim=1, keepdim=True)).nan_to_num(0.0) @ value


forgotten(BANK, "query")
