"""Who finds an answer farther away than training has shown? Chapter 5's test, with five seeds.

Run: python -m benchmarks.distances [--steps 1500]. The models, the task and the training loop are
those of the chapter's page, read from its cells; the page trains one model, here each way to put
the distance into the scores is trained with each seed, ALiBi with three slopes, and the rotary
heads are tested with their positions divided, too. The shares of right answers go to
benchmarks/positional_encoding_distances.json, with how they were made; the page has a table of
them, and a test compares the two.
"""

import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.command_line import options
from benchmarks.page_cells import run_cells
from benchmarks.results import made_by, store
from solutions.positional_encoding import (
    PositionalEncoding,
    relative_position_scores,
    rotary_attention,
)

PAGE = Path(__file__).parents[1] / "book" / "05_positional_encoding.md"
RESULT = Path(__file__).with_name("positional_encoding_distances.json")
WAYS = {
    "relative": ("relative",),
    "rotary": ("rotary",),
    **{f"ALiBi, slope 1/{n}": ("ALiBi", 1 / n) for n in (8, 16, 64)},
}
SEEDS, DIVISORS = range(5), (4, 6)
DEFINED = ("class Finder", "def two_marks", "def squeezed")


def page_definitions() -> dict:
    """What the page's cells with the model, the task and the training loop define."""
    scope = {"np": np, "torch": torch, "F": F, "nn": nn, "PositionalEncoding": PositionalEncoding}
    scope |= {"rotary_attention": rotary_attention}
    scope |= {"relative_position_scores": relative_position_scores}
    return run_cells(PAGE, DEFINED, scope)


def main() -> None:
    steps = options(__doc__, steps=1500).steps
    torch.set_num_threads(1)
    page, began = page_definitions(), time.process_time()
    runs: dict[str, list[list[float]]] = {}
    for way, (kind, *slope) in WAYS.items():
        for seed in SEEDS:
            head = page["trained"](kind, seed, steps, *slope)
            answers = {way: head}
            if way == "rotary":
                divided = page["with_squeezed_positions"]
                answers |= {f"rotary ÷ {s}": divided(head, s) for s in DIVISORS}
            for name, answer in answers.items():
                torch.manual_seed(seed)
                shares = [round(share, 4) for share in page["tested"](answer)]
                runs.setdefault(name, []).append(shares)
                print(f"{name:16} seed {seed}:", *(f"{x:5.0%}" for x in shares), flush=True)
    made = made_by(
        f"python -m benchmarks.distances --steps {steps}",
        steps=steps,
        seeds=list(SEEDS),
        cpu_seconds=round(time.process_time() - began),
    )
    store(RESULT, made, runs, trials=page["trials"])


if __name__ == "__main__":
    main()
