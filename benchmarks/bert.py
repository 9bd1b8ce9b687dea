"""Chapter 10's small BERT with several seeds: gaps, baselines, relevance, probes.

Run: OMP_NUM_THREADS=1 python -m benchmarks.bert [--seeds 0 1 2] [--hidden 0.3] [--rows 200]
[--result bert.json]. Letters, model, training, the ways to explain an answer and the probes are
those of the chapter's page, read from its cells. For each seed it measures the share of letters
filled in right (`test`, `train`), the rank correlation of each way with occlusion over so many rows
of the test (mean and half of a 95% interval; `signed` with the fall of the log-probability,
`agreement` with how far it moves, up or down, `with the bug` the latter for the page's wrong
rollout), and what a probe reads (topic of a row, length of a word). `longer` is one model that was
trained for four times as many steps. It goes to benchmarks/bert_models.json, which the page draws.
"""

import math
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.command_line import options
from benchmarks.page_cells import run_cells
from benchmarks.results import made_by, store

PAGE = Path(__file__).parents[1] / "book" / "10_bert.md"
# the cells that define what is used here, found by how one of their lines begins
NEEDED = (
    "import math",
    "from attention_by_hand.blocks import BertEmbeddings",
    "from solutions.bert import BertLayer",
    "from solutions.bert import mask_tokens",
    "from solutions.bert import attention_relevance",
    "SPECIAL",
    "class Bert",
    "def trained",
    "def by_counting",
    "def looked_into",
    "def rollout",
    "def agreement",
    "def wrong_rollout",
    "def probed",
    "def fine_tuned",
)
page_definitions = partial(run_cells, PAGE, NEEDED)


def interval(values: np.ndarray) -> list[float]:
    """The mean, and half of its 95% interval."""
    half = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    return [round(float(values.mean()), 4), round(float(half), 4)]


def measured(page: dict, seed: int, hidden: float, rows: int) -> dict:
    """One model, trained and looked at."""
    began = time.process_time()
    model = page["trained"](seed, probability=hidden)
    took = time.process_time() - began
    test = page["test"]
    sample = test[:: len(test) // rows][:rows]
    ways = page["agreement"](model, sample)
    mended, page["rollout"] = page["rollout"], page["wrong_rollout"]
    wrong = page["agreement"](model, sample)["rollout"]
    page["rollout"] = mended
    torch.manual_seed(100 + seed)
    fresh = page["Bert"](len(page["letters"]), 64, 4, 2).eval()
    return {
        "hidden": hidden,
        "seed": seed,
        "test": round(page["filled"](model, test)[0], 4),
        "train": round(page["filled"](model, page["train"][:1062])[0], 4),
        "never trained": round(page["with_output"](fresh), 4),
        "cpu_seconds": round(took),
        "agreement": {name: interval(moved) for name, (moved, _) in ways.items()},
        "signed": {name: interval(fall) for name, (_, fall) in ways.items()},
        "with the bug": interval(wrong[0]),
        "probe": [round(share, 4) for share in page["probed"](model.encode)],
        "probe, its table": [round(s, 4) for s in page["probed"](model.embeddings.tokens)],
        "probe, never trained": [round(share, 4) for share in page["probed"](fresh.encode)],
    }


def longer(page: dict, seed: int) -> dict:
    """One model with four times as many steps."""
    steps, test = 4 * page["STEPS"], page["test"]
    model = page["trained"](seed, steps)
    vectors, true = page["gaps_of"](model, test)
    with torch.no_grad():
        right = (model.fill(vectors).argmax(-1) == true).numpy()
    never = page["times_seen"](test, 2).reshape(len(test), -1) == 0
    never = np.concatenate([never[:, first::7].ravel() for first in range(7)])  # as in gaps_of
    return {
        "seed": seed,
        "steps": steps,
        "two never seen": round(float(right[never].mean()), 4),
    } | {part: round(page["filled"](model, page[part][:1062])[0], 4) for part in ("test", "train")}


def baselines(page: dict) -> dict:
    """The shares filled in right by counting."""
    found = page["by_counting"](page["test"]) | {
        f"table, {reach} on each side": hits.mean()
        for reach, hits in enumerate(page["by_tables"](page["test"], 4), start=1)
    }
    return {name: round(float(share), 4) for name, share in found.items()}


def main() -> None:
    args = options(__doc__, seeds=(0, 1, 2), hidden=(0.3,), rows=200, result="bert_models.json")
    torch.set_num_threads(1)
    page = page_definitions()
    made = made_by(
        " ".join(["benchmarks/bert.py", *sys.argv[1:]]),
        rows=args.rows,
        steps=page["STEPS"],
        baselines=baselines(page),
        letters={
            f"letters up to {reach} away" if reach else "letters themselves": [
                round(share, 4) for share in page["probed"](page["window"](reach))
            ]
            for reach in (0, 1, 2, 3)
        },
        mixed=[
            [round(share, 4) for share in page["probed"](page["window"](2, mixed=draw))]
            for draw in range(3)
        ],
    )
    runs = []
    for hidden in args.hidden:
        for seed in args.seeds:
            runs.append(measured(page, seed, hidden, args.rows))
            print(runs[-1], flush=True)
    path = Path(__file__).with_name(args.result)
    store(path, made, runs, longer=longer(page, args.seeds[0]))


if __name__ == "__main__":
    main()
