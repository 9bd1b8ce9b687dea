"""From how many layers on does post-norm fail? Chapter 6's task, at one rate, in stacks of 1 to 12.

Run: python -m benchmarks.depth [--jobs 2]. The stacks, the task and the training are those of
`warm_up.py`: post-norm at the full rate, with a warm-up and at a tenth of the rate, and pre-norm at
the full rate, each with five seeds. The mean losses of the last ten steps before step 150 and
before step 400 go to benchmarks/depth.json; a test compares the page's table with them.
"""

from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.command_line import options
from benchmarks.results import made_by, store
from benchmarks.warm_up import EVERY, RUNS, losses

RESULT = Path(__file__).with_name("depth.json")
SEEDS, LAYERS = (0, 1, 2, 3, 4), (1, 2, 3, 4, 6, 12)
STEPS = (150, 400)
KINDS = ("post-norm", "post-norm, warm-up", "post-norm, rate ÷ 10", "pre-norm")


def train(job: tuple[str, int, int]) -> tuple[str, int, int, list[float]]:
    """One training: the losses before each of `STEPS`."""
    name, layers, seed = job
    torch.set_num_threads(1)
    found = losses(seed=seed, steps=max(STEPS), layers=layers, **RUNS[name])
    return name, layers, seed, [found[step // EVERY - 1] for step in STEPS]


def main() -> None:
    args = options(__doc__, jobs=2)
    jobs = [(name, n, seed) for name in KINDS for n in LAYERS for seed in SEEDS]
    runs: dict[str, dict[str, list[list[float]]]] = {
        name: {str(n): [] for n in LAYERS} for name in KINDS
    }
    with get_context("spawn").Pool(args.jobs) as pool:
        for name, layers, seed, found in pool.imap(train, jobs):
            runs[name][str(layers)].append(found)
            print(f"{name:24} {layers:3} layers, seed {seed}: {found}", flush=True)
    store(RESULT, made_by("python -m benchmarks.depth", steps=STEPS, seeds=SEEDS), runs)


if __name__ == "__main__":
    main()
