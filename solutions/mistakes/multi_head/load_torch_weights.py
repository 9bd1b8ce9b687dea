"""Known answers to `load_torch_weights`: mistakes, then right answers."""

import torch
from torch import nn

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("load_torch_weights", right, globals())
BANK.read()


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
