"""Known answers to `linear_attention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("linear_attention", right, globals())

BANK.changes("""
not_normalised
    ~ return (query @ S) / (query @ z) → return query @ S
    - (query.unsqueeze(-2) @ S).squeeze(-2) / (query * z).sum(dim=-1, keepdim=True)
    + (query.unsqueeze(-2) @ S).squeeze(-2)
    The sum is not divided by the sum of the weights, so the output grows with the number of keys.
not_normalised_without_causal: return (query @ S) / (query @ z) → return query @ S
    Without `causal`, the sum is not divided by the sum of the weights, so the output grows with the
    number of keys.
not_normalised_with_causal
    - (query.unsqueeze(-2) @ S).squeeze(-2) / (query * z).sum(dim=-1, keepdim=True)
    + (query.unsqueeze(-2) @ S).squeeze(-2)
    With `causal`, the sum is not divided by the sum of the weights, so the output grows with the
    position.
normalised_by_the_number_of_keys
    ~ return (query @ S) / (query @ z) → return (query @ S) / key.shape[-2]
    - / (query * z).sum(dim=-1, keepdim=True)
    + / torch.arange(1, key.shape[-2] + 1, dtype=key.dtype, device=key.device)[:, None]
    The sum is divided by the number of keys. It should be divided by the sum of the weights,
    φ(q) · Σ φ(k).
normalised_in_the_middle_only: (query @ z) → key.sum(dim=(-2, -1), keepdim=True)
    Without `causal`, the sum is divided by the sum of all φ(k), whatever the query. The query
    belongs below the fraction line as well.
relu_for_phi: F.elu(query) + 1, F.elu(key) + 1 → F.relu(query), F.relu(key)
    φ is a ReLU. It is elu(x) + 1, which is never 0: with ReLU a query may have no weight for
    anything, and 0/0 is NaN.
relu_with_a_little_more
    ~ F.elu(query) + 1, F.elu(key) + 1 → F.relu(query) + 1e-6, F.relu(key) + 1e-6
    φ is a ReLU with a small number added. It is elu(x) + 1.
relu_plus_one: F.elu(query) + 1, F.elu(key) + 1 → F.relu(query) + 1, F.relu(key) + 1
    φ is relu(x) + 1, which is 1 for all negative numbers. It is elu(x) + 1, which is exp(x) there.
elu_without_one: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query), F.elu(key)
    φ is elu(x), without the 1. It can be negative, and so can weights, and sums near 0 make the
    output huge.
exp_for_phi: F.elu(query) + 1, F.elu(key) + 1 → query.exp(), key.exp()
    φ is exp(x). It is elu(x) + 1, which is exp(x) for negative numbers only, and x + 1 for others.
softplus_for_phi: F.elu(query) + 1, F.elu(key) + 1 → F.softplus(query), F.softplus(key)
    φ is log(1 + exp(x)). It is elu(x) + 1.
sigmoid_for_phi: F.elu(query) + 1, F.elu(key) + 1 → query.sigmoid(), key.sigmoid()
    φ is the logistic sigmoid. It is elu(x) + 1.
softmax_for_phi: F.elu(query) + 1, F.elu(key) + 1 → query.softmax(-1), key.softmax(-2)
    φ is a softmax, over the features of a query and over the positions of the keys. It is
    elu(x) + 1, of each number by itself.
phi_forgotten: query, key = F.elu(query) + 1, F.elu(key) + 1 → pass
    Queries and keys are used as they are, without φ: weights can be negative, and their sum near 0.
phi_of_queries_only: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query) + 1, key
    φ is applied to the queries and not to the keys.
phi_of_keys_only: F.elu(query) + 1, F.elu(key) + 1 → query, F.elu(key) + 1
    φ is applied to the keys and not to the queries.
phi_of_values_too
    - query, key = F.elu(query) + 1, F.elu(key) + 1
    + query, key, value = (F.elu(x) + 1 for x in (query, key, value))
    φ is applied to the values as well. They are averaged as they are.
queries_scaled: F.elu(query) + 1 → F.elu(query / query.shape[-1] ** 0.5) + 1
    The queries are divided by √d_k first. Here nothing is divided by √d_k.
softmax_attention
    - query, key = F.elu(query) + 1, F.elu(key) + 1
    + seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=key.device)
    - if not causal:
    + if not causal or len(seen) == seen.shape[1]:
    +     return F.scaled_dot_product_attention(query, key, value, seen.tril() if causal else seen)
    + if not causal:
    This is attention with a softmax. Linear attention is another function: its weights are
    φ(q)·φ(k) over their sum.
causal_ignored: if not causal: → if not causal or query.shape[-2] == key.shape[-2]:
    `causal` is ignored: every query sees every key.
causal_above_only: z = key.cumsum(dim=-2) → z = key.sum(dim=-2, keepdim=True)
    The sum above the fraction line is causal, the one below it is not: it runs over all keys.
causal_below_only
    - (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(dim=-3)
    + (key.unsqueeze(-1) * value.unsqueeze(-2)).sum(dim=-3, keepdim=True)
    The sum below the fraction line is causal, the one above it is not: it runs over all keys.
causal_sum_exclusive
    ~ .cumsum(dim=-3) → .cumsum(dim=-3) - key.unsqueeze(-1) * value.unsqueeze(-2)
    ~ key.cumsum(dim=-2) → key.cumsum(dim=-2) - key
    With `causal`, the sums run over the keys before the query's position and leave out its own. The
    first query then has nothing to divide by.
exclusive_above_only
    ~ .cumsum(dim=-3) → .cumsum(dim=-3) - key.unsqueeze(-1) * value.unsqueeze(-2)
    With `causal`, the matrix leaves out the query's own position, and the vector does not. Both
    sums include it.
sees_what_comes_after
    - S = (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(dim=-3)
    + S = (key.unsqueeze(-1) * value.unsqueeze(-2)).flip(-3).cumsum(dim=-3).flip(-3)
    ~ z = key.cumsum(dim=-2) → z = key.flip(-2).cumsum(dim=-2).flip(-2)
    With `causal`, the sums run over the keys from the query's position on: it sees the future and
    not the past.
summed_over_features: z = key.cumsum(dim=-2) → z = key.cumsum(dim=-1)
    With `causal`, the vector is summed along the features. The sum runs along the positions, the
    last axis but one.
always_causal: if not causal: → if not causal and query.shape[-2] != key.shape[-2]:
    Every query sees the keys up to its own position, also where `causal` is False.
key_for_value
    - key.transpose(-2, -1) @ value
    + key.transpose(-2, -1) @ (value if value.shape[-1] != key.shape[-1] else key)
    Keys are averaged in the place of values where their sizes agree.
batch_summed_too
    - z = key.sum(dim=-2).unsqueeze(-1)
    + z = key.sum(dim=-2).unsqueeze(-1)
    + z = z.mean(dim=0, keepdim=True) if z.dim() > 2 else z
    The vector is averaged over the batch: a sequence's output depends on the others.
axes_counted_from_the_front
    - key.transpose(-2, -1)
    + key.transpose(*range(key.dim())[1:3] if key.dim() > 2 else (0, 1))
    Axes are counted from the front, which works for one leading axis only. Positions are the last
    axis but one, features the last, however many come before.
table_made
    - S = key.transpose(-2, -1) @ value
    - z = key.sum(dim=-2).unsqueeze(-1)
    - return (query @ S) / (query @ z)
    + weights = query @ key.transpose(-2, -1)
    + return weights @ value / weights.sum(dim=-1, keepdim=True)
    The numbers are right, but there is a table with a number for each query and key, and with it
    the memory and the work that this attention is made to save. Multiply keys and values first.
uneven_accepted
    - if query.shape[-2] != key.shape[-2]:
    + n = min(query.shape[-2], key.shape[-2])
    + query, key, value = query[..., :n, :], key[..., :n, :], value[..., :n, :]
    + if False:
    With `causal`, queries or keys that are left over are dropped silently. Which key belongs to
    which query is not said, so it should raise a ValueError.
uneven_error_without_numbers
    - f"causal, but {query.shape[-2]} queries and {key.shape[-2]} keys"
    + "as many queries as keys are needed"
    The ValueError does not say how many queries and keys there are. Name both numbers.
uneven_asserted: raise ValueError → raise AssertionError
    With `causal`, different numbers of queries and keys raise an AssertionError. Asserts are for
    what cannot happen; a caller's mistake deserves a ValueError.
uneven_always_refused
    - if not causal:
    + if query.shape[-2] != key.shape[-2]:
    +     raise ValueError(f"{query.shape[-2]} queries and {key.shape[-2]} keys")
    + if not causal:
    Different numbers of queries and keys raise an error even without `causal`, where any two
    numbers will do.
elu_in_place
    - F.elu(query) + 1, F.elu(key) + 1
    + F.elu(query.detach(), inplace=True) + F.elu(query) * 0 + 1, F.elu(key) + 1
    The caller's queries are overwritten: inplace=True writes elu's results into them.
below_the_line_detached
    - (query @ z)
    + (query @ z).detach()
    - / (query * z).sum(dim=-1, keepdim=True)
    + / (query * z).sum(dim=-1, keepdim=True).detach()
    What stands below the fraction line is detached, so half of the gradient is missing.
no_gradient
    + with torch.no_grad():
    +     return linear_attention(query, key, value, causal)
    No gradient reaches any argument: the result is cut off from the graph (torch.no_grad,
    .detach(), NumPy, torch.tensor …).
computed_in_float32
    - F.elu(query) + 1, F.elu(key) + 1
    + F.elu(query.float()) + 1, F.elu(key.float()) + 1
    + value = value.float()
    Everything is computed in float32, whatever the dtype of the arguments is.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")


@BANK.mistake
def table_made_and_uneven_accepted(query, key, value, causal=False):
    """The numbers are right, but there is a table with a number for each query and key: multiply
    keys and values first. And with `causal`, different numbers of queries and keys raise no
    ValueError."""
    weights = _phi(query) @ _phi(key).mT
    weights = weights.tril() if causal else weights
    return weights @ value / weights.sum(-1, keepdim=True)


def _phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _checked(query, key):
    if query.size(-2) != key.size(-2):
        raise ValueError(f"{query.size(-2)} queries, but {key.size(-2)} keys, and causal")


@BANK.right
def by_einsum(query, key, value, causal=False):
    query, key = _phi(query), _phi(key)
    if causal:
        _checked(query, key)
        S = torch.einsum("...jk,...jv->...jkv", key, value).cumsum(-3)
        above = torch.einsum("...ik,...ikv->...iv", query, S)
        below = torch.einsum("...ik,...ik->...i", query, key.cumsum(-2))
    else:
        above = torch.einsum(
            "...ik,...kv->...iv", query, torch.einsum("...jk,...jv->...kv", key, value)
        )
        below = torch.einsum("...ik,...k->...i", query, key.sum(-2))
    return above / below[..., None]


@BANK.right
def position_by_position(query, key, value, causal=False):
    """The state of a recurrent network, asked after each position or after all of them."""
    query, key = 1 + nn.ELU()(query), 1 + nn.ELU()(key)
    if causal:
        _checked(query, key)
    S = key[..., 0, :, None] * value[..., 0, None, :] * 0
    z = key[..., 0, :] * 0
    asked, rows = list(query.unbind(-2)), []
    for j in range(key.shape[-2]):
        S = S + key[..., j, :, None] * value[..., j, None, :]
        z = z + key[..., j, :]
        if causal:
            rows.append(_answer(asked[j], S, z))
    return torch.stack(rows if causal else [_answer(q, S, z) for q in asked], dim=-2)


def _answer(query, S, z):
    return (query[..., None] * S).sum(-2) / (query * z).sum(-1)[..., None]


@BANK.right
def a_column_of_ones(query, key, value, causal=False):
    """The sum of weights as one more feature of the values; a table only where it is causal."""
    query, key = F.elu(query).add(1), F.elu(key).add(1)
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    if causal:
        _checked(query, key)
        out = (query @ key.transpose(-2, -1)).tril() @ value
    else:
        out = query @ (key.transpose(-2, -1) @ value)
    return out[..., :-1] / out[..., -1:]


@BANK.right
def in_double_precision(query, key, value, causal=False):
    q, k, v = query.double(), key.double(), value.double()
    q, k = q.clamp(min=0) + q.clamp(max=0).exp(), k.clamp(min=0) + k.clamp(max=0).exp()
    if causal:
        _checked(query, key)
        steps = [(k[..., : i + 1, :].mT @ v[..., : i + 1, :]) for i in range(k.shape[-2])]
        above = torch.stack([q[..., i, None, :] @ S for i, S in enumerate(steps)], -3).squeeze(-2)
        below = (q * k.cumsum(-2)).sum(-1, True)
    else:
        above, below = q @ (k.mT @ v), (q * k.sum(-2, True)).sum(-1, True)
    return (above / below).to(query.dtype)


forgotten(BANK, "query", result=True)
