"""Chapter 10's fine-tuning, once more: torch's own layers, errors made in the text itself.

Run: OMP_NUM_THREADS=1 python -m benchmarks.second.typing_errors [WEIGHTS [ROWS]]
The pre-trained encoder is the page's (WEIGHTS: a file of `benchmarks.fine_tuning --weights`).
Rows begin anywhere in a topic, batches are epochs, the optimiser is Adam at a constant rate; the
counts are of three letters in a row, smoothed in another way.
"""

import math
import string
import sys
from collections import Counter

import numpy as np
import torch
from torch import nn

from benchmarks.bert import page_definitions

WIDTH = 46


class Encoder(nn.Module):
    """BERT by torch's layers: for each letter minus the logarithm of what it is given."""

    def __init__(self, vocab: int, state: dict):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, 64) for rows in (vocab, 48, 2))
        self.norm = nn.LayerNorm(64, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 4, 256, 0.0, "gelu", 1e-12, batch_first=True)
            for _ in range(2)
        )
        self.head = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64, eps=1e-12))
        self.bias = nn.Parameter(state["bias"].clone())
        for table, name in zip(self.tables, ("tokens", "positions", "segments"), strict=True):
            table.weight.data.copy_(state[f"embeddings.{name}.weight"])
        for end in ("weight", "bias"):
            getattr(self.norm, end).data.copy_(state[f"embeddings.norm.{end}"])
            getattr(self.head[0], end).data.copy_(state[f"transform.{end}"])
            getattr(self.head[2], end).data.copy_(state[f"norm.{end}"])
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
        tokens, positions, segments = self.tables
        x = self.norm(tokens(ids) + positions(place) + segments.weight[0])
        for layer in self.layers:
            x = layer(x)
        logits = self.head(x) @ tokens.weight.T + self.bias
        return nn.functional.cross_entropy(logits.mT, ids, reduction="none")[:, 1:-1]


def misprints(texts, size, draw):
    """(row, place): one letter of each row was replaced by another."""
    texts = [text for text in texts if len(text) > WIDTH]
    room = np.array([len(text) - WIDTH + 1 for text in texts])
    found = []
    while len(found) < size:
        t = draw.choice(len(texts), p=room / room.sum())
        start = draw.integers(room[t])
        row = texts[t][start : start + WIDTH]
        spots = [i for i, letter in enumerate(row) if letter in string.ascii_lowercase]
        if spots:
            i = draw.choice(spots)
            new = draw.choice([x for x in string.ascii_lowercase if x != row[i]])
            found.append((row[:i] + new + row[i + 1 :], int(i)))
    return found


def as_ids(page, found):
    rows = torch.stack([page["framed"](page["ids_of"](row)) for row, _ in found])
    return rows, torch.tensor([place for _, place in found])


def share(model, ids, places):
    with torch.no_grad():
        return (model(ids).argmax(-1) == places).float().mean().item()


def learn(model, ids, places, epochs, rate):
    adam = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            loss = nn.functional.cross_entropy(model(ids[batch]), places[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model


def by_counting(texts, found):
    """The place where some other letter is likeliest, against the one that stands."""
    three, two = Counter(), Counter()
    for text in texts:
        for i in range(2, len(text)):
            three[text[i - 2 : i + 1]] += 1
            two[text[i - 2 : i]] += 1

    def chance(five):
        """Of the last three of five letters, each after two."""
        return math.prod(
            (three[five[i : i + 3]] + 0.1) / (two[five[i : i + 2]] + 5) for i in range(3)
        )

    right = 0
    for row, place in found:
        padded, odds = f"  {row}  ", []
        for i in range(2, WIDTH + 2):
            a, b = padded[i - 2 : i], padded[i + 1 : i + 3]
            others = sum(chance(a + x + b) for x in string.ascii_lowercase)
            odds.append(others / chance(a + padded[i] + b))
        right += int(np.argmax(odds)) == place
    return right / len(found)


def main(weights=None, size="320"):
    torch.set_num_threads(1)
    page, draw = page_definitions(), np.random.default_rng(77)
    state = torch.load(weights) if weights else page["trained"](0).state_dict()
    texts = {
        part: [page["plain"](text) for text in page["manual"].documents(part).values()]
        for part in ("train", "test")
    }
    labelled, new = (
        misprints(texts[part], n, draw) for part, n in (("train", int(size)), ("test", 1000))
    )
    print(f"counts: {by_counting(texts['train'], new):.1%}", flush=True)
    torch.manual_seed(77)
    fresh = page["Bert"](len(page["letters"]), 64, 4, 2).state_dict()
    for name, start in (("tuned", state), ("from scratch", fresh)):
        model = Encoder(len(page["letters"]), start)
        print(f"{name}, before: {share(model, *as_ids(page, new)):.1%}", flush=True)
        learn(model, *as_ids(page, labelled), epochs=math.ceil(4800 / int(size)), rate=5e-4)
        print(f"{size} rows, {name}: {share(model, *as_ids(page, new)):.1%}", flush=True)
    learn(model, *as_ids(page, labelled), epochs=9 * math.ceil(4800 / int(size)), rate=5e-4)
    found = (f"{share(model, *as_ids(page, rows)):.1%}" for rows in (new, labelled))
    print("ten times as long: {}, of its own rows {}".format(*found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
