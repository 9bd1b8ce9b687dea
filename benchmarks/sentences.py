"""How often chapter 9's GPT trained beforehand writes a grammatical sentence, judged blind.

Run: python -m benchmarks.sentences draw FOLDER; judge; python -m benchmarks.sentences keep FOLDER;
and again with `--later` for the second drawing: counts and GPT at 0.5, and 30 held-out documents.
Of each text, begun at its beginning and cut after 90 tokens, the first sentence is taken that has
five words or more and ends in a full stop. The texts are GPT's, with the page's settings and at a
lower temperature; those of the Kneser-Ney counts of `kneser_ney.py`, of the same text and tokens,
drawn in the same way; and documents that were held out.

`draw` shuffles all sentences twice, into list-1.txt and list-2.txt, and writes which is whose into
key.json. The judge reads one list, then the other, and writes judged-1.txt and judged-2.txt, a
number and a letter on each line, before the key is opened. Only grammar counts, not sense: s is a
sentence that a copy editor would leave; p a phrase that is as well made, as documentation has them
("A list of names.", "Returns the name."); x all else. Names of code are nouns; an unknown word
makes x. The first reading counts, s and p as grammatical; the second says how sure it is. `keep`
writes benchmarks/sentences.json, and `tell` says what it holds: of each sentence, whose it is,
whether the training text has it, and the letters of both readings.

All readings (2026-11-27) were a large language model's, one right after the other. An earlier
drawing was given up unjudged, since the counts had begun in the middle of sentences. Four letters
of the first reading are slips of the pen ("These classes are the", "Therefore, it is used", "Raised
when a specific", "Indicates for a single"), found after the key was opened, and left as they were.
The judge of the second drawing had seen sentences of the first with their names, but none of
those of the second, nor their key.
"""

import argparse
import json
import random
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binomtest
from torch import Tensor, nn

from attention_by_hand.models import gpt
from benchmarks import english, pretrained_gpt
from solutions.language_model import GPT, generate

RESULT = Path(__file__).with_suffix(".json")
LENGTH, WORDS, COUNT, ROWS = 90, 5, 60, 70


class Counted(nn.Module):
    """Kneser-Ney counts as a model: the logits are logarithms of what `kneser_ney.bits` finds."""

    def __init__(self, ids: np.ndarray, discounts: list[list[float]], symbols: int):
        super().__init__()
        self.context_size, self.symbols, self.discounts = len(discounts), symbols, discounts
        self.ids = np.concatenate([np.full(self.context_size, -1), ids])
        self.read = np.arange(self.context_size, len(self.ids))
        behind = self.ids[self.read - 1]
        self.behind = [self.read[behind == symbol] for symbol in range(symbols)]
        self.single = self.mix(1, self.read, np.full(symbols, 1 / symbols))

    def mix(self, k: int, at: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """The chances by runs of k that end at these places, with those of shorter runs."""
        last = self.ids[at]
        if k < len(self.discounts):
            last = np.unique(self.ids[at - k] * self.symbols + last) % self.symbols
        times = np.bincount(last, minlength=self.symbols)
        taken = np.array([0, *self.discounts[k - 1]])[times.clip(max=3)]
        return (times - taken + taken.sum() * shorter) / times.sum()

    def chances(self, past: list[int]) -> np.ndarray:
        past, p = [-2] * self.context_size + past, self.single  # like no beginning of the text
        at = self.behind[past[-1]]
        for k in range(2, self.context_size + 1):
            at = at if k == 2 else at[self.ids[at - k + 1] == past[1 - k]]
            if not len(at):
                break
            p = self.mix(k, at, p)
        return p

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of what comes next, `(B, 1, symbols)`."""
        return torch.tensor(np.stack([self.chances(row) for row in ids.tolist()])).log()[:, None]


def sentences(text: str) -> list[str]:
    return [s for line in text.splitlines() for s in english.SENTENCE.split(line)]


def first_sentence(text: str) -> str | None:
    found = (s for s in sentences(text) if s.endswith(".") and len(s.split()) >= WORDS)
    return next(found, None)


def draw(folder: Path, later: bool) -> None:
    parts, tokens = english.split(english.documents()), pretrained_gpt.Tokens(gpt.merges())
    train = tokens.encode(pretrained_gpt.as_bytes(parts["train"])).numpy()
    stored = json.loads(RESULT.with_name("kneser_ney.json").read_text("utf-8"))
    trained = GPT(len(tokens.tokens), **gpt.SIZES)
    trained.load_state_dict(gpt.weights())
    counted = Counted(train, stored["tokens"]["discounts"], len(tokens.tokens))
    end = tokens.encode([".\n", ""])[1:]  # counts were made of joined texts
    rows, once_more = {}, ", once more" if later else ""
    first = {
        "GPT, 0.8": (trained, end[-1:], 0.8, 2),
        "GPT, 0.5": (trained, end[-1:], 0.5, 2),
        "counts, 0.8": (counted, end, 0.8, 2),
    }
    second = {
        "GPT, 0.5, once more": (trained, end[-1:], 0.5, 3),
        "counts, 0.5": (counted, end, 0.5, 2),
    }
    for name, (model, start, temperature, seed) in (second if later else first).items():
        luck, begin = torch.Generator().manual_seed(seed), start.repeat(ROWS, 1)
        found = generate(model, begin, LENGTH, temperature, top_p=0.9, generator=luck)
        rows[name] = found[:, len(start) :].tolist()
    held_out = [tokens.encode([text]) for text in pretrained_gpt.as_bytes(parts["test"])]
    rows[f"held out{once_more}"] = [row[1 : LENGTH + 1].tolist() for row in held_out]
    known = {s for text in parts["train"].values() for s in sentences(text)}
    luck, drawn = random.Random(3 if later else 2), []
    luck.shuffle(rows[f"held out{once_more}"])
    for name, texts in rows.items():
        found = [s for row in texts if (s := first_sentence(tokens.decode(row)))]
        print(f"{name}: {len(found)} of {len(texts)} texts have such a sentence")
        count = 30 if name == "held out, once more" else COUNT
        drawn += [[name, s in known, s] for s in found[:count]]
    folder.mkdir(parents=True)
    for reading in (1, 2):
        luck.shuffle(drawn)
        lines = "".join(f"{i} {row[2]}\n" for i, row in enumerate(drawn))
        (folder / f"list-{reading}.txt").write_text(lines, encoding="utf-8")
        for i, row in enumerate(drawn):
            row.append(i)
    (folder / "key.json").write_text(json.dumps(drawn), encoding="utf-8")


def keep(folder: Path, later: bool) -> None:
    rows, judged = json.loads(RESULT.read_text("utf-8")) if later else [], []
    for n in (1, 2):
        lines = (folder / f"judged-{n}.txt").read_text("utf-8").splitlines()
        judged.append(dict(line.split() for line in lines))
    for name, known, text, first, second in json.loads((folder / "key.json").read_text("utf-8")):
        rows.append([name, known, judged[0][str(first)], judged[1][str(second)], text])
    lines = ",\n".join(map(json.dumps, sorted(rows)))
    RESULT.write_text(f"[{lines}]\n", encoding="utf-8")


def tell() -> None:
    rows = json.loads(RESULT.read_text("utf-8"))
    for name in sorted({row[0] for row in rows}):
        some = [row for row in rows if row[0] == name]
        print(f"{name}: {len(some)} sentences, {sum(row[1] for row in some)} in the training text")
        for letters in ("sp", "s"):
            good = [sum(row[n] in letters for row in some) for n in (2, 3)]
            low, high = binomtest(good[0], len(some)).proportion_ci(method="wilson")
            same = sum((row[2] in letters) == (row[3] in letters) for row in some)
            print(f"   {letters}: {good[0]}, {low:.0%} to {high:.0%}; again {good[1]}, same {same}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("draw", "keep", "tell"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("judged"))
    parser.add_argument("--later", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.what == "draw":
        draw(args.folder, args.later)
    else:
        if args.what == "keep":
            keep(args.folder, args.later)
        tell()
