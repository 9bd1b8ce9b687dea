"""The encoder alone, BERT: its layer, blanks and how they are filled, and looking inside.

Sources: the model after J. Devlin, M.-W. Chang, K. Lee, K. Toutanova, "BERT" (2019); relevance
after H. Chefer, S. Gur, L. Wolf, "Generic attention-model explainability" (2021); pruning after
P. Michel, O. Levy, G. Neubig, "Are sixteen heads really better than one?" (2019). Attention comes
from `blocks`.
"""

from collections.abc import Callable, Collection, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention


class BertLayer(nn.Module):
    """A layer of BERT: self-attention, then a feed-forward network, a norm after each sum.

    norm1(x + drop(attention(x))), then norm2(x + drop(linear2(gelu(linear1(x))))), with
    the exact GELU. Parts: `attention` (`blocks.MultiHeadAttention`, with `dropout` on its
    weights as well), `norm1`, `linear1` (d_model → d_ff), `linear2` (d_ff → d_model),
    `norm2`; both norms have eps 1e-12. Dropout acts in training only. With a chunk_size
    above 0, the feed-forward network works through that many positions at a time, the
    last time through what is left. Sources: Devlin et al. (2019), section 3; for GELU,
    Hendrycks, Gimpel (2016); for chunks, Kitaev, Kaiser, Levskaya (2020), section 3.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, chunk_size: int = 0
    ):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-12)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-12)
        self.dropout = nn.Dropout(dropout)
        self.chunk_size = chunk_size

    def forward(
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B n d_model"]:
        """Let every position gather from both sides, then think.

        Shapes: x `(B, n, d_model)` → the same; chunks are cut along axis 1. The mask is
        boolean, True = *may attend*, and broadcasts to `(B, H, n, n)`; without one, every
        position sees all. `self.attention(query, key, value, mask=mask)` returns
        `(output, weights)`; a row that may attend to nothing gets zeros.
        """
        ### BEGIN SOLUTION
        x = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
        chunks = x.split(self.chunk_size or x.shape[1], dim=1)  # each (B, chunk_size, d_model)
        h = torch.cat([self.linear2(F.gelu(self.linear1(chunk))) for chunk in chunks], dim=1)
        return self.norm2(x + self.dropout(h))
        ### END SOLUTION


def mask_tokens(
    ids: Int[Tensor, "B n"],
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int] = (),
    probability: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "B n"], Int[Tensor, "B n"]]:
    """Make blanks in a text for BERT to fill in, and return `(inputs, labels)`.

    Each token whose id is not in `special_ids` is chosen with the given probability,
    independently of all others. Of the chosen tokens, each on its own, 80 % become
    `mask_id`, 10 % an id drawn evenly from 0 … vocab_size − 1, and 10 % stay as they
    are. Shapes: ids `(B, n)` → inputs and labels `(B, n)`, both new and on the device
    of `ids`; labels hold the true id where a token was chosen, and −100 elsewhere. All
    draws are made with `generator`, or else with torch's own: the same state of it gives
    the same result. Source: Devlin et al. (2019), section 3.1 and appendix A.1.
    """
    ### BEGIN SOLUTION
    special = torch.isin(ids, torch.tensor([*special_ids], dtype=ids.dtype, device=ids.device))
    draws = torch.rand(2, *ids.shape, generator=generator, device=ids.device)
    chosen = (draws[0] < probability) & ~special  # (B, n)
    masked, replaced = draws[1] < 0.8, draws[1] >= 0.9
    any_id = torch.randint(vocab_size, ids.shape, generator=generator, device=ids.device)
    inputs = ids.masked_fill(chosen & masked, mask_id)
    inputs = torch.where(chosen & replaced, any_id.to(ids.dtype), inputs)
    return inputs, ids.masked_fill(~chosen, -100)
    ### END SOLUTION


def masked_loss(logits: Float[Tensor, "B n V"], labels: Int[Tensor, "B n"]) -> Float[Tensor, ""]:
    """How badly the blanks were filled in: mean cross-entropy, in nats a blank.

    Shapes: logits `(B, n, V)`, labels `(B, n)` → a scalar. The logits at a position are
    for the token at that position. The mean is over the positions of the whole batch
    whose label is not −100; where there are none, the loss is 0, and so is its gradient.
    Source: Devlin et al. (2019), section 3.1.
    """
    ### BEGIN SOLUTION
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)
    ### END SOLUTION


def fill_gaps(
    model: Callable[[Tensor], Tensor], ids: Int[Tensor, "B n"], mask_id: int, steps: int
) -> Int[Tensor, "B n"]:
    """Fill the gaps of a text in several rounds, those that the model is surest of first.

    `model(ids)` gives logits `(B, n, V)`; a gap is where ids is `mask_id`. In each of
    `steps` rounds, the model reads what is written so far, and every row, on its own, gets
    ⌈its gaps left / rounds left⌉ of its gaps filled: so the shares of the rounds differ by
    one at most, the larger ones come first, and in the end no gap is left. Filled is where
    the likeliest token has the highest probability, with this token. `mask_id` is never
    written: its logit counts as −∞, in the softmax, too. What is written stays. Shapes:
    ids `(B, n)` → `(B, n)`, new. steps is 1 or more, and no two gaps of a row are equally
    sure. Source: Ghazvininejad et al. (2019), section 3; there, an answer can become a gap
    again.
    """
    ### BEGIN SOLUTION
    for rounds in range(steps, 0, -1):
        gaps = ids == mask_id  # (B, n)
        logits = model(ids).clone()  # (B, n, V)
        logits[..., mask_id] = -torch.inf
        sure, token = logits.softmax(dim=-1).max(dim=-1)  # (B, n)
        rank = sure.masked_fill(~gaps, -1.0).argsort(dim=-1, descending=True).argsort(dim=-1)
        share = (gaps.sum(dim=-1, keepdim=True) + rounds - 1) // rounds  # (B, 1)
        ids = torch.where(gaps & (rank < share), token, ids)
    return ids
    ### END SOLUTION


def attention_relevance(
    weights: Sequence[Float[Tensor, "B H n n"]], gradients: Sequence[Float[Tensor, "B H n n"]]
) -> Float[Tensor, "B n n"]:
    """How much each token matters for what becomes of each position, layer upon layer.

    Each layer's weights are multiplied by their gradients, entry by entry; negative
    products become 0, and the heads are averaged: this is Ā. Then R begins as the
    identity, and from the first layer to the last, R ← R + Ā R. Shapes: a list of
    weights and a list of their gradients, a layer each, first layer first, all
    `(B, H, n, n)` → R `(B, n, n)`: row i says what position i has drawn from each token.
    R is to be looked at, so it need not have gradients. Source: Chefer, Gur, Wolf
    (2021), equations 5 and 6.
    """
    ### BEGIN SOLUTION
    B, _, n, _ = weights[0].shape
    relevance = torch.eye(n, dtype=weights[0].dtype, device=weights[0].device).repeat(B, 1, 1)
    for weight, gradient in zip(weights, gradients, strict=True):
        positive = (weight * gradient).clamp(min=0).mean(dim=1)  # (B, n, n)
        relevance = relevance + positive @ relevance
    return relevance
    ### END SOLUTION


def bug_in_relevance(num_heads: int, n: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Find two sets of maps for `wrong_relevance`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(weights, gradients)` of one layer, both
    `(B, num_heads, n, n)`, with two heads or more and n ≥ 2; B is yours, from 1 to 64.
    Weights are not negative, and their rows sum to 1; gradients lie between −1000 and
    1000. On `shows`, the right relevance and the wrong one differ by 0.01 or more
    somewhere; on `hides` they are equal, although in every head some product of a weight
    and its gradient is above 0.001 and some below −0.001, and somewhere two heads'
    products differ by 0.1 or more.
    """
    ### BEGIN SOLUTION
    weights = torch.full((1, num_heads, n, n), 1 / n)
    sign = torch.where(torch.arange(n) == 0, -1.0, 1.0)  # (n,), the same for all heads
    strength = n * torch.arange(1.0, num_heads + 1)[:, None, None]  # (H, 1, 1)
    agree = (strength * sign).expand(1, num_heads, n, n)
    disagree = agree * torch.where(torch.arange(num_heads) == 0, -1.0, 1.0)[:, None, None]
    return (weights, disagree), (weights, agree)
    ### END SOLUTION


def prune_heads(attention: nn.Module, heads: Collection[int]) -> dict[str, nn.Linear]:
    """Cut heads out of an attention: new, smaller matrices for the heads that stay.

    `attention` has the linear layers `W_q`, `W_k`, `W_v`, `W_o` of d_model → d_model, and
    `num_heads`; `heads` says which heads go, numbers from 0. Returns a dict of four new
    `nn.Linear` under the same names. With d_k = d_model / num_heads, `W_q`, `W_k` and
    `W_v` have weights of shape `(kept·d_k, d_model)`, and `W_o` has
    `(d_model, kept·d_k)` and its whole bias: attention with them gives what the whole
    one gives with these heads masked by 0. The new layers have the dtype and the device
    of the old ones. The heads that stay keep their order; a head named twice counts
    once; with no heads named, all four are copies. `attention` stays as it is, and
    shares no memory with what is returned. Raises a `ValueError` for a head that does
    not exist (a negative one, too), and if no head would be left. Source: Michel, Levy,
    Neubig (2019), section 2.3.
    """
    ### BEGIN SOLUTION
    gone, d_k = {*heads}, attention.W_q.out_features // attention.num_heads
    stay = [h for h in range(attention.num_heads) if h not in gone]
    if not gone.issubset(range(attention.num_heads)):
        raise ValueError(f"the heads are 0 … {attention.num_heads - 1}, not {sorted(gone)}")
    if not stay:
        raise ValueError(f"of {attention.num_heads} heads, none is left")
    kept = torch.cat([torch.arange(h * d_k, (h + 1) * d_k) for h in stay])  # (kept · d_k,)

    def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
        n_out, n_in = weight.shape
        new = nn.Linear(n_in, n_out, bias is not None, weight.device, weight.dtype)
        new.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
        return new

    inputs = {name: getattr(attention, name) for name in ("W_q", "W_k", "W_v")}
    pruned = {
        name: linear(old.weight[kept], None if old.bias is None else old.bias[kept])
        for name, old in inputs.items()
    }
    return pruned | {"W_o": linear(attention.W_o.weight[:, kept], attention.W_o.bias)}
    ### END SOLUTION
