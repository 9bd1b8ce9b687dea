"""Dates as people write them in 14 locales, and in ISO 8601: the data that chapter 7 trains on.

The formats come from Unicode's CLDR data as shipped with Babel, so nothing is downloaded. Only
unambiguous strings are kept, and no day occurs in two splits.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from babel.dates import format_date
from torch import Tensor

LOCALES = {
    "en_US": "English, US", "en_GB": "English, UK", "de_DE": "German", "fr_FR": "French",
    "es_ES": "Spanish", "it_IT": "Italian", "pt_BR": "Portuguese, Brazil", "sv_SE": "Swedish",
    "pl_PL": "Polish", "tr_TR": "Turkish", "ru_RU": "Russian", "zh_CN": "Chinese",
    "ja_JP": "Japanese", "ko_KR": "Korean",
}  # fmt: skip
FORMATS = ("short", "medium", "long", "full")
FIRST, LAST = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)  # a century: 27 is 2027
PARTS = {"train": 0.8, "valid": 0.05, "test": 0.15}  # of the days

PAD, BOS, EOS = 0, 1, 2


@dataclass(frozen=True)
class Example:
    """A date as written in a locale, and the same date in ISO 8601."""

    text: str
    iso: str
    locale: str
    format: str


def write(day: datetime.date, locale: str, format: str) -> str:
    """The date in CLDR's format of a locale; `format` is short, medium, long or full."""
    return format_date(day, format, locale=locale)


def one_reading(text: str, day: datetime.date) -> bool:
    """Whether the text alone determines the day.

    With slashes, some locales put the month first and some the day. Such a text is unambiguous if
    it begins with the year, if the day is above 12, or if day and month are equal. Every other text
    is unambiguous: with the other separators only one order of day, month and year is in use, and
    a two-digit year lies in the century from `FIRST` to `LAST`.
    """
    month_or_day_first = "/" in text and not text.startswith(f"{day.year}/")
    return not month_or_day_first or day.day > 12 or day.day == day.month


@cache
def days(part: str) -> tuple[datetime.date, ...]:
    """The days of a split (`"train"`, `"valid"`, `"test"`): a slice of one fixed shuffle."""
    count = (LAST - FIRST).days + 1
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1582)).tolist()
    names, start = list(PARTS), 0
    for name in names[: names.index(part)]:
        start += round(PARTS[name] * count)
    end = count if part == names[-1] else start + round(PARTS[part] * count)
    return tuple(FIRST + datetime.timedelta(days=k) for k in order[start:end])


def examples(part: str, count: int, seed: int = 0) -> list[Example]:
    """Draw unambiguous examples from a split, in random locales and formats."""
    generator = torch.Generator().manual_seed(seed)
    choose = (days(part), tuple(LOCALES), FORMATS)
    found: list[Example] = []
    while len(found) < count:
        drawn = [torch.randint(len(c), (count,), generator=generator).tolist() for c in choose]
        for picks in zip(*drawn, strict=True):
            day, locale, format = (c[k] for c, k in zip(choose, picks, strict=True))
            text = write(day, locale, format)
            if one_reading(text, day):
                found.append(Example(text, day.isoformat(), locale, format))
    return found[:count]


class Vocabulary:
    """Characters ↔ numbers. The first three numbers are `PAD`, `BOS` and `EOS`.

    It knows the characters that occur in `texts`.
    """

    def __init__(self, texts: Sequence[str]):
        self.characters = ["⟨pad⟩", "⟨bos⟩", "⟨eos⟩", *sorted(set("".join(texts)))]
        self.number = {character: k for k, character in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, texts: Sequence[str], eos: bool = False) -> Tensor:
        """Texts as int64 `(B, n)`, padded on the right; with `eos`, each ends with `EOS`.

        Raises `ValueError`, which lists the unknown characters.
        """
        unknown = set("".join(texts)) - set(self.number)
        if unknown:
            raise ValueError(f"unknown characters: {', '.join(sorted(unknown))}")
        rows = [[self.number[c] for c in text] + [EOS] * eos for text in texts]
        longest = max(map(len, rows))
        return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])

    def decode(self, ids: Tensor | Sequence[int]) -> str:
        """The text up to the first `EOS`, without `PAD` and `BOS`."""
        text = ""
        for k in map(int, ids):
            if k == EOS:
                break
            text += self.characters[k] if k > EOS else ""
        return text


def batches(
    data: Sequence[Example], source: Vocabulary, target: Vocabulary, size: int, seed: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches `(B, n_source)`, `(B, n_target)`; every epoch has a new order.

    The texts in a batch have about the same length: `size` texts of 24 characters, fewer if they
    are longer, more if shorter, so that every batch costs about the same and holds little padding.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(data), generator=generator).tolist()
        order.sort(key=lambda k: len(data[k].text))  # stable: equal lengths stay shuffled
        groups: list[list[int]] = []
        group: list[int] = []
        for k in order:
            if group and (len(group) + 1) * len(data[k].text) > 24 * size:
                groups.append(group)
                group = []
            group.append(k)
        groups.append(group)
        for g in torch.randperm(len(groups), generator=generator).tolist():
            chosen = [data[k] for k in groups[g]]
            yield (
                source.encode([example.text for example in chosen]),
                target.encode([example.iso for example in chosen], eos=True),
            )
