"""Known answers to `BilinearAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import attention_scoring as right

BANK = Bank("BilinearAttention", right, globals())

BANK.changes("""
not_scaled: scores / (query_size * key_size) ** 0.25 → scores
    The scores are not divided. Luong, Pham and Manning do not divide either; here they are divided
    by the fourth root of query_size · key_size.
square_root_for_fourth: 0.25 → 0.5
    The scores are divided by the square root of query_size · key_size. It should be the fourth
    root, which is the square root of their geometric mean.
divided_by_the_product: (query_size * key_size) ** 0.25 → (query_size * key_size)
    The scores are divided by query_size · key_size itself, without a root.
divided_by_root_of_query_size: (query_size * key_size) ** 0.25 → query_size**0.5
    The scores are divided by √query_size. If both sizes are equal that is the same; the fourth root
    of the product treats them alike.
divided_by_root_of_key_size: (query_size * key_size) ** 0.25 → key_size**0.5
    The scores are divided by √key_size. If both sizes are equal that is the same; the fourth root
    of the product treats them alike.
fourth_root_of_the_sum: query_size * key_size → query_size + key_size
    The divisor is the fourth root of query_size + key_size. It should be that of their product.
divided_by_the_values_size: query_size * key_size → query_size * value.shape[-1]
    The divisor uses the size of the values. It depends on the sizes of queries and keys, over which
    the sum runs.
divided_by_the_numbers: query_size * key_size → query.shape[-2] * key.shape[-2]
    The divisor uses the numbers of queries and keys, n_q · n_k, instead of their sizes: the wrong
    axis of their shapes.
multiplied_for_divided: scores / → scores *
    The scores are multiplied by the fourth root instead of divided.
W_transposed: self.W @ → self.W.T @
    W is transposed: qᵀWᵀk. If queries and keys have the same size nothing fails, and a fresh W is
    as good as its transpose; a loaded one reveals it.
W_ignored: query @ self.W @ → query @
    W is not used: these are plain dot products, which work only if the sizes are equal.
W_made_symmetric: self.W @ → ((self.W + self.W.T) / 2) @
    W is replaced by its symmetric part, (W + Wᵀ)/2. How well a matches b need not be how well b
    matches a.
W_taken_entrywise: query @ self.W @ → (query * self.W.diagonal()) @
    Only the diagonal of W counts: features are multiplied one by one. In a bilinear form, every
    feature of the query meets every feature of the key.
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
    exp overflows where a score is large. torch's softmax guards against that.
scaled_after_the_softmax
    - scores / (query_size * key_size) ** 0.25, dim=-1)
    + scores, dim=-1) / (query_size * key_size) ** 0.25
    The weights are divided instead of the scores: their rows do not sum to 1.
squeezed: weights @ value, weights → (weights @ value).squeeze(), weights.squeeze()
    squeeze() removes every axis of size 1, even a batch of one or a single query.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; it is the values that are averaged.
key_and_value_swapped: + key, value = value, key
    Key and value are swapped. If both have the same size, nothing fails.
query_and_key_swapped: + query, key = key, query
    Query and key are swapped: the table has one row per key. If both have the same size and number,
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
    There is a second parameter, a bias. `__init__` is given, with one parameter: W.
drawn_otherwise: nn.init.xavier_uniform_(self.W) → nn.init.normal_(self.W)
    W is not drawn as in Glorot and Bengio (2010). With standard deviation 1, say, the first scores
    are so large that the softmax picks a single key, and hardly any gradient passes. `__init__` is
    given.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32. A float64 model should give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
query_changed_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is overwritten: an operation such as `-=` writes into the tensor that was
    passed in.
a_quarter_for_the_fourth_root: (query_size * key_size) ** 0.25 → ((query_size * key_size) ** 1 / 4)
    `** 1 / 4` gives a quarter of the product, not its fourth root: the power is taken before the
    division.
divided_by_the_product_and_by_four: ** 0.25 → ** 1 / 4
    `scores / sizes ** 1 / 4` divides by the product of the sizes and then by 4: the power is taken
    first, and the divisions go from left to right.
fourth_root_of_one_size: (query_size * key_size) → query_size
    The divisor is the fourth root of query_size alone. It should be that of the product of both
    sizes.
root_of_the_key_size_only: (query_size * key_size) ** 0.25 → (query_size * key_size**0.25)
    In `query_size * key_size ** 0.25` the root is that of key_size alone, since the power is taken
    first: the product needs brackets.
""")


@BANK.right
class by_einsum(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = torch.einsum("bqi,ij,bkj->bqk", query, self.W, key)
        weights = (scores / math.prod(self.W.shape) ** 0.25).softmax(2)
        return torch.einsum("bqk,bkv->bqv", weights, value), weights


@BANK.right
class key_first(right.BilinearAttention):
    """(qᵀ)(Wk) for (qᵀW)k: the same product, grouped from the other end."""

    def forward(self, query, key, value):
        scores = query @ (key @ self.W.T).transpose(1, 2)
        root = math.sqrt(math.sqrt(query.shape[-1] * key.shape[-1]))
        weights = F.softmax(scores / root, dim=-1)
        return weights.bmm(value), weights


@BANK.right
class by_torchs_bilinear(right.BilinearAttention):
    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1).contiguous()
        keys = key[:, None].expand(-1, n_q, -1, -1).contiguous()
        scores = F.bilinear(queries, keys, self.W[None])[..., 0]
        weights = torch.softmax(scores / (self.W.numel() ** 0.25), dim=-1)
        return weights @ value, weights


@BANK.right
class both_sides_scaled(right.BilinearAttention):
    def forward(self, query, key, value):
        q, k = (x / x.shape[-1] ** 0.25 for x in (query, key))
        weights = torch.exp(F.log_softmax(q.matmul(self.W).matmul(k.mT), dim=-1))
        return weights @ value, weights


@BANK.right
class query_by_query(right.BilinearAttention):
    def forward(self, query, key, value):
        rows = []
        for q in query.unbind(1):
            scores = (key @ (q @ self.W)[..., None])[..., 0]
            rows.append((scores / (self.W.shape[0] * self.W.shape[1]) ** 0.25).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return weights @ value, weights


@BANK.right
class float64_inside(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = query.double() @ self.W.double() @ key.double().mT
        weights = (scores * (query.shape[-1] * key.shape[-1]) ** -0.25).softmax(-1)
        return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


@BANK.right
class by_torchs_root(right.BilinearAttention):
    """The fourth root of a tensor: a float32 number."""

    def forward(self, query, key, value):
        scores = query @ self.W @ key.mT / torch.tensor(self.W.numel()) ** 0.25
        weights = scores.softmax(-1)
        return weights @ value, weights


forgotten(BANK, "query")
