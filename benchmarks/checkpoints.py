"""Trains and measures what chapters load, with their own cells, and keeps what comes out.

Run: python -m benchmarks.checkpoints [CHAPTER …]. All take some twenty minutes on one core. That
the kept files are what the pages' cells give, tests/book/test_checkpoints.py tries: the first
steps again, the model beside the end of its curves, and what was measured, once more.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib
from torch import nn

from attention_by_hand.models import checkpoints
from attention_by_hand.models.checkpoints import (
    Curves,
    load_or_measure,
    load_or_train,
    save,
    save_measurement,
)
from autograder.publishing.chapter_runs import CELL

BOOK = Path(__file__).parents[1] / "book"
TRAINED = ("07_transformer", "09_language_model", "10_bert", "11_vision_transformer")
MEASURED = (
    "03_multi_head",
    "05_positional_encoding",
    "06_residual_layernorm",
    "07_transformer",
    "08_recurrence_convolution",
    "09_language_model",
    "10_bert",
)


def run_page(chapter: str, call: str, instead: Callable) -> dict:
    """What a page's cells define, up to the last that calls `load_or_…`, which is `instead`."""
    cells = CELL.findall((BOOK / f"{chapter}.md").read_text(encoding="utf-8"))
    last = max(i for i, cell in enumerate(cells) if f"{call}(" in cell)
    scope: dict = {}
    with patch.object(checkpoints, call, instead):
        for cell in cells[: last + 1]:
            if not cell.startswith("check("):
                exec(compile(cell, chapter, "exec"), scope)
    return scope


def train_and_save(
    name: str, model: nn.Module, train: Callable[[nn.Module], Curves]
) -> tuple[Curves, float]:
    """What `load_or_train` does with `again`; the file is written, too."""
    curves, seconds = load_or_train(name, model, train, again=True)
    save(name, model, curves, seconds)
    return curves, seconds


def measure_and_save(name: str, measure: Callable[[], Any]) -> Any:
    """What `load_or_measure` does with `again`; the file is written, too."""
    began = time.process_time()
    found = load_or_measure(name, measure, again=True)
    save_measurement(name, found, time.process_time() - began)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    every = sorted({*TRAINED, *MEASURED})
    parser.add_argument("chapters", nargs="*", default=every, metavar="CHAPTER")
    matplotlib.use("Agg")
    for chapter in parser.parse_args().chapters:
        if chapter in TRAINED:
            run_page(chapter, "load_or_train", train_and_save)
        if chapter in MEASURED:
            run_page(chapter, "load_or_measure", measure_and_save)


if __name__ == "__main__":
    main()
