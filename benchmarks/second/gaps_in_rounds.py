"""Chapter 10's gaps side by side, filled at once or in rounds, once more, with torch's layers.

Run: python -m benchmarks.second gaps_in_rounds [STEPS] [SEED ...]; two minutes each. The model is
that of `pruned.py`; rows have no [CLS] and [SEP], and every other one
is taken. After 2,000 steps (the page has 3,000) with seed 51, gaps at three places: all three right
in 3 to 4% at once, in 12% in rounds; none in 35 to 40% and 44 to 48%; letters a point more.
"""

import torch
from torch import Tensor

from benchmarks.bert import page_definitions
from benchmarks.second.pruned import ROW, Filler, trained


@torch.no_grad()
def in_rounds(model: Filler, row: Tensor, places: list[int], blank: int, rounds: int) -> list[int]:
    """What one row's gaps become: each round fills its share of them, the surest first."""
    row, left = row.clone(), list(places)
    row[places] = blank
    for at in range(rounds):
        chances = model(row[None])[0][0].softmax(-1)
        surest = sorted(left, key=lambda place: -chances[place].max().item())
        for place in surest[: len(left) // (rounds - at)]:
            row[place] = chances[place].argmax()
            left.remove(place)
    return row[places].tolist()


def main(steps: int = 2000, *seeds: int) -> None:
    page = page_definitions()
    letters = page["letters"]
    blank = letters.index("[MASK]")
    test, learnt = (page[part][:, 1:-1] for part in ("test", "train"))
    assert test.shape[1] == ROW
    test = test[::2]
    for seed in seeds or (51,):
        model = trained(learnt, len(letters), blank, learnt.unique(), seed, steps)
        for first in (10, 20, 30):
            places = [first, first + 1, first + 2]
            for rounds in (1, 3):
                hits = [
                    sum(
                        a == b
                        for a, b in zip(
                            in_rounds(model, row, places, blank, rounds),
                            row[places].tolist(),
                            strict=True,
                        )
                    )
                    for row in test
                ]
                print(f"seed {seed}, gaps from {first}, rounds {rounds}: ", end="")
                print(f"letters {sum(hits) / len(hits) / 3:.1%}, ", end="")
                print(f"all three {hits.count(3) / len(hits):.1%}, ", end="")
                print(f"none {hits.count(0) / len(hits):.1%} of {len(hits)}")
