"""One token, followed through a small encoder: the numbers of the book's *You are here* pictures.

Run: python -m benchmarks.one_token. It trains one layer (d_model 4, two heads, a few seconds) to
say of each word in a short sentence what kind of word it is, on all sentences that its small
grammar makes except the two that the book follows. In these, *well* is two different things. Of ten
seeds, it shows the one whose second head is easiest to read; with all ten, both were named right.
What happens to *well* on the way goes to attention_by_hand/figures/one_token.json, which is made
here, never edited.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.blocks import EncoderLayer, TokenEmbedding, sinusoidal_encoding
from benchmarks.results import write

RESULT = Path(__file__).parents[1] / "attention_by_hand" / "figures" / "one_token.json"
D_MODEL, HEADS, D_FF, SEED, STEPS, RATE, DECAY = 4, 2, 8, 3, 300, 0.02, 0.3
PAD = "⟨pad⟩"
FOLLOWED = (["she", "sings", "well", "."], ["the", "well", "is", "deep", "."])
KINDS = {
    "pronoun": ("she", "he"),
    "verb": ("sings", "runs", "swims", "is"),
    "adverb": ("badly", "today"),
    "article": ("the",),
    "noun": ("lake", "sea"),
    "adjective": ("deep", "wide", "dark"),
    "full stop": (".",),
}


def sentences() -> list[list[str]]:
    """All sentences of the grammar, with *today* once at most."""
    sing = [[a, b, c] for a in ("she", "he") for b in ("sings", "runs", "swims")
            for c in ("well", "badly")]  # fmt: skip
    deep = [["the", a, "is", b] for a in ("well", "lake", "sea") for b in ("deep", "wide", "dark")]
    plain = sing + deep
    return [
        [*before, *text, *after, "."]
        for text in plain
        for before, after in (([], []), (["today"], []), ([], ["today"]))
    ]


def kind(text: list[str], place: int) -> str:
    """What kind of word stands there: after an article, *well* is a noun."""
    if text[place] == "well":
        return "noun" if "the" in text[:place] else "adverb"
    return next(name for name, words in KINDS.items() if text[place] in words)


WORDS = sorted({word for text in sentences() for word in text}) + [PAD]


class Model(nn.Module):
    """Table, positions, one encoder layer, and a linear layer that names the kind of word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(len(WORDS), D_MODEL)
        self.layer = EncoderLayer(D_MODEL, HEADS, D_FF)
        self.output = nn.Linear(D_MODEL, len(KINDS))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """ids `(B, n)` → logits `(B, n, kinds)`."""
        x = self.embedding(ids) + sinusoidal_encoding(ids.shape[1], D_MODEL)
        return self.output(self.layer(x, mask))


def batch(texts: list[list[str]]) -> tuple[Tensor, Tensor]:
    """The ids `(B, n)` of texts, padded, and their padding mask `(B, 1, 1, n)`."""
    longest = max(map(len, texts))
    filled = [[*text, *[PAD] * (longest - len(text))] for text in texts]
    ids = torch.tensor([[WORDS.index(word) for word in text] for text in filled])
    return ids, (ids != WORDS.index(PAD))[:, None, None]


def train(seed: int = SEED) -> Model:
    """A trained model; the sentences that are followed are not in its training set."""
    texts = [text for text in sentences() if text not in FOLLOWED]
    ids, mask = batch(texts)
    names = list(KINDS)
    target = torch.full(ids.shape, -100)
    for row, text in enumerate(texts):
        target[row, : len(text)] = torch.tensor(
            [names.index(kind(text, i)) for i in range(len(text))]
        )
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY)
    for _ in range(STEPS):
        rows = torch.randint(len(texts), (128,))
        loss = F.cross_entropy(
            model(ids[rows], mask[rows]).flatten(0, 1), target[rows].flatten(), ignore_index=-100
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():  # rounded as they are stored, so that they give the steps stored
        for parameter in model.parameters():
            parameter.copy_(torch.tensor(rounded(parameter)))
    return model.eval()


@torch.no_grad()
def stages(model: Model, text: list[str], place: int) -> dict[str, list]:
    """What each step gives for the token at `place`."""
    ids, mask = batch([text, max(FOLLOWED, key=len)])
    ids, allowed = ids[0], mask[0, 0, 0]
    attention, layer = model.layer.self_attn, model.layer
    embedded = model.embedding(ids)
    position = sinusoidal_encoding(len(ids), D_MODEL)
    x = embedded + position

    def heads(projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (HEADS, -1)).transpose(0, 1)  # (H, n, d_k)

    query, key, value = (heads(w(x)) for w in (attention.W_q, attention.W_k, attention.W_v))
    scores = torch.einsum("hd,hnd->hn", query[:, place], key) / math.sqrt(D_MODEL // HEADS)
    masked = scores.masked_fill(~allowed, -torch.inf)
    weights = masked.softmax(-1)
    average = torch.einsum("hn,hnd->hd", weights, value)
    attended = attention.W_o(average.flatten())
    first = layer.norm1(x[place] + attended)
    thought = layer.linear2(F.relu(layer.linear1(first)))
    second = layer.norm2(first + thought)
    logits = model.output(second)
    found = {
        "embedding": embedded[place], "position": position[place], "input": x[place],
        "query": query[:, place], "keys": key, "values": value, "scores": scores,
        "masked": masked, "weights": weights, "average": average, "attended": attended,
        "norm1": first, "thought": thought, "norm2": second, "logits": logits,
        "output": logits.softmax(-1),
    }  # fmt: skip
    return {name: rounded(tensor) for name, tensor in found.items()}


def rounded(tensor: Tensor) -> list:
    """Nested lists with four decimal places; −∞ is None."""
    if tensor.dim():
        return [rounded(part) for part in tensor]
    number = round(float(tensor), 4)
    return None if math.isinf(number) else number


def main() -> None:
    model = train()
    state = {name: rounded(tensor) for name, tensor in model.state_dict().items()}
    made = {
        "script": "python benchmarks/one_token.py",
        "seed": SEED,
        "steps": STEPS,
        "words": WORDS,
        "kinds": list(KINDS),
        "state": state,
    }
    longest = max(map(len, FOLLOWED))
    texts = {
        " ".join(text): {"words": [*text, *[PAD] * (longest - len(text))],
                         "place": text.index("well"),
                         "stages": stages(model, text, text.index("well"))}
        for text in FOLLOWED
    }  # fmt: skip
    write(RESULT, made=made, texts=texts)
    for text, found in texts.items():
        print(text, dict(zip(KINDS, found["stages"]["output"], strict=True)))


if __name__ == "__main__":
    main()
