"""`check_pencil(name, cells)`: what of a table filled in by hand is right, wrong or still empty.

The pages judge by the same rules (`static/pencil.js`), and one list of cases tests both. It counts
for nothing, so it raises no error, and a table that nobody has touched only says so.
"""

import lzma
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from autograder.student.console import notebook, say
from autograder.student.engine.arrays import Value
from autograder.student.engine.values import decode, encode
from autograder.student.expected import file_of

RIGHT, ROUGH, WRONG, EMPTY = "right", "rough", "wrong", "empty"
MARKS = {RIGHT: "✓", ROUGH: "≈", WRONG: "✗", EMPTY: "…"}
YES, NO = {"✓", "✔", "yes", "y", "true"}, {"✗", "✘", "no", "n", "false"}
FRACTIONS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8"}
NUMBER = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?"
QUOTIENT = re.compile(rf"({NUMBER})\s*+(?:/\s*+({NUMBER})\s*+)?(%?)", re.IGNORECASE)
INFINITY = re.compile(r"([+-]?)\s*(?:∞|inf|infinity|oo)", re.IGNORECASE)


# --- what counts as right -----------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number as somebody wrote it; `places` is None for whole numbers and fractions."""

    value: float
    places: int | None
    percent: bool = False


def judge(answer: str, given: str) -> str:
    """What is given for an answer is right, wrong, empty or rounded too far.

    A decimal stands for all that rounds to it, and may be off by one in its last place where that
    is within 2%. A whole number or a fraction is exact: what is given as a decimal may be off by
    1%, but by no more than 0.01, or be the answer rounded to two places or more and within 5% of
    it. `a or b` accepts both, `a ± t` sets the tolerance, `(a, b)` is judged entry by entry.
    """
    if _plain(given) in ("", "...", "…"):
        return EMPTY
    found = {_against(one, given) for one in re.split(r"(?<!\s)\s+or\s+", answer)}
    return next(verdict for verdict in (RIGHT, ROUGH, WRONG) if verdict in found)


def _against(answer: str, given: str) -> str:
    answer, given = _plain(answer), _plain(given)
    for kind in (YES, NO):
        if answer in kind:
            return RIGHT if given in kind else WRONG
    if re.fullmatch(r"[(\[].*[)\]]", answer):
        return _entries(answer, given)
    answer, _, slack = (part.strip() for part in answer.partition("±"))
    if (wanted := number(answer)) is None:
        return RIGHT if answer == given else WRONG
    found = number(given.rpartition("=")[2].lstrip("≈~ "))
    return WRONG if found is None else _describe_near(wanted, found, slack)


def _plain(text: str) -> str:
    return " ".join(re.sub("[−–]", "-", text).split()).lower()


def _entries(answer: str, given: str) -> str:
    wanted = [part.strip() for part in answer[1:-1].split(",")]
    inner = re.sub(r"^[(\[]|[)\]]$", "", given)
    ways = [re.split(pattern, inner) for pattern in (",", ";", r",\s", r"\s+")]
    fits = [way for way in ways if len(way) == len(wanted)]
    if not fits:
        return WRONG
    verdicts = [judge(a, g) for a, g in zip(wanted, fits[0], strict=True)]
    return next((v for v in (WRONG, EMPTY, ROUGH) if v in verdicts), RIGHT).replace(EMPTY, WRONG)


def number(text: str) -> Number | None:
    """The number that a text is: 16/25, 0.64, 0,64, 64 %, ½, −∞. None if it is none."""
    text = _plain(text)
    for sign, quotient in FRACTIONS.items():
        text = text.replace(sign, quotient)
    if match := INFINITY.fullmatch(text):
        return Number(-math.inf if match[1] == "-" else math.inf, None)
    match = QUOTIENT.fullmatch(text)
    if match is None:
        return None
    above, below = (float((part or "1").replace(",", ".")) for part in match.groups()[:2])
    if below == 0:
        return None
    decimals = re.search(r"[.,](\d*)", match[1])
    places = len(decimals[1]) if decimals and not match[2] else None
    percent = match[3] == "%"
    if percent:
        places = 2 + (places or 0)
    return Number(above / below / (100 if percent else 1), places, percent)


def _describe_near(wanted: Number, found: Number, slack: str) -> str:
    if math.isinf(wanted.value) or math.isinf(found.value):
        return RIGHT if wanted.value == found.value else WRONG
    off, places = abs(found.value - wanted.value), found.places
    if wanted.percent and not found.percent:  # "64" where "64 %" is the answer
        as_percent = abs(found.value / 100 - wanted.value)
        if as_percent < off:
            off, places = as_percent, places and places + 2
    tiny = 1e-9 * max(1.0, abs(wanted.value))
    if wanted.places is None and found.places is None and not slack:
        return RIGHT if off <= tiny else WRONG
    rounds = places is not None and off <= 0.5 * 10.0**-places + tiny
    size = abs(wanted.value)
    if slack:
        fits = off <= float(slack) + tiny
    elif wanted.places is None:
        fits = off <= min(0.01, 0.01 * size) + tiny
        fits = fits or (rounds and (places or 0) >= 2 and off <= 0.05 * size)
    else:
        unit = 10.0**-wanted.places
        fits = off <= max(0.5 * unit, min(unit, 0.02 * size)) + tiny
    return RIGHT if fits else ROUGH if places and rounds else WRONG


# --- the answers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableRow:
    """The cells of a row that are to be filled in: their columns' heads, and the answers."""

    label: str
    columns: Sequence[str]
    answers: Sequence[str]


@dataclass(frozen=True)
class Slip:
    """A wrong number in the place of an answer, and what one did to get it (plain text)."""

    right: str
    wrong: str
    message: str


@dataclass(frozen=True)
class PencilAnswers:
    """A table's rows, what there is to say when it has been filled in (Markdown), known slips."""

    rows: Sequence[TableRow]
    explanation: str = ""
    slips: Sequence[Slip] = field(default_factory=list)

    def slip(self, answer: str, given: str) -> str:
        """What is told of something wrong that was given for an answer; empty if it is unknown."""
        own = (slip for slip in self.slips if slip.right == answer)
        return next((slip.message for slip in own if judge(slip.wrong, given) == RIGHT), "")


def dump(tables: Mapping[str, PencilAnswers]) -> bytes:
    """All tables of the book, as the bytes of their file."""
    tree = {
        name: [
            [[r.label, list(r.columns), list(r.answers)] for r in table.rows],
            table.explanation,
            [[s.right, s.wrong, s.message] for s in table.slips],
        ]
        for name, table in tables.items()
    }
    return lzma.compress(encode(tree), preset=9)


def parse(data: bytes) -> dict[str, PencilAnswers]:
    """The tables in the bytes of their file."""
    return {
        name: PencilAnswers(
            [TableRow(*row) for row in rows], told, [Slip(*s) for part in slips for s in part]
        )
        for name, (rows, told, *slips) in decode(lzma.decompress(data), math.inf).items()
    }


@cache
def _all_answers() -> dict[str, PencilAnswers]:
    return parse(file_of("pencils.bin").read_bytes())


def _answers(name: str) -> PencilAnswers:
    if name not in _all_answers():
        raise ValueError(f"no table is called {name!r}")
    return _all_answers()[name]


# --- what a notebook calls ----------------------------------------------------------------------


def check_pencil(name: str, cells: Value) -> None:
    """Say which cells of the table `name` are right, wrong or empty; `...` stands for empty.

    Raises `ValueError` if no table has that name.
    """
    say(report(name, _answers(name), cells))


def show_pencil(name: str) -> None:
    """Show the answers of the table `name`. Raises `ValueError` if no table has that name."""
    table = _answers(name)
    say(_grid([(r, r.answers) for r in table.rows]))
    if table.explanation:
        _show_markdown(table.explanation)


def report(name: str, table: PencilAnswers, cells: Value) -> str:
    """The text that `check_pencil` prints."""
    given = [cells] if len(table.rows) == 1 else cells
    shape = [len(row.answers) for row in table.rows]
    found = [len(row) if _is_row(row) else None for row in given] if _is_row(given) else None
    if found != shape:
        lines = f"{len(shape)} rows of {_counts(shape)} cells" if len(shape) > 1 else ""
        return f"{name} needs {lines or f'{shape[0]} cells'}, with ... where one is empty."
    verdicts = [
        [judge(a, as_written(g)) for a, g in zip(row.answers, mine, strict=True)]
        for row, mine in zip(table.rows, given, strict=True)
    ]
    every = [v for row in verdicts for v in row]
    sums = {kind: every.count(kind) for kind in (RIGHT, WRONG, ROUGH, EMPTY)}
    if sums[EMPTY] == len(every):
        return f"{name}: all {len(every)} cells are still empty. Put your numbers in their places."
    told = f"{name}: {sums[RIGHT]} of {len(every)} right"
    told += f", {sums[WRONG]} wrong (✗)" if sums[WRONG] else ""
    told += f", {sums[ROUGH]} rounded too far (≈)" if sums[ROUGH] else ""
    told += f", {sums[EMPTY]} still empty (…)" if sums[EMPTY] else ""
    if sums[RIGHT] == len(every):
        return told + "."
    marks = [[MARKS[v] for v in row] for row in verdicts]
    wrong = [
        (a, as_written(g))
        for row, mine, found in zip(table.rows, given, verdicts, strict=True)
        for a, g, verdict in zip(row.answers, mine, found, strict=True)
        if verdict == WRONG
    ]
    slips = dict.fromkeys(slip for a, g in wrong if (slip := table.slip(a, g)))
    grid = _grid(list(zip(table.rows, marks, strict=True)))
    return "\n".join([f"{told}.", grid, *(f"✗ {slip}" for slip in slips)])


def _is_row(cells: Value) -> bool:
    return isinstance(cells, Sequence) and not isinstance(cells, str)


def _counts(shape: Sequence[int]) -> str:
    return str(shape[0]) if len(set(shape)) == 1 else ", ".join(map(str, shape))


def as_written(cell: Value) -> str:
    """A cell's content as a person would write it: `...` is empty, True is yes, 16/25 is 0.64."""
    if cell is ... or cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple | list):
        return "(" + "; ".join(as_written(entry) or "…" for entry in cell) + ")"
    if isinstance(cell, str):
        return cell
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return str(cell)
    return str(int(value)) if value.is_integer() else repr(value)


def _grid(rows: Sequence[tuple[TableRow, Sequence[str]]]) -> str:
    """Rows with the same heads in a table of their own, each under its heads."""
    lines: list[str] = []
    blocks: list[list[list[str]]] = []
    heads: Sequence[str] | None = None
    for row, cells in rows:
        if row.columns != heads:
            heads = row.columns
            blocks.append([["", *heads]] if any(heads) else [])
        blocks[-1].append([row.label, *cells])
    for block in blocks:
        widths = [max(map(len, column)) for column in zip(*block, strict=True)]
        for cells in block:
            pairs = zip(cells, widths, strict=True)
            lines.append("  " + "  ".join(f"{cell:{width}}" for cell, width in pairs).rstrip())
    return "\n".join(lines)


def _show_markdown(text: str) -> None:
    if notebook() is None:
        say(text)
        return
    from IPython.display import Markdown, display

    display(Markdown(text))
