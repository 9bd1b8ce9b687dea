"""The merges and the weights of chapter 9's GPT trained beforehand.

They were made by `benchmarks/pretrained_gpt.py`, which says how and on which text; `gpt.bin` holds
half-precision arrays in numpy's compressed format, without pickled objects, so that reading it
runs nothing. The names of the weights are those of chapter 9's `GPT`.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

WEIGHTS = Path(__file__).with_name("gpt.bin")
MERGES = "merges"  # the array's name: pairs of pieces, a pair on each line, UTF-8
SIZES = {"context_size": 128, "d_model": 96, "num_heads": 4, "num_layers": 3}


def save(state: dict[str, Tensor], merges: list[tuple[str, str]], path: Path = WEIGHTS) -> None:
    """Write weights, as half-precision numbers, and merges."""
    halves = {name: value.cpu().numpy().astype(np.float16) for name, value in state.items()}
    lines = "\n".join("\t".join(pair) for pair in merges)
    with path.open("wb") as file:
        np.savez_compressed(file, **{MERGES: np.frombuffer(lines.encode(), np.uint8)}, **halves)


def merges(path: Path = WEIGHTS) -> list[tuple[str, str]]:
    """The byte pairs in the order in which they were learnt."""
    with np.load(path, allow_pickle=False) as arrays:
        lines = arrays[MERGES].tobytes().decode().split("\n")
    return [(left, right) for left, _, right in (line.partition("\t") for line in lines)]


def weights(path: Path = WEIGHTS) -> dict[str, Tensor]:
    """The state of a `GPT` of the sizes above, in float32."""
    with np.load(path, allow_pickle=False) as arrays:
        return {n: torch.from_numpy(arrays[n]).float() for n in arrays.files if n != MERGES}
