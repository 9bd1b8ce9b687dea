"""The book's first picture: one attention, trained to say which *bank* is meant.

Run: python -m benchmarks.two_banks. A table, queries, keys and values, and a linear layer on the
average: no positions, one head, no feed-forward network. A *shore* or a *lake* is by the water, a
*shop* or a *firm* has to do with money, whatever else is said of them; of a *bank* the adjective
decides, and if it does not, the answer is that nobody can tell. Without this third answer, one of
the senses would do as the default, and its words would not be looked at. The two sentences of the
picture are left out of training, with *today* before or behind them, too. What comes out goes to
attention_by_hand/figures/two_banks.json, which is made here, never edited; with it, what ten seeds
look at. The picture shows one whose weights are not so large that nothing is left to average.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.one_token import rounded
from benchmarks.results import write

RESULT = Path(__file__).parents[1] / "attention_by_hand" / "figures" / "two_banks.json"
D_MODEL, D_K, SEED, STEPS, RATE, DECAY = 4, 2, 2, 600, 0.01, 0.3
SENSES = ("water", "money", "either")
PLACES = {"shore": "water", "lake": "water", "shop": "money", "firm": "money"}
TELLING = {"muddy": "water", "deep": "water", "wide": "water",
           "closed": "money", "open": "money", "rich": "money"}  # fmt: skip
DULL = ("old", "small", "near")
FOLLOWED = (["the", "bank", "is", "muddy", "."], ["the", "bank", "is", "closed", "."])


def sentences() -> list[tuple[list[str], str]]:
    """All sentences of the grammar, with *today* once at most, and what each is about."""
    about = [(noun, adjective, PLACES.get(noun, TELLING.get(adjective, "either")))
             for noun in (*PLACES, "bank") for adjective in (*TELLING, *DULL)]  # fmt: skip
    return [
        ([*before, *text, *after, "."], sense)
        for noun, adjective, sense in about
        for text in (["the", noun, "is", adjective], ["she", "sees", "the", adjective, noun])
        for before, after in (([], []), (["today"], []), ([], ["today"]))
    ]


WORDS = sorted({word for text, _ in sentences() for word in text})
PAD = len(WORDS)


def learnt() -> list[tuple[list[str], str]]:
    """What is trained on: neither sentence of the picture, with or without *today*."""
    return [
        (text, sense)
        for text, sense in sentences()
        if [word for word in text if word != "today"] not in FOLLOWED
    ]


class Model(nn.Module):
    """One attention, and a linear layer that names the sense."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(PAD + 1, D_MODEL)
        self.W_q, self.W_k = (nn.Linear(D_MODEL, D_K, bias=False) for _ in range(2))
        self.W_v = nn.Linear(D_MODEL, D_K, bias=False)
        self.output = nn.Linear(D_K, len(SENSES))

    def forward(self, ids: Tensor, place: Tensor) -> tuple[Tensor, ...]:
        """ids `(B, n)`, the noun's place `(B,)` → logits, average, weights `(B, n)`, values."""
        x = self.table(ids)
        query = self.W_q(x[torch.arange(len(ids)), place])
        scores = torch.einsum("bd,bnd->bn", query, self.W_k(x)) / math.sqrt(D_K)
        weights = scores.masked_fill(ids == PAD, -torch.inf).softmax(-1)
        values = self.W_v(x)
        average = torch.einsum("bn,bnd->bd", weights, values)
        return self.output(average), average, weights, values


def batch(texts: list[list[str]]) -> tuple[Tensor, Tensor]:
    """The ids `(B, n)` of texts, padded, and where the noun stands in each `(B,)`."""
    longest = max(map(len, texts))
    ids = [[*map(WORDS.index, text), *[PAD] * (longest - len(text))] for text in texts]
    nouns = {*PLACES, "bank"}
    places = [next(i for i, word in enumerate(text) if word in nouns) for text in texts]
    return torch.tensor(ids), torch.tensor(places)


def train(seed: int) -> Model:
    """A trained model, its numbers rounded as they are stored."""
    texts, senses = zip(*learnt(), strict=True)
    ids, places = batch(list(texts))
    target = torch.tensor([SENSES.index(sense) for sense in senses])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY)
    for _ in range(STEPS):
        loss = F.cross_entropy(model(ids, places)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.tensor(rounded(parameter)))
    return model


@torch.no_grad()
def shown(model: Model) -> dict[str, dict]:
    """What the picture shows of each sentence."""
    ids, places = batch(list(FOLLOWED))
    logits, average, weights, values = model(ids, places)
    return {
        " ".join(text): {
            "words": text,
            "place": int(places[i]),
            "embedding": rounded(model.table(ids[i, places[i]])),
            "values": rounded(values[i]),
            "weights": rounded(weights[i]),
            "average": rounded(average[i]),
            "answer": rounded(logits[i].softmax(-1)),
        }
        for i, text in enumerate(FOLLOWED)
    }


def looks(model: Model) -> list[float]:
    """The weights on the word that decides, *muddy* and *closed*."""
    return [found["weights"][3] for found in shown(model).values()]


def main() -> None:
    models = [train(seed) for seed in range(10)]
    made = {
        "script": "python -m benchmarks.two_banks",
        "seed": SEED,
        "steps": STEPS,
        "words": WORDS,
        "state": {name: rounded(part) for name, part in models[SEED].state_dict().items()},
    }
    seen = [looks(model) for model in models]
    write(RESULT, made=made, texts=shown(models[SEED]), looks=seen)
    for model in models:
        print(looks(model), [found["answer"] for found in shown(model).values()])


if __name__ == "__main__":
    main()
