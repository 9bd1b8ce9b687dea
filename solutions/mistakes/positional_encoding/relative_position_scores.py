"""Known answers to `relative_position_scores`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import relative_positions as indices

BANK = Bank("relative_position_scores", right, globals())

BANK.changes("""
sign_reversed_in_the_table: relative_positions( → indices.BANK.mistakes["sign_reversed"](
    The vectors are those of j − i: the past is taken for the future. The distance is i − j, query
    minus key.
no_clamp: relative_positions( → indices.BANK.mistakes["not_cut"](
    Distances are not clipped to max_distance. In a long sequence they leave the table: at one end
    with an index error, at the other silently, with rows counted from the table's end.
indices_not_raised: relative_positions( → indices.BANK.mistakes["not_raised"](
    The table is indexed with the distance itself. Its first row belongs to −max_distance, so the
    distance 0 is in the middle; a negative index counts from the end.
top_left_aligned_scores: relative_positions( → indices.BANK.mistakes["top_left_aligned"](
    With more keys than queries, the first query is placed at position 0. The last query is at the
    last key's position.
relative_after_scaling: > result = result / math.sqrt(query.shape[-1])
    The scores are divided by √d_k, to be added to scaled ones. But they are added to QKᵀ before the
    scaling, which divides both: divided here, they would be divided twice.
scaling_undone_in_advance: > result = result * math.sqrt(query.shape[-1])
    The scores are multiplied by √d_k, so that the scaling leaves them whole. They should be scaled
    like the content scores.
content_included: > result = query @ key.mT + result
    The content scores q_i·k_j are already added. The relative scores should be returned alone.
key_term_forgotten: mode == "relative_key_query" → False
    Both modes give q_i·a_{i−j}. "relative_key_query" adds k_j·a_{i−j}.
key_term_always: mode == "relative_key_query" → True
    Both modes include the key's term. "relative_key" is q_i·a_{i−j} alone, in spite of its name.
modes_exchanged: mode == "relative_key_query" → mode == "relative_key"
    The two modes are swapped: "relative_key_query" is the one with two terms.
key_for_query
    - if mode == "relative_key_query":
    + if mode == "relative_key":
    +     scores = 0 * scores + torch.einsum("...jd,ijd->...ij", key, a)
    + else:
    "relative_key" multiplies the distance vectors by the keys. In this mode the distance vectors
    stand in for keys, and it is the query that multiplies them.
key_term_from_the_other_side: key, a) → key, distance_embedding[2 * max_distance - distance])
    The key's term uses a_{j−i}, the vector for the way back. Both terms use the same a_{i−j}.
queries_added_up
    - torch.einsum("...id,ijd->...ij", query, a)
    + torch.einsum("...id,ijd->...j", query, a)[..., None, :].expand(-1, -1, len(a), -1)
    The terms are also summed over the queries or the keys: an index is missing on one side of the
    einsum, or a sum runs over one axis too many.
heads_averaged
    + query = query.mean(1, keepdim=True).expand_as(query)
    + key = key.mean(1, keepdim=True).expand_as(key)
    The scores are the same in all heads. The heads share the table, but each head has its own
    queries.
unknown_mode_accepted
    - raise ValueError(f"mode {mode!r} is neither 'relative_key' nor 'relative_key_query'")
    + pass
    An unknown mode is taken for one of the two, so a typo trains a different model than intended.
    It should raise a ValueError.
key_error_for_an_unknown_mode: ValueError → KeyError
    An unknown mode raises some other error. It should raise a ValueError.
table_detached: = distance_embedding[ → = distance_embedding.detach()[
    No gradient reaches the table, so the distances are never learnt.
scores_in_float32: > result = result.float()
    Float64 inputs give float32 scores.
query_changed_in_place
    > with torch.no_grad():
    >     query.div_(2.0)
    The caller's query is overwritten.
query_term_dropped: scores = scores + torch.einsum("...jd → scores = torch.einsum("...jd
    "relative_key_query" gives the term of the keys alone. It adds it to that of the queries.
""")


def _known(mode):
    if mode not in {"relative_key", "relative_key_query"}:
        raise ValueError(f"unknown mode: {mode}")
    return mode == "relative_key_query"


@BANK.right
def all_rows_first_then_gather(query, key, distance_embedding, mode):
    both = _known(mode)
    n_q, n_k = query.shape[-2], key.shape[-2]
    index = indices.by_minimum_and_maximum(n_q, n_k, len(distance_embedding) // 2).to(query.device)
    batch = query.shape[:-2]
    scores = (query @ distance_embedding.T).gather(-1, index.expand(*batch, n_q, n_k))
    if both:
        of_key = (key @ distance_embedding.T).gather(-1, index.T.expand(*batch, n_k, n_q))
        scores = scores + of_key.mT
    return scores


@BANK.right
def relative_pair_by_pair(query, key, distance_embedding, mode):
    both, far = _known(mode), len(distance_embedding) // 2
    n_q, n_k = query.shape[2], key.shape[2]
    rows = []
    for row in range(n_q):
        cells = []
        for j in range(n_k):
            a = distance_embedding[max(-far, min(far, row + n_k - n_q - j)) + far]
            with_whom = query[:, :, row] + key[:, :, j] if both else query[:, :, row]
            cells.append((with_whom * a).sum(-1))
        rows.append(torch.stack(cells, dim=-1))
    return torch.stack(rows, dim=-2)


@BANK.right
def by_multiplying_and_summing(query, key, distance_embedding, mode):
    others = query[..., :, None, :]
    if _known(mode):
        others = others + key[..., None, :, :]
    n_q, n_k, largest = query.shape[-2], key.shape[-2], (len(distance_embedding) - 1) // 2
    index = indices.last_rows_of_all(n_q, n_k, largest)
    return (others * distance_embedding[index.to(query.device)]).sum(dim=-1)


@BANK.right
def by_matmul(query, key, distance_embedding, mode):
    both = _known(mode)
    index = right.relative_positions(query.size(-2), key.size(-2), distance_embedding.size(0) // 2)
    a = F.embedding(index.to(query.device), distance_embedding)  # (n_q, n_k, d_k)
    scores = (a @ query.unsqueeze(-1)).squeeze(-1)
    if both:
        scores = scores + (a.transpose(0, 1) @ key.unsqueeze(-1)).squeeze(-1).transpose(-2, -1)
    return scores


@BANK.right
def by_one_hot_distances(query, key, distance_embedding, mode):
    weight = 1.0 if _known(mode) else 0.0
    rows = len(distance_embedding)
    index = indices.by_numpy(query.shape[-2], key.shape[-2], rows // 2)
    hot = F.one_hot(index, rows).to(query)
    table = torch.einsum("ijr,rd->ijd", hot, distance_embedding)
    of_key = torch.einsum("bhjd,ijd->bhij", key, table)
    return torch.einsum("bhid,ijd->bhij", query, table) + weight * of_key


forgotten(BANK, "query")
