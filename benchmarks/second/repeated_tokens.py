"""Chapter 9's induction heads once more: head by head, with texts and a seed of their own.

Run: python -m benchmarks.second repeated_tokens [SEED ...]
"""

import random
from math import inf, log

import torch
import torch.nn.functional as F

TOKENS, WIDTH, HEADS, NEAR = 64, 64, 4, 8


def begin(layers: int) -> dict[str, torch.Tensor]:
    """Parameters, under the names that the other code gives them."""
    p = {"tokens.weight": torch.randn(TOKENS, WIDTH), "out.bias": torch.zeros(TOKENS)}
    p["out.weight"] = torch.randn(TOKENS, WIDTH) / WIDTH**0.5
    for layer in range(layers):
        for name in "qkvo":
            p[f"layers.{layer}.{name}.weight"] = torch.randn(WIDTH, WIDTH) / (3 * WIDTH) ** 0.5
        p[f"layers.{layer}.bias"] = torch.randn(HEADS, NEAR + 1)
    for layer in range(layers + 1):
        p |= {f"norms.{layer}.weight": torch.ones(WIDTH), f"norms.{layer}.bias": torch.zeros(WIDTH)}
    return {name: value.requires_grad_() for name, value in p.items()}


def read(p, ids, cut=(), blind=None):
    """Log-probabilities of the next token, and the looks `(B, n, n)` of each layer and head.

    The first layer takes nothing from the token that is `blind` places back.
    """
    x, looks = p["tokens.weight"][ids], {}
    back = torch.arange(ids.shape[1])[:, None] - torch.arange(ids.shape[1])
    layers = sum(name.endswith("q.weight") for name in p)

    def normed(x, number):
        return F.layer_norm(
            x, (WIDTH,), *(p[f"norms.{number}.{name}"] for name in ("weight", "bias"))
        )

    for layer in range(layers):
        h = normed(x, layer)
        Q, K, V, out = (p[f"layers.{layer}.{name}.weight"] for name in "qkvo")
        for head, rows in enumerate(torch.arange(WIDTH).chunk(HEADS)):
            match = torch.einsum("bic,bjc->bij", h @ Q[rows].T, h @ K[rows].T) / len(rows) ** 0.5
            match = match + p[f"layers.{layer}.bias"][head][back.clamp(0, NEAR)]
            looks[layer, head] = match.masked_fill(back < 0, -inf).softmax(-1)
            if (layer, head) not in cut:
                taken = looks[layer, head] * (back != blind if blind and not layer else 1)
                x = x + taken @ (h @ V[rows].T) @ out[:, rows].T
    scores = F.linear(normed(x, layers), p["out.weight"], p["out.bias"])
    return scores.log_softmax(-1), looks


@torch.no_grad()
def told(p, texts, cut=(), blind=None):
    """Nats on second halves, and what each head gives to what followed and to the token before.

    A half's first token does not count, nor do tokens that have come more than once when asked for
    what followed.
    """
    half, (log_p, looks) = len(texts[0]) // 2, read(p, torch.tensor(texts), cut, blind)
    nats, after, before = [], {name: [] for name in looks}, {name: [] for name in looks}
    for b, text in enumerate(texts):
        nats += [-log_p[b, i, text[i + 1]].item() for i in range(half, 2 * half - 1)]
        for name, look in looks.items():
            for i in range(half, 2 * half):
                before[name].append(look[b, i, i - 1].item())
                if text[:i].count(text[i]) == 1:
                    after[name].append(look[b, i, text.index(text[i]) + 1].item())
    mean = [{name: sum(x) / len(x) for name, x in kind.items()} for kind in (after, before)]
    return sum(nats) / len(nats), *mean


def repeated(draw, length, period):
    start = [draw.randrange(TOKENS) for _ in range(period)]
    return [start[i % period] for i in range(length)]


def main(*seeds: int) -> None:
    for seed in seeds or (11,):
        for layers in (2, 1):
            torch.manual_seed(seed)
            draw, p = random.Random(seed), begin(layers)
            texts = [repeated(draw, 32, 16) for _ in range(50)]
            adam = torch.optim.Adam(p.values(), 2e-3, betas=(0.9, 0.98))
            print(f"seed {seed}, {layers} layers; knowing nothing: {log(TOKENS):.2f}")
            for step in range(601):
                if step % 100 == 0:
                    loss, after, before = told(p, texts)
                    most = max(after, key=after.get)
                    print(f"  {step}: {loss:.2f}; head {most} to what followed: {after[most]:.2f}")
                ids = torch.tensor([repeated(draw, 48, draw.randint(9, 24)) for _ in range(32)])
                log_p, _ = read(p, ids)
                wrong = F.nll_loss(log_p[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
                adam.zero_grad()
                wrong.backward()
                adam.step()
            found = [name for name, share in after.items() if share > 1 / 2]
            print(f"  without {found}: {told(p, texts, found)[0]:.2f}")
            for back in (1, 2):
                print(f"  first layer blind to {back} back: {told(p, texts, blind=back)[0]:.2f}")
