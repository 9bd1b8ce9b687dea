"""Chapter 10's fine-tuning, once more: torch's own layers, errors made in the text itself.

Run: python -m benchmarks.second typing_errors [ROWS …]
The pre-trained encoder is the page's. Rows begin anywhere in a topic, batches are epochs, the
optimiser is Adam at a constant rate, the best of three for other topics; the counts are of runs of
up to three and of up to five letters, smoothed by absolute discounting. One seed; intervals are
over the test's topics alone.
"""

import math
import string
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import torch
from torch import nn

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions

WIDTH, RATES = 46, (2e-4, 6e-4, 2e-3)


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
    """(row, place, topic): one letter of each row was replaced by another."""
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
            found.append((row[:i] + new + row[i + 1 :], int(i), int(t)))
    return found


def as_ids(page, found):
    rows = torch.stack([page["framed"](page["ids_of"](row)) for row, *_ in found])
    return rows, torch.tensor([place for _, place, _ in found])


def right(model, ids, places):
    with torch.no_grad():
        return (model(ids).argmax(-1) == places).float().numpy()


def learn(model, ids, places, epochs, rate, frozen=False):
    if frozen:
        for part in (model.tables, model.norm, model.layers):
            part.requires_grad_(False)
    adam = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(ids)).split(32):
            loss = nn.functional.cross_entropy(model(ids[batch]), places[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model


def chances_of(texts, most):
    """How likely a letter is after up to `most` - 1 others, as a function of these and the letter.

    Every letter seen gives 0.75 of its times to what is less seen, by a shorter past.
    """
    after = defaultdict(Counter)
    for text in texts:
        for i in range(len(text)):
            for n in range(min(most, i + 1)):
                after[text[i - n : i]][text[i]] += 1
    seen = {past: letters.total() for past, letters in after.items()}

    @cache
    def chance(past, letter):
        shorter = chance(past[1:], letter) if past else 1 / len(after[""])
        if past not in seen:
            return shorter
        kept = max(after[past][letter] - 0.75, 0)
        return (kept + 0.75 * len(after[past]) * shorter) / seen[past]

    return chance


def by_counting(texts, found, most):
    """Whether the place is found where some other letter is likeliest, against the one there."""
    chance, hits = chances_of(texts, most), []
    for row, place, _ in found:
        odds = []
        for i in range(WIDTH):
            ends = range(i, min(i + most, WIDTH))
            likely = {
                x: math.prod(chance(new[max(0, e - most + 1) : e], new[e]) for e in ends)
                for x in {*string.ascii_lowercase, row[i]}
                for new in [row[:i] + x + row[i + 1 :]]
            }
            odds.append(sum(likely.values()) / likely[row[i]])
        hits.append(np.argmax(odds) == place)
    return np.array(hits, dtype=float)


def told(name, hits):
    print(f"   {name:24}{hits.mean():.1%}")
    return hits


def lead(name, more, less, topics):
    """The difference in points; topics drawn anew, 95% of the cases."""
    of_topics = [(100 * (more - less))[topics == t] for t in np.unique(topics)]
    sums, rows = (np.array([f(x) for x in of_topics]) for f in (np.sum, len))
    drawn = np.random.default_rng(0).integers(len(rows), size=(10_000, len(rows)))
    low, high = np.percentile(sums[drawn].sum(1) / rows[drawn].sum(1), (2.5, 97.5))
    print(f"   tuned − {name:16}{100 * (more - less).mean():+.1f}   {low:+.1f} to {high:+.1f}")


def main(*sizes: int) -> None:
    page, draw = page_definitions(), np.random.default_rng(77)
    pretrained = page["untrained"](0)
    load_or_train("encoder", pretrained, lambda model: {})
    torch.manual_seed(77)
    fresh = page["Bert"](len(page["letters"]), 64, 4, 2)
    texts = {
        part: [page["plain"](text) for text in page["manual"].documents(part).values()]
        for part in ("train", "valid", "test")
    }
    new = misprints(texts["test"], 1000, draw)
    others = as_ids(page, misprints(texts["valid"], 500, draw))
    topics = np.array([topic for *_, topic in new])
    print("without labels")
    counts = {
        name: told(name, by_counting(texts["train"], new, most))
        for name, most in (("runs of 3", 3), ("runs of 5", 5))
    }
    asked = as_ids(page, new)

    def model_of(start):
        return Encoder(len(page["letters"]), start.state_dict())

    untuned = told("untuned", right(model_of(pretrained), *asked))
    for size in sizes or (80, 320, 1280):
        labelled = as_ids(page, misprints(texts["train"], size, draw))
        epochs, found = math.ceil(4800 / size), {}
        print(f"{size} labelled rows")
        for name, start, frozen in (
            ("tuned", pretrained, False),
            ("frozen", pretrained, True),
            ("from scratch", fresh, False),
        ):
            tried = []
            for rate in RATES:
                torch.manual_seed(77)
                model = learn(model_of(start), *labelled, epochs, rate, frozen)
                tried.append((right(model, *others).mean(), rate, model))
            _, rate, model = max(tried, key=lambda each: each[0])
            found[name] = told(f"{name}, {rate}", right(model, *asked))
        for name, hits in {"untuned": untuned, **counts, **found}.items():
            if name != "tuned":
                lead(name, found["tuned"], hits, topics)
    learn(model, *labelled, 9 * epochs, rate)
    told("scratch, ten times", right(model, *asked))
    told("   of its own rows", right(model, *labelled))
