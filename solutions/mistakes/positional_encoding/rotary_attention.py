"""Known answers to `rotary_attention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import rotary_embedding as rotary

BANK = Bank("rotary_attention", right, globals())


def _rope(x, base, offset=0):
    return right.rotary_embedding(x, base, offset)


def _even(value, base):
    """Rotate the values; a last feature without a partner stays as it is."""
    d = value.shape[-1] // 2 * 2
    return torch.cat([_rope(value[..., :d], base), value[..., d:]], dim=-1)


BANK.changes("""
rotary_applied_to_values: @ value → @ _even(value, base)
    The values are rotated as well. Their average then depends on where the keys are, not only on
    how far away; only queries and keys are turned.
values_rotated_whole: @ value → @ rotary_embedding(value, base)
    The values are rotated as well, which fails for an odd number of features. Only queries and keys
    are turned: an average of values must not depend on where the keys are.
only_queries_rotated: rotary_embedding(key, base) → key
    The keys are not rotated: the scores then depend on where the query is instead of on the
    distance.
only_keys_rotated
    ~ rotary_embedding(query, base, offset=key.shape[-2] - query.shape[-2]) → query
    The queries are not rotated: the scores then depend on where the key is instead of on the
    distance.
nothing_rotated
    ~ rotary_embedding(query, base, offset=key.shape[-2] - query.shape[-2]) → query
    ~ rotary_embedding(key, base) → key
    Nothing is rotated: this is plain attention, which does not know order.
turned_against_each_other
    ~ rotary_embedding(key, base) → rotary.BANK.mistakes["clockwise"](key, base)
    Queries and keys are turned in opposite directions: the score depends on the sum of the two
    positions instead of on their difference.
queries_start_at_zero: base, offset=key.shape[-2] - query.shape[-2] → base
    With more keys than queries, the first query is placed at position 0. The last query is at the
    last key's position: while a text is written, the queries are its end.
offset_on_the_keys
    ~ base, offset=key.shape[-2] - query.shape[-2] → base
    ~ (key, base) → (key, base, key.shape[-2] - query.shape[-2])
    The offset n_k − n_q is applied to the keys. It is the queries that come late.
not_scaled: k.transpose(-2, -1) / math.sqrt(q.shape[-1]) → k.transpose(-2, -1)
    The scores are not divided by √d_k.
scaled_by_d_v: math.sqrt(q.shape[-1]) → math.sqrt(value.shape[-1])
    The scores are divided by √d_v. The dot product has d_k terms.
base_for_queries_only: (key, base) → (key)
    The base is passed on for the queries only: with a base other than 10000, queries and keys turn
    at different speeds.
base_not_passed_on: + base = 10000.0
    The base is not used: it is 10000 for queries and keys, whatever value is passed.
causal_without_being_asked
    - weights = torch.softmax(scores, dim=-1)
    + n_q, n_k = scores.shape[-2:]
    + future = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device).triu(n_k - n_q + 1)
    + weights = scores.masked_fill(future, -math.inf).softmax(-1).nan_to_num(0.0)
    The future is hidden. There is no mask in this exercise: later positions have scores, too.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
output_alone: weights @ value, weights → weights @ value
    The output is returned without the weights.
softmax_over_queries: dim=-1 → dim=-2
    The weights of a key sum to 1 over the queries. Each query's weights must sum to 1.
naive_softmax
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch's softmax guards against that.
rotation_detached: + query, key = query.detach(), key.detach()
    No gradient passes through the rotation, so queries and keys never learn where to look.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32. float64 should stay float64.
key_written_over
    > with torch.no_grad():
    >     key.copy_(rotary_embedding(key, base))
    The caller's key is rotated in place.
softmax_forgotten: torch.softmax(scores, dim=-1) → scores
    The scores serve as weights, without a softmax.
distance_taken_for_the_offset
    ~ offset=key.shape[-2] - query.shape[-2] → offset=abs(key.shape[-2] - query.shape[-2])
    With more queries than keys, they are shifted to the right. The offset n_k − n_q is negative
    there: the last query is at the last key's position, and the first ones come before every key.
""")


@BANK.right
def with_complex_scores(query, key, value, base=10000.0):
    d, late = query.shape[-1], key.shape[-2] - query.shape[-2]
    rate = base ** (-torch.arange(0, d, 2, device=query.device) / d)
    q, k = (torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous()) for t in (query, key))
    i = torch.arange(late, key.shape[-2], device=query.device)
    distance = i[:, None] - torch.arange(key.shape[-2], device=query.device)
    turn = torch.polar(torch.ones_like(rate), rate * distance[..., None])  # (n_q, n_k, d/2)
    scores = torch.einsum("...ic,ijc,...jc->...ij", q, turn, k.conj()).real
    weights = torch.softmax(scores / d**0.5, dim=-1)
    return weights @ value, weights


@BANK.right
def by_torchs_fused_kernel(query, key, value, base=10000.0):
    q, k = rotary.as_complex_numbers(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    eye = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device).expand(*k.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(q, k, eye)
    return F.scaled_dot_product_attention(q, k, value), weights


@BANK.right
def counted_from_the_last_key(query, key, value, base=10000.0):
    """Only distances count, so the last position may be 0 and all others negative."""
    n_q, n_k = query.shape[-2], key.shape[-2]
    q, k = _rope(query, base, 1 - n_q), _rope(key, base, 1 - n_k)
    weights = F.softmax(torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5, dim=-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@BANK.right
def row_by_row(query, key, value, base=10000.0):
    n_q, n_k = query.shape[-2], key.shape[-2]
    k, rows = rotary.with_a_quarter_turn(key, base), []
    for row in range(n_q):
        q = rotary.with_a_quarter_turn(query[..., row : row + 1, :], base, n_k - n_q + row)
        rows.append((q * k).sum(-1) / math.sqrt(query.shape[-1]))
    weights = torch.stack(rows, dim=-2).softmax(dim=-1)
    return weights @ value, weights


forgotten(BANK, "query")
