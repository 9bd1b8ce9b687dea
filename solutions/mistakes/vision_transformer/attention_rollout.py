"""Known answers to `attention_rollout`: mistakes, then right answers."""

import functools

import torch

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, MADE_ON_THE_CPU, THROUGH_NUMPY
from solutions import vision_transformer as right

BANK = Bank("attention_rollout", right, globals())

BANK.changes("""
product_the_other_way_round
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + rollout = rollout @ (0.5 * weight.mean(dim=1) + 0.5 * itself)
    The layers are multiplied in the wrong order: the first layer's matrix is leftmost. A later
    layer reads what the earlier ones have made, so the last one stands on the left.
product_entry_by_entry
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) * rollout
    The matrices are multiplied entry by entry. It should be a product of matrices.
identity_forgotten: (0.5 * weight.mean(dim=1) + 0.5 * itself) → weight.mean(dim=1)
    The identity is missing: half of what a position carries on is itself, by the residual path.
identity_added_once
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + rollout = weight.mean(dim=1) @ rollout
    > result = 0.5 * result + 0.5 * itself
    The identity is added in the end, to the product of all layers. It belongs to every layer.
not_halved: (0.5 * weight.mean(dim=1) + 0.5 * itself) → (weight.mean(dim=1) + itself)
    A + I is not halved, so the rows sum to 2 in every layer, and to a power of 2 in the end.
only_attention_halved
    ~ + 0.5 * itself) → + itself)
    The identity is not halved: the rows sum to 1.5 in every layer.
identity_minus: 0.5 * weight.mean(dim=1) + → 0.5 * weight.mean(dim=1) -
    The identity is taken away. It should be added.
renormalised: > result = result / result.sum(-1, keepdim=True)
    The rows of the result are made to sum to 1. Where the rows of the weights do not, neither
    should those of the result.
rows_renormalised
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + layer = weight.mean(dim=1) + itself
    + rollout = layer / layer.sum(-1, keepdim=True) @ rollout
    Every layer's rows are made to sum to 1. For weights whose rows do, that is the same; where a
    mask or dropout has left less, it is not. It should be ½A + ½I.
columns_renormalised
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + layer = weight.mean(dim=1) + itself
    + rollout = layer / layer.sum(-2, keepdim=True) @ rollout
    Every layer's columns are made to sum to 1. Nothing is, here: ½A + ½I.
transposed: weight.mean(dim=1) → weight.mean(dim=1).mT
    A is transposed: what a position gives to others is taken for what it gets from them.
transposed_in_the_end: > result = result.mT
    The result is transposed: its row i should say what position i has drawn from each one.
summed_over_the_heads: weight.mean(dim=1) → weight.sum(dim=1)
    The heads are summed. They should be averaged.
largest_head: weight.mean(dim=1) → weight.amax(dim=1)
    The largest weight of the heads is taken. They should be averaged.
smallest_head: weight.mean(dim=1) → weight.amin(dim=1)
    The smallest weight of the heads is taken. They should be averaged.
first_head_only: weight.mean(dim=1) → weight[:, 0]
    Only the first head counts. They should be averaged.
last_head_only: weight.mean(dim=1) → weight[:, -1]
    Only the last head counts. They should be averaged.
mean_over_the_batch: weight.mean(dim=1) → weight.mean(dim=(0, 1))
    The mean is taken over the batch as well. Every image has its own rollout.
mean_over_the_layers
    - for weight in weights:
    -     rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + for weight in weights:
    +     rollout = rollout + 0.5 * (weight.mean(dim=1) + itself) / len(weights)
    > result = result - itself
    The layers are averaged. They should be multiplied: each reads what the one before has made.
heads_rolled_out_apart
    - n = weights[0].shape[-1]
    + heads, n = weights[0].shape[1], weights[0].shape[-1]
    ~ itself.repeat(len(weights[0]), 1, 1) → itself.repeat(len(weights[0]), heads, 1, 1)
    ~ weight.mean(dim=1) → weight
    > result = result.mean(1)
    Every head is followed through the layers on its own, and the mean is taken in the end. In every
    layer, all heads write into one vector, so the mean comes first.
first_layer_left_out: for weight in weights: → for weight in weights[1:]:
    The first layer is left out.
last_layer_left_out: for weight in weights: → for weight in weights[:-1]:
    The last layer is left out.
last_layer_only: for weight in weights: → for weight in weights[-1:]:
    Only the last layer counts.
first_layer_only: for weight in weights: → for weight in weights[:1]:
    Only the first layer counts.
same_layer_again: + weights = [weights[0]] * len(weights)
    The first layer is taken again and again. Every layer has its own weights.
class_token_only: > result = result[:, 0]
    Only the class token's row is returned. It should be all of them.
without_the_class_token: > result = result[:, 1:, 1:]
    The first position is left out. All of them belong to the result.
class_token_to_patches: > result = result[:, 0, 1:]
    Only what the class token has drawn from the patches is returned. It should be the whole matrix.
heads_kept
    - n = weights[0].shape[-1]
    + heads, n = weights[0].shape[1], weights[0].shape[-1]
    ~ itself.repeat(len(weights[0]), 1, 1) → itself.repeat(len(weights[0]), heads, 1, 1)
    ~ weight.mean(dim=1) → weight
    The heads are kept apart, and the result has an axis for them. They should be averaged in every
    layer.
batch_lost: > result = result[0]
    Only the first image's rollout is returned. Each image has one.
list_turned_round
    + weights.reverse()
    - rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    + rollout = rollout @ (0.5 * weight.mean(dim=1) + 0.5 * itself)
    The result is right, but the caller's list is turned round.
list_used_up
    - for weight in weights:
    -     rollout
    + while weights:
    +     weight = weights.pop(0)
    +     rollout
    The result is right, but the caller's list is empty afterwards.
weights_overwritten
    + [w.data.mul_(0.5) for w in weights]
    ~ 0.5 * weight.mean(dim=1) → weight.mean(dim=1)
    The caller's weights are halved.
rounded_to_single: > result = result.float()
    The result is float32 whatever the weights are.
identity_in_double
    ~ dtype=weights[0].dtype → dtype=torch.float64
    ~ weight.mean(dim=1) → weight.double().mean(dim=1)
    The result is float64 whatever the weights are.
switches_gradients_off: + torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
""")

BANK.changes(f"""
made_on_the_cpu: , device=weights[0].device → , device=None
    {MADE_ON_THE_CPU}
left_on_the_cpu: > result = result.cpu()
    {LEFT_ON_THE_CPU}
through_numpy: weight.mean(dim=1) → torch.from_numpy(weight.detach().numpy()).mean(dim=1)
    {THROUGH_NUMPY}
numpy_without_detach: weight.mean(dim=1) → torch.from_numpy(weight.numpy()).mean(dim=1)
    The way leads through NumPy, which refuses a tensor that belongs to a graph; weights of a
    forward pass do.
""")


@BANK.right
def by_reduce(weights):
    n = weights[0].size(-1)
    one = torch.eye(n).to(weights[0])
    layers = [(w.mean(1) + one) / 2 for w in weights]
    return functools.reduce(lambda done, layer: layer @ done, layers)


@BANK.right
def from_the_last_layer(weights):
    found = None
    for w in reversed(weights):
        layer = torch.diag_embed(w.new_full(w.shape[:1] + w.shape[-1:], 0.5)) + w.mean(-3) / 2
        found = layer if found is None else torch.bmm(found, layer)
    return found


@BANK.right
def by_einsum(weights):
    H = weights[0].shape[1]
    rollout = torch.eye(weights[0].shape[-1], dtype=weights[0].dtype, device=weights[0].device)
    rollout = rollout.expand(weights[0].shape[0], -1, -1)
    for w in weights:
        rollout = 0.5 * (torch.einsum("bhij,bjk->bik", w, rollout) / H + rollout)
    return rollout


@BANK.right
def image_by_image(weights):
    found = []
    for b in range(len(weights[0])):
        maps = [sum(layer[b]) / len(layer[b]) for layer in weights]
        eye = torch.eye(len(maps[0]), device=maps[0].device, dtype=maps[0].dtype)
        found.append(torch.linalg.multi_dot([0.5 * m + 0.5 * eye for m in maps[::-1]] + [eye]))
    return torch.stack(found)


@BANK.right
def stacked_without_the_graph(weights):
    with torch.no_grad():
        layers = torch.stack(list(weights)).double().mean(2) / 2
        layers.diagonal(dim1=-2, dim2=-1).add_(0.5)
        rollout = layers[0]
        for layer in layers[1:]:
            rollout = torch.matmul(layer, rollout)
    return rollout.to(weights[0].dtype)
