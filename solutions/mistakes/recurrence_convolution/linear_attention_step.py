"""Known answers to `linear_attention_step`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("linear_attention_step", right, globals())

BANK.changes("""
state_grown_in_place: S, z = state[0] + S, state[1] + z → S, z = state[0].add_(S), state[1].add_(z)
    The state that was passed in is changed: `+=` and methods whose names end in _ write into the
    caller's tensors. Whoever kept it, to try another continuation, finds this position in it.
state_grown_in_place_from_zeros
    - S = key.unsqueeze(-1) * value.unsqueeze(-2)
    - z = key
    - if state is not None:
    -     S, z = state[0] + S, state[1] + z
    + new = key.unsqueeze(-1) * value.unsqueeze(-2)
    + S, z = (torch.zeros_like(new), torch.zeros_like(key)) if state is None else state
    + S += new
    + z += key
    `S += …` writes into the caller's state. Whoever kept it, to try another continuation, finds
    this position in it.
state_grown_in_place_without_gradients
    - S, z = state[0] + S, state[1] + z
    + grown = state[0] + S, state[1] + z
    + S, z = grown if grown[0].requires_grad else (state[0].add_(S), state[1].add_(z))
    Without gradients, the state that was passed in is changed in place. That saves memory, but
    an older state that somebody has kept changes, too.
output_from_the_old_state
    - output = (query.unsqueeze(-2) @ S).squeeze(-2)
    - return output / (query * z).sum(dim=-1, keepdim=True), (S, z)
    + old_S, old_z = (S, z) if state is None else state
    + output = (query.unsqueeze(-2) @ old_S).squeeze(-2)
    + return output / (query * old_z).sum(dim=-1, keepdim=True), (S, z)
    The output is computed from the state that was passed in, before this position is added, so a
    position never sees itself.
output_before_the_first_position
    - output = (query.unsqueeze(-2) @ S).squeeze(-2)
    - return output / (query * z).sum(dim=-1, keepdim=True), (S, z)
    + old_S, old_z = (0 * S, 0 * z) if state is None else state
    + output = (query.unsqueeze(-2) @ old_S).squeeze(-2)
    + return output / (query * old_z).sum(dim=-1, keepdim=True), (S, z)
    The output is computed before this position is added: at the first position the state is empty,
    which gives 0/0, and no position ever sees itself.
state_ignored: if state is not None: → if False:
    The state that is passed in is ignored: each position sees itself alone.
old_state_returned: keepdim=True), (S, z) → keepdim=True), (S, z) if state is None else state
    The state is returned as it was passed in: the next call does not know of this position.
step_not_normalised: output / (query * z).sum(dim=-1, keepdim=True), → output,
    The output is not divided by φ(q) · z, the sum of the weights.
normalised_by_this_position: (query * z).sum → (query * key).sum
    The output is divided by the weight of this position alone. It should be divided by that of all
    positions so far, φ(q) · z.
normalised_by_z_alone: (query * z).sum(dim=-1, keepdim=True) → z.sum(dim=-1, keepdim=True)
    The output is divided by the sum of z. The query belongs below the fraction line as well:
    φ(q) · z.
z_not_carried: S, z = state[0] + S, state[1] + z → S = state[0] + S
    Only the matrix is carried on. The vector z is a sum over all positions, too.
S_not_carried: S, z = state[0] + S, state[1] + z → z = state[1] + z
    Only the vector is carried on. The matrix S is a sum over all positions, too.
parts_exchanged: keepdim=True), (S, z) → keepdim=True), (z, S)
    The new state is (z, S). The matrix comes first.
state_transposed: keepdim=True), (S, z) → keepdim=True), (S.mT, z)
    The matrix of the new state is transposed: it is (B, d_k, d_v), with a row for each feature of
    the keys.
outer_product_turned
    - key.unsqueeze(-1) * value.unsqueeze(-2)
    + (key.unsqueeze(-1) * value.unsqueeze(-2)).reshape(len(key), value.shape[1], -1).mT
    The outer product has its numbers in the wrong order. Row c of it is φ(k)_c times the value.
query_for_key: z = key → z = query
    The vector z sums the queries. It sums the keys.
value_for_key: z = key → z = value if value.shape == key.shape else key
    The vector z sums the values where their size allows it. It sums the keys.
z_of_raw_keys
    - query, key = F.elu(query) + 1, F.elu(key) + 1
    + query, raw, key = F.elu(query) + 1, key, F.elu(key) + 1
    ~ z = key → z = raw
    The vector z sums the keys without φ.
S_of_raw_keys
    - query, key = F.elu(query) + 1, F.elu(key) + 1
    + query, raw, key = F.elu(query) + 1, key, F.elu(key) + 1
    ~ key.unsqueeze(-1) → raw.unsqueeze(-1)
    The matrix S sums the outer products of values and keys without φ.
step_relu_for_phi: F.elu(query) + 1, F.elu(key) + 1 → F.relu(query), F.relu(key)
    φ is a ReLU. It is elu(x) + 1, which is never 0: with ReLU a query may have no weight for
    anything, and 0/0 is NaN.
step_relu_plus_one: F.elu(query) + 1, F.elu(key) + 1 → F.relu(query) + 1, F.relu(key) + 1
    φ is relu(x) + 1, which is 1 for all negative numbers. It is elu(x) + 1, which is exp(x) there.
step_elu_without_one: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query), F.elu(key)
    φ is elu(x), without the 1. It can be negative, and so can weights, and sums near 0 make the
    output huge.
step_exp_for_phi: F.elu(query) + 1, F.elu(key) + 1 → query.exp(), key.exp()
    φ is exp(x). It is elu(x) + 1, which is exp(x) for negative numbers only, and x + 1 for others.
step_phi_forgotten: query, key = F.elu(query) + 1, F.elu(key) + 1 → pass
    Queries and keys are used as they are, without φ: weights can be negative, and their sum near 0.
step_phi_of_queries_only: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query) + 1, key
    φ is applied to the query and not to the key.
step_phi_of_keys_only: F.elu(query) + 1, F.elu(key) + 1 → query, F.elu(key) + 1
    φ is applied to the key and not to the query.
step_query_scaled: F.elu(query) + 1 → F.elu(query / query.shape[-1] ** 0.5) + 1
    The query is divided by √d_k first. Here nothing is divided by √d_k.
state_averaged: S, z = state[0] + S, state[1] + z → S, z = (state[0] + S) / 2, (state[1] + z) / 2
    The new state is the mean of the old one and this position. It is their sum.
state_decays: S, z = state[0] + S, state[1] + z → S, z = 0.9 * state[0] + S, 0.9 * state[1] + z
    The old state is multiplied by a number below 1 before this position is added: it forgets. Here
    it is a plain sum.
starts_from_ones
    - if state is not None:
    + if state is None:
    +     S, z = S + 1, z + 1
    + else:
    Before the first position both sums are taken for ones. They are zeros, so the first output is
    the first value.
state_doubled: S, z = state[0] + S, state[1] + z → S, z = 2 * state[0], 2 * state[1]
    The old state is added to itself. This position is what should be added to it.
batch_mixed
    - S, z = state[0] + S, state[1] + z
    + S, z = state[0].mean(0, keepdim=True) + S, state[1].mean(0, keepdim=True) + z
    The state is averaged over the batch: each sequence has its own.
step_output_only: > result = result[0]
    Only the output is returned. The next call needs the new state as well: (output, (S, z)).
flat_result: > result = result[0], *result[1]
    The result is (output, S, z). It should be a pair of the output and the state: (output, (S, z)).
axis_of_the_query_kept: (query.unsqueeze(-2) @ S).squeeze(-2) → query.unsqueeze(-2) @ S
    The output is (B, 1, d_v) or wider: the axis that the query had for the product is still there.
step_squeezed: > result = result[0].squeeze(), result[1]
    squeeze() without an axis removes every axis of size 1, even that of the batch.
state_detached: keepdim=True), (S, z) → keepdim=True), (S.detach(), z.detach())
    The new state is detached: no gradient of a later output reaches this key and this value.
step_below_the_line_detached
    - (query * z).sum(dim=-1, keepdim=True)
    + (query * z).sum(dim=-1, keepdim=True).detach()
    What stands below the fraction line is detached, so half of the gradient is missing.
no_gradient
    + with torch.no_grad():
    +     return linear_attention_step(query, key, value, state)
    No gradient reaches any argument: the result is cut off from the graph (torch.no_grad,
    .detach(), NumPy, torch.tensor …).
computed_in_float32
    + query, key, value = query.float(), key.float(), value.float()
    + state = None if state is None else tuple(part.float() for part in state)
    Everything is computed in float32, whatever the dtype of the arguments is.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")


@BANK.right
def by_einsum(query, key, value, state=None):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (query, key))
    S, z = torch.einsum("bk,bv->bkv", k, value), k
    S, z = (S, z) if state is None else (torch.add(S, state[0]), torch.add(z, state[1]))
    below = torch.einsum("bk,bk->b", q, z)
    return torch.einsum("bk,bkv,b->bv", q, S, 1 / below), (S, z)


@BANK.right
def from_zeros(query, key, value, state=None):
    """A state of zeros to begin with, and a batched product that adds."""
    (B, d_k), d_v = key.shape, value.shape[-1]
    if state is None:
        state = torch.zeros(B, d_k, d_v).to(value), torch.zeros_like(key)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = torch.baddbmm(state[0], k.unsqueeze(2), value.unsqueeze(1))
    z = state[1] + k
    return torch.bmm(q.unsqueeze(1), S)[:, 0] / torch.bmm(q.unsqueeze(1), z.unsqueeze(2))[:, 0], [
        S,
        z,
    ]


@BANK.right
def sequence_by_sequence(query, key, value, state=None):
    outputs, matrices, vectors = [], [], []
    for i in range(len(query)):
        q, k = F.elu(query[i]) + 1, F.elu(key[i]) + 1
        S, z = torch.outer(k, value[i]), k
        if state is not None:
            S, z = S + state[0][i], z + state[1][i]
        outputs.append(q @ S / q.dot(z))
        matrices.append(S)
        vectors.append(z)
    return torch.stack(outputs), (torch.stack(matrices), torch.stack(vectors))


@BANK.right
def one_table_for_both(query, key, value, state=None):
    """z as one more column of S, in float64."""
    q, k = (F.elu(x.double()) + 1 for x in (query, key))
    wide = torch.cat([value.double(), torch.ones_like(value[:, :1]).double()], dim=1)
    table = k.unsqueeze(2) * wide.unsqueeze(1)
    if state is not None:
        table = table + torch.cat([state[0], state[1].unsqueeze(2)], dim=2).double()
    out = (q.unsqueeze(2) * table).sum(1)
    S, z = (part.to(value.dtype) for part in (table[..., :-1], table[..., -1]))
    return (out[:, :-1] / out[:, -1:]).to(value.dtype), (S, z)


forgotten(BANK, "query")
