"""Chapter 9's page model in NumPy: its bits, hot and cold words, a file of a sentence; and costs.

Run: python -m benchmarks.second coded_and_cached [PART ...]; minutes. The parts are *costs* (of
steps and of caches), *cache* (token by token), *coded* (sentences of held-out topics, by fractions)
and *words* (what the training text does not have, in ten texts).
A step takes 3.81 GFLOP, the scores' 0.40 among them. Held-out topics: 2.420 bits per byte. Twelve
pieces of 40 tokens take 0.6 to 1.9 bits more than they cost, 288 on average; bare xz, primed, 299.
Of the words 8, 27 and 37% are new at 0.5, 1 and 1.5; of those by people 10%, small letters and
capitals alike. Step by step, 128 tokens come out the same to 2e-14.
"""

import lzma
import math
import re
import time
from fractions import Fraction

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from attention_by_hand.models import checkpoints, safetensors
from benchmarks.language_models import streams
from benchmarks.second.bytes_and_archives import TEXTS, words_of
from benchmarks.second.sentences_drawn import drawn
from benchmarks.second.sizes import Reader
from benchmarks.second.weights_in_numpy import HALF, HEADS, log_chances

LN2 = math.log(2)


def page_model():
    file = lzma.decompress(checkpoints.file_of("reader").read_bytes())
    return {name: x.double().numpy() for name, x in safetensors.unpacked(file)[0].items()}


def costs():
    model, ids = Reader(1257, 128), torch.randint(1257, (8, 128))
    with FlopCounterMode(display=False) as counter:
        model(ids).sum().backward()
    places = 128 * 128
    every = sum(p.numel() for p in model.parameters())
    rule = 6 * (every - places) * ids.numel() / 1e9
    print(
        f"{every:,} parameters; a step {counter.get_total_flops() / 1e9:.2f} GFLOP, 6ND {rule:.2f}"
    )
    vocabulary, d, layers, context = 50257, 768, 12, 1024
    own = [4 * (d * d + d), 4 * d * d + 4 * d, 4 * d * d + d, 4 * d]  # look, out, back, two norms
    n = vocabulary * d + layers * sum(own) + 2 * d
    print(
        f"GPT-2: {n + context * d:,}; 120 N² = {120 * n * n:.2e}, 16 N = {16 * n / 2**20:,.0f} MiB"
    )
    caches = ((12, 64, 12, 1024, 4), (12, 64, 4, 1024, 4), (12, 64, 1, 1024, 4))
    for layers, d_k, sets, places, size in (
        *caches,
        (80, 128, 64, 2**17, 2),
        (80, 128, 8, 2**17, 2),
    ):
        kept = np.broadcast_to(np.zeros(size, "u1"), (2, layers, sets, places, d_k, size)).size
        print(f"cache of {sets} sets, {layers} layers, {places:,} places: {kept / 2**20:,.0f} MiB")


def stepped(weights, ids):
    """The logarithms of the chances at each place, by one token at a time and what was kept."""

    def norm(x, name):
        x = (x - x.mean()) / math.sqrt(x.var() + 1e-5)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x, name):
        return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]

    kept, found, seconds = {}, [], []
    for place, token in enumerate(ids):
        began = time.process_time()
        x = weights["tokens.weight"][token] + weights["positions.weight"][place]
        for block in range(sum(name.endswith("norm1.bias") for name in weights)):
            name = f"blocks.{block}."
            y = norm(x, f"{name}norm1")
            q, k, v = (linear(y, f"{name}attn.W_{part}").reshape(HEADS, -1) for part in "qkv")
            old = kept.setdefault(block, [])
            old.append((k, v))
            ks, vs = (np.stack(each, 1) for each in zip(*old, strict=True))
            looks = np.exp(np.einsum("hd,hnd->hn", q, ks) / math.sqrt(q.shape[1]))
            looks /= looks.sum(1, keepdims=True)
            x = x + linear(np.einsum("hn,hnd->hd", looks, vs).ravel(), f"{name}attn.W_o")
            h = linear(norm(x, f"{name}norm2"), f"{name}linear1")
            h = h * (1 + np.vectorize(math.erf)(h / math.sqrt(2))) / 2
            x = x + linear(h, f"{name}linear2")
        logits = weights["tokens.weight"] @ norm(x, "norm")
        found.append(logits - np.log(np.exp(logits).sum()))
        seconds.append(time.process_time() - began)
    return np.array(found), seconds


def cache():
    weights, (ids, _) = page_model(), streams()
    some = ids["test"][5000:5128].numpy()
    began = time.process_time()
    whole = log_chances(weights, some)
    took = time.process_time() - began
    found, seconds = stepped(weights, some)
    print(f"128 tokens: off by {np.abs(found - whole).max():.0e} at most;", end=" ")
    print(f"all anew {1000 * took:.1f} ms, the last one alone {1000 * seconds[-1]:.1f} ms")


def file_of(chances, ids):
    """The fewest binary digits that only numbers of the text's interval begin with."""
    low, length = Fraction(0), Fraction(1)
    for row, token in zip(chances, ids, strict=True):
        counts = np.maximum(np.floor(row * 2**24), 1).astype(int)
        counts[counts.argmax()] += 2**24 - counts.sum()
        before, own = int(counts[:token].sum()), int(counts[token])
        low, length = low + length * before / 2**24, length * own / 2**24
    digits = 0
    while True:
        step = Fraction(1, 2**digits)
        first = math.ceil(low / step)
        if (first + 1) * step <= low + length:
            return digits
        digits += 1


def coded():
    weights, (ids, sizes) = page_model(), streams()
    new = ids["test"].numpy()
    bits, doubt = np.zeros(len(new)), {0.5: [], 1.0: [], 1.5: []}
    for start in range(0, len(new), HALF):
        begin = max(0, start - HALF)
        found = log_chances(weights, new[begin : start + HALF])
        for temperature, entropies in doubt.items():
            p = np.exp(found / temperature)
            p /= p.sum(1, keepdims=True)
            entropies += list(-(p * np.log2(p)).sum(1))
        for i in range(max(1, start), min(start + HALF, len(new))):
            bits[i] = -found[i - 1 - begin, new[i]] / LN2
    print(
        f"the page's model: {bits.sum() / sizes[new[1:]].sum().item():.3f} bits per byte",
    )
    print({t: round(np.mean(e), 2) for t, e in doubt.items()}, "bits of surprise at temperatures")
    learnt, names = "".join(TEXTS["train"]).encode("latin-1"), token_names()
    raw = {"format": lzma.FORMAT_RAW, "filters": [{"id": lzma.FILTER_LZMA2, "preset": 9}]}
    draw, more, costs, alone, primed = np.random.default_rng(99), [], [], [], []
    before = len(lzma.compress(learnt, **raw))
    for start in draw.integers(len(new) - 50, size=12):
        some = new[start : start + 40]
        chances = np.exp(log_chances(weights, np.concatenate([[0], some[:-1]])))
        costs.append(-sum(math.log2(row[token]) for row, token in zip(chances, some, strict=True)))
        more.append(file_of(chances, some) - costs[-1])
        text = "".join(names[i] for i in some).encode("latin-1")
        alone.append(8 * len(lzma.compress(text, **raw)))
        primed.append(8 * (len(lzma.compress(learnt + text, **raw)) - before))
    print(
        f"twelve texts of 40 tokens: {min(more):.2f} to {max(more):.2f} bits more than they cost,"
    )
    told = [round(np.mean(each)) for each in (costs, alone, primed)]
    print(f"{told[0]} on average; bare xz takes {told[1]}, primed {told[2]}")


def words():
    weights = page_model()
    known = {w.strip() for text in TEXTS["train"] for w in words_of(text)}
    known = {word for w in known for word in re.findall("[a-z]+", w.lower())}
    people = re.findall("[a-z]+", " ".join(TEXTS["test"]).lower())
    print(f"people: {np.mean([word not in known for word in people]):.0%} of {len(people)} are new")
    names = token_names()
    for temperature in (0.5, 1.0, 1.5):
        luck, unknown, of, surprise = np.random.default_rng(96), 0, 0, []
        for _ in range(10):
            row = [0]
            for _ in range(100):
                chance = np.exp(log_chances(weights, np.array(row))[-1])
                row.append(drawn(chance, temperature, 1.0, luck))
                surprise.append(-math.log2(chance[row[-1]]))
            written = re.findall("[a-z]+", "".join(names[i] for i in row).lower())[:-1]
            unknown, of = unknown + sum(word not in known for word in written), of + len(written)
        print(f"temperature {temperature}: {unknown} of {of}, {unknown / of:.0%} new;", end=" ")
        print(f"{np.mean(surprise):.2f} bits of surprise")


def token_names():
    """What each id stands for: read off the training text, cut as in `streams`."""
    ids, sizes = streams()
    text, names, at = "".join(TEXTS["train"]), [""] * len(sizes), 0
    for token in ids["train"].tolist():
        size = sizes[token].item()
        names[token], at = text[at : at + size], at + size
    return names


def main(*chosen: str) -> None:
    parts = {"costs": costs, "cache": cache, "coded": coded, "words": words}
    for part in chosen or parts:
        parts[part]()
