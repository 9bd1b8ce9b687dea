"""Chapter 9's GPT trained beforehand, on the English text that pinned packages carry.

Run: OMP_NUM_THREADS=1 python -m benchmarks.pretrained_gpt [--seeds 0 1 2] [--device cpu]. It reads
the text (`benchmarks/english.py`), learns byte pairs with the chapter's own function, and trains
the chapter's GPT once for each seed, less than half an hour of one core each. Seed 0's weights, in
half precision, are kept in attention_by_hand/models/gpt.bin. What comes out is in
benchmarks/pretrained_gpt.json: the packages, their licences and bytes; which documents were held
out; and bits per byte of these, of each seed, of compressors, and of the page's own model, which
has read the manual alone.
"""

import bz2
import gzip
import lzma
import math
import time
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

from attention_by_hand.models import gpt
from benchmarks import english, language_models
from benchmarks.command_line import options
from benchmarks.language_models import WORD, token_bits
from benchmarks.results import made_by, write
from solutions.language_model import (
    GPT,
    byte_pair_encode,
    byte_pair_merges,
    generate,
    next_token_loss,
)

RESULT = Path(__file__).with_suffix(".json")
SOURCES = RESULT.parents[1] / "book" / "extensions" / "static" / "gpt_sources.txt"
MERGES, STEPS, BATCH, MOST, WARMUP = 1200, 10_000, 16, 3e-3, 200
PACKERS = {
    "gzip -9": lambda data: gzip.compress(data, 9, mtime=0),
    "bz2 -9": lambda data: bz2.compress(data, 9),
    "xz -9": lambda data: lzma.compress(data, preset=9),
}


class Tokens:
    """Byte pairs, and the tokens that they make: the end of a text, all bytes, all joined pairs."""

    def __init__(self, merges: list[tuple[str, str]]):
        self.merges = merges
        self.tokens = ["", *map(chr, range(256)), *(left + right for left, right in merges)]
        self.lengths = torch.tensor([len(token) for token in self.tokens])
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        self._cut: dict[str, list[int]] = {}

    def encode(self, texts: list[str]) -> Tensor:
        """All texts in one row, the end token before each."""
        row = []
        for text in texts:
            row.append(0)
            for word in WORD.findall(text):
                if word not in self._cut:
                    pieces = byte_pair_encode(word, self.merges)
                    self._cut[word] = [self._ids[piece] for piece in pieces]
                row += self._cut[word]
        return torch.tensor(row)

    def decode(self, ids: list[int]) -> str:
        joined = "".join(self.tokens[number] for number in ids)
        return joined.encode("latin-1").decode(errors="replace")


def as_bytes(texts: dict) -> list[str]:
    """One character for each byte."""
    return [text.encode().decode("latin-1") for text in texts.values()]


def learn_tokens(texts: list[str]) -> Tokens:
    words = Counter(word for text in texts for word in WORD.findall(text))
    return Tokens(byte_pair_merges(words, MERGES))


def rate(step: int) -> float:
    """The learning rate: a warm-up, then half a cosine down to 0."""
    return MOST * min(step / WARMUP, (1 + math.cos(math.pi * step / STEPS)) / 2)


def train(ids: Tensor, tokens: int, seed: int, device: str = "cpu", steps: int = STEPS) -> GPT:
    """One model, trained on windows from random places of the text."""
    torch.manual_seed(seed)
    context = gpt.SIZES["context_size"]
    model = GPT(tokens, **gpt.SIZES).to(device)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    luck, ids = torch.Generator().manual_seed(seed), ids.to(device)
    for step in range(1, steps + 1):
        starts = torch.randint(len(ids) - context, (BATCH, 1), generator=luck)
        window = ids[(starts + torch.arange(context)).to(device)]
        loss = next_token_loss(model(window), window)
        adam.param_groups[0]["lr"] = rate(step)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return model.eval()


def halve(model: GPT) -> GPT:
    """Round the weights to half precision, as they are kept."""
    model.load_state_dict({k: v.half().float() for k, v in model.state_dict().items()})
    return model


def bits_per_byte(model: GPT, ids: Tensor, lengths: Tensor) -> float:
    bits = token_bits(model, ids.to(next(model.parameters()).device)).sum().item()
    return round(bits / lengths[ids[1:]].sum().item(), 4)


def packed(learnt: bytes, kept: bytes) -> dict[str, float]:
    """Bits per byte of compressors: alone, and with the training text in front."""
    found = {}
    for name, pack in PACKERS.items():
        more = len(pack(learnt + kept)) - len(pack(learnt))
        found[name] = round(8 * len(pack(kept)) / len(kept), 4)
        found[f"{name}, primed"] = round(8 * more / len(kept), 4)
    return found


def unknown_words(model: GPT, tokens: Tokens, known: set[str]) -> list[int]:
    """Of what the model writes: words that the training text does not have, and all words."""
    start = torch.zeros(100, 1, dtype=torch.long, device=next(model.parameters()).device)
    luck = torch.Generator(start.device).manual_seed(0)
    rows = generate(model, start, 100, top_p=0.9, generator=luck).tolist()
    words = [w for row in rows for w in english.WORDS.findall(tokens.decode(row))[:-1]]
    return [sum(word.lower() not in known for word in words), len(words)]


def seconds_a_step(ids: Tensor, tokens: int) -> float:
    """What a step takes on one core, in seconds of computing: the median of 20."""
    times = []
    for _ in range(20):
        began = time.process_time()
        train(ids, tokens, 0, steps=1)
        times.append(time.process_time() - began)
    return round(sorted(times)[10], 3)


def measure(model: GPT, tokens: Tokens, ids: dict[str, Tensor], known: set[str]) -> dict:
    """What is stored of a model: its bits per byte, and how many words it makes up."""
    size = len(ids["test"])
    ids = {name: row[:size] if name == "train" else row for name, row in ids.items()}
    parts = {name: bits_per_byte(model, row, tokens.lengths) for name, row in ids.items()}
    return parts | {"unknown words": unknown_words(model, tokens, known)}


def measure_page_model(seed: int, texts: dict[str, list[str]]) -> dict:
    """The page's own model, which has read the manual, on the same texts."""
    ids, lengths = language_models.streams()
    model = language_models.train(ids["train"], len(lengths), 128, 2, 1080, seed)
    manual = as_bytes(language_models.python_manual.documents("train"))
    words = Counter(word for text in manual for word in WORD.findall(text))
    tokens = Tokens(byte_pair_merges(words, language_models.MERGES))
    known = {word.lower() for text in manual for word in english.WORDS.findall(text)}
    kept = {name: tokens.encode(texts[name]) for name in ("test", "manual")}
    return {"seed": seed} | measure(model, tokens, kept, known)


def describe(parts: dict[str, dict[english.Name, str]], ids: dict[str, Tensor]) -> dict:
    """What was read, what was held out, and what compressors make of it."""
    texts = {name: text for part in parts.values() for name, text in part.items()}
    joined = {part: "".join(found.values()).encode() for part, found in parts.items()}
    runs = {part: set().union(*map(english.runs_of_words, parts[part].values())) for part in parts}
    return {
        "sources": english.sources(texts),
        "bytes": {part: len(text) for part, text in joined.items()},
        "tokens": {part: len(ids[part]) for part in parts},
        "held out": {
            part: [[*name, len(text.encode())] for name, text in parts[part].items()]
            for part in english.HELD_OUT
        },
        "runs of words held out": len(runs["valid"] | runs["test"]),
        "of these in training": len((runs["valid"] | runs["test"]) & runs["train"]),
        "compressors": packed(joined["train"], joined["test"]),
    }


def prepare() -> tuple[dict[str, dict[english.Name, str]], Tokens, dict[str, Tensor]]:
    """The parts of the text, the tokens, and the ids of each part and of the manual's test."""
    parts = english.split(english.documents())
    tokens = learn_tokens(as_bytes(parts["train"]))
    ids = {part: tokens.encode(as_bytes(texts)) for part, texts in parts.items()}
    manual = language_models.python_manual.documents("test")
    return parts, tokens, ids | {"manual": tokens.encode(as_bytes(manual))}


def store(made: dict, text: dict, seeds: list[dict], page: list[dict]) -> None:
    about = made_by("benchmarks/pretrained_gpt.py", **made)
    write(RESULT, made=about, text=text, seeds=seeds, page=page)
    SOURCES.write_text(listed(text["sources"]), encoding="utf-8")


def listed(sources: list[list]) -> str:
    """The packages as a table that the page links."""
    lines = [f"{'package':30}{'version':14}{'documents':>10}{'bytes':>10}  licence"]
    for package, version, licence, number, size in sources:
        lines.append(f"{package:30}{version:14}{number:10,}{size:10,}  {licence}")
    return "\n".join(lines) + "\n"


def main() -> None:
    args = options(__doc__, seeds=(0, 1, 2), device="cpu")
    torch.set_num_threads(1)
    parts, tokens, ids = prepare()
    size, text = len(tokens.tokens), describe(parts, ids)
    known = {w.lower() for found in parts["train"].values() for w in english.WORDS.findall(found)}
    manual = as_bytes(language_models.python_manual.documents("test"))
    kept = {"test": as_bytes(parts["test"]), "manual": manual}
    made = {
        "device": args.device,
        "steps": STEPS,
        "tokens a step": BATCH * gpt.SIZES["context_size"],
        "seconds a step, one core": seconds_a_step(ids["train"], size),
    }
    seeds, page = [], []
    for seed in args.seeds:
        model = halve(train(ids["train"], size, seed, args.device)).cpu()
        if seed == 0:
            gpt.save(model.state_dict(), tokens.merges)
        seeds.append({"seed": seed} | measure(model, tokens, ids, known))
        page.append(measure_page_model(seed, kept))
        store(made, text, seeds, page)
        print(seeds[-1], page[-1], flush=True)


if __name__ == "__main__":
    main()
