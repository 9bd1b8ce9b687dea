"""What do more heads buy? Chapter 3's letter guesser and its controls, trained longer as well.

Run: python benchmarks/heads.py [--steps 300 1500] [--only NAME …]. The models and the training loop
are those of the chapter's page, read from its cells; here they are trained with ten seeds for the
page's 300 steps, and with five seeds for five times as many; the latter also on 2000 windows alone,
to see them overfit. The shares of letters guessed right go to benchmarks/heads.json, with how they
were made; the page quotes them, and a test compares the two.
"""

import argparse
import json
import math
import platform
import re
from pathlib import Path
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import nn

from solutions.multi_head import MultiHeadAttention, merge_heads, split_heads

PAGE = Path(__file__).parents[1] / "book" / "03_multi_head.md"
RESULT = Path(__file__).with_name("heads.json")
SEEDS = {300: range(10), 1500: range(5)}  # by the number of steps
FEW = 2000  # windows, to be learnt by heart
DEFINED = ("alphabet", "class Guesser", "def trained", "class ValuesPerPlace", "class Scrambled")


def page_definitions() -> dict:
    """What the page's cells with the models and the training loop define."""
    scope = {"math": math, "re": re, "topics": topics, "torch": torch, "F": F, "nn": nn}
    scope |= {"Tensor": torch.Tensor, "MultiHeadAttention": MultiHeadAttention}
    scope |= {"split_heads": split_heads, "merge_heads": merge_heads}
    text = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(?::tags:[^\n]*\n)?(.*?)^```", text, re.M | re.S)
    for wanted in DEFINED:
        (cell,) = (cell for cell in cells if re.search(rf"^{wanted}\b", cell, re.M))
        exec(cell, scope)
    return scope


def models(page: dict) -> dict[str, tuple[int, type[nn.Module]]]:
    """The models to compare: the number of heads, and the attention that the guesser uses."""

    class Even(page["ValuesPerPlace"]):
        """A value matrix for each place and no attention: every weight is 1/5."""

        def __init__(self, d_model: int, num_heads: int):
            super().__init__(d_model, num_heads)
            for parameter in self.W_q.parameters():
                nn.init.zeros_(parameter).requires_grad_(False)

    class ThenFeedForward(MultiHeadAttention):
        """What comes out of the heads goes through a feed-forward layer, x + F(x), as in chapter 6:
        it can let one letter's vote depend on another's without any attention."""

        def __init__(self, d_model: int, num_heads: int):
            super().__init__(d_model, num_heads)
            self.linear1, self.linear2 = nn.Linear(d_model, 128), nn.Linear(128, d_model)

        def forward(self, *args) -> tuple[torch.Tensor, torch.Tensor]:
            gathered, weights = super().forward(*args)
            return gathered + self.linear2(F.relu(self.linear1(gathered))), weights

    found = {heads(H): (H, MultiHeadAttention) for H in (1, 2, 4, 8, 16, 32)}
    found["1 head, W_v for each place"] = (1, page["ValuesPerPlace"])
    found["1 head, W_v for each place, even weights"] = (1, Even)
    found |= {f"{heads(H)}, blind": (H, page["Blind"]) for H in (1, 32)}
    found |= {f"{heads(H)}, then feed-forward": (H, ThenFeedForward) for H in (1, 32)}
    return found | {f"{heads(H)}, scrambled": (H, page["Scrambled"]) for H in (4, 8)}


def heads(number: int) -> str:
    return f"{number} head{'s' if number > 1 else ''}"


def overfitted(page: dict, steps: int) -> dict[str, dict[str, list[float]]]:
    """Trained on a few windows only: the share guessed right of those, and of those kept back."""
    everything, kept = page["learnt_from"], page["kept_back"]
    few = everything[:: len(everything) // FEW][:FEW]
    found = {}
    for H in (1, 8, 32):
        shares = found.setdefault(heads(H), {"learnt": [], "kept back": []})
        for seed in SEEDS[steps]:
            page["learnt_from"] = few
            guesser = page["trained"](H, seed, steps)
            for name, windows in (("learnt", few), ("kept back", kept)):
                page["kept_back"] = windows
                shares[name].append(round(page["accuracy"](guesser), 4))
        print(f"{steps:5} steps on {FEW} windows, {heads(H):9}", shares, flush=True)
    page["learnt_from"], page["kept_back"] = everything, kept
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, nargs="+", choices=SEEDS, default=[*SEEDS])
    parser.add_argument("--only", nargs="+", help="train these models again and keep the rest")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    page = page_definitions()
    compared = models(page)
    runs: dict[str, dict[str, list[float]]] = {name: {} for name in compared}
    if wanted.only:
        runs |= json.loads(RESULT.read_text(encoding="utf-8"))["runs"]
    for steps in wanted.steps:
        for name in wanted.only or compared:
            num_heads, kind = compared[name]
            guessers = (page["trained"](num_heads, seed, steps, kind=kind) for seed in SEEDS[steps])
            found = [round(page["accuracy"](guesser), 4) for guesser in guessers]
            runs[name][str(steps)] = found
            print(f"{steps:5} steps, {name:42}", *(f"{share:.1%}" for share in found), flush=True)
    made = {"script": "benchmarks/heads.py", "torch": torch.__version__.split("+")[0]}
    made |= {"python": platform.python_version(), "machine": platform.machine()}
    made |= {"seeds": {str(steps): list(seeds) for steps, seeds in SEEDS.items()}}
    few = overfitted(page, max(wanted.steps))
    found = {"made": made, "runs": runs, "on few windows": few}
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
