"""Chapter 9's GPT trained beforehand, read from its file and run in NumPy: its bits per byte.

Run: python -m benchmarks.second weights_in_numpy; two minutes. The file is taken apart here, tokens
are cut here, and each has half a window or more before it. 1.3001 bits per byte, and each
document's bits are the stored ones, to within their rounding.
"""

import json
import math
import re
from pathlib import Path

import numpy as np

from attention_by_hand.models import gpt
from benchmarks import english

HALF, HEADS = 64, 4


def read(path):
    """A header of names, kinds and places, after its length; then the numbers."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    notes, found = header.pop("__metadata__"), {}
    for name, entry in header.items():
        start, end = (begin + place for place in entry["data_offsets"])
        assert entry["dtype"] == "F16"
        found[name] = np.frombuffer(data[start:end], "<f2").reshape(entry["shape"]).astype(float)
    return found, notes


class Cutter:
    """Bytes to ids: of all pairs of pieces in a word, the one that was learnt first is joined."""

    def __init__(self, path):
        pairs = [tuple(line.split("\t")) for line in read(path)[1]["merges"].split("\n")]
        self.rank = {pair: i for i, pair in enumerate(pairs)}
        self.tokens = ["", *map(chr, range(256)), *map("".join, pairs)]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.known = {}

    def cut(self, word):
        pieces = list(word)
        while len(pieces) > 1:
            pairs = list(zip(pieces, pieces[1:], strict=False))
            pair = min(pairs, key=lambda pair: self.rank.get(pair, math.inf))
            if pair not in self.rank:
                break
            joined, i = [], 0
            while i < len(pieces):
                step = 2 if tuple(pieces[i : i + 2]) == pair else 1
                joined.append("".join(pieces[i : i + step]))
                i += step
            pieces = joined
        return [self.ids[piece] for piece in pieces]

    def __call__(self, text):
        """The end token, then those of the text."""
        row = [0]
        for word in re.findall(r" ?\w+| ?[^\w\s]+|\s+", text.decode("latin-1")):
            if word not in self.known:
                self.known[word] = self.cut(word)
            row += self.known[word]
        return row


def log_chances(weights, ids):
    """One window: the logarithm of the chance of each token, at each place."""
    norm = lambda x, name: (  # noqa: E731
        (x - x.mean(-1, keepdims=True))
        / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        * weights[f"{name}.weight"]
        + weights[f"{name}.bias"]
    )
    linear = lambda x, name: x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]  # noqa: E731
    error = np.vectorize(math.erf)
    n, table = len(ids), weights["tokens.weight"]
    x = table[ids] + weights["positions.weight"][:n]
    for block in range(sum(name.endswith("norm1.bias") for name in weights)):
        name = f"blocks.{block}."
        y = norm(x, f"{name}norm1")
        q, k, v = (np.split(linear(y, f"{name}attn.W_{part}"), HEADS, -1) for part in "qkv")
        outputs = []
        for head in range(HEADS):
            scores = np.exp(q[head] @ k[head].T / math.sqrt(q[head].shape[-1]))
            scores *= np.tri(n)
            outputs.append(scores / scores.sum(-1, keepdims=True) @ v[head])
        x = x + linear(np.concatenate(outputs, -1), f"{name}attn.W_o")
        h = linear(norm(x, f"{name}norm2"), f"{name}linear1")
        x = x + linear(h * (1 + error(h / math.sqrt(2))) / 2, f"{name}linear2")
    logits = norm(x, "norm") @ table.T
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def main() -> None:
    texts = [text.encode() for text in english.split(english.documents())["test"].values()]
    cutter, (weights, _) = Cutter(gpt.WEIGHTS), read(gpt.WEIGHTS)
    rows = [cutter(text) for text in texts]
    ids, of = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    bits = np.zeros(len(ids))
    for start in range(0, len(ids), HALF):
        begin = max(0, start - HALF)
        found = log_chances(weights, ids[begin : start + HALF])
        for i in range(max(1, start), min(start + HALF, len(ids))):
            bits[i] = -found[i - 1 - begin, ids[i]] / math.log(2)
    print(f"{bits.sum() / sum(map(len, texts)):.4f} bits per byte")
    stored = json.loads(Path("benchmarks/kneser_ney.json").read_text("utf-8"))["GPT"]["documents"]
    apart = np.abs(np.bincount(of, bits) - stored).max()
    print(f"a document's bits differ from the stored ones by {apart:.2f} at most")
