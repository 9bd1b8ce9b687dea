"""Where do dates that nobody can have meant come from? Chapter 7's model, with a control.

Run: python -m benchmarks.readings [--jobs 2] [--seeds 0 1 2]. The model is trained as in the
chapter, on texts with one reading each; and once more with the texts of two readings kept in the
training, each with the day that it was written for. Then each reads the 132 texts 1/2/27 …
12/11/27, and the kinds of its answers are counted. The result is in
benchmarks/transformer_readings.json, which the chapter's page prints.
"""

import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import torch

from attention_by_hand.data import dates
from benchmarks.bugs import SIZES, train_on
from benchmarks.command_line import options
from benchmarks.results import made_by, store
from solutions.transformer import Transformer, greedy_decode

RESULT = Path(__file__).with_name("transformer_readings.json")
TRAININGS = ("kept", "left out")  # the texts with two readings
SEEDS = (0, 1, 2)
TWO_READINGS = [f"{a}/{b}/27" for a in range(1, 13) for b in range(1, 13) if a != b]


def training_examples(training: str) -> list[dates.Example]:
    """40,000 texts from the days of the training, with or without those of two readings."""
    if training == "left out":
        return dates.examples("train", 40_000)
    with patch.object(dates, "one_reading", lambda *_: True):
        return dates.examples("train", 40_000)


def kind(text: str, iso: str) -> str:
    """Which reading of a text like 1/2/27 the date is, or what is odd about it."""
    first, second, _ = map(int, text.split("/"))
    if iso == f"2027-{first:02}-{second:02}":
        return "month first"
    if iso == f"2027-{second:02}-{first:02}":
        return "day first"
    month, day = iso[5:7], iso[8:10]
    if month == day:
        return "one number twice"
    return "a day above 12" if day > "12" else "another date"


def train(job: tuple[str, int, int]) -> dict:
    """Train one model; its exact match, and what it makes of two readings."""
    training, seed, steps = job
    torch.set_num_threads(1)
    examples, test = training_examples(training), dates.examples("test", 1000, seed=2)
    sources = dates.Vocabulary([e.text for e in examples])
    targets = dates.Vocabulary([e.iso for e in examples])
    torch.manual_seed(seed)
    model = Transformer(len(sources), len(targets), **SIZES)
    batches, began = dates.batches(examples, sources, targets, 64, seed), time.process_time()
    for _ in train_on(batches, model, steps):
        pass

    def written(texts: list[str]) -> list[str]:
        ids = greedy_decode(model, sources.encode(texts), dates.BOS, dates.EOS, 12)
        return list(map(targets.decode, ids))

    kinds = Counter(map(kind, TWO_READINGS, written(TWO_READINGS)))
    test.sort(key=lambda e: len(e.text))
    right = sum(
        text == e.iso
        for start in range(0, len(test), 250)
        for e, text in zip(
            test[start : start + 250],
            written([e.text for e in test[start : start + 250]]),
            strict=True,
        )
    )
    slashes = sum(not dates.one_reading(e.text, _day(e)) for e in examples)
    return {
        "two readings": training,
        "seed": seed,
        "texts with two readings": slashes,
        "test": round(right / len(test), 4),
        "kinds": dict(sorted(kinds.items())),
        "cpu_seconds": round(time.process_time() - began),
    }


def _day(example: dates.Example) -> dates.datetime.date:
    return dates.datetime.date.fromisoformat(example.iso)


def main() -> None:
    args = options(__doc__, steps=2000, jobs=2, seeds=SEEDS)
    jobs = [(training, seed, args.steps) for seed in args.seeds for training in TRAININGS]
    runs = []
    with get_context("spawn").Pool(args.jobs) as pool:
        for run in pool.imap_unordered(train, jobs):
            runs.append(run)
            print(run, flush=True)
    runs.sort(key=lambda run: jobs.index((run["two readings"], run["seed"], args.steps)))
    script = f"python -m benchmarks.readings --seeds {' '.join(map(str, args.seeds))}"
    made = made_by(script, steps=args.steps, seeds=args.seeds, sizes=SIZES, texts=len(TWO_READINGS))
    store(RESULT, made, runs)


if __name__ == "__main__":
    main()
