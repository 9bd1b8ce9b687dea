"""Chapter 11's positions once more (11.7): are neighbours alike because their ink is?

Run: python -m benchmarks.second letter_twins [STEPS] [SEED ...]; the page's three tables first
(seconds), then a model trained here on every seed; minutes, with the page's 1,000. Pictures that
are the same are taken once, so mean pictures differ a little from the page's. Its tables:
neighbours 0.46, 0.42 and 0.40, twins -0.08, -0.01 and -0.02 (page -0.04 to -0.01); over all pairs
with likeness of the ink 0.27, 0.26 and 0.19 (page 0.19 to 0.28), with nearness 0.04 and less. Seed
44, 600 steps: neighbours 0.35, twins 0.00, with ink 0.31, with nearness -0.03. Agreed.
"""

from pathlib import Path

import numpy as np
import torch

from benchmarks.second.letters_in_patches import SIDE, Seer, drawn, right, train

CELLS = [(i, j) for i in range(SIDE) for j in range(SIDE)]


def told(table, ink):
    """Cosines of neighbours and of their twins; of all pairs, with likeness of ink and nearness."""
    rows = table[1:] - table[1:].mean(0)
    cosine = rows @ rows.T
    size = np.sqrt(np.diag(cosine))
    cosine = cosine / size[:, None] / size
    beside, twins, all_pairs = [], [], []
    for a, here in enumerate(CELLS):
        for b, there in enumerate(CELLS):
            if abs(here[0] - there[0]) + abs(here[1] - there[1]) == 1:
                far = [c for c, at in enumerate(CELLS) if np.hypot(*np.subtract(at, here)) >= 3]
                twin = min(far, key=lambda c: ((ink[c] - ink[b]) ** 2).sum())
                beside.append(cosine[a, b])
                twins.append(cosine[a, twin])
            if a < b:
                unlike = np.sqrt(((ink[a] - ink[b]) ** 2).sum())
                near = -np.hypot(*np.subtract(here, there))
                all_pairs.append((cosine[a, b], -unlike, near))
    likeness, nearness = np.corrcoef(np.array(all_pairs).T)[0, 1:]
    print(f"neighbours {np.mean(beside):+.2f}, twins {np.mean(twins):+.2f};", end=" ")
    print(f"over all pairs, with ink {likeness:+.2f}, with nearness {nearness:+.2f}")


def main(steps: int = 1000, *seeds: int) -> None:
    images, answers, asked, truth = drawn()
    mean = images.mean(0).numpy()
    ink = [mean[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].ravel() for i, j in CELLS]
    kept = np.load(Path(__file__).parents[1] / "vision_letters.npz")
    for seed in range(3):
        print(f"the page's, seed {seed}:", end=" ")
        told(kept[f"{seed}, as they are: positions"][0].astype(float), ink)
    for seed in seeds:
        torch.manual_seed(seed)
        model = Seer()
        train(model, images, answers, torch.arange(1024), seed, steps)
        print(f"seed {seed}, {right(model, asked, truth):.1%} of new fonts:", end=" ")
        told(model.places.detach().double().numpy(), ink)
