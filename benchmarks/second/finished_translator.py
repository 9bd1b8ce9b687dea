"""Chapter 7's finished model once more: parts taken away, rows hidden, readings left out or kept.

Another Transformer, with torch's own attention, on dates of its own; its rate goes up to 0.003.

Run: python -m benchmarks.second finished_translator [SEED]; five minutes.
"""

import datetime
import random
from collections import Counter
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from babel.dates import get_month_names
from torch import Tensor, nn

from attention_by_hand.data import dates
from attention_by_hand.data.dates import Example

D, H, STEPS, WARM_UP, PEAK = 64, 4, 2000, 400, 3e-3
WRITTEN = ["", "", "", *"0123456789-"]  # 0 pad, 1 bos, 2 eos
PARTS = "nothing", "scale", "positions", "mask"  # what can be taken away


def sinusoids(n: int) -> Tensor:
    speed = 10000.0 ** (-torch.arange(0, D, 2) / D)
    angle = torch.arange(n)[:, None] * speed
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.scale, self.weights = H**0.5 / D**0.5, torch.empty(0)
        for part in (self.q.weight, *self.kv.weight.split(D), self.o.weight):
            nn.init.xavier_uniform_(part.data)
        for linear in (self.q, self.kv, self.o):
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, y: Tensor, seen: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (H, -1)).transpose(1, 2)
        k, v = self.kv(y).unflatten(-1, (2, H, -1)).permute(2, 0, 3, 1, 4)
        if not self.training:  # for a look at the bridge
            scores = self.scale * q @ k.mT
            self.weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        z = F.scaled_dot_product_attention(q, k, v, seen, scale=self.scale)
        return self.o(z.transpose(1, 2).flatten(2))


def feed_forward() -> nn.Sequential:
    up, down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
    for linear in (up, down):
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
    return nn.Sequential(up, nn.ReLU(), down)


def norms(count: int) -> list[nn.LayerNorm]:
    return [nn.LayerNorm(D) for _ in range(count)]


class Translator(nn.Module):
    def __init__(self, letters: int, encoder: int = 2, decoder: int = 2) -> None:
        super().__init__()
        self.without = "nothing"
        self.source = nn.Parameter(torch.randn(letters, D) * D**-0.5)
        self.target = nn.Parameter(torch.randn(len(WRITTEN), D) * D**-0.5)
        self.encoder = nn.ModuleList(
            nn.ModuleList([Attention(), feed_forward(), *norms(2)]) for _ in range(encoder)
        )
        self.decoder = nn.ModuleList(
            nn.ModuleList([Attention(), Attention(), feed_forward(), *norms(3)])
            for _ in range(decoder)
        )

    def take_away(self, part: str) -> None:
        self.without = part
        for module in self.modules():
            if isinstance(module, Attention):
                module.scale = 1.0 if part == "scale" else H**0.5 / D**0.5

    def placed(self, table: Tensor, ids: Tensor) -> Tensor:
        tokens = D**0.5 * F.embedding(ids, table)
        return tokens if self.without == "positions" else tokens + sinusoids(ids.shape[1])

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        seen, x = (ids != 0)[:, None, None], self.placed(self.source, ids)
        for attention, fed, first, second in self.encoder:
            x = first(x + attention(x, x, seen))
            x = second(x + fed(x))
        return x, seen

    def logits(self, memory: Tensor, seen: Tensor, ids: Tensor) -> Tensor:
        x, past = self.placed(self.target, ids), torch.ones(1, 1, ids.shape[1], ids.shape[1]).bool()
        if self.without != "mask":
            past = past.tril()
        for own, bridge, fed, first, second, third in self.decoder:
            x = first(x + own(x, x, past))
            x = second(x + bridge(x, memory, seen))
            x = third(x + fed(x))
        return x @ self.target.T


def padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def to_read(texts: list[str], letters: dict[str, int]) -> Tensor:
    return padded([[letters.get(c, 1) for c in text] for text in texts])


def to_write(iso: str) -> list[int]:
    return [*(WRITTEN.index(c) for c in iso), 2]


def all_kept(count: int, seed: int) -> list[Example]:
    """Training texts, those with two readings among them, each with the date it was made from."""
    draw, days, found = random.Random(seed), dates.days("train"), []
    for _ in range(count):
        day, locale = draw.choice(days), draw.choice(list(dates.LOCALES))
        style = draw.choice(dates.FORMATS)
        found.append(Example(dates.write(day, locale, style), day.isoformat(), locale, style))
    return found


def batches(examples: list[Example], draw: random.Random) -> Iterator[list[Example]]:
    """Texts of about one length, room for 64 × 24 characters, without end."""
    while True:
        groups: list[list[Example]] = [[]]
        for one in sorted(examples, key=lambda one: len(one.text) + draw.random()):
            if (len(groups[-1]) + 1) * len(one.text) > 64 * 24:
                groups.append([])
            groups[-1].append(one)
        draw.shuffle(groups)
        yield from groups


def trained(examples: list[Example], seed: int) -> tuple[Translator, dict[str, int]]:
    letters = {c: i + 2 for i, c in enumerate(sorted(set("".join(e.text for e in examples))))}
    torch.manual_seed(seed)
    model = Translator(len(letters) + 2)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    drawn = batches(examples, random.Random(seed))
    for step in range(1, STEPS + 1):
        batch = next(drawn)
        right = padded([to_write(one.iso) for one in batch])
        read = F.pad(right[:, :-1], (1, 0), value=1)
        logits = model.logits(*model.read(to_read([one.text for one in batch], letters)), read)
        loss = F.cross_entropy(logits.flatten(0, 1), right.flatten(), label_smoothing=0.1)
        adam.param_groups[0]["lr"] = PEAK * min(step / WARM_UP, (STEPS - step) / (STEPS - WARM_UP))
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step in (500, STEPS):
            print(f"  step {step}: loss {loss.item():.3f}")
    return model.eval(), letters


@torch.no_grad()
def written(model: Translator, sources: Tensor, hidden: list[list[int]] | None = None) -> list[str]:
    """What is written greedily; from each source, some rows of the memory can be hidden."""
    memory, seen = model.read(sources)
    seen = seen.clone()
    for row, places in zip(seen, hidden or [], strict=False):
        row[..., places] = False
    ids = torch.ones(len(sources), 1, dtype=torch.long)
    for _ in range(12):
        last = model.logits(memory, seen, ids)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, last], 1)
    rows = [row[: row.index(2)] if 2 in row else row for row in ids[:, 1:].tolist()]
    return ["".join(WRITTEN[c] for c in row) for row in rows]


def of_two_readings(model: Translator, letters: dict[str, int]) -> Counter[str]:
    """What becomes of the 132 texts such as 1/2/27."""
    pairs = [(a, b) for a in range(1, 13) for b in range(1, 13) if a != b]
    found: Counter[str] = Counter()
    sources = to_read([f"{a}/{b}/27" for a, b in pairs], letters)
    for (a, b), date in zip(pairs, written(model, sources), strict=True):
        if date in (f"2027-{a:02}-{b:02}", f"2027-{b:02}-{a:02}"):
            found["one of the two"] += 1
        elif date in (f"2027-{a:02}-{a:02}", f"2027-{b:02}-{b:02}"):
            found["one number twice"] += 1
        else:
            found["day above 12" if date[8:] > "12" else "other"] += 1
    return found


def name_of_month(one: Example) -> range:
    """Where the month's name stands in the text; empty where it has none of six letters or more."""
    month = int(one.iso[5:7])
    for context in ("format", "stand-alone"):
        name = get_month_names("wide", context, locale=one.locale)[month]
        if len(name) >= 6 and name in one.text:
            return range(one.text.index(name), one.text.index(name) + len(name))
    return range(0)


def month_without_rows(model: Translator, letters: dict[str, int], test: list[Example]) -> None:
    """Hide the three rows at which the month looks most, three others, three of the same name."""
    draw, named = random.Random(0), [one for one in test if name_of_month(one)][:200]
    right: Counter[str] = Counter()
    for one in named:
        source, name = to_read([one.text], letters), name_of_month(one)
        with torch.no_grad():
            model.logits(*model.read(source), torch.tensor([[1, *to_write(one.iso)[:-1]]]))
        looks = model.decoder[-1][1].weights[0].mean(0)[5:7].sum(0)
        most = looks.topk(3).indices.tolist()
        others = [i for i in range(len(one.text)) if i not in most]
        ways = {"none": [], "most": most, "others": draw.sample(others, 3)}
        ways["name"] = draw.sample([i for i in name if i not in most], 3)
        for way, hidden in ways.items():
            right[way] += written(model, source, [hidden])[0][5:7] == one.iso[5:7]
    print(f"  months right of {len(named)}, with three rows hidden: {dict(right)}")


def main(seed: int = 9) -> None:
    test = dates.examples("test", 1000, seed=seed + 502)
    for kept in ("left out", "kept"):
        examples = dates.examples("train", 40_000, seed=seed + 500)
        if kept == "kept":
            examples = all_kept(40_000, seed + 77)
            day = datetime.date.fromisoformat
            count = sum(not dates.one_reading(one.text, day(one.iso)) for one in examples)
            print(f"{count} of 40,000 training texts have two readings")
        print(f"seed {seed}, texts with two readings {kept}")
        model, letters = trained(examples, seed)
        print("  132 texts with two readings:", dict(of_two_readings(model, letters)))
        sources, right = to_read([one.text for one in test], letters), [one.iso for one in test]
        wrong = [
            one for one, date in zip(test, written(model, sources), strict=True) if date != one.iso
        ]
        print(f"  {len(wrong)} of {len(test)} wrong:", [one.text for one in wrong])
        for part in PARTS:
            model.take_away(part)
            dates_now = written(model, sources[:200])
            exact = sum(a == b for a, b in zip(dates_now, right, strict=False))
            print(f"  without {part}: {exact} of 200, for instance {dates_now[:2]}")
        model.take_away("nothing")
        month_without_rows(model, letters, test)
