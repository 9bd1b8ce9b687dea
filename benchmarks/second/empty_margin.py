"""Chapter 11's maps against covering once more, with torch's own encoder and scipy's ranks.

Trains a ViT on another fifth of the digits with a seed of its own; about a minute.
"""

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr, t
from sklearn.datasets import load_digits
from torch import Tensor, nn


class Seer(nn.Module):
    """Three pre-norm layers of torch over 25 patches of 2 × 2 pixels and a class token."""

    def __init__(self):
        super().__init__()
        self.cut = nn.Linear(4, 32)
        self.first, self.places = (
            nn.Parameter(torch.zeros(1, 1, 32)),
            nn.Parameter(torch.zeros(26, 32)),
        )
        nn.init.normal_(self.places, std=0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(3)
        )
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Images `(B, 10, 10)` → logits `(B, 10)`, and of each layer the mean weights."""
        patches = F.unfold(images[:, None], 2, stride=2).mT
        x = torch.cat([self.first.expand(len(images), -1, -1), self.cut(patches)], 1) + self.places
        weights = []
        for layer in self.layers:
            y = layer.norm1(x)
            y, looks = layer.self_attn(y, y, y, need_weights=True)
            x = x + y
            x = x + layer.linear2(F.gelu(layer.linear1(layer.norm2(x))))
            weights.append(looks)
        return self.head(self.norm(x[:, 0])), weights


def train(images: Tensor, labels: Tensor, seed: int, steps: int = 2400) -> Seer:
    torch.manual_seed(seed)
    model = Seer()
    adam = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, steps, pct_start=0.03)
    for _ in range(steps):
        drawn = torch.randint(len(images), (32,))
        down, right = np.random.randint(-1, 2, 2).tolist()
        loss = F.cross_entropy(model(images[drawn].roll((down, right), (1, 2)))[0], labels[drawn])
        adam.zero_grad()
        loss.backward()
        adam.step()
        rates.step()
    return model.eval()


@torch.no_grad()
def correlations(model: Seer, image: Tensor, cover: Tensor) -> np.ndarray:
    """With how far the answer moves: class token, rollout, change; all patches and changed ones."""
    logits, weights = model(image[None])
    before = logits.log_softmax(-1)[0]
    passed = np.eye(26)
    for looks in weights:
        passed = (0.5 * looks[0].double().numpy() + 0.5 * np.eye(26)) @ passed
    moves, change = [], []
    for row in range(5):
        for column in range(5):
            hidden, at = (
                image.clone(),
                (slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2)),
            )
            hidden[at] = cover[at]
            after = model(hidden[None])[0].log_softmax(-1)[0]
            moves.append(abs(before.max() - after[before.argmax()]).item())
            change.append((hidden - image).abs().sum().item())
    ways, moves = np.array([weights[-1][0, 0, 1:].numpy(), passed[0, 1:], change]), np.array(moves)
    kept = ways[2] >= 0.2
    return np.array([[spearmanr(w[k], moves[k])[0] for w in ways] for k in (kept | True, kept)])


def main(seed: int = 11) -> None:
    np.random.seed(seed)
    digits = load_digits()
    images = F.pad(torch.tensor(digits.images).float() / 16, (1, 1, 1, 1))
    labels, test = torch.tensor(digits.target), torch.arange(1797) % 1797 < 300
    model = train(images[~test], labels[~test], seed)
    with torch.no_grad():
        right = (model(images[test])[0].argmax(-1) == labels[test]).float().mean()
    cover, some = images[~test].mean(0), images[test][:200]
    found = np.array([correlations(model, image, cover) for image in some])  # (200, 2, 3)
    half = t.ppf(0.975, 199) * found.std(0, ddof=1) / 200**0.5
    apart = found[:, :, 1] - found[:, :, 2]
    print(f"seed {seed}: {right:.1%} right; class token's map, rollout, change of the picture")
    for words, mean, end in zip(("all patches", "changed ones"), found.mean(0), half, strict=True):
        print(
            f"{words:14}", "  ".join(f"{m:+.2f} ± {h:.2f}" for m, h in zip(mean, end, strict=True))
        )
    print(
        "rollout less change:",
        apart.mean(0).round(3),
        "±",
        (1.97 * apart.std(0) / 200**0.5).round(3),
    )
