"""The introduction's *well*, and chapter 7's *gut* or *Brunnen*, with torch's own layers.

The first is trained on seeds of its own, once as the book has it and once without the twins, the
same two sentences with *today* before or behind. The second has no encoder, one, or one that is
left out after training. Run: python -m benchmarks.second wells
"""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KINDS = {
    "pronoun": "she he", "verb": "sings runs swims is", "adverb": "badly today", "article": "the",
    "noun": "lake sea", "adjective": "deep wide dark", "stop": ".",
}  # fmt: skip
NAMES = list(KINDS)
FOLLOWED = ("she sings well .", "the well is deep .")


def sinusoids(n: int, d: int) -> Tensor:
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def kinds_of(text: list[str]) -> list[int]:
    well = "noun" if "the" in text else "adverb"
    return [
        NAMES.index(well if w == "well" else next(k for k in NAMES if w in KINDS[k].split()))
        for w in text
    ]


def read(seed: int, no_twins: bool) -> tuple[list[float], list[str]]:
    """Probabilities that *well* is what it is in both; each head's favourites."""
    lines = [" ".join(x) for x in itertools.product(
        ("she", "he"), ("sings", "runs", "swims"), ("well", "badly"))]  # fmt: skip
    lines += [f"the {a} is {b}" for a in ("well", "lake", "sea") for b in ("deep", "wide", "dark")]
    lines = [f for line in lines for f in (f"{line} .", f"today {line} .", f"{line} today .")]
    bare = [line.replace("today ", "") for line in lines]
    learnt = [
        line.split()
        for line, short in zip(lines, bare, strict=True)
        if (short if no_twins else line) not in FOLLOWED
    ]
    words = ["", *sorted({w for line in lines for w in line.split()})]
    ids = nn.utils.rnn.pad_sequence(
        [torch.tensor([words.index(w) for w in line]) for line in learnt], batch_first=True
    )
    kinds = nn.utils.rnn.pad_sequence(
        [torch.tensor(kinds_of(line)) for line in learnt], batch_first=True, padding_value=-100
    )
    torch.manual_seed(seed)
    table, out = nn.Embedding(len(words), 4), nn.Linear(4, len(NAMES))
    nn.init.normal_(table.weight, std=0.5)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
    model = nn.ModuleList([table, out, layer])

    def into(ids: Tensor) -> Tensor:
        return table(ids) * 2 + sinusoids(ids.shape[1], 4)

    adam = torch.optim.AdamW(model.parameters(), 0.02, weight_decay=0.3)
    for _ in range(300):
        rows = torch.randint(len(ids), (128,))
        hidden = ids[rows] == 0
        logits = out(layer(into(ids[rows]), src_key_padding_mask=hidden))
        loss = F.cross_entropy(logits.flatten(0, 1), kinds[rows].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    model.eval()
    sure, looks = [], []
    with torch.no_grad():
        for line in FOLLOWED:
            text = line.split()
            x, at = into(torch.tensor([[words.index(w) for w in text]])), text.index("well")
            told = out(layer(x))[0, at].softmax(-1)
            sure.append(told[kinds_of(text)[at]].item())
            weights = layer.self_attn(x, x, x, average_attn_weights=False)[1][0, :, at]
            looks.append(" ".join(text[i] for i in weights.argmax(-1)))
    return sure, looks


GERMAN = (
    ("she:sie he:er Mary:Maria Tom:Tom",
     "sings:singt writes:schreibt swims:schwimmt cooks:kocht reads:liest",
     "well:gut badly:schlecht slowly:langsam often:oft"),
    ("the:der", "well:Brunnen garden:Garten tower:Turm table:Tisch", "is:ist",
     "deep:tief old:alt small:klein round:rund green:grün"),
)  # fmt: skip
HELD_BACK = ("she sings well", "the well is deep")


def translate(seed: int, layers: int) -> list[str]:
    """Both sentences in German, by an encoder of so many layers and a decoder of one."""
    pairs = {}
    for kind in GERMAN:
        for choice in itertools.product(*(part.split() for part in kind)):
            english, german = zip(*(word.split(":") for word in choice), strict=True)
            pairs[" ".join(english)] = german
    words = ["", "<", ">", *sorted({w for e, g in pairs.items() for w in (*e.split(), *g)})]

    def ids_of(lines: list) -> Tensor:
        rows = [torch.tensor([words.index(w) for w in line]) for line in lines]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    learnt = [e for e in pairs if e not in HELD_BACK]
    source = ids_of([e.split() for e in learnt])
    target = ids_of([["<", *pairs[e], ">"] for e in learnt])
    torch.manual_seed(seed)
    table = nn.Embedding(len(words), 32)
    nn.init.normal_(table.weight, std=32**-0.5)
    down = nn.TransformerDecoderLayer(32, 4, 128, 0.0, batch_first=True)
    up = nn.ModuleList(
        nn.TransformerEncoderLayer(32, 4, 128, 0.0, batch_first=True) for _ in range(layers)
    )
    model = nn.ModuleList([table, down, up])
    for weight in (*down.parameters(), *up.parameters()):
        if weight.dim() > 1:
            nn.init.xavier_uniform_(weight)

    def into(ids: Tensor) -> Tensor:
        return table(ids) * math.sqrt(32) + sinusoids(ids.shape[1], 32)

    def logits(source: Tensor, read: Tensor) -> Tensor:
        hidden, n = source == 0, read.shape[1]
        x = into(source)
        for layer in up:
            x = layer(x, src_key_padding_mask=hidden)
        late = torch.ones(n, n).triu(1).bool()
        y = down(into(read), x, tgt_mask=late, memory_key_padding_mask=hidden)
        return y @ table.weight.T

    adam = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(300):
        rows = torch.randint(len(source), (32,))
        loss = F.cross_entropy(
            logits(source[rows], target[rows, :-1]).flatten(0, 1),
            target[rows, 1:].flatten(),
            ignore_index=0,
        )
        adam.zero_grad()
        loss.backward()
        adam.step()
    model.eval()
    written = []
    with torch.no_grad():
        for line in HELD_BACK:
            ids = torch.tensor([[1]])
            while ids[0, -1] != 2 and ids.shape[1] < 7:
                after = logits(ids_of([line.split()]), ids)[0, -1].argmax()
                ids = torch.cat([ids, after[None, None]], 1)
            written.append(" ".join(words[i] for i in ids[0, 1:-1]))
    return written


def main() -> None:
    for no_twins in (False, True):
        print("twins left out, too" if no_twins else "as in the book")
        for seed in range(40, 50):
            sure, looks = read(seed, no_twins)
            print(f"  seed {seed}: {sure[0]:.2f} {sure[1]:.2f}; heads look at {looks}")
    for layers in (1, 0):
        for seed in range(40, 45):
            print(f"encoder of {layers}, seed {seed}: {translate(seed, layers)}")
