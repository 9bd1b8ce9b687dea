"""Known answers to `attention_relevance`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, MADE_ON_THE_CPU, THROUGH_NUMPY
from solutions import bert as right

BANK = Bank("attention_relevance", right, globals())

BANK.changes("""
mean_before_the_product
    - positive = (weight * gradient).clamp(min=0).mean(dim=1)
    + positive = (weight.mean(dim=1) * gradient.mean(dim=1)).clamp(min=0)
    Weights and gradients are averaged over the heads before they are multiplied. It should be head
    by head.
mean_before_the_positive_part: .clamp(min=0).mean(dim=1) → .mean(dim=1).clamp(min=0)
    The heads are averaged before the negative products become 0, so that heads that disagree cancel
    each other. The positive part is taken head by head.
absolute_value: (weight * gradient).clamp(min=0) → (weight * gradient).abs()
    The absolute value of the products is taken. It should be the positive part: negative ones
    become 0.
signs_kept: (weight * gradient).clamp(min=0) → (weight * gradient)
    Negative products are kept. They should become 0.
negative_part: .clamp(min=0) → .clamp(max=0)
    The positive products become 0. It should be the negative ones.
positive_gradients_only_counted: (weight * gradient).clamp(min=0) → (weight * (gradient > 0))
    Weights count wherever their gradient is positive, whatever its size. It is the product that
    counts.
gradient_alone: (weight * gradient) → gradient
    The weights are left out: only the gradients count.
weights_alone: (weight * gradient).clamp(min=0) → weight
    The gradients are left out: this is attention rolled out, and knows nothing of what becomes of
    it.
gradient_of_another_layer: zip(weights, gradients, → zip(weights, gradients[::-1],
    The gradients are read in the opposite order: each layer's weights meet another one's.
squared: (weight * gradient).clamp(min=0) → (weight * gradient).clamp(min=0).square()
    The products are squared.
summed_over_the_heads: .mean(dim=1) → .sum(dim=1)
    The heads are summed. They should be averaged.
largest_head: .mean(dim=1) → .amax(dim=1)
    The largest of the heads is taken. They should be averaged.
first_head_only: .clamp(min=0).mean(dim=1) → .clamp(min=0)[:, 0]
    Only the first head counts. They should be averaged.
mean_over_the_batch: .mean(dim=1) → .mean(dim=1).mean(dim=0, keepdim=True)
    The mean is taken over the batch as well. Every text has its own relevance.
wrong_side: positive @ relevance → relevance @ positive
    R is multiplied from the wrong side: R Ā. It should be Ā R, since a later layer reads what the
    earlier ones have made. Going through the layers from the last to the first comes to the same.
transposed: positive @ relevance → positive.mT @ relevance
    Ā is transposed: what a position gives to others is taken for what it gets from them.
transposed_in_the_end: > result = result.mT
    R is transposed: its row i should say what position i has drawn from each token.
identity_forgotten: torch.eye(n, → torch.zeros(n, n,
    R begins as 0 and stays 0. It should begin as the identity.
identity_forgotten_in_the_sum: relevance + positive @ relevance → positive @ relevance
    R is replaced by Ā R in each layer. It should be added to it: a position keeps what it had.
product_forgotten: relevance + positive @ relevance → relevance + positive
    The layers' Ā are added up. They should be multiplied with what has been collected so far.
product_entry_by_entry: positive @ relevance → positive * relevance
    Ā and R are multiplied entry by entry. It should be a product of matrices.
half_and_half: relevance + positive @ relevance → (relevance + positive @ relevance) / 2
    Each layer's result is halved. Nothing is, here.
normalised: > result = result / result.sum(-1, keepdim=True)
    The rows are made to sum to 1 in the end. They should stay as they are.
rows_normalised
    - relevance + positive @ relevance
    + relevance + positive / positive.sum(-1, keepdim=True).clamp(min=1e-9) @ relevance
    The rows of Ā are made to sum to 1. They should stay as they are: how much a layer matters is in
    them.
identity_taken_away: > result = result - torch.eye(n, dtype=result.dtype, device=result.device)
    The identity is taken away in the end. It belongs to R.
last_layer_only: zip(weights, gradients, → zip(weights[-1:], gradients[-1:],
    Only the last layer counts.
first_layer_left_out: zip(weights, gradients, → zip(weights[1:], gradients[1:],
    The first layer is left out.
first_row_only: > result = result[:, 0]
    Only the first row of R is returned, which is what a class token has drawn. It should be all of
    R.
multiplied_in_place: + [w.data.mul_(g) for w, g in zip(weights, gradients)]
    ~ (weight * gradient) → weight
    The caller's weights are multiplied by the gradients.
list_turned_round
    > weights.reverse()
    The caller's list of weights is turned round.
list_used_up: + weights, kept = weights.copy(), weights
    > kept.clear()
    The caller's list of weights is emptied.
rounded_to_single: > result = result.float()
    The result is float32 whatever the maps are.
identity_in_single: eye(n, dtype=weights[0].dtype, → eye(n, dtype=torch.float64,
    ~ positive @ relevance → positive.double() @ relevance
    The result is float64 whatever the maps are.
switches_gradients_off: + torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
""")

BANK.changes(f"""
made_on_the_cpu: , device=weights[0].device → , device=None
    {MADE_ON_THE_CPU}
left_on_the_cpu: > result = result.cpu()
    {LEFT_ON_THE_CPU}
through_numpy: (weight * gradient) → torch.from_numpy((weight * gradient).detach().numpy())
    {THROUGH_NUMPY}
numpy_without_detach: (weight * gradient) → torch.from_numpy((weight * gradient).numpy())
    The way leads through NumPy, which refuses a tensor that belongs to a graph; weights of a
    forward pass do.
""")


@BANK.right
def by_products(weights, gradients):
    """The product of the layers' (1 + Ā), the last one leftmost."""
    n = weights[0].shape[-1]
    one = torch.eye(n, dtype=weights[0].dtype, device=weights[0].device)
    found = one.expand(len(weights[0]), n, n)
    for a, g in zip(weights, gradients, strict=True):
        found = (one + torch.relu(a * g).mean(1)) @ found
    return found


@BANK.right
def by_einsum(weights, gradients):
    B, H, n, _ = weights[0].shape
    relevance = torch.diag_embed(weights[0].new_ones(B, n))
    for layer in range(len(weights)):
        kept = torch.maximum(weights[layer] * gradients[layer], weights[layer].new_zeros(()))
        relevance = relevance + torch.einsum("bhij,bjk->bik", kept / H, relevance)
    return relevance


@BANK.right
def text_after_text(weights, gradients):
    found = []
    for b in range(weights[0].size(0)):
        relevance = torch.eye(weights[0].size(-1)).to(weights[0])
        for a, g in zip(weights, gradients, strict=True):
            product = a[b] * g[b]
            heads = torch.where(product > 0, product, torch.zeros_like(product))
            relevance = relevance + torch.stack([*heads]).sum(0) / len(heads) @ relevance
        found.append(relevance)
    return torch.stack(found)


@BANK.right
def without_the_graph(weights, gradients):
    with torch.no_grad():
        relevance = None
        for a, g in zip(weights, gradients, strict=True):
            layer = (a.detach() * g).clamp_min(0.0).mean(-3)
            if relevance is None:
                relevance = layer + torch.eye(layer.shape[-1], device=a.device, dtype=a.dtype)
            else:
                relevance = torch.baddbmm(relevance, layer, relevance)
        return relevance


@BANK.right
def stacked(weights, gradients):
    products = torch.stack([*weights]).double() * torch.stack([*gradients]).double()
    layers = products.clamp(min=0).mean(2)
    relevance = torch.eye(layers.shape[-1], device=layers.device).double()
    for layer in layers:
        relevance = relevance + layer @ relevance
    return relevance.to(weights[0].dtype)
