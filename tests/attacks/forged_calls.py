# tries: asks the model on and on after every text has ended, and sets its counter of calls back
# by: a model that is called again gives no logits, and other ones ever after
# layer: judged outside
# verdict: wrong
# most: 3.5

import torch


def greedy_decode(model, source, bos_id, eos_id, max_len):
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    ids = torch.full((len(source), 1), bos_id)
    done = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            try:
                best = model(source, ids)[:, -1].argmax(-1)
            except RuntimeError:
                continue
            best = best.masked_fill(done, model.pad_id)
            done = done | (best == eos_id)
            ids = torch.cat([ids, best[:, None]], 1)
    for part, training in modes:
        part.training = training
    ends = [[*row, eos_id].index(eos_id) + 1 for row in ids[:, 1:].tolist()]
    model.calls = max(ends)
    return ids[:, 1 : 1 + max(ends)]
