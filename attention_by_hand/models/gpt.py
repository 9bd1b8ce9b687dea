"""The merges and the weights of chapter 9's GPT trained beforehand.

They were made by `benchmarks/pretrained_gpt.py`, which says how and on which text. The names of the
weights are those of chapter 9's `GPT`.
"""

from pathlib import Path

from torch import Tensor

from attention_by_hand.models.safetensors import packed, unpacked

WEIGHTS = Path(__file__).with_name("gpt.bin")
SIZES = {"context_size": 128, "d_model": 96, "num_heads": 4, "num_layers": 3}


def save(state: dict[str, Tensor], merges: list[tuple[str, str]], path: Path = WEIGHTS) -> None:
    """Write weights, as half-precision numbers, and merges, a pair on each line."""
    path.write_bytes(packed(state, merges="\n".join("\t".join(pair) for pair in merges)))


def merges(path: Path = WEIGHTS) -> list[tuple[str, str]]:
    """The byte pairs in the order in which they were learnt."""
    _, notes = unpacked(path.read_bytes())
    lines = notes["merges"].split("\n")
    return [(left, right) for left, _, right in (line.partition("\t") for line in lines)]


def weights(path: Path = WEIGHTS) -> dict[str, Tensor]:
    """The state of a `GPT` of the sizes above, in float32."""
    return unpacked(path.read_bytes())[0]
