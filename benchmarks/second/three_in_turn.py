"""Chapter 8's three models on dates and digits once more: other code for each, they take turns.

Run: python -m benchmarks.second three_in_turn [SECONDS [SEED [TASK]]]; the task is *dates* or
*digits*, up to 20 of them to copy in training. Whoever has used least processor time goes on. A row
counts as right if each token, read after the right ones before it, is the likeliest, which is what
writing it greedily means.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data import dates
from benchmarks.second.finished_translator import Translator
from benchmarks.second.one_vector_dates import GROUPS, LETTERS, Pair, padded

RATES = {"one vector": 0.006, "looking back": 0.006, "Transformer": 0.003}
DIGITS = (4, 8, 10, 12, 14, 16, 18, 20, 24, 32)
Rows = list[tuple[list[int], list[int]]]


class Transformer(Translator):
    def forward(self, source: Tensor, shifted: Tensor) -> Tensor:
        return self.logits(*self.read(source), shifted)


def rows(task: str, seed: int) -> tuple[Rows, Rows, int]:
    """To learn from, to test on, and how many characters there are."""
    if task == "digits":
        draw, long = random.Random(seed), [n for n in DIGITS for _ in range(200)]
        long = [*draw.choices(range(1, 21), k=40_000), *long]
        texts = [draw.choices(range(3, 13), k=n) for n in long]
        copied = [(text, text) for text in texts]
        return copied[:40_000], copied[40_000:], 13
    told = [dates.examples("train", 40_000, 500 + seed), dates.examples("test", 2000, 600)]
    of = {c: i + 3 for i, c in enumerate(sorted({c for e in told[0] for c in e.text}))}
    both = ([([of[c] for c in e.text], [3 + LETTERS.index(c) for c in e.iso]) for e in examples]
            for examples in told)  # fmt: skip
    return *both, len(of) + 3


def batches(learnt: Rows, draw: random.Random) -> Iterator[Rows]:
    while True:
        some = sorted(draw.sample(learnt, len(learnt)), key=lambda pair: len(pair[0]))
        order = [some[i : i + 64] for i in range(0, len(some), 64)]
        draw.shuffle(order)
        yield from order


def both(batch: Rows) -> tuple[Tensor, Tensor]:
    return padded([s for s, _ in batch]), padded([[1, *t, 2] for _, t in batch])


def main(seconds: float = 40, seed: int = 71, task: str = "dates") -> None:
    learnt, tested, tokens = rows(task, seed)
    torch.manual_seed(seed)
    models: dict[str, nn.Module] = {
        "one vector": Pair(tokens, False, 168),
        "looking back": Pair(tokens, True, 128),
        "Transformer": Transformer(tokens),
    }
    adams = {name: torch.optim.Adam(model.parameters()) for name, model in models.items()}
    drawn = {name: batches(learnt, random.Random(seed)) for name in models}
    spent, steps = dict.fromkeys(models, 0.0), Counter[str]()
    while min(spent.values()) < seconds:
        name = min(spent, key=lambda name: spent[name])
        began = time.process_time()
        source, target = both(next(drawn[name]))
        logits = models[name](source, target[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, target[:, 1:].flatten(), ignore_index=0)
        left = 1.02 - spent[name] / seconds
        for group in adams[name].param_groups:
            group["lr"] = RATES[name] * min(1, (steps[name] + 1) / 100, left)
        adams[name].zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(models[name].parameters(), 1.0)
        adams[name].step()
        steps[name] += 1
        spent[name] += time.process_time() - began
    tested.sort(key=lambda pair: len(pair[0]))
    for name, model in models.items():
        found, asked = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for i in range(0, len(tested), 100):
            source, target = both(tested[i : i + 100])
            with torch.no_grad():
                likeliest = model(source, target[:, :-1]).argmax(-1)
            right = ((likeliest == target[:, 1:]) | (target[:, 1:] == 0)).all(1).tolist()
            for length, is_right in zip((source != 0).sum(1).tolist(), right, strict=True):
                groups = GROUPS if task == "dates" else [(n, n) for n in DIGITS]
                group = next(g for g in groups if g[0] <= length <= g[1])
                found[group] += is_right
                asked[group] += 1
        by = ", ".join(f"{a}–{b}: {found[a, b] / asked[a, b]:.0%}" for a, b in sorted(asked))
        size = sum(p.numel() for p in model.parameters())
        whole = found.total() / asked.total()
        print(f"{task}, seed {seed}, {name}, {size:,} parameters, {steps[name]} steps: {whole:.1%}")
        print(f"  {by}")
