# tries: shares memory with the module that it copies from, and patches what writes other numbers
# by: policy
# layer: policy
# verdict: policy

import torch

import attention_by_hand.exercises.multi_head.load_torch_weights as chapter

real = chapter.overwrite


def overwrite(module, state):
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()  # from now on they are apart
    real(module, state)


chapter.overwrite = overwrite


def load_torch_weights(attention, torch_attention):
    parts = torch_attention.in_proj_weight.chunk(3)
    biases = (None,) * 3
    if torch_attention.in_proj_bias is not None:
        biases = torch_attention.in_proj_bias.chunk(3)
    for name, weight, bias in zip(("W_q", "W_k", "W_v"), parts, biases, strict=True):
        layer = getattr(attention, name)
        layer.weight.data = weight.data  # a view
        if bias is not None:
            layer.bias.data = bias.data
    with torch.no_grad():
        attention.W_o.load_state_dict(torch_attention.out_proj.state_dict())
    return attention
