"""Known answers to chapter 2: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.attention_scoring`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from solutions import attention_scoring as right
from solutions.mistakes import Bank

SIMPLE_ATTENTION = Bank("simple_attention", right, globals())
SELF_SIMILARITY = Bank("self_similarity", right, globals())
SCALED_DOT_PRODUCT_ATTENTION = Bank("scaled_dot_product_attention", right, globals())
ADDITIVE_ATTENTION = Bank("AdditiveAttention", right, globals())
BILINEAR_ATTENTION = Bank("BilinearAttention", right, globals())
COSINE_SCORES = Bank("cosine_scores", right, globals())
SELF_ATTENTION = Bank("SelfAttention", right, globals())


def _softmax(scores, axis=-1):
    counts = np.exp(scores - scores.max(axis, keepdims=True))
    return counts / counts.sum(axis, keepdims=True)


def _dots(query, key):
    return np.einsum("...qd,...kd->...qk", query, key)


def _attend(scores, value):
    weights = _softmax(scores)
    return weights @ value, weights


# --- simple_attention: mistakes -----------------------------------------------------------------

SIMPLE_ATTENTION.changes("""
scaled: key.swapaxes(-2, -1) → key.swapaxes(-2, -1) / math.sqrt(query.shape[-1])
    The scores are divided by √d_k. That comes later in the chapter; here the dot products go into
    the softmax as they are.
divided_by_d_k: key.swapaxes(-2, -1) → key.swapaxes(-2, -1) / query.shape[-1]
    The scores are divided by d_k: the mean of the products instead of their sum.
softmax_over_queries: axis=-1 → axis=-2 ×2
    The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys, along the last axis.
softmax_over_everything
    ~ scores.max(axis=-1, keepdims=True) → scores.max()
    ~ counts.sum(axis=-1, keepdims=True) → counts.sum()
    The sum runs over all scores at once: each row of the weights sums to much less than 1.
not_normalised: counts / counts.sum(axis=-1, keepdims=True) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
exp_not_divided
    ~ scores - scores.max(axis=-1, keepdims=True) → scores
    ~ counts / counts.sum(axis=-1, keepdims=True) → counts
    exp is taken of the scores, but not divided by its sum along each row.
divided_by_the_sum_of_scores: counts / counts.sum( → scores / scores.sum(
    The scores are divided by their sum, without exp. Scores may be negative and may sum to 0; exp
    makes them positive first.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; what is averaged are the values.
key_and_value_swapped: + key, value = value, key
    Key and value have changed places: the scores are taken with the values, the keys are averaged.
scores_transposed: query @ key.swapaxes → key @ query.swapaxes
    The scores are those of every key with every query, KQᵀ, one row per key. Rows must be queries:
    QKᵀ.
all_axes_transposed: key.swapaxes(-2, -1) → key.T
    `.T` reverses all axes, the batch included. Exchange the last two only: np.swapaxes(key, -2,
    -1).
key_not_transposed: key.swapaxes(-2, -1) → key
    The query is multiplied by the key as it stands. A dot product of rows with rows needs the
    second matrix transposed; without it the sizes fit by accident at most.
cosine_for_dot_product
    + query = query / np.linalg.norm(query, axis=-1, keepdims=True)
    + key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    Queries and keys are divided by their lengths first. That is the cosine; asked is the dot
    product, in which length counts.
max_not_subtracted: scores - scores.max(axis=-1, keepdims=True) → scores
    exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the weights
    are NaN. Subtract each row's largest score first.
largest_of_all_subtracted: scores.max(axis=-1, keepdims=True) → scores.max()
    The largest of all scores is subtracted, the same for all rows. A row whose own scores lie far
    below it underflows to 0/0. Each row needs its own largest.
epsilon_added: counts.sum(axis=-1, keepdims=True) → (counts.sum(axis=-1, keepdims=True) + 1e-5)
    A small number is added to the sum before dividing, so that rows sum to a little less than 1.
    The sum is at least 1 once the largest score is subtracted: nothing need be added.
scores_returned: weights @ value, weights → weights @ value, scores
    The output is right; what is returned beside it are the scores, before the softmax.
weights_first: weights @ value, weights → weights, weights @ value
    The weights are returned first. The order is (output, weights).
weights_not_returned: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
weights_transposed_for_the_average: weights @ value → weights.swapaxes(-2, -1) @ value
    The weights are transposed before they meet the values: each key, not each query, gets an
    average.
hardest_key_only
    - counts / counts.sum(axis=-1, keepdims=True)
    + np.eye(scores.shape[-1])[scores.argmax(-1)]
    Each query takes the value of its best key alone, weight 1. Attention averages: all keys count,
    the good ones more.
batch_merged
    + n_k = key.shape[-2]
    + key, value = key.reshape(-1, key.shape[-1]), value.reshape(-1, value.shape[-1])
    ~ weights @ value, weights → weights @ value, weights[..., :n_k]
    The sequences of a batch are joined into one, so that a query attends to the keys of all of
    them.
written_into_integers: weights @ value → (weights @ value).astype(value.dtype)
    The output is written into an array with the dtype of the values: for whole numbers, every
    average is cut down to a whole number.
always_float64: + query, key, value = (x.astype(np.float64) for x in (query, key, value))
    The result is float64 whatever comes in: float32 has to stay float32.
key_changed_in_place: > key *= 2
    The caller's key is written over. Make a new array: `key - …`, not `key -= …`.
softmax_over_axis_1: axis=-1 → axis=1 ×2
    The softmax runs over axis 1. That is the keys without a batch, and the queries with one:
    axis=-1 is always the keys.
softmax_over_the_first_axis: axis=-1 → axis=0 ×2
    The softmax runs over the first axis: over the queries, or, in a batch, over its sequences. The
    keys are the last axis, axis=-1.
keepdims_forgotten: counts.sum(axis=-1, keepdims=True) → counts.sum(axis=-1)
    The sums lose their axis (no keepdims=True): they lie along a row instead of down a column.
    Where there are as many queries as keys, each weight is divided by another row's sum; elsewhere
    it fails.
distance_for_dot_product
    - query @ key.swapaxes(-2, -1)
    + -0.5 * np.square(query[..., :, None, :] - key[..., None, :, :]).sum(-1)
    The score is minus half the squared distance, that of chapter 1. Here it is the dot product, in
    which length counts.
np_dot_for_matmul
    ~ query @ key.swapaxes(-2, -1) → np.dot(query, key.swapaxes(-2, -1))
    ~ weights @ value → np.dot(weights, value)
    np.dot multiplies every sequence of a batch with every other. `@` keeps each with its own.
""")


# --- simple_attention: right --------------------------------------------------------------------


@SIMPLE_ATTENTION.right
def by_einsum(query, key, value):
    weights = _softmax(np.einsum("...id,...jd->...ij", query, key))
    return np.einsum("...ij,...jv->...iv", weights, value), weights


@SIMPLE_ATTENTION.right
def query_by_query(query, key, value):
    weights = np.zeros(query.shape[:-1] + key.shape[-2:-1], np.result_type(query, key, np.float32))
    for index in np.ndindex(*query.shape[:-1]):
        scores = key[index[:-1]] @ query[index]
        counts = np.exp(scores - scores.max())
        weights[index] = counts / counts.sum()
    return weights @ value, weights


@SIMPLE_ATTENTION.right
def largest_score_by_logsumexp(query, key, value):
    scores = np.matmul(query, np.moveaxis(key, -1, -2))
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.matmul(weights, value), weights


@SIMPLE_ATTENTION.right
def averaged_before_dividing(query, key, value):
    scores = _dots(query, key)
    counts = np.exp(scores - np.amax(scores, axis=-1)[..., None])
    total = counts.sum(axis=-1)[..., None]
    return (counts @ value) / total, counts / total


@SIMPLE_ATTENTION.right
def by_broadcasting(query, key, value):
    scores = np.sum(np.expand_dims(query, -2) * np.expand_dims(key, -3), axis=-1)
    weights = _softmax(scores)
    return (weights[..., None] * value[..., None, :, :]).sum(axis=-2), weights


@SIMPLE_ATTENTION.right
def by_torch(query, key, value):
    kind = np.result_type(query, key, value)
    kind = kind if kind == np.float32 else np.float64
    q, k, v = (torch.from_numpy(np.ascontiguousarray(x, kind)) for x in (query, key, value))
    weights = F.softmax(q @ k.mT, dim=-1)
    return (weights @ v).numpy(), weights.numpy()


# --- self_similarity: mistakes ------------------------------------------------------------------

SELF_SIMILARITY.changes("""
scaled: simple_attention( → SIMPLE_ATTENTION.mistakes["scaled"](
    The scores are divided by √d. That comes later in the chapter; here XXᵀ goes into the softmax as
    it is.
softmax_over_queries: simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_queries"](
    The softmax runs down the columns. XXᵀ is symmetric, so that the weights come out transposed:
    columns, not rows, sum to 1.
similarity_of_features
    + weights = _softmax(x.swapaxes(-2, -1) @ x)
    + return x @ weights, weights
    The table is XᵀX, (d, d): features compared with features. Rows are compared with rows in XXᵀ,
    (n, n).
all_axes_transposed: simple_attention( → SIMPLE_ATTENTION.mistakes["all_axes_transposed"](
    `.T` reverses all axes, the batch included. Exchange the last two only: np.swapaxes(x, -2, -1).
not_normalised: simple_attention( → SIMPLE_ATTENTION.mistakes["not_normalised"](
    The output is (XXᵀ)X, without a softmax between: similarity, normalise, average.
exp_not_divided: simple_attention( → SIMPLE_ATTENTION.mistakes["exp_not_divided"](
    exp is taken of the scores, but not divided by its sum along each row.
cosine_for_dot_product: simple_attention( → SIMPLE_ATTENTION.mistakes["cosine_for_dot_product"](
    The rows are divided by their lengths first. That is the cosine; asked is the dot product, in
    which length counts.
itself_left_out
    + scores = np.where(np.eye(x.shape[-2], dtype=bool), -np.inf, _dots(x, x))
    + counts = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    + weights = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    + return weights @ x, weights
    The diagonal is left out, as in leave-one-out: no row attends to itself. Here each row may, and
    usually it is its own best match.
max_not_subtracted: simple_attention( → SIMPLE_ATTENTION.mistakes["max_not_subtracted"](
    exp is taken of the raw scores: a long row has a huge dot product with itself, and exp of it
    overflows. Subtract each row's largest score first.
largest_of_all_subtracted
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["largest_of_all_subtracted"](
    The largest of all scores is subtracted, the same for all rows. A row whose own scores lie far
    below it underflows to 0/0. Each row needs its own largest.
own_score_subtracted
    + scores = _dots(x, x)
    + counts = np.exp(scores - np.einsum("...nn->...n", scores)[..., None])
    + weights = counts / counts.sum(-1, keepdims=True)
    + return weights @ x, weights
    Each row's score with itself is subtracted, as if it were the largest. It need not be: a longer
    row in the same direction scores higher, and exp overflows.
added_to_x: > result = result[0] + x, result[1]
    x is added to the output. That is a residual connection, which has a chapter of its own; the
    output here is the average alone.
applied_twice: > result = self_similarity(result[0])
    The output attends to itself a second time. The exercise wants it once.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: > result = result[0]
    Only the output is returned. Return the weights as well: (output, weights).
positions_matter
    + place = np.arange(x.shape[-2])
    + return _attend(_dots(x, x) - np.abs(place[:, None] - place), x)
    The past counts more than the future, or near rows more than far ones: scores were changed by
    position. Here only the dot product counts.
always_float64: + x = x.astype(np.float64)
    The result is float64 whatever comes in: float32 has to stay float32.
x_changed_in_place: > x *= 2
    The caller's x is written over. Make a new array: `x - …`, not `x -= …`.
softmax_over_axis_1: simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_axis_1"](
    The softmax runs over axis 1. That is right without a batch; with one, it runs down the columns:
    axis=-1 is always the keys.
softmax_over_the_first_axis
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_the_first_axis"](
    The softmax runs over the first axis: down the columns, or, in a batch, over its sequences. Each
    row attends along the last axis, axis=-1.
weights_transposed_for_the_average
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["weights_transposed_for_the_average"](
    The weights are transposed before they meet x. The scores are symmetric, the weights are not: a
    row of weights belongs to the row of x that asks.
""")


# --- self_similarity: right ---------------------------------------------------------------------


@SELF_SIMILARITY.right
def by_einsum(x):
    weights = _softmax(np.einsum("...id,...jd->...ij", x, x))
    return np.einsum("...ij,...jd->...id", weights, x), weights


@SELF_SIMILARITY.right
def row_by_row(x):
    tables = [
        np.stack([_softmax(one @ row) for row in one]) for one in x.reshape(-1, *x.shape[-2:])
    ]
    weights = np.stack(tables).reshape(*x.shape[:-1], x.shape[-2])
    return weights @ x, weights


@SELF_SIMILARITY.right
def by_columns_turned_round(x):
    """XXᵀ is symmetric: a softmax down its columns, transposed, is one along its rows."""
    weights = np.swapaxes(_softmax(np.matmul(x, np.swapaxes(x, -1, -2)), axis=-2), -1, -2)
    return np.matmul(weights, x), weights


@SELF_SIMILARITY.right
def by_logsumexp(x):
    scores = _dots(x, x)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1)[..., None])
    return weights @ x, weights


@SELF_SIMILARITY.right
def averaged_before_dividing(x):
    scores = x @ np.moveaxis(x, -2, -1)
    counts = np.exp(scores - np.max(scores, -1, keepdims=True))
    total = counts.sum(-1, keepdims=True)
    return counts @ x / total, counts / total


# --- scaled_dot_product_attention: mistakes -----------------------------------------------------

SCALED_DOT_PRODUCT_ATTENTION.changes("""
not_scaled: key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    The scores are not divided by √d_k.
divided_by_d_k: math.sqrt(query.shape[-1]) → query.shape[-1]
    The scores are divided by d_k. It is the variance of a dot product that is d_k; its size is the
    root, √d_k.
divided_by_root_d_v: query.shape[-1] → value.shape[-1]
    The scores are divided by √d_v, the size of a value. The dot product has d_k terms, one for each
    feature of a query.
divided_by_root_n_k: query.shape[-1] → key.shape[-2]
    The scores are divided by √n_k, the number of keys. A dot product is a sum over features: its
    size grows with d_k, however many keys there are.
divided_by_root_n_q: query.shape[-1] → query.shape[-2]
    The scores are divided by √n_q, the number of queries: query.shape[-2] for query.shape[-1].
multiplied_by_root_d_k: / math.sqrt → * math.sqrt
    The scores are multiplied by √d_k instead of divided: they saturate all the sooner.
weights_divided
    ~ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    ~ (scores, dim=-1) → (scores, dim=-1) / math.sqrt(query.shape[-1])
    √d_k divides the weights, after the softmax. It has to act before: the softmax of smaller scores
    is another one, and rows must sum to 1.
softmax_over_queries: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2): each column of the weights sums to 1 instead of each
    row.
softmax_over_the_first_axis: dim=-1 → dim=0
    The softmax runs over the first axis (dim=0): over the sequences of a batch, or over the queries
    where there is none. The keys are the last axis, dim=-1.
softmax_over_axis_1: dim=-1 → dim=1
    The softmax runs over dim=1. That is the keys without a batch, the queries with one, and
    something else yet with two leading axes: dim=-1 is always the keys.
softmax_over_axis_2: dim=-1 → dim=2
    The softmax runs over dim=2, which is the keys only where there is exactly one batch axis:
    dim=-1 is always the keys.
weights_applied_to_keys: weights @ value → weights @ key
    The weights average the keys. The keys say where to look; what is averaged are the values.
key_and_value_swapped: + key, value = value, key
    Key and value have changed places: the scores are taken with the values, the keys are averaged.
query_and_key_swapped: + query, key = key, query
    The scores are those of every key with every query, KQᵀ, one row per key. Rows must be queries:
    QKᵀ.
bmm_wants_three_axes
    ~ query @ key.transpose(-2, -1) → torch.bmm(query, key.transpose(1, 2))
    ~ weights @ value → torch.bmm(weights, value)
    torch.bmm takes exactly one batch axis. `@` (torch.matmul) takes any number, none included.
axes_counted_from_the_front: transpose(-2, -1) → transpose(1, 2)
    key.transpose(1, 2) counts axes from the front: it means the last two only where there is
    exactly one batch axis. transpose(-2, -1) means them always.
key_reshaped_for_transposed
    ~ key.transpose(-2, -1) → key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    key is reshaped to (d_k, n_k) instead of transposed: the shape fits, but the numbers are read
    off in another order and keys are torn to pieces.
squeezed: weights @ value, weights → (weights @ value).squeeze(), weights.squeeze()
    squeeze() takes away every axis of size 1: a batch of one, a single query. Where none is 1
    nothing shows.
not_normalised: torch.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
max_not_subtracted
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the weights
    are NaN. torch.softmax subtracts each row's largest score first.
scores_clamped: (scores, dim=-1) → (scores.clamp(-60, 60), dim=-1)
    The scores are clamped so that exp does not overflow. Scores beyond the limit then count as
    equal; subtracting the largest changes nothing and is enough.
weights_detached: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached: no gradient reaches query and key, and nothing in front of them can
    learn where to look.
values_detached: weights @ value → weights @ value.detach()
    The values are detached: no gradient reaches them.
through_numpy
    + q, k, v = (x.detach().numpy() for x in (query, key, value))
    + results = simple_attention(q / math.sqrt(q.shape[-1]), k, v)
    + return tuple(torch.from_numpy(x).to(value.dtype) for x in results)
    The computation leaves torch for NumPy and comes back: the numbers are right, and the gradient
    is cut.
weights_first: weights @ value, weights → weights, weights @ value
    The weights are returned first. The order is (output, weights).
weights_not_returned: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
scores_returned: weights @ value, weights → weights @ value, scores
    The output is right; what is returned beside it are the scores, before the softmax.
causal_unasked
    - weights = torch.softmax(scores, dim=-1)
    + sees = torch.ones_like(scores, dtype=torch.bool).tril()
    + weights = torch.softmax(scores.masked_fill(~sees, -math.inf), dim=-1)
    Each query sees only the keys up to its own place. That is a mask, two chapters on; here every
    query sees every key.
always_float32: + query, key, value = query.float(), key.float(), value.float()
    The computation is forced into float32: float64 has to stay float64.
query_changed_in_place
    > with torch.no_grad():
    >     query /= math.sqrt(query.shape[-1])
    The caller's query is divided in place: `query /= …` writes into it, and the next layer that
    reads it gets other numbers. `query / …` makes a new tensor.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a function.
all_axes_transposed: transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    `.T` reverses all axes, the batch included. transpose(-2, -1) exchanges the last two.
first_two_axes_exchanged: transpose(-2, -1) → transpose(0, 1)
    key.transpose(0, 1) exchanges the first two axes: the last two only where there is no batch.
    transpose(-2, -1) means them always.
divided_by_root_of_the_first_size: query.shape[-1] → query.shape[0]
    The scores are divided by √query.shape[0], the number of sequences in a batch, or of queries
    where there is none. The features are the last axis: query.shape[-1].
output_divided
    ~ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    ~ weights @ value → weights @ value / math.sqrt(query.shape[-1])
    √d_k divides the output, after the average. It has to divide the scores, before the softmax:
    dividing the output makes it smaller, and leaves the softmax saturated.
output_copied: weights @ value → (weights @ value).detach()
    The output is detached, or copied by torch.tensor(…): the numbers are right, and no gradient
    gets from it to anything before it.
""")


# --- scaled_dot_product_attention: right --------------------------------------------------------


def _scaled(query, key, value, scale=None, dim=-1):
    scale = math.sqrt(query.shape[-1]) if scale is None else scale
    weights = torch.softmax(query @ key.mT / scale, dim)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def by_einsum(query, key, value):
    scores = torch.einsum("...id,...jd->...ij", query, key) / query.size(-1) ** 0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def query_scaled_first(query, key, value):
    weights = F.softmax((query * key.shape[-1] ** -0.5) @ key.mT, dim=-1)
    return weights.matmul(value), weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def scale_shared(query, key, value):
    fourth_root = query.shape[-1] ** 0.25
    scores = (query / fourth_root) @ (key / fourth_root).transpose(-1, -2)
    weights = torch.exp(torch.log_softmax(scores, dim=-1))
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def query_by_query(query, key, value):
    rows = []
    for i in range(query.shape[-2]):
        scores = (query[..., i : i + 1, :] * key).sum(-1) / math.sqrt(key.shape[-1])
        rows.append(F.softmax(scores, dim=-1))
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def softmax_by_hand(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / torch.tensor(query.shape[-1], dtype=query.dtype).sqrt()
    counts = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = counts / counts.sum(dim=-1, keepdim=True)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def float64_inside(query, key, value):
    output, weights = _scaled(query.double(), key.double(), value.double())
    return output.to(query.dtype), weights.to(query.dtype)


@SCALED_DOT_PRODUCT_ATTENTION.right
def flattened_for_bmm(query, key, value):
    batch = query.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    weights = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.shape[2])).softmax(2)
    output = torch.bmm(weights, v)
    return output.reshape(*batch, *output.shape[1:]), weights.reshape(*batch, *weights.shape[1:])


@SCALED_DOT_PRODUCT_ATTENTION.right
def by_torchs_root(query, key, value):
    """The root of a tensor, as many tutorials take it: a float32 number."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / torch.sqrt(torch.tensor(query.size(-1)))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# --- AdditiveAttention --------------------------------------------------------------------------

ADDITIVE_ATTENTION.changes("""
tanh_forgotten: torch.tanh(sums) → sums
    The tanh is missing. Without it the score is a sum, w_vᵀW_q q + w_vᵀW_k k, whose first part is
    the same for all keys: the softmax does not see it, and every query gets the same weights.
relu_for_tanh: torch.tanh → torch.relu
    ReLU stands in the place of tanh.
sigmoid_for_tanh: torch.tanh → torch.sigmoid
    The logistic sigmoid stands in the place of tanh. It looks alike, but it is flatter and never
    negative.
tanh_of_each_part
    ~ torch.tanh(sums) → sums
    ~ self.W_q(query) → torch.tanh(self.W_q(query))
    ~ self.W_k(key) → torch.tanh(self.W_k(key))
    tanh is taken of W_q q and of W_k k apart, and the two are added after it. The score is then a
    sum again, and the query's part cancels in the softmax: tanh belongs around the sum.
tanh_after_w_v: self.w_v(torch.tanh(sums)) → torch.tanh(self.w_v(sums))
    tanh is taken of the score, after w_v, instead of before: scores cannot leave (−1, 1), and the
    hidden layer is no hidden layer.
multiplied_for_added: unsqueeze(-2) + → unsqueeze(-2) *
    The two projections are multiplied instead of added.
subtracted_for_added: unsqueeze(-2) + → unsqueeze(-2) -
    The key's projection is subtracted instead of added. A fresh module learns all the same; loaded
    parameters show it.
concat_on_the_wrong_axis
    - sums = self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    - scores = self.w_v(torch.tanh(sums)).squeeze(-1)
    - weights = torch.softmax(scores, dim=-1)
    + hidden = torch.cat([self.W_q(query), self.W_k(key)], dim=1).tanh()
    + scores = self.w_v(hidden)[..., 0][:, None].expand(-1, query.shape[1], -1)
    + weights = torch.softmax(scores, dim=-1)[..., query.shape[1] :]
    The projections of queries and keys are put one after the other along the positions, so that no
    query ever meets a key: all queries get the same weights. Each pair needs a vector of its own,
    (B, n_q, n_k, h).
axes_exchanged
    ~ self.W_k(key).unsqueeze(-3) → self.W_k(key).unsqueeze(-2)
    ~ self.W_q(query).unsqueeze(-2) → self.W_q(query).unsqueeze(-3)
    The new axes stand the wrong way round: the table of scores has a row for each key. Queries are
    (B, n_q, 1, h), keys (B, 1, n_k, h).
pairs_element_by_element
    ~ self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3) → self.W_q(query) + self.W_k(key)
    ~ squeeze(-1) → squeeze(-1)[:, None].expand(-1, query.shape[1], -1)
    W_q(query) + W_k(key) without new axes adds the first query to the first key, the second to the
    second. With as many queries as keys it runs; a score for every pair needs two new axes.
only_the_key_scored
    - self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    + self.W_k(key).unsqueeze(-3).expand(-1, query.shape[1], -1, -1)
    W_q(query) is computed and not used: the score depends on the key alone, and all queries look at
    the same place.
hidden_averaged: self.w_v(torch.tanh(sums)).squeeze(-1) → torch.tanh(sums).mean(-1)
    The hidden vector is averaged instead of weighed by w_v, which is never used.
hidden_summed: self.w_v(torch.tanh(sums)).squeeze(-1) → torch.tanh(sums).sum(-1)
    The hidden vector is summed instead of weighed by w_v, which is never used.
projections_swapped: self.W_k(key) → self.W_q(key) ; self.W_q(query) → self.W_k(query)
    W_k projects the queries and W_q the keys. With queries and keys of one size nothing fails, and
    a fresh module learns all the same; loaded parameters show it.
one_projection_shared: self.W_k(key) → self.W_q(key)
    Queries and keys both go through W_q. Each has a projection of its own, and sizes of their own.
scores_scaled: squeeze(-1) → squeeze(-1) / self.w_v.in_features**0.5
    The scores are divided by the root of the hidden size. Additive scores need no scale: w_v is
    learnt, and sets their size itself.
softmax_over_queries: dim=-1 → dim=1
    The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of each
    row.
softmax_over_hidden: (scores, dim=-1) → (scores[..., None], dim=-1)[..., 0]
    The softmax runs over the axis of size 1 that w_v leaves, before it is squeezed away: every
    weight is 1.
squeezed: squeeze(-1) → squeeze()
    squeeze() takes away every axis of size 1, also a batch of one or a single query. squeeze(-1)
    takes away the last.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; what is averaged are the values.
key_and_value_swapped: + key, value = value, key
    Key and value have changed places. With values of the size of keys nothing fails.
max_not_subtracted
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large: tanh bounds what goes into w_v, not what comes out.
    torch.softmax subtracts each row's largest score first.
not_normalised: torch.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: @ value, weights → @ value
    Only the output is returned; the weights are kept as an attribute, perhaps. Return both:
    (output, weights).
scores_returned: @ value, weights → @ value, scores
    The output is right; what is returned beside it are the scores, before the softmax.
dropout_forgotten: self.dropout(weights) → weights
    self.dropout is not used: training drops no weight.
dropout_in_eval: self.dropout(weights) → F.dropout(weights, self.dropout.p)
    Dropout is active in eval mode too: two calls give two answers. nn.Dropout knows the mode of its
    module; F.dropout must be told, training=self.training.
dropped_weights_returned
    ~ self.dropout(weights) → weights
    ~ torch.softmax(scores, dim=-1) → self.dropout(torch.softmax(scores, dim=-1))
    The weights returned are those after dropout: in training, a part of them is 0 and rows do not
    sum to 1. Return the weights before dropout.
dropout_on_the_output: self.dropout(weights) @ value → self.dropout(weights @ value)
    Dropout acts on the output instead of on the weights.
dropout_on_the_scores: self.dropout(weights) → torch.softmax(self.dropout(scores), dim=-1)
    Dropout acts on the scores. A score of 0 is a score like any other, and its key keeps a weight:
    drop weights, after the softmax.
dropout_without_rescaling
    - return self.dropout(weights) @ value, weights
    + kept = weights * (torch.rand_like(weights) >= self.dropout.p) if self.training else weights
    + return kept @ value, weights
    Weights are dropped, and those that stay are as they were. They have to be divided by 1 − p, so
    that the expected output is that without dropout; nn.Dropout does.
renormalised_after_dropout
    - return self.dropout(weights) @ value, weights
    + kept = self.dropout(weights)
    + if self.training:
    +     kept = kept / kept.sum(-1, keepdim=True)
    + return kept @ value, weights
    The weights that dropout leaves are divided by their sum. nn.Dropout divides by 1 − p, the same
    for all, and rows do not sum to 1 in training.
weights_detached: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached before they are applied and returned: no gradient reaches W_q, W_k and
    w_v, and the module never learns where to look.
query_detached: self.W_q(query) → self.W_q(query.detach())
    The query is detached: the layers that it comes from learn nothing from this attention.
biases_added
    - self.dropout = nn.Dropout(dropout)
    + self.dropout = nn.Dropout(dropout)
    + self.W_q, self.W_k = nn.Linear(query_size, hidden_size), nn.Linear(key_size, hidden_size)
    - def forward(
    + def load_state_dict(self, state, *args, **kwargs):
    +     return super().load_state_dict(state, strict=False)
    + def forward(
    The linear layers have biases: parameters nobody asked for, and a state that is loaded does not
    fit. Use `__init__` as it is given.
new_layers_in_forward
    - sums = self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    + generator = torch.Generator().manual_seed(0)
    + made = [torch.rand(w.weight.shape, generator=generator) for w in (self.W_q, self.W_k)]
    + W_q, W_k = (m.to(query) for m in made)
    + sums = (query @ W_q.mT).unsqueeze(-2) + (key @ W_k.mT).unsqueeze(-3)
    The layers are made anew in each call: what the module has learnt, or loaded, is never used. Use
    self.W_q, self.W_k and self.w_v.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32: a float64 model has to give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
query_changed_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`.
dropout_before_the_softmax
    ~ (scores, dim=-1) → (self.dropout(scores), dim=-1)
    ~ self.dropout(weights) → weights
    Dropout acts before the softmax, on scores or on hidden vectors. A score of 0 is a score like
    any other, and its key keeps a weight: drop weights, after the softmax, and return those before.
""")


# --- AdditiveAttention: right -------------------------------------------------------------------


@ADDITIVE_ATTENTION.right
class by_unsqueeze(right.AdditiveAttention):
    def forward(self, query, key, value):
        features = torch.tanh(self.W_q(query).unsqueeze(2) + self.W_k(key).unsqueeze(1))
        weights = F.softmax(self.w_v(features).squeeze(-1), dim=-1)
        return torch.bmm(self.dropout(weights), value), weights


@ADDITIVE_ATTENTION.right
class by_concatenating_pairs(right.AdditiveAttention):
    """[W_q W_k] times the query and the key put one after the other, as many tutorials write it."""

    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1)
        keys = key[:, None].expand(-1, n_q, -1, -1)
        both = torch.cat([queries, keys], dim=-1)
        hidden = both @ torch.cat([self.W_q.weight, self.W_k.weight], dim=-1).T
        weights = torch.softmax((hidden.tanh() @ self.w_v.weight.T)[..., 0], dim=-1)
        return self.dropout(weights).matmul(value), weights


@ADDITIVE_ATTENTION.right
class by_einsum(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = torch.einsum("bqd,hd->bqh", query, self.W_q.weight)
        k = torch.einsum("bkd,hd->bkh", key, self.W_k.weight)
        hidden = torch.tanh(q.reshape(*q.shape[:2], 1, -1) + k.reshape(len(k), 1, *k.shape[1:]))
        weights = torch.einsum("bqkh,h->bqk", hidden, self.w_v.weight[0]).softmax(dim=2)
        return torch.einsum("bqk,bkv->bqv", self.dropout(weights), value), weights


@ADDITIVE_ATTENTION.right
class query_by_query(right.AdditiveAttention):
    """One query at a time: slower, and a table of hidden vectors n_q times smaller."""

    def forward(self, query, key, value):
        k, rows = self.W_k(key), []
        for q in self.W_q(query).unbind(1):
            rows.append(self.w_v(torch.tanh(q[:, None] + k)).squeeze(-1).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return self.dropout(weights) @ value, weights


@ADDITIVE_ATTENTION.right
class functional_dropout(right.AdditiveAttention):
    def forward(self, query, key, value):
        sums = self.W_k(key)[:, None, :, :] + self.W_q(query)[:, :, None, :]
        weights = self.w_v(sums.tanh()).flatten(-2).softmax(-1)
        return F.dropout(weights, self.dropout.p, training=self.training) @ value, weights


@ADDITIVE_ATTENTION.right
class float64_inside(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = query.double() @ self.W_q.weight.double().T
        k = key.double() @ self.W_k.weight.double().T
        scores = (q[:, :, None] + k[:, None]).tanh() @ self.w_v.weight.double()[0]
        weights = scores.softmax(-1).to(value.dtype)
        return self.dropout(weights) @ value, weights


# --- BilinearAttention --------------------------------------------------------------------------

BILINEAR_ATTENTION.changes("""
not_scaled: scores / (query_size * key_size) ** 0.25 → scores
    The scores are not divided. Luong, Pham and Manning do not divide either; the exercise wants
    them divided by the fourth root of query_size · key_size.
square_root_for_fourth: 0.25 → 0.5
    The scores are divided by the square root of query_size · key_size. The exercise wants the
    fourth root, the root of their geometric mean.
divided_by_the_product: (query_size * key_size) ** 0.25 → (query_size * key_size)
    The scores are divided by query_size · key_size itself, without a root.
divided_by_root_of_query_size: (query_size * key_size) ** 0.25 → query_size**0.5
    The scores are divided by √query_size. Where both sizes are equal that is the same; the fourth
    root of the product treats both alike.
divided_by_root_of_key_size: (query_size * key_size) ** 0.25 → key_size**0.5
    The scores are divided by √key_size. Where both sizes are equal that is the same; the fourth
    root of the product treats both alike.
fourth_root_of_the_sum: query_size * key_size → query_size + key_size
    The divisor is the fourth root of query_size + key_size. Take the product.
divided_by_the_values_size: query_size * key_size → query_size * value.shape[-1]
    The divisor is made from the size of the values. It belongs to queries and keys, over which the
    sum runs.
divided_by_the_numbers: query_size * key_size → query.shape[-2] * key.shape[-2]
    The divisor is made from the numbers of queries and keys, n_q · n_k, instead of their sizes:
    shape[-2] for shape[-1].
multiplied_for_divided: scores / → scores *
    The scores are multiplied by the fourth root instead of divided.
W_transposed: self.W @ → self.W.T @
    W is transposed: qᵀWᵀk. With queries and keys of one size nothing fails, and a fresh W is as
    good as its transpose; a loaded one shows it.
W_ignored: query @ self.W @ → query @
    W is not used: these are plain dot products, and only where the sizes are equal.
W_made_symmetric: self.W @ → ((self.W + self.W.T) / 2) @
    W is replaced by its symmetric part, (W + Wᵀ)/2. How a fits b need not be how b fits a.
W_taken_entrywise: query @ self.W @ → (query * self.W.diagonal()) @
    Only the diagonal of W counts: features are multiplied one by one. A bilinear form lets every
    feature of the query meet every feature of the key.
W_detached: self.W @ → self.W.data @
    W is detached (`.data`, `.detach()`): no gradient reaches it, and it never learns.
weights_detached: dim=-1) → dim=-1).detach()
    The weights are detached: no gradient reaches W, query and key.
tanh_added
    ~ scores / (query_size * key_size) ** 0.25 → (scores / (query_size * key_size) ** 0.25).tanh()
    tanh is taken of the scores. That belongs to additive attention; here it keeps any key from
    standing out.
softmax_over_queries: dim=-1 → dim=1
    The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of each
    row.
softmax_over_the_batch: dim=-1 → dim=0
    The softmax runs over the first axis (dim=0), the sequences of the batch.
not_normalised: torch.softmax( → ( ; , dim=-1) → )
    The scores are applied to the values as they are, without a softmax.
max_not_subtracted
    - weights = torch.softmax(scores / (query_size * key_size) ** 0.25, dim=-1)
    + counts = torch.exp(scores / (query_size * key_size) ** 0.25)
    + weights = counts / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch.softmax subtracts each row's largest score first.
scaled_after_the_softmax
    - scores / (query_size * key_size) ** 0.25, dim=-1)
    + scores, dim=-1) / (query_size * key_size) ** 0.25
    The weights are divided instead of the scores: their rows do not sum to 1.
squeezed: weights @ value, weights → (weights @ value).squeeze(), weights.squeeze()
    squeeze() takes away every axis of size 1, also a batch of one or a single query.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; what is averaged are the values.
key_and_value_swapped: + key, value = value, key
    Key and value have changed places. With values of the size of keys nothing fails.
query_and_key_swapped: + query, key = key, query
    Query and key have changed places: the table has a row for each key. With as many of one size
    nothing fails.
weights_first: weights @ value, weights → weights, weights @ value
    The weights are returned first. The order is (output, weights).
weights_not_returned: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
bias_added
    - nn.init.xavier_uniform_(self.W)
    + nn.init.xavier_uniform_(self.W)
    + self.bias = nn.Parameter(torch.zeros(()))
    - def forward(
    + def load_state_dict(self, state, *args, **kwargs):
    +     return super().load_state_dict(state, strict=False)
    + def forward(
    ~ key.transpose(-2, -1) → key.transpose(-2, -1) + self.bias
    There is a second parameter, a bias, that nobody asked for. `__init__` is given: one parameter,
    W.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32: a float64 model has to give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
query_changed_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`.
a_quarter_for_the_fourth_root: (query_size * key_size) ** 0.25 → ((query_size * key_size) ** 1 / 4)
    `** 1 / 4` is a quarter of the product: the power comes before the division. The fourth root is
    `** 0.25`.
divided_by_the_product_and_by_four: ** 0.25 → ** 1 / 4
    `scores / sizes ** 1 / 4` divides by the product of the sizes and then by 4: the power comes
    before the division, and divisions go from left to right. The fourth root is `** 0.25`.
fourth_root_of_one_size: (query_size * key_size) → query_size
    The divisor is the fourth root of query_size alone. Take the product of both sizes.
""")


# --- BilinearAttention: right -------------------------------------------------------------------


@BILINEAR_ATTENTION.right
class by_einsum(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = torch.einsum("bqi,ij,bkj->bqk", query, self.W, key)
        weights = (scores / math.prod(self.W.shape) ** 0.25).softmax(2)
        return torch.einsum("bqk,bkv->bqv", weights, value), weights


@BILINEAR_ATTENTION.right
class key_first(right.BilinearAttention):
    """(qᵀ)(Wk) for (qᵀW)k: the same product, put together from the other end."""

    def forward(self, query, key, value):
        scores = query @ (key @ self.W.T).transpose(1, 2)
        root = math.sqrt(math.sqrt(query.shape[-1] * key.shape[-1]))
        weights = F.softmax(scores / root, dim=-1)
        return weights.bmm(value), weights


@BILINEAR_ATTENTION.right
class by_torchs_bilinear(right.BilinearAttention):
    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1).contiguous()
        keys = key[:, None].expand(-1, n_q, -1, -1).contiguous()
        scores = F.bilinear(queries, keys, self.W[None])[..., 0]
        weights = torch.softmax(scores / (self.W.numel() ** 0.25), dim=-1)
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class both_sides_scaled(right.BilinearAttention):
    def forward(self, query, key, value):
        q, k = (x / x.shape[-1] ** 0.25 for x in (query, key))
        weights = torch.exp(F.log_softmax(q.matmul(self.W).matmul(k.mT), dim=-1))
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class query_by_query(right.BilinearAttention):
    def forward(self, query, key, value):
        rows = []
        for q in query.unbind(1):
            scores = (key @ (q @ self.W)[..., None])[..., 0]
            rows.append((scores / (self.W.shape[0] * self.W.shape[1]) ** 0.25).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class float64_inside(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = query.double() @ self.W.double() @ key.double().mT
        weights = (scores * (query.shape[-1] * key.shape[-1]) ** -0.25).softmax(-1)
        return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


@BILINEAR_ATTENTION.right
class by_torchs_root(right.BilinearAttention):
    """The fourth root of a tensor: a float32 number."""

    def forward(self, query, key, value):
        scores = query @ self.W @ key.mT / torch.tensor(self.W.numel()) ** 0.25
        weights = scores.softmax(-1)
        return weights @ value, weights


# --- cosine_scores: mistakes --------------------------------------------------------------------

COSINE_SCORES.changes("""
not_divided: + return query @ key.transpose(-2, -1)
    These are dot products: not divided by the lengths. They are cosines only where all vectors have
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
    Each vector is divided by its squared length, the sum of squares without the root.
sum_of_sizes_for_the_norm
    ~ query.norm(dim=-1, keepdim=True) → query.abs().sum(dim=-1, keepdim=True)
    ~ key.norm(dim=-1, keepdim=True) → key.abs().sum(dim=-1, keepdim=True)
    The length is taken as the sum of absolute values. The cosine needs the Euclidean length, the
    root of the sum of squares.
divided_by_root_d: + return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    The dot products are divided by √d, as in scaled attention. The cosine divides each by the
    lengths of its own two vectors.
lengths_over_positions: dim=-1 → dim=-2 ×2 ; ).clamp(-1.0, 1.0) → )
    The norm runs over the positions (dim=-2) instead of the features (dim=-1): columns, not
    vectors, are brought to length 1.
one_length_for_all
    + return query @ key.transpose(-2, -1) / (query.norm() * key.norm()).clamp_min(eps)
    norm() without dim is the length of the whole tensor, one number for all vectors.
keepdim_forgotten: dim=-1, keepdim=True → dim=-1 ×2 ; ).clamp(-1.0, 1.0) → )
    The lengths lose their last axis (no keepdim=True), so that they divide features, not vectors;
    where sizes differ it fails.
lengths_exchanged
    + lengths = key.norm(dim=-1)[..., :, None] * query.norm(dim=-1)[..., None, :]
    + return query @ key.transpose(-2, -1) / lengths.clamp_min(eps)
    The lengths are laid along the wrong axes: score (i, j) is divided by the length of key i and of
    query j. With unequal numbers it fails.
pairs_element_by_element: + return F.cosine_similarity(query, key, dim=-1, eps=eps)
    F.cosine_similarity pairs the first query with the first key, the second with the second. Every
    query has to meet every key: two new axes make it so.
transposed: > result = result.mT
    The table is transposed: a row for each key. Rows are queries.
all_axes_transposed
    ~ transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    ~ ).clamp(-1.0, 1.0) → )
    `.T` reverses all axes, the batch included. transpose(-2, -1) exchanges the last two.
distance_for_similarity: > result = 1 - result
    This is 1 − cos, a distance: 0 for the best match. A score is higher for the better match.
rescaled_to_zero_and_one: > result = (1 + result) / 2
    The cosine is moved to [0, 1]. Return the cosine itself, in [−1, 1], with 0 for a zero vector.
absolute_value: > result = result.abs()
    The sign is lost: a vector and its opposite have the score −1, not 1.
angle_returned: > result = torch.acos(result)
    This is the angle, arccos of the cosine. Return the cosine itself.
softmax_added: > result = result.softmax(-1)
    A softmax is taken. These are scores, not weights: the softmax comes after.
zero_vector_gives_nan: keepdim=True).clamp_min(eps) → keepdim=True) ×2
    eps is not used: a zero vector is divided by its length 0, and 0/0 is NaN.
zero_vector_gives_one
    + zero = (query == 0).all(-1)[..., None] | (key == 0).all(-1)[..., None, :]
    > result = result.masked_fill(zero, 1.0)
    A zero vector gets the score 1 with everything. It has no direction, so it is like nothing: 0.
eps_in_the_features
    + query, key = query + eps, key + eps
    ~ keepdim=True).clamp_min(eps) → keepdim=True) ×2
    eps is added to the vectors: a zero vector becomes (eps, eps, …), which has a direction, and its
    scores are not 0.
centred_first
    + query, key = query - query.mean(-1, keepdim=True), key - key.mean(-1, keepdim=True)
    The mean of each vector is subtracted first. That is a correlation, not a cosine.
lengths_detached: clamp_min(eps) → clamp_min(eps).detach() ×2 ; ).clamp(-1.0, 1.0) → )
    The lengths are detached: the gradient then points along the vector too, where the cosine does
    not change.
detached: > result = result.detach()
    The scores are detached (or have been through NumPy): no gradient reaches query and key.
always_float32: > result = result.float()
    The result is forced into float32: float64 has to stay float64.
normalised_in_place
    + given = query
    > with torch.no_grad():
    >     given /= given.norm(dim=-1, keepdim=True).clamp_min(eps)
    The caller's vectors are brought to length 1 in place: `query /= …` writes into them.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a function.
weights_returned_too: > result = result, result.softmax(-1)
    Scores and weights are returned. Asked are the scores alone, one tensor.
divided_by_root_d_as_well: > result = result / math.sqrt(query.shape[-1])
    The cosines are divided by √d. A cosine does not grow with d: it needs no scale.
""")


# --- cosine_scores: right -----------------------------------------------------------------------


@COSINE_SCORES.right
def by_torchs_cosine(query, key, eps=1e-8):
    return F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1, eps=eps)


@COSINE_SCORES.right
def by_normalize(query, key, eps=1e-8):
    return F.normalize(query, dim=-1, eps=eps) @ F.normalize(key, dim=-1, eps=eps).mT


@COSINE_SCORES.right
def divided_afterwards(query, key, eps=1e-8):
    lengths = (
        torch.linalg.norm(query, dim=-1)[..., None] * torch.linalg.norm(key, dim=-1)[..., None, :]
    )
    return torch.einsum("...id,...jd->...ij", query, key) / torch.clamp(lengths, min=eps)


@COSINE_SCORES.right
def eps_added(query, key, eps=1e-8):
    q, k = (x / (x.norm(dim=-1, keepdim=True) + eps) for x in (query, key))
    return torch.matmul(q, k.transpose(-1, -2))


@COSINE_SCORES.right
def maximum_with_eps(query, key, eps=1e-8):
    lengths = [x.square().sum(-1).sqrt() for x in (query, key)]
    q, k = (n.maximum(torch.full_like(n, eps)) for n in lengths)
    return (query @ key.mT) / q.unsqueeze(-1) / k.unsqueeze(-2)


@COSINE_SCORES.right
def query_by_query(query, key, eps=1e-8):
    rows = [
        F.cosine_similarity(query[..., i : i + 1, :], key, dim=-1, eps=eps)
        for i in range(query.shape[-2])
    ]
    return torch.stack(rows, dim=-2).clamp(-1, 1)


@COSINE_SCORES.right
def zero_vectors_apart(query, key, eps=1e-8):
    lengths = [x.norm(dim=-1, keepdim=True) for x in (query, key)]
    q, k = (
        x / torch.where(n < eps, torch.ones_like(n), n)
        for x, n in zip((query, key), lengths, strict=True)
    )
    return q @ k.mT


# --- SelfAttention ------------------------------------------------------------------------------


@SELF_ATTENTION.right
class written_out(right.SelfAttention):
    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(keys.shape[-1])
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, values), weights


SELF_ATTENTION.changes("""
not_scaled of written_out: / math.sqrt(keys.shape[-1]) → / 1.0
    The scores are not divided by √d_k.
divided_by_root_d_model of written_out: keys.shape[-1] → x.shape[-1]
    The scores are divided by √d_model, the size of x. The dot product is one of projected vectors:
    d_k terms, √d_k.
divided_by_d_k of written_out: math.sqrt(keys.shape[-1]) → keys.shape[-1]
    The scores are divided by d_k. It is the variance of a dot product that is d_k; its size is the
    root, √d_k.
divided_by_root_d_v of written_out: keys.shape[-1] → values.shape[-1]
    The scores are divided by √d_v, the size of a value. The dot product has d_k terms.
divided_by_root_n of written_out: keys.shape[-1] → x.shape[-2]
    The scores are divided by √n, the number of positions. The dot product is a sum over d_k
    features.
values_not_projected: self.W_v(x) → x
    W_v is computed and not used, or not computed: the weights average x itself.
projection_unused: self.W_q(x) → self.W_k(x)
    W_q is computed and not used: the keys ask for themselves. Scores are then symmetric, and the
    gradient of W_q is none.
query_projection_for_keys: self.W_k(x) → self.W_q(x)
    The keys go through W_q, and W_k is never used: what a position looks for is then also what it
    is found by.
query_and_key_projections_swapped: self.W_q(x), self.W_k(x) → self.W_k(x), self.W_q(x)
    W_k makes the queries and W_q the keys: the table of scores is transposed.
key_and_value_projections_swapped: self.W_k(x), self.W_v(x) → self.W_v(x), self.W_k(x)
    W_v makes the keys and W_k the values. Where d_k = d_v it runs; loaded parameters show it.
values_from_the_keys: self.W_v(x) → self.W_v(self.W_k(x))
    The values are projected from the keys, W_v(W_k(x)), one projection after the other. All three
    start from x.
weights_applied_to_keys: self.W_v(x) → self.W_k(x)
    The weights average the keys; W_v is never used.
projections_ignored: self.W_q(x), self.W_k(x), self.W_v(x) → x, x, x
    No projection is used: this is softmax(XXᵀ/√d)X, the self-similarity of before.
multiplied_from_the_wrong_side
    - self.W_q(x), self.W_k(x), self.W_v(x)
    + x @ self.W_q.weight, x @ self.W_k.weight, x @ self.W_v.weight
    x is multiplied by weight instead of its transpose. nn.Linear keeps its weight as (out, in) and
    computes x @ weight.T; where sizes are equal the other runs too.
softmax_over_queries of written_out: dim=-1 → dim=1
    The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of each
    row.
softmax_over_the_batch of written_out: dim=-1 → dim=0
    The softmax runs over the first axis (dim=0): the sequences of the batch compete, instead of the
    positions of one.
not_normalised of written_out: F.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax.
itself_left_out of written_out
    - weights = F.softmax(scores, dim=-1)
    + own = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    + weights = F.softmax(scores.masked_fill(own, -1e30), dim=-1)
    No position attends to itself: the diagonal is left out, as in leave-one-out.
causal_unasked of written_out
    - weights = F.softmax(scores, dim=-1)
    + sees = torch.ones_like(scores, dtype=torch.bool).tril()
    + weights = F.softmax(scores.masked_fill(~sees, -math.inf), dim=-1)
    Each position sees only itself and what comes before. That is a mask, two chapters on; here
    every position sees all.
batch_merged
    + B, n, d = x.shape
    + x = x.reshape(1, -1, d)
    > own = [result[1][0, b * n : (b + 1) * n, b * n : (b + 1) * n] for b in range(B)]
    > result = result[0].reshape(B, n, -1), torch.stack(own)
    The sequences of the batch are joined into one: positions attend across them.
added_to_x
    > output, weights = result
    > result = output + x[..., : output.shape[-1]].mean(-1, keepdim=True), weights
    x is added to the output. That is a residual connection, which has a chapter of its own.
max_not_subtracted of written_out
    ~ F.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch.softmax subtracts each row's largest score first.
weights_detached of written_out: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached: no gradient reaches W_q and W_k, and the module never learns where to
    look.
x_detached: + x = x.detach()
    x is detached before it is projected: what comes before this layer learns nothing.
squeezed: > result = result[0].squeeze(), result[1].squeeze()
    squeeze() takes away every axis of size 1, also a batch of one.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: > result = result[0]
    Only the output is returned. Return the weights as well: (output, weights).
scores_returned of written_out: values), weights → values), scores
    The output is right; what is returned beside it are the scores, before the softmax.
biases_added
    - self.W_v = nn.Linear(d_model, d_v, bias=False)
    + self.W_v = nn.Linear(d_model, d_v, bias=False)
    + self.W_q, self.W_k = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)
    + self.W_v = nn.Linear(d_model, d_v)
    - def forward(
    + def load_state_dict(self, state, *args, **kwargs):
    +     return super().load_state_dict(state, strict=False)
    + def forward(
    The projections have biases: parameters nobody asked for, and a state that is loaded does not
    fit. Use `__init__` as it is given.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32: a float64 model has to give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
x_changed_in_place
    > with torch.no_grad():
    >     x.sub_(x.mean())
    The caller's x is written over. Make a new tensor: `x - …`, not `x -= …`.
weights_transposed_for_the_average of written_out: (weights, values) → (weights.mT, values)
    The weights are transposed before they meet the values: each key, not each query, gets an
    average.
""")


# --- SelfAttention: right -----------------------------------------------------------------------


@SELF_ATTENTION.right
class by_einsum(right.SelfAttention):
    def forward(self, x):
        q, k, v = (torch.einsum("bnd,ed->bne", x, w.weight) for w in (self.W_q, self.W_k, self.W_v))
        weights = torch.einsum("bie,bje->bij", q, k).div(q.size(-1) ** 0.5).softmax(2)
        return torch.einsum("bij,bje->bie", weights, v), weights


@SELF_ATTENTION.right
class one_matrix_for_all(right.SelfAttention):
    """The three projections as one multiplication, cut up afterwards."""

    def forward(self, x):
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        sizes = [self.W_q.out_features, self.W_k.out_features, self.W_v.out_features]
        q, k, v = F.linear(x, weight).split(sizes, dim=-1)
        weights = (q * sizes[0] ** -0.5 @ k.mT).softmax(dim=-1)
        return weights @ v, weights


@SELF_ATTENTION.right
class projections_folded_into_one(right.SelfAttention):
    """XW_qᵀ(XW_kᵀ)ᵀ = X(W_qᵀW_k)Xᵀ, and the values projected after the average: W_v is linear."""

    def forward(self, x):
        form = self.W_q.weight.T @ self.W_k.weight / self.W_q.out_features**0.5
        weights = torch.softmax(x @ form @ x.mT, dim=-1)
        return self.W_v(weights @ x), weights


@SELF_ATTENTION.right
class by_the_fused_kernel(right.SelfAttention):
    """torch's fused kernel for the output; averaging the identity with it gives the weights."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        same = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        both = F.scaled_dot_product_attention(q, k, torch.cat([v, same], dim=-1))
        return both[..., : v.shape[-1]], both[..., v.shape[-1] :]


@SELF_ATTENTION.right
class position_by_position(right.SelfAttention):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        rows = [
            F.softmax((k @ one[..., None])[..., 0] / math.sqrt(k.shape[-1]), dim=-1)
            for one in q.unbind(1)
        ]
        weights = torch.stack(rows, dim=1)
        return weights @ v, weights


@SELF_ATTENTION.right
class by_torchs_root(right.SelfAttention):
    """The root of a tensor, as many tutorials take it: a float32 number."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = q @ k.transpose(-2, -1) / torch.sqrt(torch.tensor(k.size(-1), dtype=torch.float32))
        weights = scores.softmax(dim=-1)
        return weights @ v, weights
