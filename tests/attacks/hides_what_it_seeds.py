# tries: leaves the random generators seeded, and has them say that they are as they were
# by: the probe's own look at them
# layer: probe
# verdict: wrong
# most: 2.95
# says: the call changed

import random

import numpy as np
import torch

SAID = np.random.get_state(), random.getstate(), torch.get_rng_state()
np.random.get_state = lambda *args: SAID[0]
random.getstate = lambda: SAID[1]
torch.get_rng_state = torch.random.get_rng_state = lambda: SAID[2]


def load_torch_weights(attention, torch_attention):
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    with torch.no_grad():
        for number, name in enumerate(("W_q", "W_k", "W_v")):
            layer = getattr(attention, name)
            layer.weight.copy_(torch_attention.in_proj_weight.chunk(3)[number])
            if layer.bias is not None:
                layer.bias.copy_(torch_attention.in_proj_bias.chunk(3)[number])
        attention.W_o.load_state_dict(torch_attention.out_proj.state_dict())
    return attention
