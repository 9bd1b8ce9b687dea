"""Chapter 9's induction heads, by torch's own attention: what each place that is hidden costs.

Run: OMP_NUM_THREADS=1 python -m benchmarks.second.hidden_places [SEED ...]; half a minute for each.

Seed 72: second halves 0.32; where the present token came once 0.24, layer 2 blind to what followed
4.42 (4.81 if the rest gets its weight), to one further 0.24; layer 1 blind to one back 6.33, to two
0.91.
"""

import math
import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TOKENS, WIDTH, HEADS, NEAR, HALF = 64, 64, 4, 8, 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.out = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.layers = nn.ModuleList(
            nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True) for _ in range(2)
        )
        self.distances = nn.ParameterList(torch.randn(HEADS, NEAR + 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))

    def forward(self, ids: Tensor, blind: int = -1, hidden: Tensor | None = None, share=False):
        """Layer `blind` takes nothing from `hidden`; with `share`, the rest gets those weights."""
        b, n = ids.shape
        back = torch.arange(n)[:, None] - torch.arange(n)
        x = self.tokens(ids)
        for i, (attend, norm) in enumerate(zip(self.layers, self.norms, strict=False)):
            h = norm(x)
            added = self.distances[i][:, back.clamp(0, NEAR)].masked_fill(back < 0, -math.inf)
            added = added.expand(b, HEADS, n, n)
            if i == blind and share:
                added = added.masked_fill(hidden[:, None], -math.inf)
            y, weights = attend(h, h, h, attn_mask=added.flatten(0, 1), average_attn_weights=False)
            if i == blind and not share:
                v = (h @ attend.in_proj_weight[2 * WIDTH :].T).unflatten(-1, (HEADS, -1))
                lost = torch.einsum("bhij,bij,bjhc->bihc", weights, hidden.float(), v)
                y = y - attend.out_proj(lost.flatten(2))
            x = x + y
        return self.out(self.norms[2](x))


def repeated(draw: torch.Generator, size: int, length: int, least: int, most: int) -> Tensor:
    period = torch.randint(least, most + 1, (size, 1), generator=draw)
    start = torch.randint(TOKENS, (size, most), generator=draw)
    return start.gather(1, torch.arange(length).expand(size, length) % period)


@torch.no_grad()
def tell(net: Net, draw: torch.Generator) -> None:
    ids = repeated(draw, 400, 2 * HALF, HALF, HALF)
    n = 2 * HALF
    earlier = (ids[:, :, None] == ids[:, None]) & torch.ones(n, n).bool().tril(-1)
    once = earlier.sum(-1) == 1
    back = (torch.arange(n)[:, None] - torch.arange(n)).expand(len(ids), n, n)

    def nats(where: Tensor, **hiding) -> str:
        each = F.cross_entropy(net(ids, **hiding)[:, :-1].mT, ids[:, 1:], reduction="none")
        return f"{each[where[:, :-1] & (torch.arange(n - 1) >= HALF)].mean():.2f}"

    everywhere = torch.ones_like(once)
    print(f"  second halves: {nats(everywhere)}; where the present token came once: {nats(once)}")
    for share in (False, True):
        print(f"  {'weights shared among the rest' if share else 'nothing taken'}")
        for name, further in (("its like", 0), ("what followed", 1), ("one further", 2)):
            place = F.pad(earlier, (further, 0))[..., :n] & once[..., None] & (back >= 0)
            print(f"    layer 2 blind to {name}: {nats(once, blind=1, hidden=place, share=share)}")
        for far in (1, 2):
            cost = nats(everywhere, blind=0, hidden=back == far, share=share)
            print(f"    layer 1 blind to {far} back: {cost}")


def main() -> None:
    for seed in [int(x) for x in sys.argv[1:]] or [71]:
        torch.manual_seed(seed)
        draw, net = torch.Generator().manual_seed(seed), Net()
        adam = torch.optim.Adam(net.parameters(), 2e-3)
        for _ in range(600):
            ids = repeated(draw, 32, 48, 9, 24)
            loss = F.cross_entropy(net(ids)[:, :-1].mT, ids[:, 1:])
            adam.zero_grad()
            loss.backward()
            adam.step()
        print(f"seed {seed}; guessing: {math.log(TOKENS):.2f}", flush=True)
        tell(net, draw)


if __name__ == "__main__":
    main()
