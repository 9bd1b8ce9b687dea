"""Chapter 11's gaps once more, from what its section 11.5.2 says, without the page's code.

Run: python -m benchmarks.second vision_gaps [STEPS] [SEED ...]; minutes a seed. Gaps after a move
by a patch and by a pixel, seeds 71 and 72, then the page's mean of three seeds: ViT untrained 0.10
1.07, 0.08 0.56, page 0.08 0.71; taught where digits stand 0.91 0.73, 1.01 0.72, page 0.97 0.81; on
moved digits 0.68 0.46, 0.73 0.55, page 0.74 0.48. Convolutions in the same order 0.74 0.63, 1.00
0.77, page 0.99 0.74; 0.25 0.28, 0.19 0.26, page 0.28 0.27; 0.12 0.13, 0.12 0.13, page 0.14 0.13;
with circular padding 0 and 0.55, 0.61, page 0.62; 0.28, 0.27, page 0.23; 0.13, 0.13, page 0.13. No
positions: 0 by a patch; no pooling: 0 by both. Mirrored or turned, all that
are trained 0.69 and more, page 0.68.
Agreed. From seed to seed some move: untrained convolutions have 0.65 to 1.64 (patch, seeds 71 to
90, mean 0.97). And moved digits helped the ViT of seed 72 more by a patch; of seeds 71 to 76, that
one alone (on average 0.21 by a patch, 0.26 by a pixel).
"""

import numpy as np
import torch
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from torch import nn

from benchmarks.second.empty_margin import Seer
from benchmarks.second.moved_digits import MOVES, convolutions, logits, moved, train

CHANGES = {
    "patch": lambda x: np.roll(x, 2, 2),
    "pixel": lambda x: np.roll(x, 1, 2),
    "mirrored": lambda x: x[:, :, ::-1].copy(),
    "turned": lambda x: np.rot90(x, axes=(1, 2)).copy(),
}


def circular() -> nn.Sequential:
    model = convolutions()
    for part in model:
        if isinstance(part, nn.Conv2d):
            part.padding_mode = "circular"
    return model


def unpooled() -> nn.Sequential:
    return nn.Sequential(*(part for part in circular() if not isinstance(part, nn.MaxPool2d)))


def placeless() -> Seer:
    model = Seer()
    nn.init.zeros_(model.places)
    return model


@torch.no_grad()
def told(model: nn.Module, images: np.ndarray) -> str:
    """The gap of each change; how far two digits are apart, and a digit and it moved by a pixel."""
    say = lambda x: logits(model.eval(), torch.from_numpy(x)).double().numpy()  # noqa: E731
    was = say(images)
    apart = np.sqrt(np.mean(pdist(was) ** 2))
    by = {n: np.sqrt(np.mean(np.sum((say(f(images)) - was) ** 2, 1))) for n, f in CHANGES.items()}
    gaps = " ".join(f"{name} {far / apart:.3f}" for name, far in by.items())
    return f"{gaps}; apart {apart:.3g}, by a pixel {by['pixel']:.3g}"


def main(steps: int = 800, *seeds: int) -> None:
    digits = load_digits()
    images = np.pad(digits.images / 16, ((0, 0), (1, 1), (1, 1))).astype(np.float32)
    for seed in seeds or (71,):
        test = (np.arange(1797) - 100 * seed) % 1797 < 360
        asked, learnt, labels = images[test], images[~test], digits.target[~test]
        asked = asked[asked[:, :, -2:].sum((1, 2)) == 0]
        shown = np.stack([moved(learnt, move) for move in MOVES])
        print(f"seed {seed}, {len(asked)} digits")
        taught = {"untrained": None, "still": shown[4:5], "moved": shown}
        for make in (Seer, convolutions, circular, placeless, unpooled):
            for word, pictures in list(taught.items())[: 1 if make in (placeless, unpooled) else 3]:
                torch.manual_seed(seed)
                model = make()
                if pictures is not None:
                    train(model, pictures, labels, steps)
                print(f"{make.__name__}, {word}: {told(model, asked)}")
