"""Chapter 9's greedy texts, beams, kept shares and wrong losses once more, by a model of its own.

Run: python -m benchmarks.second greedy [STEPS] [SEED ...]; three minutes each. Seed 81, 1,080 steps
(2026-11-27), in brackets the page's: after each of 20 beginnings the greedy text ends in a circle,
with 0.14 for the token in the middle, not surer than before; eight beams find a likelier text 18
times (18); top-p 0.9 keeps 0.900 to 0.953 (0.980), 0.901 on average (the same), and 2 to 369 tokens
(1 to 413). Nats a token 4.45 (4.36), not shifted 7.69 (7.74), shifted the wrong way 8.46 (8.46),
rolled round 0.05 more (the same), of probabilities 7.07 (7.06). Trained on the loss that is not
shifted, another model comes to 0.06 and repeats its token each time.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.language_models import streams
from benchmarks.second.sizes import WINDOW, Reader, trained

PLACES = range(100, 2001, 100)  # of the held-out text, where texts begin


def next_up(model: Reader, ids: Tensor) -> Tensor:
    """Logarithms of the probabilities of what comes next `(B, tokens)`."""
    return model(ids[:, -WINDOW:])[:, -1].log_softmax(-1)


def written(model: Reader, starts: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The likeliest token each time `(B, count)`, and its logarithm."""
    said, logs = starts, []
    for _ in range(count):
        best, token = next_up(model, said).max(-1, keepdim=True)
        said, logs = torch.cat([said, token], 1), [*logs, best]
    return said[:, starts.shape[1] :], torch.cat(logs, 1)


def again(texts: Tensor) -> float:
    """The share of runs of four tokens that have stood before in the same text."""
    seen = []
    for text in texts.tolist():
        runs = [tuple(text[i : i + 4]) for i in range(len(text) - 3)]
        seen += [run in runs[:i] for i, run in enumerate(runs)]
    return sum(seen) / len(seen)


def likeliest(model: Reader, ids: Tensor, count: int, beams: int = 8) -> float:
    """The logarithm of the likeliest continuation that so many beams find."""
    texts, scores = ids[None], torch.zeros(1)
    for _ in range(count):
        more = scores[:, None] + next_up(model, texts)
        scores, which = more.flatten().topk(beams)
        texts = torch.cat([texts[which // more.shape[1]], (which % more.shape[1])[:, None]], 1)
    return scores[0].item()


@torch.no_grad()
def measured(model: Reader, test: Tensor) -> None:
    starts = torch.stack([test[at - 24 : at] for at in PLACES])
    people = torch.stack([test[at : at + 200] for at in PLACES])
    said, logs = written(model, starts, 200)
    circling = sum(again(text[None, -100:]) > 0.5 for text in said)
    print(
        f"   greedy: runs of four again {again(said):.0%}, in texts by people {again(people):.0%};"
    )
    print(f"   of 20 texts {circling} end in a circle")
    tenths = torch.tensor([0.1, 0.5, 0.9])
    theirs = model(people[:, :WINDOW])[:, :-1].log_softmax(-1)
    theirs = theirs.gather(2, people[:, 1:WINDOW, None])
    for whose, chances in (("greedy", logs[:, :100]), ("later", logs[:, 100:]), ("people", theirs)):
        shown = [f"{q:.3f}" for q in chances.exp().flatten().quantile(tenths).tolist()]
        print(f"   {whose}: tenth, median and nine tenths of the probabilities {shown}")
    leads = torch.tensor([likeliest(model, start, 10) for start in starts])
    leads = leads - logs[:, :10].sum(1)
    print(f"   eight beams find a likelier text of ten tokens {(leads > 1e-4).sum()} times")
    chances = model(test[: 8 * WINDOW].view(8, -1)).softmax(-1).flatten(0, 1)
    ordered, _ = chances.sort(-1, descending=True)
    kept = (ordered.cumsum(-1) - ordered < 0.9).sum(-1)
    share = ordered.cumsum(-1).gather(1, kept[:, None] - 1)
    print(f"   top-p 0.9 keeps {share.min():.3f} to {share.max():.3f}, mean {share.mean():.3f};")
    print(f"   {kept.min()} to {kept.max()} tokens")
    wrong(model, test[: 8 * WINDOW].view(8, -1))


def wrong(model: Reader, ids: Tensor) -> None:
    """What mistakes in the loss make of it."""
    logits = model(ids)

    def nats(logits: Tensor, ids: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten(), reduction="none")

    for name, found in {
        "right": nats(logits[:, :-1], ids[:, 1:]).mean(),
        "not shifted": nats(logits, ids).mean(),
        "what came before": nats(logits[:, 1:], ids[:, :-1]).mean(),
        "rolled round": nats(logits, ids.roll(-1, 1)).mean(),
        "of probabilities": nats(logits[:, :-1].softmax(-1), ids[:, 1:]).mean(),
        "guessing": torch.tensor(logits.shape[-1]).log(),
    }.items():
        print(f"   {name}: {found:.3f}")


def main(steps: int = 1080, *seeds: int) -> None:
    ids, sizes = streams()
    for seed in seeds or (81,):
        print(f"seed {seed}, {steps} steps")
        measured(trained(ids["train"], len(sizes), 128, seed, steps), ids["test"])
        copier = trained(ids["train"], len(sizes), 64, seed, max(1, steps // 4), ahead=0)
        with torch.no_grad():
            few = ids["test"][: 8 * WINDOW].view(8, -1)
            loss = F.cross_entropy(copier(few).flatten(0, 1), few.flatten())
            said, _ = written(copier, torch.stack([ids["test"][at - 24 : at] for at in PLACES]), 30)
        same = (said[:, 1:] == said[:, :-1]).float().mean()
        print(f"   trained on what it reads: loss {loss:.4f}; repeats its token in {same:.0%}")
