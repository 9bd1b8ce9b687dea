"""Chapter 10's fine-tuning on pairs, once more: torch's own layers, pairs cut from the text itself.

Run: OMP_NUM_THREADS=1 python -m benchmarks.second.follows [WEIGHTS [PAIRS]]
The pre-trained encoder is the page's (WEIGHTS: a file of `benchmarks.fine_tuning --weights`).
Pairs begin anywhere in a topic, batches are epochs, the optimiser is Adam at a constant rate; the
counts are of single letters before the seam, and of two on each side.
"""

import math
import sys
from collections import Counter

import numpy as np
import torch
from torch import nn

from benchmarks.bert import page_definitions


class Encoder(nn.Module):
    """BERT by torch's layers, and one logit on top of [CLS]."""

    def __init__(self, vocab: int, state: dict):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, 64) for rows in (vocab, 48, 2))
        self.norm = nn.LayerNorm(64, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 4, 256, 0.0, "gelu", 1e-12, batch_first=True)
            for _ in range(2)
        )
        self.output = nn.Linear(64, 1)
        for table, name in zip(self.tables, ("tokens", "positions", "segments"), strict=True):
            table.weight.data.copy_(state[f"embeddings.{name}.weight"])
        for end in ("weight", "bias"):
            getattr(self.norm, end).data.copy_(state[f"embeddings.norm.{end}"])
        for i, layer in enumerate(self.layers):
            for end in ("weight", "bias"):
                each = [state[f"layers.{i}.attention.W_{x}.{end}"] for x in "qkvo"]
                getattr(layer.self_attn, f"in_proj_{end}").data.copy_(torch.cat(each[:3]))
                getattr(layer.self_attn.out_proj, end).data.copy_(each[3])
                for part in ("linear1", "linear2", "norm1", "norm2"):
                    own = getattr(getattr(layer, part), end)
                    own.data.copy_(state[f"layers.{i}.{part}.{end}"])

    def forward(self, ids):
        place = torch.arange(ids.shape[1])
        segment = (place > 9).long()
        tokens, positions, segments = self.tables
        x = self.norm(tokens(ids) + positions(place) + segments(segment))
        for layer in self.layers:
            x = layer(x)
        return self.output(x[:, 0])[:, 0]


def pairs(texts, size, draw):
    """(A, B) as strings, and whether B follows A."""
    texts = [text for text in texts if len(text) > 16]
    room = np.array([len(text) - 15 for text in texts])
    found = []
    for _ in range(size):
        spots = []
        for t in draw.choice(len(texts), 2, p=room / room.sum()):
            i = draw.integers(room[t])
            spots.append(texts[t][i : i + 16])
        y = int(draw.integers(2))
        found.append((spots[0][:8], spots[1 - y][8:], y))
    return found


def as_ids(page, found):
    cls, sep = torch.tensor([page["CLS"]]), torch.tensor([page["SEP"]])
    rows = [torch.cat([cls, page["ids_of"](a), sep, page["ids_of"](b), sep]) for a, b, _ in found]
    return torch.stack(rows), torch.tensor([float(y) for *_, y in found])


def share(model, ids, y):
    with torch.no_grad():
        return ((model(ids) > 0) == (y > 0)).float().mean().item()


def learn(model, ids, y, epochs, rate):
    adam = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids[batch]), y[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model


def by_counting(texts, found, reach):
    """A ratio: seen together across the seam, against each by itself; the sign decides."""
    together, left, right = Counter(), Counter(), Counter()
    for text in texts:
        for i in range(reach, len(text) - reach + 1):
            a, b = text[i - reach : i], text[i : i + reach]
            together[a + b] += 1
            left[a] += 1
            right[b] += 1
    total, right_ones = sum(left.values()), 0
    for first, second, y in found:
        a, b = first[-reach:], second[:reach]
        by_chance = left[a] * right[b] / total
        right_ones += (math.log((together[a + b] + 0.1) / (by_chance + 0.1)) > 0) == y
    return right_ones / len(found)


def main(weights=None, size="1280"):
    torch.set_num_threads(1)
    page, draw = page_definitions(), np.random.default_rng(77)
    state = torch.load(weights) if weights else page["trained"](0).state_dict()
    texts = {
        part: [page["plain"](text) for text in page["manual"].documents(part).values()]
        for part in ("train", "test")
    }
    labelled, new = pairs(texts["train"], int(size), draw), pairs(texts["test"], 1000, draw)
    for reach in (1, 2):
        print(f"counts, {reach}: {by_counting(texts['train'], new, reach):.1%}", flush=True)
    torch.manual_seed(77)
    fresh = page["Bert"](len(page["letters"]), 64, 4, 2).state_dict()
    for name, start in (("tuned", state), ("from scratch", fresh)):
        model = Encoder(len(page["letters"]), start)
        learn(model, *as_ids(page, labelled), epochs=math.ceil(9600 / int(size)), rate=5e-4)
        print(f"{size} pairs, {name}: {share(model, *as_ids(page, new)):.1%}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
