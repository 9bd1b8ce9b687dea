"""Bits per byte against parameters: chapter 9's language model in three sizes, three seeds each.

Run: OMP_NUM_THREADS=1 python -m benchmarks.language_models [--seeds 0 1 2] [--steps 800]
[--widths 32 64 128] [--result language_model_sizes.json]. All sizes see the same text, cut by the
same 1,000 merges, for the same number of steps, with the chapter's optimiser and learning rate;
only the width differs. What comes out is in benchmarks/language_model_sizes.json, which the
chapter's page draws: bits per byte of the topics held out (`test`), of a piece of the training text
of the same length (`train`), and the bits of each held-out topic (`topics`). Models of the page's
own size and steps are --steps 1080 --widths 128 --result language_model_page.json, which the page
reads, too.
"""

import math
import re
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

from attention_by_hand.data import python_manual
from benchmarks.command_line import options
from benchmarks.results import made_by, store
from solutions.language_model import (
    GPT,
    byte_pair_encode,
    byte_pair_merges,
    next_token_loss,
)

RESULT = "language_model_sizes.json"  # beside this file
SIZES = ((32, 2), (64, 2), (128, 2))  # d_model, num_layers
D_HEAD, CONTEXT, BATCH, MOST, WARMUP, MERGES, DROPOUT = 32, 128, 8, 4e-3, 50, 1000, 0.1
WORD = re.compile(r" ?\w+| ?[^\w\s]+|\s+")  # as on the page


def streams() -> tuple[dict[str, Tensor], Tensor]:
    """The ids of each part, an end token before each topic, and how many bytes an id stands for."""
    parts = {
        part: [text.encode().decode("latin-1") for text in python_manual.documents(part).values()]
        for part in ("train", "valid", "test")
    }
    words = Counter(word for text in parts["train"] for word in WORD.findall(text))
    merges = byte_pair_merges(words, MERGES)
    tokens = ["", *map(chr, range(256)), *(left + right for left, right in merges)]
    id_of = {token: number for number, token in enumerate(tokens)}
    every = {word for texts in parts.values() for text in texts for word in WORD.findall(text)}
    cut = {word: [id_of[piece] for piece in byte_pair_encode(word, merges)] for word in every}
    ids = {
        part: torch.tensor(
            [i for text in texts for i in (0, *(i for w in WORD.findall(text) for i in cut[w]))]
        )
        for part, texts in parts.items()
    }
    return ids, torch.tensor([len(token) for token in tokens])


def rate(step: int, last: int) -> float:
    """The learning rate: a short warm-up, and half a cosine down to 0."""
    return MOST * min(step / WARMUP, (1 + math.cos(math.pi * step / last)) / 2)


def train(ids: Tensor, tokens: int, d_model: int, num_layers: int, steps: int, seed: int) -> GPT:
    """One model, trained on windows from random places of the training text."""
    torch.manual_seed(seed)
    model = GPT(tokens, CONTEXT, d_model, d_model // D_HEAD, num_layers, DROPOUT)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(1, steps + 1):
        starts = torch.randint(len(ids) - CONTEXT, (BATCH, 1))
        window = ids[starts + torch.arange(CONTEXT)]
        loss = next_token_loss(model(window), window)
        adam.param_groups[0]["lr"] = rate(step, steps)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return model.eval()


@torch.no_grad()
def token_bits(model: GPT, ids: Tensor) -> Tensor:
    """The bits of each token but the first; each has half a window before it, if there is one."""
    half, found = CONTEXT // 2, []
    for start in range(0, len(ids) - half, half):
        window, known = ids[None, start : start + CONTEXT], half if start else 1
        log_p = model(window)[:, known - 1 : -1].log_softmax(-1)
        found.append(-log_p.gather(-1, window[:, known:, None])[0, :, 0] / math.log(2))
    return torch.cat(found).double()


def topic_bits(bits: Tensor, ids: Tensor) -> Tensor:
    """The sum over each topic; the end token before a topic belongs to it."""
    return (ids[1:] == 0).long().cumsum(0).bincount(bits)


def main() -> None:
    args = options(
        __doc__, steps=800, seeds=(0, 1, 2), widths=[size[0] for size in SIZES], result=RESULT
    )
    result = Path(__file__).with_name(args.result)
    sizes = [size for size in SIZES if size[0] in args.widths]
    torch.set_num_threads(1)
    ids, byte_lengths = streams()
    lengths = {part: len(stream) for part, stream in ids.items()}
    script = " ".join(["benchmarks/language_models.py", *sys.argv[1:]])
    made = made_by(script, steps=args.steps, tokens=lengths)
    runs = []
    for d_model, num_layers in sizes:
        for seed in args.seeds:
            began = time.process_time()
            model = train(ids["train"], len(byte_lengths), d_model, num_layers, args.steps, seed)
            took = time.process_time() - began
            parts = {"test": ids["test"], "train": ids["train"][: len(ids["test"])]}
            bits = {part: token_bits(model, stream) for part, stream in parts.items()}
            per_byte = {
                part: bits[part].sum().item() / byte_lengths[stream[1:]].sum().item()
                for part, stream in parts.items()
            }
            run = {
                "d_model": d_model,
                "layers": num_layers,
                "parameters": sum(p.numel() for p in model.parameters()),
                "seed": seed,
                **{part: round(share, 4) for part, share in per_byte.items()},
                "topics": [round(x, 1) for x in topic_bits(bits["test"], ids["test"]).tolist()],
                "cpu_seconds": round(took),
            }
            runs.append(run)
            print(run, flush=True)
            store(result, made, runs)


if __name__ == "__main__":
    main()
