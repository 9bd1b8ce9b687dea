"""Known answers to `chunked_linear_attention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("chunked_linear_attention", right, globals())

BANK.changes("""
sees_its_whole_chunk: (q @ k.transpose(-2, -1)).tril() → q @ k.transpose(-2, -1)
    A query sees its whole chunk, and so what comes after it: either the table of weights has no
    mask, or the chunk is in the state before its queries read it.
own_position_left_out: .tril() → .tril(-1)
    The triangle of weights is without its diagonal: a query does not see its own position.
sees_the_future_of_its_chunk: .tril() → .triu()
    The triangle is turned round: in its own chunk a query sees itself and what comes after it, and
    nothing before.
own_chunk_only
    ~ above = q @ S + weights @ v → above = weights @ v
    ~ below = q @ z.unsqueeze(-1) + weights.sum → below = weights.sum
    A query sees its own chunk and nothing before: what the state holds is not read.
chunk_counted_twice
    ~ above = q @ S + → above = q @ (S + k.mT @ v) +
    ~ q @ z.unsqueeze(-1) + → q @ (z + k.sum(dim=-2)).unsqueeze(-1) +
    The chunk counts twice: in the state that its queries read, and once more through the table.
divided_apart
    ~ outputs.append(above / below) → pass
    - above = q @ S + weights @ v
    - below = q @ z.unsqueeze(-1) + weights.sum(dim=-1, keepdim=True)
    + inside = weights @ v / weights.sum(dim=-1, keepdim=True)
    + before = (q @ S) / (q @ z.unsqueeze(-1)).clamp(min=1e-12)
    + outputs.append(before + inside)
    What comes from the state and what comes from the chunk are each divided by their own sum, and
    then added. Add above the fraction line and below it, and divide once.
not_normalised: outputs.append(above / below) → outputs.append(above)
    The output is not divided by the sum of the weights.
divided_by_the_chunk_alone: below = q @ z.unsqueeze(-1) + weights.sum → below = weights.sum
    Below the fraction line are the weights of the query's own chunk only. Those of all chunks
    before belong there, too: φ(q) · z.
divided_by_the_state_alone
    - below = q @ z.unsqueeze(-1) + weights.sum(dim=-1, keepdim=True)
    + below = q @ (z + k.sum(dim=-2)).unsqueeze(-1)
    Below the fraction line the whole chunk counts, above it only what the query may see.
divided_by_z_alone
    - below = q @ z.unsqueeze(-1) + weights.sum(dim=-1, keepdim=True)
    + below = z.sum(dim=-1, keepdim=True).unsqueeze(-1) + weights.sum(dim=-1, keepdim=True)
    The state's share below the fraction line is the sum of z. The query belongs there as well:
    φ(q) · z.
matrix_not_carried: S, z = S + k.transpose(-2, -1) @ v, z + → S, z = k.transpose(-2, -1) @ v, z +
    The matrix holds the last chunk only. It is the sum over all chunks.
vector_not_carried: @ v, z + k.sum(dim=-2) → @ v, k.sum(dim=-2)
    The vector holds the last chunk only. It is the sum over all chunks.
matrix_never_grows: S + k.transpose(-2, -1) @ v, z → S, z
    The matrix stays as it was at the start: no chunk is added to it.
vector_never_grows: z + k.sum(dim=-2) → z
    The vector stays as it was at the start: no chunk is added to it.
state_not_carried
    - S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    + S, z = k.transpose(-2, -1) @ v, k.sum(dim=-2)
    The state holds the last chunk only: a query sees its own chunk and the one before.
state_averaged: z + k.sum(dim=-2) → z + k.mean(dim=-2)
    The vector is the sum of the chunks' means. It is the sum over all positions.
state_ignored: if state is None: → if True:
    The state that is passed in is ignored: every call begins anew.
vector_of_the_state_ignored: S, z = state → S, z = state[0], 0 * state[1]
    Of the state that is passed in, the vector is ignored.
old_state_returned: dim=-2), (S, z) → dim=-2), state
    The state is returned as it came in.
last_chunk_not_added
    - S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    + before = S, z
    + S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    ~ (S, z) → before
    The state that comes back is without the last chunk. It is only wrong in the next call.
state_grown_in_place
    - S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    + S += k.transpose(-2, -1) @ v
    + z += k.sum(dim=-2)
    The state that was passed in is changed: `+=` writes into the caller's tensors.
state_of_raw_keys
    - query, key = F.elu(query) + 1, F.elu(key) + 1
    + raw, query, key = key, F.elu(query) + 1, F.elu(key) + 1
    - (x.split(chunk, dim=-2) for x in (query, key, value))
    + (x.split(chunk, dim=-2) for x in (query, key, value, raw))
    ~ for q, k, v in → for q, k, v, r in
    ~ S, z = S + k.transpose(-2, -1) @ v, z + k.sum → S, z = S + r.transpose(-2, -1) @ v, z + r.sum
    The state sums the keys without φ.
phi_forgotten: query, key = F.elu(query) + 1, F.elu(key) + 1 → pass
    Queries and keys are used as they are, without φ: weights can be negative, and their sum near 0.
phi_of_queries_only: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query) + 1, key
    φ is applied to the queries and not to the keys.
phi_of_keys_only: F.elu(query) + 1, F.elu(key) + 1 → query, F.elu(key) + 1
    φ is applied to the keys and not to the queries.
relu_for_phi: F.elu(query) + 1, F.elu(key) + 1 → F.relu(query), F.relu(key)
    φ is a ReLU. It is elu(x) + 1, which is never 0: with ReLU a query may have no weight for
    anything, and 0/0 is NaN.
elu_without_one: F.elu(query) + 1, F.elu(key) + 1 → F.elu(query), F.elu(key)
    φ is elu(x), without the 1. It can be negative, and so can weights, and sums near 0 make the
    output huge.
exp_for_phi: F.elu(query) + 1, F.elu(key) + 1 → query.exp(), key.exp()
    φ is exp(x). It is elu(x) + 1, which is exp(x) for negative numbers only, and x + 1 for others.
queries_scaled: F.elu(query) + 1 → F.elu(query / query.shape[-1] ** 0.5) + 1
    The queries are divided by √d_k first. Here nothing is divided by √d_k.
softmax_inside_the_chunk
    - weights = (q @ k.transpose(-2, -1)).tril()
    + weights = (q @ k.transpose(-2, -1)).exp().tril()
    Inside a chunk the weights are exp(φ(q)·φ(k)). They are φ(q)·φ(k), as everywhere else.
remainder_dropped
    + n = max(query.shape[-2] // max(chunk, 1) * chunk, min(chunk, query.shape[-2]), 1)
    + query, key, value = query[..., :n, :], key[..., :n, :], value[..., :n, :]
    What is left over after the last whole chunk is dropped: positions are missing at the end.
remainder_padded
    + n, rest = query.shape[-2], -query.shape[-2] % max(chunk, 1)
    + query, key, value = (F.pad(x, (0, 0, 0, rest)) for x in (query, key, value))
    > result = result[0][..., :n, :], result[1]
    The last chunk is filled up with zeros, and φ(0) is 1, not 0: the padding counts in the vector z
    of the state that comes back. The outputs are right.
remainder_is_zero_by_zero
    - outputs = []
    + n, outputs = query.shape[-2], []
    + query, key, value = (F.pad(x, (0, 0, 0, -n % chunk)) for x in (query, key, value))
    > result = result[0][..., :n, :], result[1]
    The numbers are right, their gradients are NaN: the last chunk is filled up with zeros behind φ,
    and there the fraction is 0/0. To cut these outputs off afterwards does not keep NaN out of the
    backward pass.
remainder_refused
    + if query.shape[-2] % max(chunk, 1):
    +     raise ValueError(f"{query.shape[-2]} is no multiple of {chunk}")
    A text whose length is no multiple of the chunk is refused. The last chunk may be shorter.
more_than_a_chunk_at_once
    - for q, k, v in zip(*(x.split(chunk, dim=-2) for x in (query, key, value)), strict=True):
    + for q, k, v in [(query, key, value)]:
    The numbers are right, but more than a chunk is in hand at once: there is a table of all queries
    and keys, or one of larger chunks, or a state for each position.
uneven_cut
    - if query.shape[-2] != key.shape[-2]:
    -     raise ValueError(f"causal, but {query.shape[-2]} queries and {key.shape[-2]} keys")
    + n = min(query.shape[-2], key.shape[-2])
    + query, key, value = query[..., :n, :], key[..., :n, :], value[..., :n, :]
    Queries or keys that are left over are dropped silently. Which key belongs to which query is not
    said, so it should raise a ValueError.
uneven_not_refused
    - if query.shape[-2] != key.shape[-2]:
    -     raise ValueError(f"causal, but {query.shape[-2]} queries and {key.shape[-2]} keys")
    + pass
    Different numbers of queries and keys are not checked: whatever comes of them, it is not a
    ValueError that names both.
chunk_of_nothing_not_refused: if chunk < 1: → if False:
    A chunk below 1 is not checked: torch's own error does not say what is wrong.
chunk_of_nothing_made_one
    ~ if chunk < 1: → if False:
    ~ x.split(chunk, → x.split(max(chunk, 1),
    A chunk below 1 is taken for 1 without a word. It should be a ValueError.
chunk_of_one_refused: if chunk < 1: → if chunk <= 1:
    A chunk of one position is refused. It is a recurrent network, and allowed.
error_without_the_number
    ~ f"a chunk has at least one position, not {chunk}" → "a chunk has at least one position"
    The ValueError for a chunk below 1 does not name the number.
output_only: > result = result[0]
    Only the output is returned. The next call needs the new state as well: (output, (S, z)).
flat_result: > result = result[0], *result[1]
    The result is (output, S, z). It should be a pair of the output and the state: (output, (S, z)).
matrix_transposed: dim=-2), (S, z) → dim=-2), (S.transpose(-2, -1), z)
    The matrix of the new state is transposed: it is (…, d_k, d_v), with a row for each feature of
    the keys.
state_detached: dim=-2), (S, z) → dim=-2), (S.detach(), z.detach())
    The new state is detached: no gradient of a later call reaches these keys and values.
cut_between_chunks
    - S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    + S, z = (S + k.transpose(-2, -1) @ v).detach(), (z + k.sum(dim=-2)).detach()
    The state is detached between chunks: no gradient reaches an earlier chunk.
below_the_line_detached: above / below → above / below.detach()
    What stands below the fraction line is detached, so half of the gradient is missing.
chunks_in_reverse: outputs.append(above / below) → outputs.insert(0, above / below)
    The outputs of the chunks are put together in reverse.
axes_counted_from_the_front: x.split(chunk, dim=-2) → x.split(chunk, dim=x.dim() // 3)
    Axes are counted from the front, which does not work for any number of leading axes. Positions
    are the last axis but one.
summed_over_the_batch: z + k.sum(dim=-2) → z + k.sum(dim=(-2, 0) if k.dim() > 2 else -2)
    The vector is summed over the batch as well: each sequence has its own.
no_gradient
    + with torch.no_grad():
    +     return chunked_linear_attention(query, key, value, chunk, state)
    No gradient reaches any argument: the result is cut off from the graph (torch.no_grad,
    .detach(), NumPy, torch.tensor …).
computed_in_float32
    + query, key, value = query.float(), key.float(), value.float()
    + state = None if state is None else tuple(part.float() for part in state)
    Everything is computed in float32, whatever the dtype of the arguments is.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")


def _phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _checked(query, key, chunk):
    n, n_k = query.size(-2), key.size(-2)
    if chunk <= 0:
        raise ValueError(f"chunk = {chunk}")
    if n != n_k:
        raise ValueError(f"{n} queries, but {n_k} keys")
    return n


@BANK.right
def with_slices(query, key, value, chunk, state=None):
    n = _checked(query, key, chunk)
    q, k = _phi(query), _phi(key)
    S, z = (0, 0) if state is None else state
    parts = []
    for start in range(0, n, chunk):
        at = slice(start, min(start + chunk, n))
        future = torch.ones(q[..., at, :].shape[-2:-1] * 2, dtype=torch.bool, device=q.device)
        table = torch.einsum("...id,...jd->...ij", q[..., at, :], k[..., at, :])
        table = table.masked_fill(future.triu(1), 0.0)
        above, below = table @ value[..., at, :], table.sum(-1)
        if start or state is not None:
            above = above + q[..., at, :] @ S
            below = below + (q[..., at, :] * z.unsqueeze(-2)).sum(-1)
        parts.append(above / below.unsqueeze(-1))
        S = k[..., at, :].mT @ value[..., at, :] + S
        z = k[..., at, :].sum(-2) + z
    return torch.cat(parts, -2), (S, z)


@BANK.right
def a_column_of_ones(query, key, value, chunk, state=None):
    """z is one more column of S, and the divisor one more column of the output."""
    n = _checked(query, key, chunk)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    wide = F.pad(value, (0, 1), value=1.0)
    if state is None:
        table = torch.zeros_like(k[..., :1, :].mT * wide[..., :1, :])
    else:
        table = torch.cat([state[0], state[1].unsqueeze(-1)], -1)
    found, start = [], 0
    while start < n:
        qc, kc, vc = (x[..., start : start + chunk, :] for x in (q, k, wide))
        found.append(qc @ table + torch.tril(qc @ kc.mT) @ vc)
        table = table + kc.mT @ vc
        start += chunk
    out = torch.cat(found, -2)
    return out[..., :-1] / out[..., -1:], (table[..., :-1], table[..., -1])


@BANK.right
def all_chunks_at_once(query, key, value, chunk, state=None):
    """The last chunk is filled up with features of 0, and all states are a running sum."""
    n = _checked(query, key, chunk)
    chunk = min(chunk, n)
    m = -(-n // chunk)
    fill = (0, 0, 0, m * chunk - n)
    q, k, v = (F.pad(x, fill).unflatten(-2, (m, chunk)) for x in (_phi(query), _phi(key), value))
    sums, vectors = (k.mT @ v), k.sum(-2)  # (..., m, d_k, d_v), (..., m, d_k)
    S, z = sums.cumsum(-3) - sums, vectors.cumsum(-2) - vectors
    total = sums.sum(-3), vectors.sum(-2)
    if state is not None:
        S, z = S + state[0].unsqueeze(-3), z + state[1].unsqueeze(-2)
        total = total[0] + state[0], total[1] + state[1]
    table = (q @ k.mT).tril()
    below = (q @ z.unsqueeze(-1)) + table.sum(-1, keepdim=True)
    out = (q @ S + table @ v).flatten(-3, -2)[..., :n, :] / below.flatten(-3, -2)[..., :n, :]
    return out, total


@BANK.right
def divisors_at_once(query, key, value, chunk, state=None):
    """The divisors come from a running sum of all keys; only what they divide goes in chunks."""
    n = _checked(query, key, chunk)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    sums = k.cumsum(-2) if state is None else k.cumsum(-2) + state[1].unsqueeze(-2)
    S = None if state is None else state[0]
    above = []
    for start in range(0, n, chunk):
        qc, kc, vc = (x[..., start : start + chunk, :] for x in (q, k, value))
        here = torch.tril(qc @ kc.mT) @ vc
        above.append(here if S is None else qc @ S + here)
        S = kc.mT @ vc if S is None else S + kc.mT @ vc
    return torch.cat(above, -2) / (q * sums).sum(-1, keepdim=True), (S, sums[..., -1, :])


@BANK.mistake
def position_by_position(query, key, value, chunk, state=None):
    """The numbers are right, but there is a step for each position, as in a recurrent network. The
    positions of a chunk are to be computed at once, in a few matrix products."""
    _checked(query, key, chunk)
    q, k = _phi(query), _phi(key)
    outputs = []
    for i in range(q.shape[-2]):
        S = k[..., i, :, None] * value[..., i, None, :]
        S, z = (S, k[..., i, :]) if state is None else (state[0] + S, state[1] + k[..., i, :])
        state = S, z
        outputs.append((q[..., i, None, :] @ S).squeeze(-2) / (q[..., i, :] * z).sum(-1)[..., None])
    return torch.stack(outputs, -2), state


forgotten(BANK, "query")
