# what: contextlib, generators, heapq, dataclasses with order, progress with \r, tqdm if it is there
# answers: greedy_decode, beam_search
import heapq
import sys
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import torch

try:
    from tqdm.auto import tqdm
except ImportError:
    warnings.warn("no tqdm, plain progress")

    def tqdm(it, total=None, desc="", **kw):
        items = list(it)
        for i, x in enumerate(items, 1):
            sys.stdout.write(
                f"\r{desc}: {100 * i // max(1, len(items)):3d}%|{'█' * (10 * i // len(items)):<10}| {i}/{len(items)}"
            )
            sys.stdout.flush()
            yield x
        print()


@contextmanager
def evaluating(model):
    """Temporarily switch to evaluation mode."""
    modes = {m: m.training for m in model.modules()}
    try:
        model.eval()
        yield model
    finally:
        for m, t in modes.items():
            m.training = t


# %%
def generate(model, source, ids, eos_id, pad_id):
    alive = torch.ones(len(source), dtype=torch.bool, device=source.device)
    while alive.any():
        token = model(source, ids)[:, -1].max(dim=-1).indices
        token[~alive] = pad_id
        alive = alive & (token != eos_id)
        ids = torch.hstack([ids, token[:, None]])
        yield token


def greedy_decode(model, source, bos_id, eos_id, max_len):
    bos = torch.full((source.shape[0], 1), bos_id, dtype=torch.long, device=source.device)
    with evaluating(model), torch.no_grad():
        tokens = [
            t
            for t, _ in zip(
                generate(model, source, bos, eos_id, model.pad_id),
                tqdm(range(max_len), desc="greedy"),
            )
        ]
    return torch.stack(tokens, dim=1)


# %%
@dataclass(order=True)
class Hypothesis:
    log_p: float
    tokens: tuple = field(compare=False)
    finished: bool = field(default=False, compare=False)

    def score(self, alpha):
        return self.log_p / ((5 + len(self.tokens)) / 6) ** alpha


def beam_search(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    beams, finished = [Hypothesis(0.0, ())], []
    with evaluating(model), torch.no_grad() if torch.is_grad_enabled() else nullcontext():
        for step in range(max_len):
            if not beams:
                break
            ids = torch.tensor([(bos_id, *h.tokens) for h in beams], device=source.device)
            log_p = model(source.repeat(len(beams), 1), ids)[:, -1].log_softmax(-1)
            candidates = []
            for h, row in zip(beams, log_p):
                for token, lp in enumerate(row.tolist()):
                    candidates.append(Hypothesis(h.log_p + lp, (*h.tokens, token), token == eos_id))
            best = heapq.nlargest(beam_size, candidates)
            finished += [h for h in best if h.finished]
            beams = [h for h in best if not h.finished]
    everything = finished + beams
    everything.sort(key=lambda h: -h.score(length_penalty))
    return [(torch.tensor(h.tokens), h.score(length_penalty)) for h in everything[:beam_size]]
