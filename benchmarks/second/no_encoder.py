"""Chapter 7's dates with and without encoder layers once more: another Transformer, other dates.

Run: python -m benchmarks.second no_encoder [STEPS] [SEED ...]; minutes for each model. With 1,250
steps and seed 21 (the page has 2,000) 99.1% come out right with 2 + 2 layers, 89.9% with 0 + 2 and
91.3% with 0 + 4: the page's order, but more decoder had hardly helped by then.
"""

import random
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_by_hand.data import dates
from benchmarks.second.finished_translator import (
    Translator,
    batches,
    padded,
    to_read,
    to_write,
    written,
)

LAYERS = (2, 2), (0, 2), (0, 4)  # of encoder and decoder


def trained(layers: tuple[int, int], seed: int, steps: int) -> tuple[Translator, dict[str, int]]:
    examples = dates.examples("train", 40_000, seed=seed + 500)
    letters = {c: i + 2 for i, c in enumerate(sorted({c for e in examples for c in e.text}))}
    torch.manual_seed(seed)
    model, drawn = Translator(len(letters) + 2, *layers), batches(examples, random.Random(seed))
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    for step in range(1, steps + 1):
        batch = next(drawn)
        right = padded([to_write(one.iso) for one in batch])
        memory, seen = model.read(to_read([one.text for one in batch], letters))
        logits = model.logits(memory, seen, F.pad(right[:, :-1], (1, 0), value=1))
        loss = F.cross_entropy(
            logits.flatten(0, 1), right.flatten(), ignore_index=0, label_smoothing=0.1
        )
        rise = min(step**-0.5, step * 400**-1.5) / 8
        adam.param_groups[0]["lr"] = rise * (1 - step / (steps + 1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 250 == 0:
            print(f"  step {step}: loss {loss.item():.3f}")
    return model.eval(), letters


def exact_match(model: Translator, letters: dict[str, int], test: list[dates.Example]) -> float:
    sources: list[Tensor] = [to_read([one.text for one in test[i::10]], letters) for i in range(10)]
    right = 0
    for i, source in enumerate(sources):
        right += sum(a == b.iso for a, b in zip(written(model, source), test[i::10], strict=True))
    return right / len(test)


def main(steps: int = 1250, *seeds: int) -> None:
    for seed in seeds or (21,):
        test = sorted(dates.examples("test", 1000, seed=seed + 502), key=lambda e: len(e.text))
        for layers in LAYERS:
            began = time.process_time()
            model, letters = trained(layers, seed, steps)
            share, size = (
                exact_match(model, letters, test),
                sum(p.numel() for p in model.parameters()),
            )
            took = time.process_time() - began
            print(f"seed {seed}, {layers[0]} + {layers[1]} layers, {size:,} parameters, ", end="")
            print(f"{steps} steps: {share:.1%} ({took:.0f} s)")
