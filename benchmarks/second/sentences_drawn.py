"""Chapter 9's sentences of the GPT trained beforehand and of counts, drawn once more.

Run: python -m benchmarks.second sentences_drawn FOLDER [COUNT] [SEED]; minutes. Writes a list of
sentences, shuffled, and whose they are. Each text begins behind an end token, is drawn with a top-p
of 0.9, and its first sentence of five words or more is taken. The counts see five tokens back; they
have one discount, 0.75, not three. Printed: how many sentences the training text has, and the share
of the words written, at a temperature, that it does not have.
Seed 97, read blind by a large language model (not the page's reading): grammatical are 56 of 60 by
people, 49 and 28 of 60 by the model at 0.5 and 0.8. The counts then began with the end token as if
something stood before it, and a quarter of their sentences in the middle; of the 45 others each, 32
and 21 are grammatical. At 0.5 the training text has 17 of the counts' 60, and none of the model's.
Seed 101, read blind by another such reader, who had seen none of these: 57 of 60 by people; at 0.5
and 0.8, 41 and 27 by the model, 49 and 39 by the counts, of which 21 and 9 stand in the training
text (20 and 9 of these grammatical, and 29 and 30 of the 39 and 51 others).
"""

import json
import random
import re
from pathlib import Path

import numpy as np
import torch

from attention_by_hand.models import gpt
from benchmarks import english
from benchmarks.second.circles import read
from benchmarks.second.weights_in_numpy import Cutter

BACK, DISCOUNT, LENGTH = 5, 0.75, 90


class Counts:
    """Nothing is counted before it is needed: a run is looked for in the text, token by token."""

    def __init__(self, text, vocabulary):
        self.text, self.size = text, vocabulary
        order = np.argsort(text, kind="stable")
        self.places = np.split(order, np.cumsum(np.bincount(text, minlength=vocabulary))[:-1])
        pairs = np.unique(text[:-1] * vocabulary + text[1:])
        self.kinds = np.bincount(pairs % vocabulary, minlength=vocabulary)

    def next_up(self, ids):
        """The chance of each token, by Kneser and Ney's rule with one discount.

        Nothing stands before a text: a run that begins with the end token counts each time.
        """
        seen, chance = self.kinds, 1 / self.size
        last = self.places[ids[-1]] if len(ids) else np.array([], int)
        for k in range(min(BACK, len(ids)) + 1):
            if k:
                last = last[last >= k - 1]
                last = last[(last < len(self.text) - 1) & (self.text[last - k + 1] == ids[-k])]
                if not len(last):
                    break
                pairs = self.text[last + 1]
                if k < BACK and ids[-k]:
                    wide = last[last >= k]
                    pairs = np.unique(self.text[wide - k] * self.size + self.text[wide + 1])
                seen = np.bincount(pairs % self.size, minlength=self.size)
            if seen.sum():
                left = DISCOUNT * (seen > 0).sum() * chance
                chance = (np.maximum(seen - DISCOUNT, 0) + left) / seen.sum()
        return chance


def drawn(chance, temperature, top_p, luck):
    chance = chance ** (1 / temperature)
    chance /= chance.sum()
    order = np.argsort(-chance, kind="stable")
    before = np.cumsum(chance[order]) - chance[order]
    kept = order[before < top_p]
    return int(luck.choice(kept, p=chance[kept] / chance[kept].sum()))


def first_sentence(text):
    """The first of five words or more, up to a full stop before white space or the end."""
    for sentence in re.split(r"(?<=\.)\s+", " ".join(text.split())):
        if len(sentence.split()) >= 5 and sentence.endswith("."):
            return sentence
    return None


@torch.no_grad()
def main(folder: str = "drawn", count: int = 60, seed: int = 97) -> None:
    parts = english.split(english.documents())
    cutter = Cutter(gpt.WEIGHTS)
    ids = np.array([i for text in parts["train"].values() for i in cutter(text.encode())])
    counts, weights = Counts(ids, len(cutter.tokens)), gpt.weights()
    learnt = " ".join(" ".join(parts["train"].values()).split())
    words = set(re.findall("[a-z]+", learnt.lower()))
    luck, rows = np.random.default_rng(seed), []
    ways = {
        "GPT": lambda ids: read(weights, ids)[0].double().softmax(0).numpy(),
        "counts": counts.next_up,
    }
    for whose, temperature, top_p in (
        *((whose, t, 0.9) for t in (0.5, 0.8) for whose in ways),
        ("GPT", 1.0, 0.9),
    ):
        found, unknown, of = [], 0, 0
        while len(found) < count:
            ids = [0]
            while len(ids) <= LENGTH and (len(ids) == 1 or ids[-1]):
                ids.append(drawn(ways[whose](ids), temperature, top_p, luck))
            text = "".join(cutter.tokens[i] for i in ids).encode("latin-1").decode(errors="replace")
            written = re.findall("[a-z]+", text.lower())[:-1]
            unknown, of = unknown + sum(word not in words for word in written), of + len(written)
            sentence = first_sentence(text)
            if sentence:
                found.append(sentence)
        copied = sum(sentence in learnt for sentence in found)
        print(
            f"{whose}, {temperature}, top-p {top_p}: {unknown / of:.1%} of {of} words are new;",
            end=" ",
        )
        print(f"{copied} of {count} sentences stand in the training text")
        if temperature < 1:
            rows += [(f"{whose}, {temperature}", sentence) for sentence in found]
    people = [*parts["test"].values()]
    random.Random(seed).shuffle(people)
    sentences = [s for s in map(first_sentence, people) if s][:count]
    rows += [("people", sentence) for sentence in sentences]
    random.Random(seed).shuffle(rows)
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / "key.json").write_text(json.dumps([whose for whose, _ in rows]))
    lines = [f"{i} {sentence}" for i, (_, sentence) in enumerate(rows)]
    (Path(folder) / "list.txt").write_text("\n".join(lines) + "\n")
