"""Pairs of submissions whose answers are alike in a way that the rest of the class is not.

Each answer is read as tokens: all names become one token, all numbers another, all texts a third;
comments, docstrings and layout are left out. Of the hashes of all runs of `RUN` tokens, winnowing
keeps the smallest in each window of `WINDOW`, so that two answers which share a passage of
`RUN + WINDOW - 1` tokens share a fingerprint, wherever it stands: S. Schleimer, D. S. Wilkerson and
A. Aiken, *Winnowing: Local algorithms for document fingerprinting*, SIGMOD 2003, the method of
MOSS. As there, passages that the course handed out do not count, nor those that many have: a short
exercise has one usual answer.

What it does not see: an answer rewritten statement by statement, and answers too short to be
anybody's own. What it sees is no proof: two who worked on the problem together, or from the same
page, look the same. A person has to read both.

TRUST BOUNDARY. Answers are hostile text. They are taken apart by Python's tokenizer, within a limit
of size, and never run.
"""

import io
import json
import keyword
import os
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

RUN, WINDOW = 12, 5  # tokens; hashes
MOST = 20_000  # characters of an answer that are read
USUAL = 0.2  # a passage that a larger share of the class has is usual
LEAST = 3  # in a small class, one that this many students have
SHARED, ALIKE = 8, 0.5  # fingerprints that a pair shares, at least; their share of the smaller side
_SKIPPED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
Answers = Mapping[str, str]  # source by exercise


@dataclass(frozen=True)
class Pair:
    """Two students, the share of the smaller side's fingerprints that they share, and where."""

    first: str
    second: str
    share: float
    shared: int
    exercises: tuple[str, ...]


def tokens_in(source: str) -> list[str]:
    """An answer's tokens; if it cannot be read to its end, those before that point."""
    found: list[str] = []
    lines = io.StringIO(source[:MOST]).readline
    with suppress(tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        fresh = True  # at the beginning of a statement, where a text is a docstring
        for token in tokenize.generate_tokens(lines):
            if token.type in _SKIPPED:
                fresh |= token.type == tokenize.NEWLINE
            elif token.type in (tokenize.INDENT, tokenize.DEDENT):
                found.append("{" if token.type == tokenize.INDENT else "}")
            elif token.type == tokenize.STRING:
                found += [] if fresh else ["S"]
            elif token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                found.append("V")
                fresh = False
            else:
                found.append("N" if token.type == tokenize.NUMBER else token.string)
                fresh = False
    return found


def fingerprints(source: str) -> set[int]:
    """The winnowed fingerprints of an answer."""
    tokens = tokens_in(source)
    runs = [
        crc32(" ".join(tokens[n : n + RUN]).encode("utf-8", "replace"))
        for n in range(len(tokens) - RUN + 1)
    ]
    if len(runs) <= WINDOW:
        return {min(runs)} if runs else set()
    return {min(runs[n : n + WINDOW]) for n in range(len(runs) - WINDOW + 1)}


def pairs_alike(answers: Mapping[str, Answers], given: Iterable[str] = ()) -> list[Pair]:
    """The pairs of students whose answers to an assignment are alike, the most alike first.

    `given` are the texts that the course handed out.
    """
    handed_out = {mark for text in given for mark in fingerprints(text)}
    marks = {
        student: {
            (exercise, mark)
            for exercise, source in theirs.items()
            for mark in fingerprints(source) - handed_out
        }
        for student, theirs in answers.items()
    }
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    for student in sorted(marks):
        for mark in marks[student]:
            owners[mark].append(student)
    most = max(LEAST - 1, USUAL * len(marks))
    shared: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    own: dict[str, int] = defaultdict(int)
    for mark, who in owners.items():
        if len(who) <= most:
            for student in who:
                own[student] += 1
            for pair in combinations(who, 2):
                shared[pair].append(mark)
    found = [
        Pair(
            *pair,
            len(common) / min(own[pair[0]], own[pair[1]]),
            len(common),
            tuple(sorted({exercise for exercise, _ in common})),
        )
        for pair, common in shared.items()
        if len(common) >= SHARED
    ]
    alike = [pair for pair in found if pair.share >= ALIKE]
    return sorted(alike, key=lambda pair: (-pair.share, -pair.shared, pair.first, pair.second))


def answers_in(path: Path) -> dict[str, str]:
    """The code answers in an autograded or a released notebook, by exercise; none if unreadable."""
    return {
        name: text for name, kind, text in solutions_in(path) if kind == "code" and text.strip()
    }


def solutions_in(path: Path) -> list[tuple[str, str, str]]:
    """The cells to be filled in of one of our notebooks: grade id, kind, text."""
    try:
        tree = json.loads(path.read_bytes() if os.path.isfile(path) else b"")
        cells = [cell for cell in tree["cells"] if _mark(cell).get("solution")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [(_mark(cell)["grade_id"], cell["cell_type"], _text(cell)) for cell in cells]


def _mark(cell: dict[str, Any]) -> dict[str, Any]:
    return cell.get("metadata", {}).get("nbgrader", {})


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else source
