"""Chapter 8's first of thirty digits once more: attention, and the GRU as it comes, for longer.

Run: python -m benchmarks.second patient_gru [RATE] [STEPS] [SEED ...]; minutes. Attention is
torch's, one head; its query is made of the last digit and its position.
The GRU has 64 features and batches of 64, twice the page's. At a rate of 0.01, seeds 64 and 65, it
guesses after 250 steps and knows the digit after 500; attention knows it after 250.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.second.first_digit import Reader


class Looker(nn.Module):
    def __init__(self, inputs: int = 32, d: int = 64):
        super().__init__()
        self.table, self.places = nn.Embedding(10, inputs), nn.Embedding(60, inputs)
        self.look = nn.MultiheadAttention(d, 1, kdim=inputs, vdim=inputs, batch_first=True)
        self.ask, self.out = nn.Linear(inputs, d), nn.Linear(d, 10)

    def last(self, x: Tensor) -> Tensor:
        x = x + self.places.weight[: x.shape[1]]
        return self.look(self.ask(x[:, -1:]), x, x)[0][:, 0]

    def forward(self, digits: Tensor) -> Tensor:
        return self.out(self.last(self.table(digits)))


def main(rate: float = 0.01, steps: int = 2500, *seeds: int) -> None:
    for seed in seeds or (64,):
        torch.manual_seed(seed)
        looker, x = Looker(), torch.randn(64, 60, 32, requires_grad=True)
        looker.last(x).sum().backward()
        lengths = x.grad.norm(dim=-1).mean(0)
        back = [f"{lengths[-1 - k] / lengths[-1]:.0e}" for k in (10, 20, 40)]
        print(f"{seed} attention: gradient 10, 20 and 40 back {back}")
        for name, model, most in (("attention", looker, 250), ("GRU", Reader("GRU"), steps)):
            adam = torch.optim.Adam(model.parameters(), rate)
            for step in range(1, most + 1):
                digits = torch.randint(10, (64, 30))
                adam.zero_grad()
                F.cross_entropy(model(digits), digits[:, 0]).backward()
                adam.step()
                if step % 250 == 0:
                    digits = torch.randint(10, (1000, 30))
                    right = (model(digits).argmax(1) == digits[:, 0]).float().mean().item()
                    print(f"   {name}, rate {rate}, {step} steps: {right:.0%}")
                    if right > 0.99:
                        break
