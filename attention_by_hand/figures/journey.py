"""One token on its way through a small encoder: *you are here*, and what its neighbours weigh.

The numbers are in `one_token` and, those of the first picture, in `two_banks`; `benchmarks/` has
the scripts that made them.
"""

from dataclasses import dataclass
from typing import Any

from attention_by_hand import plots
from attention_by_hand.figures import two_banks
from attention_by_hand.figures.dataflow import SHAPES, Box, Flow
from attention_by_hand.figures.one_token import MADE, TEXTS

HEAD = 1  # the one whose weights are shown
QUIET = "#5E5E5E"
CELL = 0.54  # the width of a number of a vector, in inches
LOOKS_BACK = (0.05, 0.15, 0.75, 0.05)  # made up: a writer, about to write "gut"


@dataclass(frozen=True)
class Step:
    """A step: what it is called, the chapters that are about it, and what it gives."""

    name: str
    chapters: tuple[int, ...]
    stage: str
    kind: str = "plain"
    by_word: bool = False  # one number for each word, of one head


STEPS = (
    Step("embedding", (5,), "embedding"),
    Step("+ position", (5,), "input", "position"),
    Step(r"query $q$", (2,), "query", "query"),
    Step(r"scores $q \cdot k_j\,/\,\sqrt{d_k}$", (2,), "scores", "key", by_word=True),
    Step("mask", (4,), "masked", "key", by_word=True),
    Step("softmax", (1, 4), "weights", "key", by_word=True),
    Step("average of values", (1, 3), "average", "value"),
    Step(r"$\times\ W^O$", (3,), "attended", "value"),
    Step("add & norm", (6,), "norm1"),
    Step("feed-forward", (6,), "thought"),
    Step("add & norm", (6,), "norm2"),
    Step("kind of word", (), "output"),
)


def numbers(step: Step, text: str) -> list[float | None]:
    """What a step gives for the token: a vector, the heads side by side, or a number a word."""
    found = TEXTS[text]["stages"][step.stage]
    if step.by_word:
        return found[HEAD]
    if isinstance(found[0], list):
        return [number for head in found for number in head]
    return found


def format_number(number: float | None, places: int = 2) -> str:
    """A number to some decimal places, with a true minus sign; None is −∞."""
    if number is None:
        return "−∞"
    return f"{round(number, places) + 0.0:.{places}f}".replace("-", "−")


def likeliest(text: str) -> tuple[str, float]:
    """The kind of word that the model takes the token for, and with what probability."""
    found = TEXTS[text]["stages"]["output"]
    return MADE["kinds"][found.index(max(found))], max(found)


def station(chapter: int, text: str = "she sings well .") -> None:
    """The way of *well* through the encoder, and its numbers at what the chapter is about.

    A step that comes in a later chapter has no name yet. Chapter 7 is about all of it. Chapter 1
    knows one average, and lines show what it is made of.
    """
    shown = [chapter == 7 or chapter in step.chapters for step in STEPS]
    words = [word for word in TEXTS[text]["words"] if chapter > 1 or not word.startswith("⟨")]
    headed = next((i for i, s in reversed([*enumerate(STEPS)]) if s.by_word and shown[i]), None)
    heights = [0.42 if on else 0.31 for on in shown]
    room = 0.0 if headed is None else 0.8 if chapter == 1 else 0.3
    asks = any(on and step.stage == "query" for on, step in zip(shown, STEPS, strict=True))
    flow = Flow(5.2, 0.66 + sum(heights) + room + 0.3 * asks)
    columns = [2.42 + 0.6 * i for i, _ in enumerate(words)]
    flow.text(1.05, 0.2, f"“{words[TEXTS[text]['place']]}”", weight="bold")
    y, below = 0.42, (1.05, 0.32)
    for i, (step, on, height) in enumerate(zip(STEPS, shown, heights, strict=True)):
        centre = y + height / 2
        known = not step.chapters or min(step.chapters) < chapter
        box = flow.box(
            1.05,
            centre,
            step.name if on or known else "",
            step.kind if on else "plain",
            width=1.9,
            height=height - (0.1 if on else 0.09),
            new=on and chapter != 7,
            size=SHAPES if on else SHAPES - 0.5,
        )
        flow.arrow(below, box.bottom, head=False)
        below = box.top
        y += height
        if not on:
            continue
        if step.stage == "output":
            kind, probability = likeliest(text)
            flow.text(columns[0] - 0.26, centre, f"{kind}, {probability:.2f}", ha="left")
            continue
        found = numbers(step, text)
        if chapter == 1 and step.stage == "average":
            middle = (columns[0] + columns[-1]) / 2
            for place, weight in zip(columns, TEXTS[text]["stages"]["weights"][HEAD], strict=False):
                ends = ((place + 0.03, middle), (centre - 0.6, centre - 0.15))
                flow.axes.plot(*ends, color=plots.BLUE, lw=0.5 + 8 * weight)
            for place, number in zip((middle - 0.3, middle + 0.3), found[2:], strict=True):
                flow.text(place + 0.24, centre, format_number(number), ha="right", size=SHAPES)
            continue
        for place, number in zip(columns, found, strict=False):
            flow.text(place + 0.24, centre, format_number(number), ha="right", size=SHAPES)
        if step.stage in ("query", "average"):  # between the heads
            bar = (columns[1] + columns[2]) / 2
            flow.axes.plot((bar, bar), (centre - 0.13, centre + 0.13), color=QUIET, lw=1.0)
        if not step.by_word:
            shape = "$(2,\\ 2)$" if step.stage in ("query", "average") else "$(4,)$"
            flow.text(columns[-1] + 0.24, centre, shape, ha="right", size=SHAPES, color=QUIET)
        if step.stage == "query":
            for first, label in ((0, "query 0"), (2, "query 1")):
                middle = (columns[first] + columns[first + 1]) / 2 + 0.12
                flow.text(middle, y + 0.12, label, size=SHAPES, style="italic")
            y += 0.3
        if i == headed:
            for place, word in zip(columns, words, strict=True):
                flow.text(place + 0.24, y + 0.12, word, ha="right", size=SHAPES, style="italic")
            y += room


def bottleneck() -> None:
    """What changed: one vector for all; the writer looks back; each word looks at all of them."""
    flow = Flow(5.0, 7.9)
    text = next(iter(TEXTS))
    words = [word for word in TEXTS[text]["words"] if not word.startswith("⟨")]
    places = [0.5 + 0.9 * i for i in range(len(words))]
    weights = TEXTS[text]["stages"]["weights"][HEAD]

    def chain(floor: float, ends: bool) -> list[Box]:
        """The words, and above them the states that are handed on, the last one marked."""
        states = []
        for x, word in zip(places, words, strict=True):
            token = flow.box(x, floor, word, "plain", width=0.8, height=0.36)
            marked = ends and word == words[-1]
            states.append(flow.box(x, floor + 0.75, "", "key", width=0.4, height=0.4, new=marked))
            flow.arrow(token.top, states[-1].bottom)
        for one, other in zip(states, states[1:], strict=False):
            flow.arrow(one.right, other.left, lw=2.0)
        return states

    flow.text(0.1, 7.7, "1  One vector holds the sentence", ha="left", weight="bold")
    states = chain(6.15, ends=True)
    writer = flow.box(4.5, 6.9, "“gut”", "query", width=0.85)
    flow.arrow(states[-1].right, writer.left, lw=2.0, color=plots.VERMILLION)
    flow.text(writer.x, 7.3, "the writer", size=SHAPES)

    flow.text(0.1, 5.45, "2  The writer looks back", ha="left", weight="bold")
    states = chain(3.35, ends=False)
    writer = flow.box(4.5, 4.9, "“gut”", "query", width=0.85, new=True)
    for state, weight in zip(states, LOOKS_BACK, strict=True):
        start = (state.x, state.top[1])
        line: dict[str, Any] = {"head": False, "color": plots.BLUE, "lw": 0.8 + 11 * weight}
        flow.arrow(start, (writer.left[0], writer.y + 0.14 - 0.12 * state.x / 1.2), **line)

    flow.text(0.1, 2.65, "3  Every word looks at every word", ha="left", weight="bold")
    for x, word in zip(places, words, strict=True):
        above = flow.box(x, 1.6, "", "key", width=0.4, height=0.4, new=word == "well")
        for other, seen, weight in zip(places, words, weights, strict=False):
            if x == other:
                flow.box(other, 0.3, seen, "plain", width=0.8, height=0.36)
            asks = word == "well"
            lw, colour = (0.8 + 11 * weight, plots.BLUE) if asks else (0.6, QUIET)
            flow.arrow((other, 0.48), (x, above.bottom[1]), head=False, lw=lw, color=colour)
        flow.arrow(above.top, (4.07, 1.93 + 0.09 * (3.2 - x)), head=False, lw=0.6, color=QUIET)
    flow.box(4.5, 2.05, "“gut”", "plain", width=0.85)
    flow.text(3.62, 1.5, "all at once", ha="left", size=SHAPES)


def neighbours() -> None:
    """*bank* in two sentences: the same numbers go in; out comes an average of the values."""
    flow = Flow(5.0, 7.3)
    senses = ("by the water", "with money")
    for found, floor in zip(two_banks.TEXTS.values(), (3.75, 0.05), strict=True):
        places = [0.5 + 1.0 * i for i in range(len(found["words"]))]
        x = places[found["place"]]
        likeliest = max(found["answer"])
        sense = senses[found["answer"].index(likeliest)]
        _row(flow, x, floor + 0.2, found["embedding"], "plain", cell=0.62)
        flow.text(x + 1.32, floor + 0.2, "from the table", ha="left", size=SHAPES)
        flow.arrow((x, floor + 0.37), (x, floor + 0.62), head=False, color=QUIET)
        gathered = _row(flow, x, floor + 2.75, found["average"], "value", cell=0.62)
        flow.text(x + 0.75, floor + 2.75, "weighted average", ha="left", size=SHAPES)
        flow.arrow(gathered.top, (x, floor + 3.1), color=QUIET)
        flow.text(x, floor + 3.25, f"$\\it{{bank}}$: {sense}, {likeliest:.2f}", color=QUIET)
        columns = zip(places, found["words"], found["values"], found["weights"], strict=True)
        for place, word, value, weight in columns:
            asked = flow.box(place, floor + 0.8, word, "plain", width=0.8, height=0.36)
            says = _row(flow, place, floor + 1.35, value, "value", cell=0.48, places=1)
            flow.arrow(asked.top, says.bottom, head=False, color=QUIET)
            flow.arrow(
                says.top, gathered.bottom, head=False, color=plots.BLUE, lw=0.8 + 11 * weight
            )
            side = -1 if place <= x else 1
            flow.text(place + 0.3 * side, floor + 1.62, f"{weight:.2f}", size=SHAPES)


def _row(
    flow: Flow,
    x: float,
    y: float,
    numbers: list[float],
    kind: str,
    cell: float = CELL,
    places: int = 2,
) -> Box:
    """A vector as a row of cells around (x, y), its numbers in them, rounded to some places."""
    cells = [
        flow.box(x + cell * (i - (len(numbers) - 1) / 2), y, format_number(number, places), kind,
                 width=cell, height=0.34, size=SHAPES)
        for i, number in enumerate(numbers)
    ]  # fmt: skip
    return Box(x, y, cell * len(cells), 0.34)


def chapters() -> None:
    """Where each chapter stands: parts of a Transformer, what was before it and what came after."""
    flow = Flow(5.6, 5.3)
    middle, wide = 2.8, 1.9
    flow.frame(1.57, 0.05, 4.03, 5.2, "7  the Transformer")
    words = flow.box(middle, 0.35, "words", "plain", width=wide, height=0.36)
    below = flow.box(middle, 1.0, "5  positions", "position", width=wide)
    flow.arrow(words.top, below.bottom)
    flow.frame(1.7, 1.45, 3.9, 3.72, "3  heads")
    for y, name, kind in (
        (1.85, "2  scores", "query"),
        (2.5, "4  masks", "key"),
        (3.15, "1  softmax, average", "value"),
    ):
        part = flow.box(middle, y, name, kind, width=wide)
        flow.arrow(below.top, part.bottom)
        below = part
    rest = flow.box(middle, 4.25, "6  add & norm,\nfeed-forward", width=wide, height=0.6)
    flow.arrow(below.top, rest.bottom)
    flow.arrow(rest.top, (middle, 4.85))
    before = flow.box(0.7, 2.5, "8  recurrence,\nconvolution", "plain", width=1.3, height=0.6)
    decoder = flow.box(4.9, 3.3, "9  language\nmodels", "plain", width=1.3, height=0.6)
    encoder = flow.box(4.9, 2.5, "10  BERT", "plain", width=1.3, height=0.6)
    pictures = flow.box(4.9, 1.7, "11  ViT", "plain", width=1.3, height=0.6)
    captions = flow.box(4.9, 0.9, "12  BLIP", "plain", width=1.3, height=0.6)
    flow.arrow(before.right, (1.57, 2.5))
    for after in (decoder, encoder, pictures, captions):
        flow.arrow((4.03, after.y), after.left)
    flow.text(before.x, 3.0, "before", size=SHAPES)
    flow.text(decoder.x, 3.8, "after", size=SHAPES)
