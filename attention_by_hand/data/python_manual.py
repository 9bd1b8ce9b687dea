"""The Python language reference, as the standard library carries it for `help()`.

Chapters 9 and 10 train on it: `pydoc_data.topics`, a few hundred kilobytes, so nothing is
downloaded. It differs a little from one version of Python to the next. Some topics repeat whole
paragraphs of others (`with` is a part of `compound`), so a topic is held out only if it shares no
paragraph with any other; and within the training text each paragraph stands once.
"""

import hashlib
import re
from functools import cache
from pydoc_data.topics import topics

PARTS = {"test": 0.1, "valid": 0.05}  # of all bytes, at least; the rest is "train"
SHORT = 60  # letters: what is shorter, such as a line of stars under a title, may well recur


@cache
def documents(part: str) -> dict[str, str]:
    """The topics of a part (`"train"`, `"valid"`, `"test"`): name → text, in the names' order."""
    return {name: text for name, text in _texts().items() if _part_of()[name] == part}


@cache
def _texts() -> dict[str, str]:
    """Every topic, less the paragraphs that stand in one before it already."""
    seen: set[str] = set()
    texts = {}
    for name in sorted(topics):
        kept = []
        for paragraph in paragraphs(topics[name]):
            if len(paragraph) < SHORT or paragraph not in seen:
                kept.append(paragraph)
            seen.add(paragraph)
        texts[name] = "\n\n".join(kept).strip() + "\n"
    return texts


def paragraphs(text: str) -> list[str]:
    """What stands between blank lines."""
    return re.split(r"\n\s*\n", text)


@cache
def _part_of() -> dict[str, str]:
    """Which part each topic belongs to; the order in which they are drawn depends on names only."""
    owners: dict[str, set[str]] = {}
    for name, text in topics.items():
        for paragraph in paragraphs(text):
            if len(paragraph) >= SHORT:
                owners.setdefault(paragraph, set()).add(name)
    repeated = set().union(*(names for names in owners.values() if len(names) > 1))
    order = sorted(topics, key=lambda name: hashlib.sha256(name.encode()).digest())
    alone = [name for name in order if name not in repeated]
    part_of, total = dict.fromkeys(topics, "train"), sum(map(len, topics.values()))
    for part, share in PARTS.items():
        taken = 0
        while taken < share * total:
            name = alone.pop(0)
            part_of[name] = part
            taken += len(topics[name])
    return part_of
