# tries: keeps the judge busy with pairs that share one tensor of millions of numbers
# by: the gate: what came back is measured, as often as it is referred to, before it is walked
# layer: values
# verdict: wrong

import torch

IDS = torch.ones(4_000_000, dtype=torch.uint8)
calls = []


def beam_search(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    calls.append(1)
    return [(IDS, 0.0)] * (40 if len(calls) == 1 else 1)
