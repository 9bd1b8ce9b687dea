"""Chapter 9's three sizes once more, with torch's own layers and other seeds.

Run: python -m benchmarks.second sizes [SEED ...]; three minutes for each.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.language_models import streams

WINDOW, STEPS = 128, 800


class Reader(nn.Module):
    def __init__(self, tokens: int, d: int):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, d), nn.Embedding(WINDOW, d)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d, d // 32, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(d)

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = self.tokens(ids) + self.places.weight[:n]
        for block in self.blocks:
            x = block(x, src_mask=torch.ones(n, n).triu(1).bool())
        return self.norm(x) @ self.tokens.weight.T


def trained(
    text: Tensor, tokens: int, d: int, seed: int, steps: int = STEPS, ahead: int = 1
) -> Reader:
    """A model that is to say what stands so many places `ahead`."""
    torch.manual_seed(seed)
    model, last = Reader(tokens, d), len(text) - WINDOW
    adam = torch.optim.AdamW(model.parameters(), 4e-3, betas=(0.9, 0.95), weight_decay=0.1)
    rates = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda s: min((s + 1) / 50, 0.5 + 0.5 * math.cos(math.pi * s / steps))
    )
    for _ in range(steps):
        window = torch.stack([text[i : i + WINDOW] for i in torch.randint(last, (8,)).tolist()])
        asked = window[:, ahead : WINDOW - 1 + ahead].flatten()
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), asked)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rates.step()
    return model.eval()


@torch.no_grad()
def bits_per_byte(model: Reader, text: Tensor, sizes: Tensor) -> float:
    bits = 0.0
    for start in range(0, len(text), WINDOW // 2):
        begin = max(0, start - WINDOW // 2)
        window = text[begin : start + WINDOW // 2]
        costs = -model(window[None])[0, :-1].log_softmax(-1).gather(1, window[1:, None])
        bits += costs[max(0, start - begin - 1) :].sum().item() / math.log(2)
    return bits / sizes[text[1:]].sum().item()


def main(*seeds: int) -> None:
    ids, sizes = streams()
    for seed in seeds or (31,):
        for d in (32, 64, 128):
            model = trained(ids["train"], len(sizes), d, seed)
            new, old = (bits_per_byte(model, ids[part], sizes) for part in ("test", "train"))
            print(f"seed {seed}, width {d:3}: {new:.3f} new, {old:.3f} read, {new - old:.3f} apart")
