"""Chapter 5's digit two places back once more: trained on 16 digits, read out to 128.

Run: python -m benchmarks.second two_back [SEED ...]; a minute for each.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LENGTHS, FAR = (16, 24, 32, 64, 128), 8
WAYS = ("nothing", "same place for all", "sinusoids", "learnt", "relative", "rotary")


class Looker(nn.Module):
    def __init__(self, way: str, d: int = 64):
        super().__init__()
        self.way, self.digits, self.out = way, nn.Embedding(10, d), nn.Linear(d, 10)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.places, self.distances = nn.Embedding(16, d), nn.Embedding(2 * FAR + 1, d)
        self.speeds = 10000.0 ** (-torch.arange(0, d, 2) / d)

    def forward(self, text: Tensor) -> Tensor:
        x, at = self.digits(text), torch.arange(text.shape[1])
        hands = torch.polar(torch.tensor(1.0), at[:, None] * self.speeds)  # one complex per pair
        if self.way == "sinusoids":
            x = x + torch.stack([hands.imag, hands.real], -1).flatten(1)
        elif self.way == "same place for all":  # of a text: its number in the batch
            angles = torch.arange(len(text))[:, None] * self.speeds
            x = x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, None]
        elif self.way == "learnt":
            x = x + self.places(at)
        q, k = self.q(x), self.k(x)
        if self.way == "rotary":
            q, k = (torch.view_as_complex(t.unflatten(-1, (-1, 2))) * hands for t in (q, k))
        scores = torch.einsum("bid,bjd->bij", q, k.conj()).real
        if self.way == "relative":
            apart = (at[:, None] - at).clamp(-FAR, FAR) + FAR
            scores = scores + (q @ self.distances.weight.T).gather(
                -1, apart.expand(len(text), -1, -1)
            )
        return self.out((scores / x.shape[-1] ** 0.5).softmax(-1) @ self.v(x))[:, 2:]


def trained(way: str, seed: int, d: int = 64, steps: int = 800, rate: float = 0.003) -> Looker:
    torch.manual_seed(seed)
    model = Looker(way, d)
    adam = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        text = torch.randint(10, (64, 16))
        adam.zero_grad()
        F.cross_entropy(model(text).flatten(0, 1), text[:, :-2].flatten()).backward()
        adam.step()
    return model


@torch.no_grad()
def right(model: Looker, n: int) -> float:
    text = torch.randint(10, (64, n))
    return (model(text).argmax(-1) == text[:, :-2]).float().mean().item()


def main(*seeds: int) -> None:
    print("digits", LENGTHS)
    for seed in seeds or (51, 52, 53):
        for way in WAYS:
            model = trained(way, seed)
            told = [right(model, n) for n in LENGTHS if way != "learnt" or n == 16]
            print(seed, f"{way:20}", *(f"{share:5.0%}" for share in told))
        for d, steps, rate in ((32, 200, 0.01), (64, 200, 0.01), (32, 800, 0.003)):
            model = trained("rotary", seed, d, steps, rate)
            told = (f"{right(model, n):5.0%}" for n in LENGTHS)
            print(seed, f"rotary, {d} wide, {steps} steps", *told)
