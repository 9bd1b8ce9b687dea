"""Chapter 9's induction heads: attention alone, in two layers and in one, on tokens that repeat.

Run: OMP_NUM_THREADS=1 python -m benchmarks.induction. A training text repeats 9 to 24 random tokens
until it has 48. Scores get a learnt number for each head and distance. From 8 on all distances
share one, and what followed the last time is 8 back or more, so no distance finds it. The tests are
16 tokens twice, and 32 twice. The model with one layer is wider, with more parameters. To cut heads
is to take nothing of what they contribute.
"""

import json
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_by_hand.blocks import masked_softmax, next_token_loss, relative_positions
from benchmarks.command_line import options
from benchmarks.results import made_by, store

RESULT = Path(__file__).with_suffix(".json")
TOKENS, LENGTH, SHORTEST, LONGEST, FAR = 64, 48, 9, 24, 8
TWO, ONE = {"width": 64, "heads": 4, "layers": 2}, {"width": 96, "heads": 4, "layers": 1}
STEPS, WARM_UP, RATE, BATCH, EVERY = 600, 50, 2e-3, 32, 20
SEEDS, TESTED, HALF = (0, 1, 2), 128, 16
Head = tuple[int, int]


class Attention(nn.Module):
    """Heads that add to each score a learnt number for its distance."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.bias = nn.Parameter(torch.randn(heads, FAR + 1))

    def forward(self, x: Tensor, kept: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """x `(B, n, width)`, kept `(heads,)` → what it adds `(B, n, width)`, weights.

        Nothing is taken where `hidden`, which goes with the weights, is true.
        """
        n, heads = x.shape[1], len(self.bias)
        q, k, v = (
            f(x).unflatten(-1, (heads, -1)).movedim(-2, -3) for f in (self.q, self.k, self.v)
        )
        distance = (relative_positions(n, n, FAR) - FAR).clamp(min=0)  # (n, n)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.bias[:, distance]  # (B, heads, n, n)
        weights = masked_softmax(scores, torch.ones(n, n, dtype=torch.bool).tril())
        taken = weights * kept[:, None, None]
        if hidden is not None:
            taken = taken.masked_fill(hidden, 0.0)
        return self.o((taken @ v).movedim(-3, -2).flatten(-2)), weights


class Model(nn.Module):
    """Layers of attention with a norm before each, and nothing else between the tables."""

    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, width)
        self.layers = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers + 1))
        self.out = nn.Linear(width, TOKENS)

    def forward(
        self,
        ids: Tensor,
        cut: tuple[Head, ...] = (),
        blind: int | None = None,
        unseen: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """ids `(B, n)` → logits `(B, n, TOKENS)`, weights `(layers, B, heads, n, n)`.

        The first layer takes nothing from the token that is `blind` places back, the last nothing
        from the one place that is `unseen` `(B, n)` by each.
        """
        x, found, hidden, place = self.tokens(ids), [], {}, torch.arange(ids.shape[1])
        if blind is not None:
            hidden[0] = place[:, None] - place == blind
        if unseen is not None:
            hidden[len(self.layers) - 1] = (place == unseen[..., None])[:, None]
        for number, layer in enumerate(self.layers):
            kept = [float((number, head) not in cut) for head in range(len(layer.bias))]
            added, weights = layer(self.norms[number](x), torch.tensor(kept), hidden.get(number))
            x, found = x + added, [*found, weights]
        return self.out(self.norms[-1](x)), torch.stack(found)


def repeating(size: int, draw: torch.Generator) -> Tensor:
    """Texts to train on `(size, LENGTH)`: 9 to 24 random tokens, again and again."""
    period = torch.randint(SHORTEST, LONGEST + 1, (size, 1), generator=draw)
    ids = torch.randint(TOKENS, (size, LONGEST), generator=draw)
    return ids.gather(1, torch.arange(LENGTH) % period)


def twice(half: int) -> Tensor:
    """Texts to test on `(TESTED, 2 · half)`: random tokens, then the same again."""
    draw = torch.Generator().manual_seed(1234 + half)
    return torch.randint(TOKENS, (TESTED, half), generator=draw).repeat(1, 2)


def followed(ids: Tensor) -> Tensor:
    """For each token the place after its only earlier like, 0 if it has none or several."""
    like = (ids[:, :, None] == ids[:, None, :]).tril(-1)  # (B, n, n)
    return torch.where(like.sum(-1) == 1, like.int().argmax(-1) + 1, 0)  # (B, n)


def given(weights: Tensor, places: Tensor, asked: Tensor) -> Tensor:
    """What heads give to one place `(B, n)`, the mean over the queries asked, `(layers, heads)`."""
    index = places[None, :, None, :, None].expand(*weights.shape[:-1], 1)
    return weights.gather(-1, index)[..., 0].movedim(1, 2)[..., asked].mean(-1)


@torch.no_grad()
def loss(model: Model, ids: Tensor, cut: tuple[Head, ...] = (), blind: int | None = None) -> float:
    """Nats a token of the second half, but for its first, which nothing can tell."""
    half = slice(ids.shape[1] // 2, None)
    return next_token_loss(model(ids, cut, blind)[0][:, half], ids[:, half]).item()


@torch.no_grad()
def copied(model: Model, unseen: int | None = None) -> float:
    """Nats of the next token in second halves, where the present one has come once before.

    The last layer takes nothing from the place that is `unseen` behind the one that followed.
    """
    ids = twice(HALF)
    places = followed(ids)
    asked = ((places > 0) & (torch.arange(2 * HALF) >= HALF))[:, :-1]
    logits = model(ids, unseen=None if unseen is None else places + unseen)[0][:, :-1]
    return nn.functional.cross_entropy(logits[asked], ids[:, 1:][asked]).item()


@torch.no_grad()
def looks(model: Model) -> tuple[Tensor, Tensor]:
    """What each head gives to what followed, and to the token before, in second halves."""
    ids = twice(HALF)
    weights, second = model(ids)[1], torch.arange(2 * HALF) >= HALF
    before = (torch.arange(2 * HALF) - 1).clamp(min=0).expand_as(ids)
    places = followed(ids)
    shares = given(weights, places, (places > 0) & second)
    return shares, given(weights, before, second.expand_as(ids))


def train(sizes: dict[str, int], seed: int, steps: int) -> tuple[Model, list[float]]:
    """A model, and its loss every so many steps."""
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    model, curve = Model(**sizes), []
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    for step in range(steps + 1):
        if step % EVERY == 0:
            curve.append(loss(model, twice(HALF)))
        ids = repeating(BATCH, draw)
        optimizer.param_groups[0]["lr"] = RATE * min((step + 1) / WARM_UP, 1)
        wrong = next_token_loss(model(ids)[0], ids)
        optimizer.zero_grad()
        wrong.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model, curve


def measure(model: Model) -> dict:
    """Losses; where heads look; and losses without what one back or two back gives the first layer.

    Induction heads are those that give more than half to what followed.
    """
    ids = twice(HALF)
    after, before = looks(model)
    heads = [tuple(head) for head in (after > 1 / 2).nonzero().tolist()]
    return {
        "loss": loss(model, ids),
        "loss, 32 twice": loss(model, twice(32)),
        "induction heads": heads,
        "without them": loss(model, ids, tuple(heads)),
        "first layer blind to one back": loss(model, ids, blind=1),
        "first layer blind to two back": loss(model, ids, blind=2),
        "copied": copied(model),
        "copied, blind to what followed": copied(model, 0),
        "copied, blind to one further": copied(model, 1),
        "to what followed": after.tolist(),
        "to the one before": before.tolist(),
        "one head cut": [
            [loss(model, ids, ((layer, head),)) for head in range(after.shape[1])]
            for layer in range(len(after))
        ],
    }


def rounded(found):
    """Numbers with four places, in whatever they stand."""
    return json.loads(json.dumps(found), parse_float=lambda number: round(float(number), 4))


def main() -> None:
    args = options(__doc__, steps=STEPS, seeds=SEEDS, result=RESULT)
    torch.set_num_threads(1)
    began, runs, shown = time.process_time(), [], {}
    for seed in args.seeds:
        for name, sizes in {"two layers": TWO, "one layer": ONE}.items():
            model, curve = train(sizes, seed, args.steps)
            size = sum(p.numel() for p in model.parameters())
            run = {"model": name, "seed": seed, "parameters": size, "curve": curve}
            runs.append(rounded(run | measure(model)))
            print({key: value for key, value in runs[-1].items() if key != "curve"}, flush=True)
            if not shown:
                layer, head = divmod(int(looks(model)[0].argmax()), sizes["heads"])
                with torch.no_grad():
                    weights = model(twice(HALF)[:1])[1][layer, 0, head]
                shown = {"head": [layer, head], "weights": rounded(weights.tolist())}
    made = made_by(
        "python -m benchmarks.induction",
        steps=args.steps,
        every=EVERY,
        sizes={"two layers": TWO, "one layer": ONE},
        cpu_seconds=round(time.process_time() - began),
    )
    store(args.result, made, runs, shown=shown)


if __name__ == "__main__":
    main()
