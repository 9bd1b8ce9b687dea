"""Known answers to `cosine_scores`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import attention_scoring as right

BANK = Bank("cosine_scores", right, globals())

BANK.changes("""
not_divided: + return query @ key.transpose(-2, -1)
    These are dot products, not divided by the lengths. They are cosines only if all vectors have
    length 1.
only_the_query_divided
    - key = key / key.norm(dim=-1, keepdim=True).clamp_min(eps)
    ~ ).clamp(-1.0, 1.0) → )
    Only the queries are divided by their length: a key twice as long scores twice as much.
only_the_key_divided
    - query = query / query.norm(dim=-1, keepdim=True).clamp_min(eps)
    ~ ).clamp(-1.0, 1.0) → )
    Only the keys are divided by their length: a query twice as long scores twice as much.
squared_lengths
    ~ query.norm(dim=-1, keepdim=True) → query.pow(2).sum(dim=-1, keepdim=True)
    ~ key.norm(dim=-1, keepdim=True) → key.pow(2).sum(dim=-1, keepdim=True)
    ~ ).clamp(-1.0, 1.0) → )
    Each vector is divided by its squared length: the sum of squares, without the root.
squared_lengths_then_limits of squared_lengths
    > result = result.clamp(-1.0, 1.0)
    Each vector is divided by its squared length: the sum of squares, without the root. The limits
    of ±1 hide what becomes too large.
sum_of_sizes_for_the_norm
    ~ query.norm(dim=-1, keepdim=True) → query.abs().sum(dim=-1, keepdim=True)
    ~ key.norm(dim=-1, keepdim=True) → key.abs().sum(dim=-1, keepdim=True)
    The length is computed as the sum of absolute values. The cosine needs the Euclidean length, the
    root of the sum of squares.
divided_by_root_d: + return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    The dot products are divided by √d, as in scaled attention. The cosine divides each by the
    lengths of its own two vectors.
lengths_over_positions: dim=-1 → dim=-2 ×2 ; ).clamp(-1.0, 1.0) → )
    The norm runs over the positions (dim=-2) instead of the features (dim=-1): columns are brought
    to length 1, not vectors.
lengths_over_positions_then_limits of lengths_over_positions
    > result = result.clamp(-1.0, 1.0)
    The norm runs over the positions (dim=-2) instead of the features (dim=-1): columns are brought
    to length 1, not vectors. The limits of ±1 hide what becomes too large.
one_length_for_all_of_each
    + return query / query.norm().clamp_min(eps) @ (key / key.norm().clamp_min(eps)).mT
    norm() without dim is the length of the whole tensor, one number for all vectors.
one_length_for_all
    + return query @ key.transpose(-2, -1) / (query.norm() * key.norm()).clamp_min(eps)
    norm() without dim is the length of the whole tensor, one number for all vectors.
keepdim_forgotten: dim=-1, keepdim=True → dim=-1 ×2 ; ).clamp(-1.0, 1.0) → )
    The lengths lose their last axis, so they divide features instead of vectors; where the sizes
    differ, the division fails.
lengths_exchanged
    + lengths = key.norm(dim=-1)[..., :, None] * query.norm(dim=-1)[..., None, :]
    + return query @ key.transpose(-2, -1) / lengths.clamp_min(eps)
    The lengths run along the wrong axes: score (i, j) is divided by the lengths of key i and query
    j. With different numbers of queries and keys, it fails.
pairs_element_by_element: + return F.cosine_similarity(query, key, dim=-1, eps=eps)
    F.cosine_similarity pairs the first query with the first key, the second with the second, and so
    on. Every query has to meet every key.
transposed: > result = result.mT
    The table is transposed, with one row per key. There should be one row per query.
all_axes_transposed
    ~ transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    ~ ).clamp(-1.0, 1.0) → )
    `.T` reverses all axes, the batch included. Only the last two should be exchanged.
distance_for_similarity: > result = 1 - result
    This is 1 − cos, a distance: 0 for the best match. A score is higher for a better match.
rescaled_to_zero_and_one: > result = (1 + result) / 2
    The cosine is rescaled to [0, 1]. Return the cosine itself, in [−1, 1], with 0 for a zero
    vector.
absolute_value: > result = result.abs()
    The sign is lost: a vector and its opposite have the score −1, not 1.
angle_returned: > result = torch.acos(result)
    This is the angle, the arccos of the cosine. Return the cosine itself.
softmax_added: > result = result.softmax(-1)
    A softmax is applied. These are scores, not weights: the softmax comes later.
zero_vector_gives_nan: keepdim=True).clamp_min(eps) → keepdim=True) ×2
    eps is not used: a zero vector is divided by its length 0, and 0/0 is NaN.
eps_a_fixed_number: clamp_min(eps) → clamp_min(1e-8) ×2
    A number of your own stands where eps should: another eps makes no difference.
zero_vector_gives_one
    + zero = (query == 0).all(-1)[..., None] | (key == 0).all(-1)[..., None, :]
    > result = result.masked_fill(zero, 1.0)
    A zero vector scores 1 with everything. It has no direction, so it resembles nothing: its score
    is 0.
eps_in_the_features
    + query, key = query + eps, key + eps
    ~ keepdim=True).clamp_min(eps) → keepdim=True) ×2
    eps is added to the vectors: a zero vector becomes (eps, eps, …), which has a direction, and its
    scores are not 0.
centred_first
    + query, key = query - query.mean(-1, keepdim=True), key - key.mean(-1, keepdim=True)
    The mean of each vector is subtracted first. That is a correlation, not a cosine.
lengths_detached: clamp_min(eps) → clamp_min(eps).detach() ×2 ; ).clamp(-1.0, 1.0) → )
    The lengths are detached: the gradient then has a part along the vector, although the cosine
    does not change in that direction.
detached: > result = result.detach()
    No gradient reaches query and key: the scores are cut off from the graph (torch.no_grad,
    .detach(), NumPy, torch.tensor …).
always_float32: > result = result.float()
    The result is forced into float32. float64 should stay float64.
normalised_in_place
    + given = query
    > with torch.no_grad():
    >     given /= given.norm(dim=-1, keepdim=True).clamp_min(eps)
    The caller's vectors are brought to length 1 in place: `query /= …` writes into them.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a function.
weights_returned_too: > result = result, result.softmax(-1)
    Both scores and weights are returned. Return the scores alone, as one tensor.
divided_by_root_d_as_well: > result = result / math.sqrt(query.shape[-1])
    The cosines are divided by √d. A cosine does not grow with d and needs no scale.
eps_for_keys_only
    - query = query / query.norm(dim=-1, keepdim=True).clamp_min(eps)
    + query = query / query.norm(dim=-1, keepdim=True)
    eps guards the lengths of the keys only: a query of zeros is divided by its length 0, which
    gives NaN.
eps_for_queries_only
    - key = key / key.norm(dim=-1, keepdim=True).clamp_min(eps)
    + key = key / key.norm(dim=-1, keepdim=True)
    eps guards the lengths of the queries only: a key of zeros is divided by its length 0, which
    gives NaN.
lengths_along_dim_one: dim=-1 → dim=1 ×2 ; ).clamp(-1.0, 1.0) → )
    The norm runs over dim 1, as F.normalize does unless it is told otherwise. The features are the
    last axis, and that is dim 1 only in a matrix.
""")


@BANK.right
def by_torchs_cosine(query, key, eps=1e-8):
    return F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1, eps=eps)


@BANK.right
def by_normalize(query, key, eps=1e-8):
    return F.normalize(query, dim=-1, eps=eps) @ F.normalize(key, dim=-1, eps=eps).mT


@BANK.mistake
def eps_bounds_the_product(query, key, eps=1e-8):
    """eps bounds the product of the two lengths. It is the least that each length counts as: beside
    a long vector, a short one would go unnoticed."""
    lengths = (
        torch.linalg.norm(query, dim=-1)[..., None] * torch.linalg.norm(key, dim=-1)[..., None, :]
    )
    return torch.einsum("...id,...jd->...ij", query, key) / torch.clamp(lengths, min=eps)


@BANK.mistake
def eps_added_to_lengths(query, key, eps=1e-8):
    """eps is added to every length. It is the least that a length counts as, and changes no longer
    one."""
    q, k = (x / (x.norm(dim=-1, keepdim=True) + eps) for x in (query, key))
    return torch.matmul(q, k.transpose(-1, -2))


@BANK.right
def maximum_with_eps(query, key, eps=1e-8):
    lengths = [x.square().sum(-1).sqrt() for x in (query, key)]
    q, k = (n.maximum(torch.full_like(n, eps)) for n in lengths)
    return (query @ key.mT) / q.unsqueeze(-1) / k.unsqueeze(-2)


@BANK.right
def query_by_query(query, key, eps=1e-8):
    rows = [
        F.cosine_similarity(query[..., i : i + 1, :], key, dim=-1, eps=eps)
        for i in range(query.shape[-2])
    ]
    return torch.stack(rows, dim=-2).clamp(-1, 1)


@BANK.mistake
def short_lengths_count_as_one(query, key, eps=1e-8):
    """A length below eps counts as 1. It counts as eps."""
    lengths = [x.norm(dim=-1, keepdim=True) for x in (query, key)]
    q, k = (
        x / torch.where(n < eps, torch.ones_like(n), n)
        for x, n in zip((query, key), lengths, strict=True)
    )
    return q @ k.mT


forgotten(BANK, "query")
