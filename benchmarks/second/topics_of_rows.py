"""Chapter 10's topics, read from rows once more: scikit-learn, rows in turn, another model as well.

Run: python -m benchmarks.second topics_of_rows [STEPS] [SEED]; two minutes.
Seed 61: always the same 47%; a bag of letters 71%, the table 70%, never trained 67%, trained 69%.
"""

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from attention_by_hand.data import python_manual
from benchmarks.second.bert_controls import BLANK, SIZE, as_ids, rows_of
from benchmarks.second.pruned import ROW, Filler, trained


@torch.no_grad()
def mean_vector(model: Filler, rows: Tensor, layers: int) -> Tensor:
    """Of each row, after so many layers."""
    x = model.norm(model.letters(rows) + model.places)
    for layer in model.layers[:layers]:
        x = layer(x)
    return x.mean(1)


def main(steps: int = 3000, seed: int = 61) -> None:
    longest = sorted(map(as_ids, python_manual.documents("test").values()), key=len)[-6:]
    rows = [ids[: len(ids) // ROW * ROW].view(-1, ROW) for ids in longest]
    topic = np.repeat(range(6), [len(some) for some in rows])
    ids = torch.cat(rows)
    torch.manual_seed(seed)
    fresh = Filler(SIZE).eval()
    model = trained(rows_of("train"), SIZE, BLANK, torch.arange(SIZE), seed, steps)
    read = {
        "always the same": torch.zeros(len(ids), 1),
        "bag of letters": torch.stack([row.bincount(minlength=SIZE) for row in ids]).float(),
        "table of letters": model.letters(ids).mean(1).detach(),
        "never trained": mean_vector(fresh, ids, 2),
        "trained, one layer": mean_vector(model, ids, 1),
        "trained, two layers": mean_vector(model, ids, 2),
    }
    for name, x in read.items():
        right = []
        for fitted, new in StratifiedKFold(5, shuffle=True, random_state=0).split(ids, topic):
            probe = make_pipeline(StandardScaler(), RidgeClassifier())
            right.append(
                probe.fit(x[fitted].numpy(), topic[fitted]).score(x[new].numpy(), topic[new])
            )
        print(f"{name:20} {np.mean(right):.1%} ({min(right):.1%} to {max(right):.1%})")
