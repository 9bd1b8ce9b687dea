# tries: calls a private helper of the blocks, which makes the table
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: blocks._positions is a right answer

import torch

from attention_by_hand import blocks


def sinusoidal_encoding(max_len, d_model, base=10000.0):
    return blocks._positions(torch.empty(1, max_len), torch.empty(1, d_model))
