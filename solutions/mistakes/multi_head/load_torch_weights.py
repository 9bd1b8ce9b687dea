"""Known answers to `load_torch_weights`: mistakes, then right answers."""

import torch
from torch import nn

from autograder.bank import Bank, Edit
from autograder.bank.devices import THROUGH_NUMPY
from solutions import multi_head as right

BANK = Bank("load_torch_weights", right, globals())

BANK.changes("""
bias_lost: torch_attention.in_proj_bias is not None → False
    The weights are copied but the biases are not. nn.MultiheadAttention starts with zero biases, so
    a fresh one hides it.
nothing_copied: + return attention
    Nothing arrives: `attention` keeps its own numbers. Assigning a new value to a variable does not
    write into the tensor that it referred to.
packed_bias_lost: ours.bias.copy_(bias) → pass
    in_proj_bias is not copied, only the bias of out_proj.
output_bias_lost: - attention.W_o.bias.copy_(torch_attention.out_proj.bias)
    The bias of out_proj is not copied.
output_projection_lost
    - attention.W_o.weight.copy_(torch_attention.out_proj.weight)
    ~ attention.W_o.bias.copy_(torch_attention.out_proj.bias) → pass
    out_proj is not copied: W_o keeps its own numbers.
packed_order_misread: attention.W_k, attention.W_v → attention.W_v, attention.W_k
    The second third of in_proj_weight is used for the values and the last for the keys. torch packs
    query, key, value.
packed_keys_first: attention.W_q, attention.W_k → attention.W_k, attention.W_q
    The first third of in_proj_weight is used for the keys and the second for the queries. torch
    packs query, key, value.
bias_order_misread
    - zip(packed, torch_attention.in_proj_bias
    + zip([packed[i] for i in (0, 2, 1)], torch_attention.in_proj_bias
    The weights are right, but the biases of keys and values are swapped: in_proj_bias is packed
    query, key, value, like the weight.
every_third_row
    - torch_attention.in_proj_weight.chunk(3)
    + [torch_attention.in_proj_weight[i::3] for i in range(3)]
    - torch_attention.in_proj_bias.chunk(3)
    + [torch_attention.in_proj_bias[i::3] for i in range(3)]
    Every third row of in_proj_weight is taken. The three matrices are stacked, d_model rows each,
    not interleaved.
weights_transposed: copy_(weight) → copy_(weight.T) ; out_proj.weight → out_proj.weight.T
    The weights are transposed. in_proj_weight and nn.Linear both store (out, in), so nothing needs
    turning.
output_transposed: out_proj.weight → out_proj.weight.T
    The weight of out_proj is transposed. It is an nn.Linear like W_o, so nothing needs turning.
bias_expected: torch_attention.in_proj_bias is not None → True
    A module without biases ends in an error: its in_proj_bias is None.
views_taken
    ~ ours.weight.copy_(weight) → ours.weight.data = weight
    - W_o.weight.copy_(torch_attention.out_proj.weight)
    + W_o.weight.data = torch_attention.out_proj.weight.data
    ~ ours.bias.copy_(bias) → ours.bias.data = bias
    - W_o.bias.copy_(torch_attention.out_proj.bias)
    + W_o.bias.data = torch_attention.out_proj.bias.data
    Our parameters are torch's own, or views of them, so the two modules share their memory:
    training one trains the other. Copy the numbers.
frozen: > result = result.requires_grad_(False)
    The parameters no longer require a gradient: the module cannot be trained any further. Leave
    requires_grad as it was.
nothing_returned: - return attention
    The copy is right, but the function returns nothing. It should return `attention`.
torchs_module_returned: return attention → return torch_attention
    torch's module is returned. It should be ours.
new_module_filled
    + from copy import deepcopy
    + attention = deepcopy(attention)
    A new module gets the parameters, and the one that was passed in stays as it was.
copied_the_wrong_way
    ~ ours.weight.copy_(weight) → weight.copy_(ours.weight)
    - attention.W_o.weight.copy_(torch_attention.out_proj.weight)
    + torch_attention.out_proj.weight.copy_(attention.W_o.weight)
    ~ ours.bias.copy_(bias) → bias.copy_(ours.bias)
    - attention.W_o.bias.copy_(torch_attention.out_proj.bias)
    + torch_attention.out_proj.bias.copy_(attention.W_o.bias)
    Our parameters are copied into torch's module. It is torch's that should end up in ours.
settings_left_changed: + torch.set_grad_enabled(False)
    The copy is right, but something else has changed: gradients stay switched off for the whole
    program (set_grad_enabled(False) does not end by itself), a module is in another mode, or random
    numbers were drawn, as a new nn.Linear does to initialise itself.
packed_weights_lost: ours.weight.copy_(weight) → pass
    The weights of queries, keys and values are not copied; in_proj_weight holds them.
""")

BANK.change(
    "through_numpy",
    THROUGH_NUMPY,
    Edit("copy_(weight)", "copy_(torch.from_numpy(weight.numpy()))"),
)


def _unpacked(torch_attention):
    """Weight and bias (or None) for W_q, W_k, W_v and W_o, as detached views."""
    t = torch_attention
    weights = [*t.in_proj_weight.detach().chunk(3), t.out_proj.weight.detach()]
    if t.in_proj_bias is None:
        return [(weight, None) for weight in weights]
    biases = [*t.in_proj_bias.detach().chunk(3), t.out_proj.bias.detach()]
    return list(zip(weights, biases, strict=True))


def _layers(attention):
    return attention.W_q, attention.W_k, attention.W_v, attention.W_o


@BANK.right
def by_state_dict(attention, torch_attention):
    state = torch_attention.state_dict()
    found = {}
    for kind in ("weight", "bias"):
        if f"in_proj_{kind}" in state:
            parts = state[f"in_proj_{kind}"].chunk(3)
            found |= {f"W_{x}.{kind}": part for x, part in zip("qkv", parts, strict=True)}
            found[f"W_o.{kind}"] = state[f"out_proj.{kind}"]
    attention.load_state_dict(found)
    return attention


@BANK.right
def by_slices(attention, torch_attention):
    d = torch_attention.embed_dim
    with torch.no_grad():
        for i, layer in enumerate((attention.W_q, attention.W_k, attention.W_v)):
            layer.weight[:] = torch_attention.in_proj_weight[i * d : (i + 1) * d]
            if layer.bias is not None:
                layer.bias[:] = torch_attention.in_proj_bias[i * d : (i + 1) * d]
    attention.W_o.load_state_dict(torch_attention.out_proj.state_dict())
    return attention


@BANK.right
def by_new_parameters(attention, torch_attention):
    for layer, (weight, bias) in zip(_layers(attention), _unpacked(torch_attention), strict=True):
        layer.weight = nn.Parameter(weight.clone())
        if bias is not None:
            layer.bias = nn.Parameter(bias.clone())
    return attention


@BANK.right
def by_data(attention, torch_attention):
    q, k, v = torch_attention.in_proj_weight.data.split(torch_attention.embed_dim)
    attention.W_q.weight.data.copy_(q)
    attention.W_k.weight.data.copy_(k)
    attention.W_v.weight.data = v.clone()
    attention.W_o.weight.data = torch_attention.out_proj.weight.data.clone()
    if torch_attention.in_proj_bias is not None:
        for x, bias in zip("qkv", torch_attention.in_proj_bias.data.view(3, -1), strict=True):
            getattr(attention, f"W_{x}").bias.data = bias.clone()
        attention.W_o.bias.data.copy_(torch_attention.out_proj.bias.data)
    return attention
