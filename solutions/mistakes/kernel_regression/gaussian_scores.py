"""Known answers to `gaussian_scores`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import kernel_regression as right
from solutions.mistakes.kernel_regression.softmax import _floating

BANK = Bank("gaussian_scores", right, globals())

BANK.changes("""
one_key_per_query: query[:, None] - key[None, :] → query - key
    The i-th query is paired with the i-th key only: (n,) − (n,) is (n,), and different numbers of
    queries and keys cannot be subtracted at all. Every query has to meet every key, `(n_q, n_k)`.
keys_along_rows: > result = result.T
    The scores are transposed, with one row per key. There should be one row per query, `(n_q,
    n_k)`.
sign_flipped: -0.5 → 0.5
    The minus sign is missing: the score grows with the distance, so the farthest key would get the
    most weight.
w_not_squared: (distance * w) ** 2 → distance**2 * w
    w is outside the square: only the distance is squared. The score is −½((x − x_i) w)², so
    doubling w makes it four times as large, not twice.
distance_not_squared: (distance * w) ** 2 → distance * w
    The square is missing: −½ (x − x_i) w is positive for keys on one side of the query and negative
    for those on the other.
absolute_distance: (distance * w) ** 2 → np.abs(distance * w)
    The absolute value of the distance is used instead of its square. That is the score of a pointed
    kernel, exp(−½|u|), not of the Gaussian.
divided_by_w: distance * w → distance / w
    The distance is divided by w instead of multiplied. Here w is the inverse bandwidth: a larger w
    makes the kernel narrower.
sign_and_half_forgotten: -0.5 * (distance * w) ** 2 → (distance * w) ** 2
    The score is the squared distance itself: the farthest key scores highest. The factor −½ is
    missing.
added_for_subtracted: query[:, None] - key → query[:, None] + key
    Queries and keys are added. The distance is their difference.
half_forgotten: -0.5 * → -1.0 *
    The factor ½ is missing: every score is twice as large as it should be.
half_squared: -0.5 * (distance * w) ** 2 → -((0.5 * distance * w) ** 2)
    The factor ½ is inside the square, where it becomes ¼.
w_ignored: distance * w → distance
    The argument w is not used: the scores are those of w = 1.
exp_taken: > result = np.exp(result)
    exp has already been taken: this is the Gaussian itself, between 0 and 1. The score is its
    exponent; taking exp is the softmax's job.
already_weights: > result = softmax(result)
    These are weights, not scores: softmax has already been applied. The score is what goes into the
    softmax.
keys_subtracted_from_mean_query: query[:, None] → np.full(query.shape, query.mean())[:, None]
    Every query gets the same scores: distances are measured from the mean of the queries, not from
    each query.
truncated_to_integers: > result = result.astype(query.dtype)
    The scores are stored in an array of the query's dtype. For whole-number queries that is an
    integer array, and fractions are cut off.
always_float64: > result = result.astype(np.float64)
    The scores are float64 whatever the inputs are, as an array made by np.zeros is. float32 queries
    and keys should give float32 scores.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The scores are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
w_for_the_query_only: query[:, None] - → query[:, None] * w - ; distance * w → distance
    Only the query is multiplied by w. It is their distance that counts, so w belongs around the
    difference.
""")


@BANK.right
def in_two_loops(query, key, w=1.0):
    scores = np.zeros((len(query), len(key)), np.result_type(query, key, np.float32(0)))
    for i in range(len(query)):
        for j in range(len(key)):
            scores[i, j] = -(((query[i] - key[j]) * w) ** 2) / 2
    return scores


@BANK.right
def outer_difference(query, key, w=1.0):
    u = np.subtract.outer(w * query, w * key)
    return -u * u / 2


@BANK.right
def square_expanded(query, key, w=1.0):
    squares = query[:, None] ** 2 + key[None, :] ** 2
    return (np.outer(query, key) - 0.5 * squares) * w**2


@BANK.right
def by_torch_cdist(query, key, w=1.0):
    points = [torch.tensor(np.array(x), dtype=torch.float64)[:, None] for x in (query, key)]
    return (-0.5 * (torch.cdist(*points) * w) ** 2).numpy().astype(_floating(query).dtype)


@BANK.right
def on_a_grid(query, key, w=1.0):
    x, x_i = np.meshgrid(query, key, indexing="ij")
    return np.power(abs(x_i - x) * abs(w), 2) * -0.5


@BANK.right
def repeated_and_tiled(query, key, w=1.0):
    pairs = np.repeat(query, len(key)) - np.tile(key, len(query))
    return (-0.5 * w * w * np.square(pairs)).reshape(len(query), -1)
