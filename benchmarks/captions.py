"""Chapter 12's captioner: three seeds, its baselines, and why unseen pairs of letter and mark fail.

Run: OMP_NUM_THREADS=1 python -m benchmarks.captions [--seeds 0 1 2] [--only NAME …]. Writes
captions.json, and the weights of seed 0's captioner into the package. About 18 minutes of processor
time for each seed; runs that are on file are kept, unless they are named. Seeds 3 and 4 have the
runs of 4,500 steps, "captions only" and "pasted, moved".

A seed holds out its own fifth of the pairs of letter and mark, in both cases and all fonts (`new`),
and the font DejaVuSerif-BoldItalic of the other pairs (`font`). Nothing of either is read in
training. What is compared:

* captioner: convolutions, a ViT block and the text side, with all three losses of BLIP
* captions only: the same with the captioning loss alone; for retrieval, its two projections are
  trained afterwards, by the contrastive loss, and nothing else is
* never trained: a captioner as it begins, and two projections behind it, trained in the same way;
  its batch norm has only gathered means and variances
* no batch norm: convolutions without it, captions only; no batch norm, longer: in 4,500 steps
* patches: patches of 4 × 4 pixels and two ViT blocks instead of convolutions, captions only
* patches, longer: three times as many steps
* patches, words hidden: half of the words that the decoder reads are hidden while it learns, so
  that it cannot know the letter by its word when it comes to the mark
* heads on patches, heads on convolutions: no language at all; from the encoder's vectors, a linear
  layer names the letter with its case, another one the mark
* names as classes: the same on convolutions with one linear layer for whole names
* nearest: the name of the training picture that is nearest, pixel by pixel
* pasted: the same, among pictures that are made as well: each mark of the training, taken off its
  letter, on each bare letter of the same font and case; for retrieval, a name is as like a picture
  as the nearest of its own
* pasted, moved: the same, each picture tried where it stands and a pixel away in eight directions
"""

import argparse
import copy
import math
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.progress import Progress
from torch import Tensor, nn

from attention_by_hand.data.glyphs import MARKS, Glyph, glyphs, held_out, mark_pixels
from attention_by_hand.models import captioner as made
from attention_by_hand.models.captioner import (
    EOS,
    PAD,
    Captioner,
    ids_of,
    longest,
    pictures,
    words_of,
)
from benchmarks.caption_rivals import Heads, closest, marks_on_letters, nearness, projections
from benchmarks.caption_scores import marks_of, parsed, recalls, share
from benchmarks.results import made_by, runs_in, store
from solutions.captioning import (
    caption_loss,
    contrastive_loss,
    hard_negatives,
    recall_at,
    write_caption,
)

RESULT = Path(__file__).with_suffix(".json")
FONT = "DejaVuSerif-BoldItalic"
STEPS, BATCH, RATE, SHIFT = 1500, 48, 2e-3, 2


@cache
def collection() -> tuple[tuple[Glyph, ...], Tensor, Tensor]:
    """All glyphs, their pictures, and the ids of their names."""
    every = glyphs()
    return every, pictures(every), ids_of([glyph.name for glyph in every])


def parts_of(seed: int) -> dict[str, Tensor]:
    """The indices of what is read in training, of unseen pairs, and of the unseen font."""
    every, out = collection()[0], held_out(seed)
    new = torch.tensor([glyph.pair in out for glyph in every])
    font = torch.tensor([glyph.font == FONT for glyph in every])
    parts = {"train": ~new & ~font, "new": new, "font": ~new & font}
    return {name: chosen.nonzero()[:, 0] for name, chosen in parts.items()}


def batches(part: Tensor, steps: int, luck: np.random.RandomState) -> Iterator[tuple]:
    """Pictures, each moved by up to two pixels, and their captions; no name twice in a batch."""
    every, images, ids = collection()
    for _ in range(steps):
        by_name: dict[str, int] = {}
        for i in part[luck.permutation(len(part))].tolist():
            by_name.setdefault(every[i].name, i)
            if len(by_name) == BATCH:
                break
        chosen = torch.tensor(list(by_name.values()))
        moves = luck.randint(-SHIFT, SHIFT + 1, (len(chosen), 2)).tolist()
        moved = [torch.roll(images[i], m, (0, 1)) for i, m in zip(chosen, moves, strict=True)]
        yield chosen, torch.stack(moved), ids[chosen]


def losses(model: Captioner, x: Tensor, ids: Tensor, kinds: str, hide: float) -> Tensor:
    """The sum of BLIP's losses, or of some of them: c(aptions), v(ectors), m(atching)."""
    memory = model.encode(x)
    read = ids.clone()
    if hide:
        hidden = torch.rand(ids.shape) < hide
        hidden[:, :2] = False  # the prompt
        read[hidden] = PAD
    total = caption_loss(model.decode(read, memory), ids, 2, PAD)
    if "v" in kinds:
        images, texts = model.image_vectors(memory), model.text_vectors(ids)
        total = total + contrastive_loss(images, texts)
        alike = F.normalize(images.detach(), dim=-1) @ F.normalize(texts.detach(), dim=-1).T
    if "m" in kinds:
        text, image = hard_negatives(alike / 0.07)
        logits = model.match(
            torch.cat([ids, ids[text], ids]), torch.cat([memory, memory, memory[image]])
        )
        belongs = torch.zeros(len(logits), dtype=torch.long)
        belongs[: len(ids)] = 1
        total = total + F.cross_entropy(logits, belongs)
    return total


def descend(
    model: nn.Module, loss_of: Callable, part: Tensor, seed: int, steps: int, watch: Callable
) -> None:
    """AdamW with a warm-up of 100 steps and a cosine that ends at 0."""
    luck = np.random.RandomState(seed)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.05)
    model.train()
    for step, (chosen, x, ids) in enumerate(batches(part, steps, luck), 1):
        rate = RATE * min(step / 100, (1 + math.cos(math.pi * step / steps)) / 2)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss_of(chosen, x, ids).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        watch()
    model.eval()


@torch.no_grad()
def captions(model: Captioner, images: Tensor) -> Tensor:
    """What a model writes, `(B, longest())`."""
    ids = write_caption(model.eval(), images, made.prompt(), EOS, longest())
    return F.pad(ids, (0, longest() - ids.shape[1]), value=PAD)


def tried(write: Callable[[Tensor], list[str]], seed: int) -> dict:
    """What is written for unseen pairs, and for the unseen font."""
    every, parts = collection()[0], parts_of(seed)
    known = {parsed(every[i].name) for i in parts["train"].tolist()}
    return {
        name: marks_of(write(parts[name]), [every[i].name for i in parts[name].tolist()], known)
        for name in ("new", "font")
    }


def one_each(part: Tensor, seed: int) -> Tensor:
    """One picture of each name, of a font drawn at random."""
    every, by_name = collection()[0], {}
    luck = np.random.RandomState(seed)
    for i in part[luck.permutation(len(part))].tolist():
        by_name.setdefault(every[i].name, i)
    return torch.tensor([by_name[name] for name in sorted(by_name)])


@torch.no_grad()
def retrieval(model: Captioner, seed: int) -> dict:
    """Recall among all names of unseen pairs, a picture for each."""
    _, images, ids = collection()
    chosen = one_each(parts_of(seed)["new"], seed)
    model.eval()
    return recalls(
        model.image_vectors(model.encode(images[chosen])), model.text_vectors(ids[chosen])
    )


@torch.no_grad()
def matching(model: Captioner, seed: int) -> dict:
    """How often its own name is judged likelier than the same letter with another mark.

    By the matcher, and by the cosine alone.
    """
    every, images, ids = collection()
    chosen, luck = one_each(parts_of(seed)["new"], seed), np.random.RandomState(seed)
    others = []
    for i in chosen.tolist():
        letter, mark = parsed(every[i].name)
        others.append(f"{letter} WITH {luck.choice([m for m in MARKS if m != mark])}")
    memory = model.eval().encode(images[chosen])
    texts = ids[chosen], ids_of(others)
    judged = [model.match(text, memory).log_softmax(-1)[:, 1] for text in texts]
    seen = model.image_vectors(memory)
    alike = [F.cosine_similarity(seen, model.text_vectors(text)) for text in texts]
    found = {"matching": judged, "matching, by cosine": alike}
    return {name: share((own > other).tolist()) for name, (own, other) in found.items()}


def with_projections(model: Captioner, seed: int) -> dict:
    """Recall once two projections, and nothing else, have learnt from the contrastive loss.

    That of the pictures reads the mean of the memory, as the model's own does, or all its places.
    """
    _, images, ids = collection()
    fitted, found = copy.deepcopy(model).eval(), {}
    fitted.to_text = nn.Identity()
    chosen = one_each(parts_of(seed)["new"], seed)
    with torch.no_grad():
        memory = torch.cat([fitted.encode(some) for some in images.split(256)])
        read = torch.cat([fitted.text_vectors(some) for some in ids.split(256)])
    part = parts_of(seed)["train"]
    fit = partial(descend, part=part, seed=seed, steps=STEPS, watch=lambda: None)
    for name, seen in (("mean", memory.mean(1)), ("all places", memory.flatten(1))):
        torch.manual_seed(seed)
        found[name] = recalls(*projections(seen, read, fit)(chosen))
    return found


@torch.no_grad()
def gaze(model: Captioner, seed: int) -> dict:
    """The share of the last layer's weights that falls on the mark's places, by word.

    Only marks of one word; places are those in which the mark has any pixel. "mark, elsewhere" is
    the share of the mean map over the other pictures.
    """
    every, images, ids = collection()
    chosen = one_each(parts_of(seed)["new"], seed)
    chosen = torch.tensor([i for i in chosen.tolist() if " " not in every[i].mark])
    where = np.stack([mark_pixels(every[i]) for i in chosen.tolist()])
    places = torch.from_numpy(where).view(-1, 8, 4, 8, 4).any(4).any(2)
    looks = model.eval().looks(ids[chosen], model.encode(images[chosen]))[:, -1].mean(1)
    on_mark = (looks * places[:, None]).sum((2, 3))  # (B, n)
    # [DEC] LATIN SMALL LETTER E WITH ACUTE: a word's row is that of the token before it
    rows = {"letter": 3, "WITH": 4, "mark": 5}
    found = {word: round(on_mark[:, row].mean().item(), 4) for word, row in rows.items()}
    looks = looks[:, rows["mark"]]
    others = (looks.sum(0) - looks) / (len(looks) - 1)
    found["mark, elsewhere"] = round((others * places).sum((1, 2)).mean().item(), 4)
    return found | {"of the picture": round(places.float().mean().item(), 4)}


CAPTIONERS = {
    "captioner": {"kinds": "cvm"},
    "captions only": {"project": True},
    "never trained": {"project": True, "steps": 0},
    "no batch norm": {"batch_norm": False},
    "no batch norm, longer": {"batch_norm": False, "steps": 3 * STEPS},
    "patches": {"patches": True},
    "patches, longer": {"patches": True, "steps": 3 * STEPS},
    "patches, words hidden": {"patches": True, "hide": 0.5},
}
CLASSIFIERS = {
    "heads on patches": {"patches": True},
    "heads on convolutions": {},
    "names as classes": {"whole": True},
}


def captioner(
    seed, watch, *, kinds="c", patches=False, batch_norm=True, steps=STEPS, hide=0.0, project=False
) -> tuple:
    """Train a captioner; return what is stored, and the model."""
    torch.manual_seed(seed)
    model = Captioner(not patches, batch_norm, num_blocks=2 if patches else 1)
    found = {"retrieval, untrained": retrieval(model, seed)} if kinds == "cvm" else {}
    began = time.process_time()
    part = parts_of(seed)["train"]
    descend(model, lambda _, x, t: losses(model, x, t, kinds, hide), part, seed, steps, watch)
    if not steps:
        model.train()
        with torch.no_grad():
            for _, x, _ in batches(part, 100, np.random.RandomState(seed)):
                model.encode(x)
    found |= {"steps": steps, "cpu_seconds": round(time.process_time() - began, 1)}
    found["parameters"] = sum(p.numel() for p in model.parameters())
    found |= tried(lambda i: [words_of(t) for t in captions(model, collection()[1][i])], seed)
    if project:
        found["retrieval, projections trained"] = with_projections(model, seed)
    if kinds == "cvm":
        found |= {"retrieval": retrieval(model, seed), "gaze": gaze(model, seed)}
        found |= matching(model, seed)
    return found, model


def classifier(seed, watch, *, patches=False, whole=False) -> tuple:
    """Train a classifier of letters and of marks, or of whole names."""
    every, images, _ = collection()
    parts = parts_of(seed)
    cut = (lambda name: (name,)) if whole else parsed
    names = [cut(glyph.name) for glyph in every]
    columns = [sorted({names[i][c] for i in parts["train"].tolist()}) for c in range(len(names[0]))]
    labels = [
        torch.tensor([column.index(n[c]) if n[c] in column else -1 for n in names])
        for c, column in enumerate(columns)
    ]
    torch.manual_seed(seed)
    model = Heads(patches, [len(column) for column in columns])

    def loss_of(chosen: Tensor, x: Tensor, _: Tensor) -> Tensor:
        logits = zip(model(x), labels, strict=True)
        return sum(F.cross_entropy(found, label[chosen]) for found, label in logits)

    @torch.no_grad()
    def write(chosen: Tensor) -> list[str]:
        best = [found.argmax(-1).tolist() for found in model(images[chosen])]
        said = [
            [c[i] for c, i in zip(columns, row, strict=True)] for row in zip(*best, strict=True)
        ]
        return [" WITH ".join(filter(None, row)) for row in said]

    began = time.process_time()
    descend(model, loss_of, parts["train"], seed, STEPS, watch)
    took = round(time.process_time() - began, 1)
    return {"steps": STEPS, "cpu_seconds": took} | tried(write, seed), model


def nearest(seed: int) -> dict:
    """The name of the nearest training picture, by squared differences of pixels."""
    every, images, _ = collection()
    train = parts_of(seed)["train"]
    return tried(closest([every[i].name for i in train.tolist()], images[train], images), seed)


def pasted(seed: int, reach: int = 0) -> dict:
    """The nearest, where each mark of the training has been pasted onto each bare letter."""
    every, images, _ = collection()
    made_too = marks_on_letters(every, images, parts_of(seed)["train"].tolist())
    found = tried(closest(*made_too, images, reach), seed)
    chosen = one_each(parts_of(seed)["new"], seed)
    asked = [every[i].name for i in chosen.tolist()]
    alike = nearness(*made_too, images[chosen], asked, reach)
    at = {f"at {k}": [round(share, 4) for share in recall_at(alike, k)] for k in (1, 5)}
    return found | {"retrieval": {"names": len(asked)} | at}


NEAREST = {"nearest": nearest, "pasted": pasted, "pasted, moved": partial(pasted, reach=1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--only", nargs="+", default=(), help="runs to make again")
    args = parser.parse_args()
    torch.set_num_threads(1)
    every = [*CAPTIONERS, *CLASSIFIERS, *NEAREST]
    if unknown := set(args.only) - set(every):
        parser.error(f"no such run: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    for seed in args.seeds:
        for name in args.only or every:
            if args.only or (seed, name) not in {(r["seed"], r["run"]) for r in runs_in(RESULT)}:
                with Progress() as progress:
                    length = CAPTIONERS.get(name, {}).get("steps", STEPS)
                    task = progress.add_task(f"seed {seed}, {name}", total=length)
                    found = run_of(name, seed, lambda: progress.advance(task))  # noqa: B023
                write({"seed": seed, "run": name} | found)


def run_of(name: str, seed: int, watch: Callable) -> dict:
    """Make a run; seed 0's captioner is kept."""
    if name in NEAREST:
        return NEAREST[name](seed)
    if name in CLASSIFIERS:
        return classifier(seed, watch, **CLASSIFIERS[name])[0]
    found, model = captioner(seed, watch, **CAPTIONERS[name])
    if name == "captioner" and seed == 0:
        made.save(model)
    return found


def write(run: dict) -> None:
    """Put a run into the file, in place of the one of the same name and seed."""
    runs = [r for r in runs_in(RESULT) if (r["seed"], r["run"]) != (run["seed"], run["run"])]
    runs = sorted([*runs, run], key=lambda r: (r["seed"], r["run"]))
    counts = {
        seed: {name: len(part) for name, part in parts_of(seed).items()}
        for seed in sorted({r["seed"] for r in runs})
    }
    store(RESULT, made_by("benchmarks/captions.py", pictures=counts), runs)


if __name__ == "__main__":
    main()
