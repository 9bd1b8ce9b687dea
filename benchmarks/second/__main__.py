"""Runs a second computation on one thread: `python -m benchmarks.second NAME [ARGUMENT ...]`.

NAME is a module of this folder, whose `main` gets the arguments, numbers as such.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module


def read(word: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
    import torch

    torch.set_num_threads(1)
    sys.stdout.reconfigure(line_buffering=True)
    name, *words = sys.argv[1:]
    import_module(f"benchmarks.second.{name}").main(*map(read, words))
