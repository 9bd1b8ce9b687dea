"""Known answers to `attend_with_cache`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import masking as right

BANK = Bank("attend_with_cache", right, globals())
INF = float("inf")


def _heads(attention, x):
    """(B, t, d_model) → (B, H, t, d_k)."""
    return x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)


def _merged(heads):
    """(B, H, t, d_k) → (B, t, d_model)."""
    return heads.transpose(1, 2).flatten(2)


def _projected(attention, x):
    return tuple(_heads(attention, W(x)) for W in (attention.W_q, attention.W_k, attention.W_v))


def _attended(attention, q, k, v, mask):
    return attention.W_o(_merged(right.masked_attention(q, k, v, mask)[0]))


def _tril(rows, columns, diagonal):
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


_kept: dict = {}

BANK.changes("""
causal_inside_the_chunk_forgotten: causal_mask(q.shape[2], k.shape[2], x.device) → None
    There is no causal mask: within a chunk of several new positions, each sees those that come
    after it. With one position at a time, nothing shows.
causal_without_cache_only: causal_mask( → None if cache is not None else causal_mask(
    The causal mask is left out as soon as there is a cache. For one new position that is right; in
    a chunk of several, each sees those that come after it.
top_left_aligned: causal_mask(q.shape[2], k.shape[2], x.device) → _tril(q.shape[2], k.shape[2], 0)
    The causal mask is aligned at the top left, as if the new positions were the first: they see the
    beginning of the cache, and never themselves. torch's is_causal=True does the same.
one_step_into_the_future
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] + 1)
    Each position sees one beyond its own, the token that it is to predict.
diagonal_excluded
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] - 1)
    A position does not see itself: it sees only what came before, and the very first sees nothing.
cache_position_off_by_one
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] - (cache is not None))
    With a cache of T positions, the first new one is at position T, counting from 0. It is placed
    at T − 1, so no new position sees itself.
cache_position_one_too_far
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] + (cache is not None))
    With a cache of T positions, the first new one is at position T, counting from 0. It is placed
    at T + 1, so each sees one position of the future.
causal_with_a_cache_only: causal_mask( → None if cache is None else causal_mask(
    The causal mask is left out as long as there is no cache: in the first chunk, each position sees
    those that come after it.
top_left_aligned_in_chunks
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + None if q.shape[2] == 1 else _tril(q.shape[2], k.shape[2], 0)
    One position at a time is right. In a chunk, the causal mask is aligned at the top left, as with
    torch's is_causal=True: the new positions see the beginning of the cache, and never themselves.
mask_without_columns_for_the_cache
    ~ causal_mask(q.shape[2], k.shape[2] → causal_mask(q.shape[2], q.shape[2]
    The mask has columns for the t new positions only; with a cache of T it needs T + t, one for
    each key. With a single new position it broadcasts, and nothing shows.
chunk_sees_only_the_cache
    - heads, _ =
    + mask = causal_mask(q.shape[2], k.shape[2])
    + if cache is not None:
    +     mask = torch.arange(k.shape[2]) < cache[0].shape[2]
    + heads, _ =
    ~ causal_mask(q.shape[2], k.shape[2], x.device) → mask
    The new positions see the whole cache and nothing of each other, not even themselves.
cache_not_grown: ), (k, v) → ), (k[:, :, -x.shape[1] :], v[:, :, -x.shape[1] :])
    The returned cache holds the new positions only: the next call sees one chunk back and has
    forgotten everything before it.
old_cache_returned: ), (k, v) → ), (k, v) if cache is None else cache
    The cache is returned as it was passed in, without the new keys and values, so no call sees what
    the one before it added.
cache_ignored: + cache = None
    The new positions attend only to each other: the cache is not used.
cache_grown_but_not_used: > result = attend_with_cache(attention, x)[0], result[1]
    The cache grows as it should, but the new positions attend only to each other: keys and values
    are joined with the cache after the attention instead of before it.
new_before_old: [cache[0], k] → [k, cache[0]] ; [cache[1], v] → [v, cache[1]]
    The new keys and values are put in front of the old ones. The causal mask counts positions from
    the left, so the newest should come last.
sizes_do_not_fit_the_cache: dim=2 → dim=1 ×2
    Every call with a cache ends in a RuntimeError, because sizes do not fit. Old and new are joined
    along the positions, the third axis of (B, H, T, d_k); the first counts sequences, the second
    heads. The mask then has t rows and T + t columns.
keys_and_values_exchanged_in_the_cache: ), (k, v) → ), (v, k)
    The cache is returned as (v, k), so the next call takes values for keys.
cache_projected_again
    ~ [cache[0], k] → [_heads(attention, attention.W_k(_merged(cache[0]))), k]
    ~ [cache[1], v] → [_heads(attention, attention.W_v(_merged(cache[1]))), v]
    The contents of the cache go through W_k and W_v once more. They were projected when they were
    new; only the new positions need to be.
inputs_cached
    + whole = x if cache is None else torch.cat([cache[0], x], 1)
    + q, (_, k, v) = _projected(attention, x)[0], _projected(attention, whole)
    + mask = causal_mask(q.shape[2], k.shape[2])
    + return _attended(attention, q, k, v, mask), (whole, whole)
    The cache holds the inputs x instead of keys and values. The outputs are right, but every call
    projects the whole past again, and the cache is not (k, v) of shape (B, H, T, d_k).
cached_before_the_split
    + q, k, v = _heads(attention, attention.W_q(x)), attention.W_k(x), attention.W_v(x)
    + if cache is not None:
    +     k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
    + mask = causal_mask(x.shape[1], k.shape[1])
    + return _attended(attention, q, _heads(attention, k), _heads(attention, v), mask), (k, v)
    The cache holds keys and values of shape (B, T, d_model), before they are split into heads. It
    should be (B, H, T, d_k).
positions_before_heads_in_the_cache
    + cache = None if cache is None else tuple(part.transpose(1, 2) for part in cache)
    ~ ), (k, v) → ), (k.transpose(1, 2), v.transpose(1, 2))
    The cache is (B, T, H, d_k), with positions before heads. It should be (B, H, T, d_k).
heads_split_by_view
    - p.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    + p.reshape(len(x), attention.num_heads, x.shape[1], -1)
    Heads are split by a mere reshape to (B, H, t, d_k), which cuts the sequence into pieces instead
    of the features. First comes the split of the features into (H, d_k), then the exchange of
    positions and heads.
merged_without_transpose: heads.transpose(1, 2).flatten(2) → heads.reshape(x.shape)
    The heads are merged by a mere reshape, which mixes positions and heads: these have to be
    exchanged first.
output_projection_forgotten
    ~ attention.W_o(heads.transpose(1, 2).flatten(2)) → heads.transpose(1, 2).flatten(2)
    The merged heads are returned without W_o.
scaled_by_d_model: masked_attention(q → masked_attention(q * attention.num_heads**-0.5
    The scores are divided by √d_model. Each head works on d_k = d_model / H features, so the
    divisor is √d_k.
no_scale: masked_attention(q → masked_attention(q * q.shape[-1] ** 0.5
    The scores are not divided by √d_k.
cache_kept_in_a_global
    + cache = None if cache is None else _kept.get("cache")
    > _kept["cache"] = result[1]
    The keys and values are kept in a variable outside the function, and the cache that is passed in
    is ignored. Two sequences, or two continuations of one, then get mixed up.
cache_changed_in_place
    - if cache is not None:
    -     k = torch.cat([cache[0], k], dim=2)
    -     v = torch.cat([cache[1], v], dim=2)
    + cache = [k[:, :, :0], v[:, :, :0]] if cache is None else cache
    + cache = list(cache) if isinstance(cache, tuple) else cache
    + k = cache[0] = torch.cat([cache[0], k], dim=2)
    + v = cache[1] = torch.cat([cache[1], v], dim=2)
    ~ ), (k, v) → ), cache
    The cache that was passed in is changed: it is a list whose two parts are replaced. Whoever kept
    it, to try another continuation, finds the new positions in it.
cache_detached: ), (k, v) → ), (k.detach(), v.detach())
    The returned cache is cut off from the graph: no gradient of a later position reaches the inputs
    of an earlier one, as it would in the full pass.
no_gradient
    + with torch.no_grad():
    +     return attend_with_cache(attention, x, cache)
    No gradient reaches x: the results are cut off from the graph (torch.no_grad, .detach(), NumPy,
    torch.tensor …). That is for the caller to decide; the cached pass equals the full pass in the
    backward direction, too.
last_output_only: > result = result[0][:, -1:], result[1]
    Only the output of the last position is returned. There should be one for each of the t new
    positions.
weights_for_cache: heads, _ = → heads, weights = ; ), (k, v) → ), weights
    The second part of the result holds the weights; it should be the new cache, (k, v).
key_and_value_projections_swapped: q, k, v = split → q, v, k = split
    W_v computes the keys and W_k the values. The shapes agree, the numbers do not.
keys_twice_in_the_cache: ), (k, v) → ), (k, k)
    The returned cache is (k, k): the next call averages keys instead of values.
output_only: ), (k, v) → )
    Only the output is returned. The next call needs the new cache as well: (output, (k, v)).
heads_counted_for_positions
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], 0 if cache is None else cache[0].shape[1])
    The number of old positions is read from the wrong axis: of (B, H, T, d_k), the second is the
    number of heads, and the third that of positions.
mode_of_the_module_changed: + attention.eval()
    attention.eval() or attention.train() changes the caller's module for good: its dropout is off
    or on from then on. The mode is the caller's choice.
""")


def _grown(cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)


@BANK.right
def by_torch(attention, x, cache=None):
    q, k, v = _projected(attention, x)
    k, v = _grown(cache, k, v)
    mask = right.causal_mask(q.shape[2], k.shape[2], x.device)
    heads = F.scaled_dot_product_attention(q, k, v, mask)
    return attention.W_o(_merged(heads)), (k, v)


@BANK.right
def position_by_position(attention, x, cache=None):
    outputs = []
    for token in x.split(1, dim=1):
        q, k, v = _projected(attention, token)
        cache = _grown(cache, k, v)
        outputs.append(_attended(attention, q, *cache, None))
    return torch.cat(outputs, dim=1), cache


@BANK.right
def head_by_head(attention, x, cache=None):
    d_k = x.shape[-1] // attention.num_heads
    q, k, v = (W(x).split(d_k, dim=-1) for W in (attention.W_q, attention.W_k, attention.W_v))
    outputs, keys, values = [], [], []
    for h in range(attention.num_heads):
        keys.append(k[h] if cache is None else torch.cat([cache[0][:, h], k[h]], 1))
        values.append(v[h] if cache is None else torch.cat([cache[1][:, h], v[h]], 1))
        scores = torch.bmm(q[h], keys[-1].mT) / d_k**0.5
        future = scores.new_full(scores.shape[1:], -INF).triu(1 + keys[-1].shape[1] - x.shape[1])
        outputs.append(torch.softmax(scores + future, -1) @ values[-1])
    output = attention.W_o(torch.cat(outputs, -1))
    return output, [torch.stack(keys, 1), torch.stack(values, 1)]


@BANK.right
def by_einsum_over_positions_first(attention, x, cache=None):
    b, t, _ = x.shape
    shape = (b, t, attention.num_heads, -1)
    q, k, v = (W(x).reshape(shape) for W in (attention.W_q, attention.W_k, attention.W_v))
    past = 0
    if cache is not None:
        past = cache[0].shape[2]
        k = torch.cat((cache[0].permute(0, 2, 1, 3), k), 1)
        v = torch.cat((cache[1].permute(0, 2, 1, 3), v), 1)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    position = torch.arange(past + t, device=x.device)
    seen = position <= position[past:, None]
    weights = scores.masked_fill(seen.logical_not(), -1e30).softmax(-1)
    output = attention.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, -1))
    return output, (k.permute(0, 2, 1, 3), v.permute(0, 2, 1, 3))


@BANK.right
def cache_of_no_length_to_begin_with(attention, x, cache=None):
    b, t, d_model = x.shape
    d_k = d_model // attention.num_heads
    empty = x.new_zeros(b, attention.num_heads, 0, d_k)
    k, v = (empty, empty) if cache is None else cache
    new = torch.stack([attention.W_k(x), attention.W_v(x)])
    k, v = torch.cat([torch.stack([k, v]), torch.stack(new.split(d_k, -1), 2)], 3)
    q = torch.stack(attention.W_q(x).split(d_k, -1), 1)
    mask = _tril(t, k.shape[2], k.shape[2] - t).to(x.device)
    heads, _ = right.masked_attention(q, k, v, mask)
    return attention.W_o(torch.cat(heads.unbind(1), -1)), (k, v)


forgotten(BANK, "x")
