"""Chapter 10's random mixtures of letters, and probes for the length of a word, once more.

Run: python -m benchmarks.second mixtures [SEED]; a minute. Rows are cut by `bert_controls.py`; of
the model, the page's weights are read. Seed 95: of the gaps, 30 to 31% by least squares, 38 to 40%
by cross-entropy. Lengths of words: table 24%, trained 39, never trained 26, letters up to 0, 1, 2
and 3 away 24, 35, 43 and 48, two away and mixed 36.
"""

import re

import numpy as np
import torch

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.second.bert_controls import LETTERS, SIZE, rows_of


def fitted(x: np.ndarray, answers: np.ndarray, kinds: int) -> np.ndarray:
    """Weights and shift of the layer with the least squares."""
    wide = np.column_stack([x, np.ones(len(x))])
    gram = wide.T @ wide + 1e-3 * np.eye(wide.shape[1])
    return np.linalg.solve(gram, wide.T @ np.eye(kinds)[answers])


def softened(x: np.ndarray, answers: np.ndarray, kinds: int, steps: int = 3000) -> np.ndarray:
    """Weights and shift of the layer with the least cross-entropy, by Adam with a falling rate."""
    wide = torch.from_numpy(np.column_stack([x, np.ones(len(x))])).float()
    wanted, layer = torch.from_numpy(answers), torch.zeros(wide.shape[1], kinds, requires_grad=True)
    adam = torch.optim.Adam([layer], 0.01)
    rates = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.02, steps)
    for _ in range(steps):
        some = torch.randint(len(wide), (512,))
        adam.zero_grad()
        torch.nn.functional.cross_entropy(wide[some] @ layer, wanted[some]).backward()
        adam.step()
        rates.step()
    return layer.detach().numpy()


def share(weights: np.ndarray, x: np.ndarray, answers: np.ndarray) -> float:
    return float(np.mean((x @ weights[:-1] + weights[-1]).argmax(1) == answers))


def around(rows: np.ndarray, reach: int, itself: bool) -> np.ndarray:
    """A number for each neighbour's letter and place: `(rows, letters, neighbours)`."""
    wide = np.pad(rows, ((0, 0), (reach, reach)), constant_values=SIZE)
    steps = [k for k in range(2 * reach + 1) if itself or k != reach]
    n = rows.shape[1]
    return np.stack([wide[:, k : k + n] + i * (SIZE + 1) for i, k in enumerate(steps)], -1)


def gaps(draw: np.random.Generator) -> None:
    learnt, new = (rows_of(part).numpy() for part in ("train", "test"))
    always = np.bincount(learnt.ravel()).argmax()
    print(f"gaps: always the space {np.mean(new == always):.1%}")
    for _ in range(3):
        table = draw.standard_normal((4 * (SIZE + 1), 64))
        x, asked = (table[around(rows, 2, False)].sum(2).reshape(-1, 64) for rows in (learnt, new))
        for how, fit in (("least squares", fitted), ("cross-entropy", softened)):
            found = share(fit(x, learnt.ravel(), SIZE), asked, new.ravel())
            print(f"gaps: 64 mixtures of four letters, {how}: {found:.1%}")


def lengths(draw: np.random.Generator) -> None:
    page = page_definitions()
    rows = page["test"]
    ids = rows[:, 1:-1].numpy()
    texts = ["".join(page["letters"][i][0] for i in row) for row in ids]
    length = np.zeros(ids.shape, int)
    for row, text in enumerate(texts):
        for word in re.finditer("[a-z]+", text):
            length[row, slice(*word.span())] = min(len(word[0]), 9)
    inputs: dict[str, np.ndarray] = {"always the same": np.zeros((*ids.shape, 1))}
    for name, model in [("trained", page["untrained"](0))] + [
        (f"never trained, seed {seed}", page["untrained"](seed)) for seed in (4, 5)
    ]:
        if name == "trained":
            load_or_train("encoder", model, lambda _: {})
            table = model.embeddings.tokens.weight.detach().numpy()
            inputs["its table"] = table[ids]
        kept: list = []
        handle = model.layers[-1].register_forward_hook(
            lambda _, x, out, kept=kept: kept.append(out)
        )
        with torch.no_grad():
            model.eval()(rows)
        handle.remove()
        inputs[name] = (kept[0][0] if isinstance(kept[0], tuple) else kept[0])[:, 1:-1].numpy()
    code = np.array([(LETTERS + "??").find(c) for text in texts for c in text]).reshape(ids.shape)
    code[code < 0] = SIZE - 1
    for reach in range(4):
        each = np.eye((2 * reach + 1) * (SIZE + 1), dtype=np.float32)
        inputs[f"up to {reach} away"] = each[around(code, reach, True)].sum(2)
    table = draw.standard_normal((5 * (SIZE + 1), 64))
    inputs["up to 2 away, mixed"] = table[around(code, 2, True)].sum(2)
    order = draw.permutation(len(ids))
    cut = int(0.7 * len(ids))
    for name, x in inputs.items():
        found = []
        for chosen in (order[:cut], order[cut:]):
            inside = length[chosen] > 0
            found.append((x[chosen][inside], length[chosen][inside]))
        layer = fitted(*found[0], 10)
        print(f"length: {name:24}{share(layer, *found[1]):.1%}")


def main(seed: int = 95) -> None:
    draw = np.random.default_rng(seed)
    torch.manual_seed(95)
    gaps(draw)
    lengths(draw)
